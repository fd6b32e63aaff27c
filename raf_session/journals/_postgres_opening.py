"""What is done once, when a journal is opened: look at the server and its tables."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from raf_session.errors import StorageBusyError, StorageError
from raf_session.journals import _postgres_schema
from raf_session.journals._postgres_dialect import BACKEND, PostgresDialect
from raf_session.journals._postgres_driver import DriverConnection, DriverPool
from raf_session.journals._sql_runner import storage_error

__all__ = ("Opening",)

_OLDEST: Final = 130_000
"""The oldest server, as ``server_version_num`` has it.

It sorts within the order of an index, as listings by activity need.
"""
_FACTS: Final = """
    SELECT pg_backend_pid(), current_setting('server_version_num')::int,
        current_setting('server_encoding'), current_setting('synchronous_commit'),
        current_setting('fsync'), current_setting('full_page_writes'),
        current_setting('default_transaction_read_only')
"""
_FORBIDDEN: Final = {"42501", "25006"}


class Opening:
    """Opens a journal, and makes its tables.

    Args:
        dialect: what is found out goes into its settings.
        lender: the user's pool, where there is one.
        power: whether an acknowledged write survives the loss of power.
        busy_timeout_secs: how long to wait for a connection.
    """

    def __init__(
        self,
        dialect: PostgresDialect,
        lender: DriverPool | None,
        *,
        power: bool,
        busy_timeout_secs: float,
    ) -> None:
        self._dialect = dialect
        self._lender = lender
        self._power = power
        self._busy_timeout_secs = busy_timeout_secs

    async def open(self, *, migrate: bool) -> None:
        """Look at the server, and at the tables or make them."""
        schema = self._dialect.schema
        async with self._connected() as connection:
            await self._look(connection)
            if await _postgres_schema.check(connection, schema):
                return
            if not migrate:
                raise self._refusal("missing or of an older version")
            await _postgres_schema.migrate(connection, schema)

    async def migrate(self) -> None:
        """Make the tables, or bring them to this version."""
        async with self._connected() as connection:
            await _postgres_schema.migrate(connection, self._dialect.schema)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[DriverConnection]:
        try:
            async with asyncio.timeout(self._busy_timeout_secs):
                connection = await (
                    self._dialect.connect()
                    if self._lender is None
                    else self._lender.acquire()
                )
            try:
                yield connection
            finally:
                with anyio.CancelScope(shield=True):
                    await self._part(connection)
        except TimeoutError as error:
            if isinstance(error, StorageError):
                raise
            detail = f"no connection within {self._busy_timeout_secs:g} s"
            raise StorageBusyError(BACKEND, detail) from error
        except Exception as error:
            fault = self._dialect.fault(error)
            if fault is None:
                raise
            if getattr(error, "sqlstate", None) in _FORBIDDEN:
                raise self._refusal(f"not for this role ({fault.detail})") from error
            raise storage_error(BACKEND, fault) from error

    async def _part(self, connection: DriverConnection) -> None:
        if self._lender is not None:
            await self._lender.release(connection)
        elif not connection.is_closed():
            try:
                async with asyncio.timeout(self._busy_timeout_secs):
                    await connection.close()
            except Exception:  # noqa: BLE001  (it is going away in any case)
                connection.terminate()

    def _refusal(self, reason: str) -> StorageError:
        return StorageError(
            BACKEND,
            f"the schema {self._dialect.schema!r} is {reason}: run "
            "`raf-session migrate URL` as a role that may make it; other roles need "
            "USAGE of the schema and SELECT, INSERT, UPDATE and DELETE on its tables",
        )

    async def _look(self, connection: DriverConnection) -> None:
        (facts,) = await connection.fetch(_FACTS)
        process, version, encoding, commit, fsync, pages, read_only = facts
        settings = self._dialect.settings
        settings.pooled = process != connection.get_server_pid()
        settings.asynchronous = commit == "off" or (self._power and commit == "local")
        settings.read_only = read_only == "on"
        if version < _OLDEST:
            raise StorageError(
                BACKEND, f"the server is of version {version // 10_000}, 13 is needed"
            )
        if encoding != "UTF8":
            raise StorageError(
                BACKEND, f"the database is encoded in {encoding}, UTF8 is needed"
            )
        if self._power and fsync == "off":
            raise StorageError(
                BACKEND, "durability 'power' needs the server's setting fsync = on"
            )
        if self._power and pages == "off":
            warnings.warn(
                "the PostgreSQL server has full_page_writes = off: durability 'power' "
                "holds only where its file system writes pages whole",
                RuntimeWarning,
                stacklevel=6,
            )
