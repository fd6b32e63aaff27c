"""The journal in a MySQL or MariaDB database."""

from __future__ import annotations

import ssl as tls
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, cast

from typing_extensions import override

from raf_session.clock import Clock, utc_now
from raf_session.errors import StorageError
from raf_session.journal import Codec, Commit, Durability
from raf_session.journals._mysql_append import arguments, routine_for
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_dialect import MysqlDialect
from raf_session.journals._mysql_driver import DriverPool
from raf_session.journals._mysql_faults import code_of
from raf_session.journals._mysql_heads import unpacked
from raf_session.journals._mysql_pools import GivenPool
from raf_session.journals._mysql_reads import load
from raf_session.journals._mysql_routine import APPEND, APPEND_ONE, Routine
from raf_session.journals._mysql_schema import migrate, prepare
from raf_session.journals._mysql_server import check_server
from raf_session.journals._mysql_settling import Settled
from raf_session.journals._mysql_urls import connect_options
from raf_session.journals._records import Found
from raf_session.journals._sql_dialect import Connection
from raf_session.journals._sql_journal import SqlJournal
from raf_session.journals._sql_runner import Duplicate, Runner
from raf_session.journals._sql_writes import Append
from raf_session.keys import SessionKey
from raf_session.options import Limits, Window

__all__ = ("MysqlJournal",)

_T = TypeVar("_T")

_PACKET_MARGIN: Final = 16 * 1024
"""What travels beside a body: key, id, and the names of types."""
_LOCK_WAITS: Final = 20
"""So many waits for a row make up the time that a call may take for it."""
_LONGEST_LOCK_WAIT_SECS: Final = 4.0
"""Less than a cancelled call waits for its end, which so comes."""
_NO_ROUTINE: Final = {1305, 1370}
"""It does not exist; the user may not call it."""
_HEAD_TOO_LARGE: Final = 1301
"""The procedure could not write it into one value; what it did was undone."""


class MysqlJournal(SqlJournal):
    """Sessions in a MySQL (from 8.0) or MariaDB (from 10.6) database.

    It needs asyncio. One journal may be used from several threads and event loops; each
    has connections of its own, made when they are needed. A pool that is given is used
    on its event loop alone and never closed; its connections are set to ``utf8mb4``,
    READ COMMITTED and strict mode, and stay so.

    Args:
        target: the URL of a database (``mysql://``, ``mariadb://``, also with a driver
            of SQLAlchemy's, as ``mysql+pymysql://``), or a pool of `asyncmy`.
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored bytes.
        durability: ``kill``: what was acknowledged survives the death of every process,
            the server's included; ``power``: it is on the disk before it is
            acknowledged. A server whose settings do not keep it is refused.
        migrate: whether opening makes the tables where they are missing.
        busy_timeout_secs: how long to wait for a connection, and for rows that others
            have locked.
        pool_size: how many connections an event loop may have.
        pool_recycle_secs: the age at which a connection is replaced.
        ssl: for connections by TLS, in place of the parameters of the URL.

    Raises:
        ValueError: a URL that is none of MySQL, names no database, or has a parameter
            that is not known; a durability of another name; a number out of range.
    """

    def __init__(
        self,
        target: str | DriverPool,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
        migrate: bool = True,
        busy_timeout_secs: float = 30.0,
        pool_size: int = 10,
        pool_recycle_secs: float = 3600.0,
        ssl: tls.SSLContext | None = None,
    ) -> None:
        if pool_size < 1:
            raise ValueError(f"pool_size={pool_size} is under 1")
        if not pool_recycle_secs > 0:
            raise ValueError(f"pool_recycle_secs={pool_recycle_secs} is not positive")
        lock_wait_secs = min(busy_timeout_secs / _LOCK_WAITS, _LONGEST_LOCK_WAIT_SECS)
        options, given = {}, None
        if isinstance(target, str):
            options = connect_options(target, ssl)
        else:
            given = GivenPool(target, lock_wait_secs=lock_wait_secs)
        super().__init__(
            MysqlDialect(
                options,
                pool_size=pool_size,
                pool_recycle_secs=pool_recycle_secs,
                lock_wait_secs=lock_wait_secs,
            ),
            given,
            limits=limits,
            clock=clock,
            codec=codec,
            durability=durability,
            busy_timeout_secs=busy_timeout_secs,
        )
        self._may_migrate: Final = migrate
        self._missing: set[Routine] = set()
        """Procedures that are not there, as far as is known."""

    # Opening ---------------------------------------------------------------------

    @override
    async def _prepare(self, runner: Runner) -> None:
        async def work(connection: MysqlConnection) -> None:
            await check_server(connection, self.durability)
            await prepare(connection, may_migrate=self._may_migrate)
            self._max_body = connection.max_packet - _PACKET_MARGIN
            self._missing.clear()

        await runner.call(_own(work))

    async def migrate(self) -> None:
        """Make the tables, as far as they are missing; the journal need not be open.

        Raises:
            SchemaVersionError: a newer library made them; they are as they were.
            StorageError: the user may not make them.
        """
        if self._runner is not None:
            await self._runner.call(_own(migrate))
            return
        runner = self._make_runner()
        try:
            await runner.call(_own(migrate))
        finally:
            await runner.close()

    # Reading ---------------------------------------------------------------------

    @override
    async def _read(self, key: SessionKey, window: Window, *, archived: bool) -> Found:
        async def work(connection: MysqlConnection) -> Found | None:
            return await load(
                connection, self._rules, self._reads, key, window, archived=archived
            )

        found = await self._opened().call(_own(work))
        if found is None:
            return await super()._read(key, window, archived=archived)
        return found

    # Appending -------------------------------------------------------------------

    @override
    async def _append(self, append: Append) -> Commit:
        runner = self._opened()
        routine = routine_for(append, self._max_body or 0)
        if routine is APPEND_ONE and routine in self._missing:
            routine = APPEND
        if routine is not None and routine not in self._missing:
            text, values = routine.call, arguments(append, routine)
            try:
                result = await runner.call(
                    lambda c: Settled(cast("MysqlConnection", c).run(text, values))
                )
                head = result.rows[0][0] if result.rows else None
            except Duplicate:
                head = None
            except StorageError as error:
                cause, head = error.__cause__, None
                code = None if cause is None else code_of(cause)
                if code in _NO_ROUTINE:
                    self._missing.add(routine)
                    return await self._append(append)
                if code != _HEAD_TOO_LARGE:
                    raise
            if head is not None:
                return append.done(unpacked(head))
        # It was not as simple as that: what there is to say is found out step by step.
        return await super()._append(append)


def _own(
    work: Callable[[MysqlConnection], Awaitable[_T]],
) -> Callable[[Connection], Awaitable[_T]]:
    """Return work of this module as the core takes it."""

    async def do(connection: Connection) -> _T:
        assert isinstance(connection, MysqlConnection)  # noqa: S101  (of its pools)
        return await work(connection)

    return do
