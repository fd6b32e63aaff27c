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
        self._idle: list[tuple[DriverConnection, float, float]] = []
        """With the times when they were made and last used."""
        self._used: dict[DriverConnection, float] = {}
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
        lent = self._find()
        if lent is None:
            self._slots.give()
            return None
        return PostgresConnection(lent, self._translate, self._settings)

    @override
    async def acquire(self) -> Connection:
        """Check a connection out, or wait for one."""
        await self._slots.take()
        try:
            lent = self._find()
            if lent is None:
                made = time.monotonic()
                lent = await self._connect()
                self._used[lent] = made
        except BaseException:
            self._slots.give()
            raise
        return PostgresConnection(lent, self._translate, self._settings)

    def _find(self) -> DriverConnection | None:
        since = time.monotonic() - _IDLE_SECS
        while self._idle:
            lent, made, used = self._idle.pop()
            if made >= self._oldest and used > since and not lent.is_closed():
                self._used[lent] = made
                return lent
            lent.terminate()
        return None

    @override
    async def release(self, connection: Connection, /) -> None:
        """Give it back, in a transaction no more, or terminated."""
        assert isinstance(connection, PostgresConnection)  # noqa: S101  (from `acquire`)
        lent = connection.lent
        made = self._used.pop(lent)
        if lent.is_closed() or lent.is_in_transaction():
            lent.terminate()
        else:
            self._idle.append((lent, made, time.monotonic()))
        self._slots.give()

    @override
    async def close(self) -> None:
        """Close it, once every connection is back."""
        await self._slots.take_all()
        idle = [lent for lent, _, _ in self._idle]
        self._idle.clear()
        ends = await asyncio.gather(
            *(lent.close() for lent in idle), return_exceptions=True
        )
        for lent, end in zip(idle, ends, strict=True):
            if end is not None:  # it was dead
                lent.terminate()

    @override
    def terminate(self) -> None:
        """Close every connection at once."""
        for lent in (*self._used, *(lent for lent, _, _ in self._idle)):
            lent.terminate()
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
