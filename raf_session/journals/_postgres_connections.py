"""Connections of `asyncpg`, as the shared journal uses them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from typing_extensions import override

from raf_session.journals._postgres_driver import (
    DRIVER,
    OUTDATED,
    DriverConnection,
    DriverStatement,
)
from raf_session.journals._sql_dialect import Connection, Row, Translation, Value

__all__ = ("Connector", "PostgresConnection", "Settings")

_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SYNCED: Final = f"{_WRITE}; SET LOCAL synchronous_commit = on"


class Settings:
    """What was found out about a server when the journal was opened.

    Attributes:
        pooled: whether a pooler stands between, so that a session is not ours.
        asynchronous: whether a commit would not wait for the log unless asked to.
        read_only: whether a transaction may write only where it says so.
    """

    def __init__(self) -> None:
        self.pooled = False
        self.asynchronous = False
        self.read_only = False


class PostgresConnection(Connection):
    """A connection that a pool has lent.

    Args:
        lent: the driver's.
        translate: the core's SQL into PostgreSQL's.
        settings: of the server.
        made_at: since when it is connected, by the monotonic clock.
        statements: how many it may keep prepared beside the driver, which looks for its
            own at each call.

    Attributes:
        used_at: when it was last used, by the same clock.
    """

    def __init__(
        self,
        lent: DriverConnection,
        translate: Translation,
        settings: Settings,
        *,
        made_at: float = 0.0,
        statements: int = 0,
    ) -> None:
        self.lent = lent
        self.made_at: Final = made_at
        self.used_at = made_at
        self._translate = translate
        self._settings = settings
        self._most_statements = statements
        self._statements: dict[str, DriverStatement] = {}

    @override
    async def begin(self, *, snapshot: bool = False) -> None:
        """Begin a transaction of its own isolation, whatever the server's default."""
        if snapshot:
            await self.lent.execute(_SNAPSHOT)
        else:
            await self.lent.execute(_SYNCED if self._settings.asynchronous else _WRITE)

    @override
    async def commit(self) -> None:
        """Commit it."""
        await self.lent.execute("COMMIT")

    @override
    async def rollback(self) -> None:
        """Undo it, where one was begun, and wait for the end of what was cancelled."""
        await self.lent.execute("ROLLBACK")

    @override
    def terminate(self) -> None:
        """Close the connection at once."""
        self.lent.terminate()

    @override
    async def rows(self, sql: str, /, *values: Value) -> Sequence[Row]:
        """Run a statement and return all its rows."""
        statement = self._statements.get(sql)
        if statement is None:
            if len(self._statements) >= self._most_statements:
                return await self.lent.fetch(self._translate(sql), *values)
            statement = await self.lent.prepare(self._translate(sql))
            self._statements[sql] = statement
        try:
            return await statement.fetch(*values)
        except OUTDATED:
            self._statements.clear()
            raise

    @override
    async def execute(self, sql: str, /, *values: Value) -> None:
        """Run a statement that gives no rows."""
        await self.lent.fetch(self._translate(sql), *values)

    @override
    async def execute_many(self, sql: str, rows: Sequence[Sequence[Value]], /) -> None:
        """Run it for each of these values, in one round trip."""
        await self.lent.executemany(self._translate(sql), rows)

    @override
    async def insert(self, sql: str, /, *values: Value) -> int | None:
        """Insert one row; return its new `number`, `None` where its key is taken."""
        found = await self.rows(
            f"{sql} ON CONFLICT DO NOTHING RETURNING number", *values
        )
        return found[0][0] if found else None


class Connector:
    """Connects, and once begun to its end: the driver does not like it cancelled.

    What is connected when nobody waits for it any more is closed.
    """

    def __init__(self) -> None:
        self._begun: set[asyncio.Task[DriverConnection]] = set()

    async def __call__(self, *args: Any, **options: Any) -> DriverConnection:
        """Return a new connection; the arguments are those of ``asyncpg.connect``."""
        task = asyncio.ensure_future(DRIVER.connect(*args, **options))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_drop)
            raise

    async def close(self) -> None:
        """Wait for what nobody else waits for."""
        if self._begun:
            await asyncio.wait(self._begun)


def _drop(task: asyncio.Task[DriverConnection]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().terminate()
