"""Pools of connections: the journal's own, or one of `asyncpg` that was given."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from typing_extensions import override

from raf_session.journals._postgres_connections import PostgresConnection, Settings
from raf_session.journals._postgres_driver import DriverConnection, DriverPool
from raf_session.journals._sql_dialect import Connection, Pool, Translation
from raf_session.journals._sql_pools import Slots

__all__ = ("GivenPool", "OwnPool")

_IDLE_SECS: Final = 240.0
"""What was idle for longer is not used again: something on its way may have cut it."""
_STATEMENTS: Final = 64


class OwnPool(Pool):
    """Connections that the journal makes.

    The driver's own pool asks the server to forget the state of a session each time;
    there is none here, and a release need not wait.

    Args:
        connect: makes a connection.
        size: how many there may be.
        translate: the core's SQL into PostgreSQL's.
        settings: of the server.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[DriverConnection]],
        *,
        size: int,
        translate: Translation,
        settings: Settings,
    ) -> None:
        self._connect = connect
        self._translate = translate
        self._settings = settings
        self._slots = Slots(size)
        self._idle: list[PostgresConnection] = []
        self._used: set[PostgresConnection] = set()
        self._oldest = 0.0
        """Connections that were made before are not used again."""

    @property
    def used(self) -> int:
        """How many connections are checked out."""
        return len(self._used)

    @override
    def acquire_now(self) -> Connection | None:
        """Check a connection out that is idle, where nobody waits for one."""
        if not self._slots.take_now():
            return None
        connection = self._find()
        if connection is None:
            self._slots.give()
        return connection

    @override
    async def acquire(self) -> Connection:
        """Check a connection out, or wait for one."""
        await self._slots.take()
        try:
            return self._find() or await self._make()
        except BaseException:
            self._slots.give()
            raise

    def _find(self) -> PostgresConnection | None:
        since = time.monotonic() - _IDLE_SECS
        while self._idle:
            connection = self._idle.pop()
            if (
                connection.made_at >= self._oldest
                and connection.used_at > since
                and not connection.lent.is_closed()
            ):
                self._used.add(connection)
                return connection
            connection.terminate()
        return None

    async def _make(self) -> PostgresConnection:
        now = time.monotonic()
        connection = PostgresConnection(
            await self._connect(),
            self._translate,
            self._settings,
            made_at=now,
            statements=0 if self._settings.pooled else _STATEMENTS,
        )
        self._used.add(connection)
        return connection

    @override
    async def release(self, connection: Connection, /) -> None:
        """Give it back, in a transaction no more, or terminated."""
        assert isinstance(connection, PostgresConnection)  # noqa: S101  (from `acquire`)
        self._used.remove(connection)
        lent = connection.lent
        if lent.is_closed() or lent.is_in_transaction():
            lent.terminate()
        else:
            connection.used_at = time.monotonic()
            self._idle.append(connection)
        self._slots.give()

    @override
    async def close(self) -> None:
        """Close it, once every connection is back."""
        await self._slots.take_all()
        idle, self._idle = self._idle, []
        ends = await asyncio.gather(
            *(connection.lent.close() for connection in idle), return_exceptions=True
        )
        for connection, end in zip(idle, ends, strict=True):
            if end is not None:  # it was dead
                connection.terminate()

    @override
    def terminate(self) -> None:
        """Close every connection at once."""
        for connection in (*self._used, *self._idle):
            connection.terminate()
        self._idle.clear()

    @override
    def renew(self) -> None:
        """Take care that connections that are idle now are not used again."""
        self._oldest = time.monotonic()


class GivenPool(Pool):
    """A pool of `asyncpg` that the user has, and closes.

    Args:
        lender: the pool.
        translate: the core's SQL into PostgreSQL's.
        settings: of the server.
    """

    def __init__(
        self, lender: DriverPool, translate: Translation, settings: Settings
    ) -> None:
        self._lender = lender
        self._translate = translate
        self._settings = settings
        self._renewal: asyncio.Future[None] | None = None

    @override
    async def acquire(self) -> Connection:
        """Check a connection out, or wait for one."""
        return PostgresConnection(
            await self._lender.acquire(), self._translate, self._settings
        )

    @override
    async def release(self, connection: Connection, /) -> None:
        """Give it back; the driver protects this from cancellation."""
        assert isinstance(connection, PostgresConnection)  # noqa: S101  (from `acquire`)
        await self._lender.release(connection.lent)

    @override
    async def close(self) -> None:
        """Leave the pool to whom it belongs."""

    @override
    def terminate(self) -> None:
        """Leave the pool to whom it belongs."""

    @override
    def renew(self) -> None:
        """Take care that connections that are idle now are not used again."""
        self._renewal = asyncio.ensure_future(self._lender.expire_connections())
