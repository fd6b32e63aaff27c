"""Pools of connections, of one event loop each: the journal's own, or a given one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from raf_session.errors import StorageError
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_driver import Driver, DriverPool, connect
from raf_session.journals._mysql_faults import BACKEND, fault
from raf_session.journals._sql_dialect import Connection, FaultKind, Pool
from raf_session.journals._sql_pools import Slots

__all__ = ("GivenPool", "OwnPool")

_ATTEMPTS: Final = 20
_GONE: Final = {FaultKind.LOST, FaultKind.REFUSED}


class OwnPool(Pool):
    """Connections that the journal makes.

    Args:
        options: how to connect, as `asyncmy.connect` takes it.
        size: how many connections there may be.
        recycle_secs: the age at which a connection is not used again.
        lock_wait_secs: how long a statement waits for a row.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        size: int,
        recycle_secs: float,
        lock_wait_secs: float,
    ) -> None:
        self._options: Final = options
        self._recycle_secs: Final = recycle_secs
        self._lock_wait_secs: Final = lock_wait_secs
        self._slots: Final = Slots(size)
        self._idle: list[MysqlConnection] = []
        self._used: set[MysqlConnection] = set()
        self._oldest = 0.0
        """Connections that are older are not used again."""

    @override
    def acquire_now(self) -> MysqlConnection | None:
        """Check a connection out that is idle, where nobody waits for one."""
        if not self._idle or not self._usable(self._idle[-1]):
            return None
        if not self._slots.take_now():
            return None
        connection = self._idle.pop()
        self._used.add(connection)
        return connection

    @override
    async def acquire(self) -> MysqlConnection:
        """Check a connection out, or wait for one."""
        await self._slots.take()
        try:
            connection = await self._find() or await self._open()
        except BaseException:
            self._slots.give()
            raise
        self._used.add(connection)
        return connection

    async def _find(self) -> MysqlConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if self._usable(connection):
                return connection
            if connection.reusable and connection.checked_at >= self._oldest:
                await connection.close()
            else:
                connection.terminate()
        return None

    def _usable(self, connection: MysqlConnection) -> bool:
        made = connection.checked_at
        return (
            connection.reusable
            and made >= self._oldest
            and time.monotonic() - made <= self._recycle_secs
        )

    async def _open(self) -> MysqlConnection:
        connection = MysqlConnection(await connect(self._options))
        try:
            await connection.set_up(self._lock_wait_secs)
        except BaseException:
            connection.terminate()
            raise
        return connection

    @override
    async def release(self, connection: Connection, /) -> None:
        """Give it back, in a transaction no more, or terminated."""
        assert isinstance(connection, MysqlConnection)  # noqa: S101  (it was acquired)
        self._used.discard(connection)
        if connection.reusable and not connection.driver.get_transaction_status():
            self._idle.append(connection)
        else:
            connection.terminate()
        self._slots.give()

    @override
    async def close(self) -> None:
        """Close it, once every connection is back."""
        await self._slots.take_all()
        while self._idle:
            await self._idle.pop().close()

    @override
    def terminate(self) -> None:
        """Close every connection at once, without awaiting."""
        for connection in (*self._idle, *self._used):
            connection.terminate()
        self._idle.clear()

    @override
    def renew(self) -> None:
        """Take care that connections that are idle now are not used again."""
        self._oldest = time.monotonic()


class GivenPool(Pool):
    """A pool of `asyncmy` that somebody else made, and closes.

    Its connections are set up for the journal when they are first used, and stay so.
    """

    def __init__(self, pool: DriverPool, *, lock_wait_secs: float) -> None:
        self._pool: Final = pool
        self._lock_wait_secs: Final = lock_wait_secs
        self._known: dict[Driver, MysqlConnection] = {}
        self._used: set[MysqlConnection] = set()
        self._oldest = 0.0

    @override
    async def acquire(self) -> MysqlConnection:
        """Check a connection out, or wait for one."""
        for _ in range(_ATTEMPTS):
            connection = await self._take()
            try:
                if connection.checked_at <= self._oldest:
                    await connection.set_up(self._lock_wait_secs)
            except BaseException as error:
                await self.release(connection)
                found = fault(error)
                if found is None or found.kind not in _GONE:
                    raise
            else:
                return connection
        raise StorageError(BACKEND, f"{_ATTEMPTS} connections of the pool were dead")

    async def _take(self) -> MysqlConnection:
        driver = await self._pool.acquire()
        connection = self._known.get(driver)
        if connection is None:
            for other in [known for known in self._known if not known.connected]:
                del self._known[other]
            connection = self._known[driver] = MysqlConnection(driver)
        self._used.add(connection)
        return connection

    @override
    async def release(self, connection: Connection, /) -> None:
        """Give it back, in a transaction no more, or terminated."""
        assert isinstance(connection, MysqlConnection)  # noqa: S101  (it was acquired)
        self._used.discard(connection)
        if not connection.reusable:
            connection.terminate()
        self._pool.release(connection.driver)

    @override
    async def close(self) -> None:
        """Leave the pool to whom it belongs."""
        self._known.clear()

    @override
    def terminate(self) -> None:
        """Close the connections that are checked out; the pool stays."""
        for connection in self._used:
            connection.terminate()

    @override
    def renew(self) -> None:
        """Try each connection before it is used again."""
        self._oldest = time.monotonic()
