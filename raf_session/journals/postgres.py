"""The journal in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from typing_extensions import override

from raf_session.clock import Clock, utc_now
from raf_session.journal import Codec, Commit, Durability
from raf_session.journals._postgres_append import (
    call,
    call_by_version,
    is_plain,
    is_single,
)
from raf_session.journals._postgres_dialect import BACKEND, PostgresDialect
from raf_session.journals._postgres_driver import DriverPool
from raf_session.journals._postgres_known import KnownHeads
from raf_session.journals._postgres_opening import Opening
from raf_session.journals._postgres_reads import found_in, statement
from raf_session.journals._postgres_urls import driver_url
from raf_session.journals._records import Found
from raf_session.journals._sql_dialect import Row
from raf_session.journals._sql_journal import SqlJournal
from raf_session.journals._sql_pools import event_loop
from raf_session.journals._sql_runner import Duplicate, Runner, Work
from raf_session.journals._sql_writes import Append
from raf_session.keys import SessionKey
from raf_session.options import Limits, Window

__all__ = ("PostgresJournal",)

_T = TypeVar("_T")

_MAX_BODY: Final = 255 * 2**20
"""A quarter of what fits into a value."""


class PostgresJournal(SqlJournal):
    """Sessions in a PostgreSQL database, shared by any number of processes.

    An append is one statement, or one call to a function of the server. A pooler as
    PgBouncer may stand between, in transaction mode too: that is noticed when the
    journal is opened.

    A journal that was opened by a URL may be used from any thread and event loop, each
    with connections of its own, and by forked children; one over a pool on the event
    loop of the pool.

    Args:
        target: ``postgresql://user:password@host:port/database``, also with the names
            of drivers as SQLAlchemy has them; or a pool of `asyncpg`, which is used and
            never closed.
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text.
        durability: ``kill``: what was acknowledged survives the death of every process,
            the server's too; ``power``: the server has synced it to its disk.
        schema: where the tables stand; it is made where it is missing.
        migrate: whether opening makes the tables, or brings them to this version; else
            they have to be there.
        pool_size: the most connections for each event loop that uses the journal.
        busy_timeout_secs: how long to wait for one.

    Raises:
        ValueError: a URL of something else, a durability of another name, a negative
            time, a pool without connections, no name for the schema.
    """

    def __init__(
        self,
        target: str | object,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
        schema: str = "raf_session",
        migrate: bool = True,
        pool_size: int = 10,
        busy_timeout_secs: float = 30.0,
    ) -> None:
        if not schema or "\0" in schema or len(schema.encode()) > 63:
            raise ValueError(f"{schema!r} is no name for a schema")
        if pool_size < 1:
            raise ValueError(f"pool_size={pool_size} is under 1")
        url, timeout = driver_url(target) if isinstance(target, str) else ("", None)
        dialect = PostgresDialect(
            url,
            schema=schema,
            pool_size=pool_size,
            timeout=timeout or busy_timeout_secs or 1.0,
        )
        self._postgres = dialect
        lender = None if isinstance(target, str) else cast("DriverPool", target)
        self._migrate = migrate
        self._opening = Opening(
            dialect,
            lender,
            power=durability == "power",
            busy_timeout_secs=busy_timeout_secs,
        )
        super().__init__(
            dialect,
            None if lender is None else dialect.given(lender),
            limits=limits,
            clock=clock,
            codec=codec,
            durability=durability,
            busy_timeout_secs=busy_timeout_secs,
        )
        self._max_body = _MAX_BODY
        self._known = KnownHeads()

    @property
    def schema(self) -> str:
        """Where the tables stand."""
        return self._postgres.schema

    # Opening ---------------------------------------------------------------------

    async def migrate(self) -> None:
        """Make the tables, or bring them to this version; the journal need not be open.

        Raises:
            StorageError: the server cannot be reached, or this role may not.
            SchemaVersionError: a newer library made them.
        """
        event_loop(BACKEND)
        await self._opening.migrate()

    @override
    async def _prepare(self, runner: Runner) -> None:
        await self._opening.open(migrate=self._migrate)

    # Writes ----------------------------------------------------------------------

    @override
    async def _append(self, append: Append) -> Commit:
        commit = None
        if is_plain(append) and not self._postgres.settings.read_only:
            with suppress(Duplicate):
                commit = await self._append_at_once(append)
        return commit or await super()._append(append)

    async def _append_at_once(self, append: Append) -> Commit | None:
        """Do it in one call; `None`: it is not plain after all, and nothing was done.

        Raises:
            Duplicate: an id is known, and nothing was done.
        """
        settings = self._postgres.settings
        single = is_single(append) and not settings.pooled
        known = self._known.find(append) if single else None
        if known is not None:
            sql, values, head = call_by_version(
                append, known, self._rules, synced=settings.asynchronous
            )
            if rows := await self._called(sql, values):
                _, _, tail_at, xmin = rows[0]
                self._known.note(head, known.number, xmin)
                return append.stored(head, tail_at)
        sql, values = call(
            append, self._rules, synced=settings.asynchronous, single=single
        )
        rows = await self._called(sql, values)
        if not rows or rows[0][0] is None:
            return None
        commit = append.done(rows[0])
        if single:
            self._known.note(commit.head, rows[0][0], rows[0][-1])
        else:
            self._known.forget(append.key)
        return commit

    def _called(self, sql: str, values: tuple[Any, ...]) -> Awaitable[Sequence[Row]]:
        return self._opened().call(lambda c: c.rows(sql, *values))

    @override
    async def _write(
        self, key: SessionKey, work: Work[_T], *, again: bool = False
    ) -> _T:
        self._known.forget(key)
        return await super()._write(key, work, again=again)

    # Reads -----------------------------------------------------------------------

    @override
    async def _read(self, key: SessionKey, window: Window, *, archived: bool) -> Found:
        sql, values = statement(key, window, archived=archived)
        rows = await self._opened().call(lambda c: c.rows(sql, *values))
        return found_in(rows, self._rules, self._reads, key, window)
