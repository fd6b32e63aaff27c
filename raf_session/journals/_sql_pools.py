"""Connections for the event loops that use a journal: a pool each, made when needed."""

from __future__ import annotations

import asyncio
import os
import threading
from abc import abstractmethod
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakSet

from typing_extensions import Protocol, override

from raf_session.errors import JournalClosedError
from raf_session.journals._loop_guards import LoopGuard, close_all
from raf_session.journals._sql_dialect import Pool

__all__ = ("GivenPool", "OwnPools", "Pools", "Slots", "event_loop")

_CLOSING_SECS: Final = 10.0
"""How long a pool may take to get its connections back and to close them."""


def event_loop(backend: str) -> AbstractEventLoop:
    """Return the running event loop of asyncio.

    Raises:
        RuntimeError: there is none.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise RuntimeError(
            f"the {backend} journal needs asyncio: its driver runs on no other "
            "event loop, as trio's"
        ) from error


class Slots:
    """How many connections of a pool may still be checked out; the first come first.

    Args:
        size: how many there are.

    Attributes:
        free: how many are left.
    """

    def __init__(self, size: int) -> None:
        self._size: Final = size
        self.free = size
        self._waiters: deque[asyncio.Future[None]] = deque()

    def take_now(self) -> bool:
        """Take one, where one is free."""
        if not self.free:
            return False
        self.free -= 1
        return True

    async def take(self) -> None:
        """Take one, or wait for it."""
        if self.take_now():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give()
            elif turn in self._waiters:
                self._waiters.remove(turn)
            raise

    async def take_all(self) -> None:
        """Take every one, once it is given back."""
        for _ in range(self._size):
            await self.take()

    def give(self) -> None:
        """Give one back, to whoever waits for it."""
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


class Pools(Protocol):
    """Where the connections of the running event loop come from."""

    @abstractmethod
    async def pool(self) -> Pool:
        """Return the pool of the running event loop."""
        ...

    def pool_now(self) -> Pool | None:
        """Return it where it is at hand, without waiting."""
        return None

    @abstractmethod
    async def close(self) -> None:
        """Close what was opened here; idempotent."""
        ...


class GivenPool(Pools):
    """One pool that the user has; it is used on its own event loop and never closed.

    Args:
        backend: the journal's name, for errors.
        pool: the pool.
    """

    def __init__(self, backend: str, pool: Pool) -> None:
        self._backend = backend
        self._pool = pool
        self._loop = event_loop(backend)
        self._process = os.getpid()

    @override
    async def pool(self) -> Pool:
        """Return it.

        Raises:
            RuntimeError: this is another event loop, or a forked child.
        """
        if event_loop(self._backend) is not self._loop or os.getpid() != self._process:
            raise RuntimeError(
                f"the pool that was given to the {self._backend} journal belongs to "
                "another event loop or process: open the journal by its URL, or give "
                "each its own"
            )
        return self._pool

    @override
    async def close(self) -> None:
        """Leave it open."""


class _Home:
    """The pool of one event loop, closed at the latest when the loop shuts down."""

    def __init__(self, backend: str, make: Callable[[], Awaitable[Pool]]) -> None:
        self._backend = backend
        self._make = make
        self._lock = asyncio.Lock()
        self._guard: LoopGuard | None = None
        self._closed = False
        self.made: Pool | None = None

    async def pool(self) -> Pool:
        if self.made is None:
            async with self._lock:
                if self._closed:
                    raise JournalClosedError(self._backend)
                if self._guard is None:
                    self._guard = LoopGuard(self._end)
                    await self._guard.begin()
                if self.made is None:
                    self.made = await self._make()
        return self.made

    async def close(self) -> None:
        self._closed = True
        if self._guard is not None:
            await self._guard.close()

    async def _end(self) -> None:
        async with self._lock:
            self._closed = True
            pool, self.made = self.made, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(_CLOSING_SECS):
                await pool.close()
        except BaseException:
            pool.terminate()
            raise


class OwnPools(Pools):
    """A pool for each event loop that asks for one, in any thread and process.

    A forked child makes pools of its own and never touches those of its parent.

    Args:
        backend: the journal's name, for errors.
        make: makes a pool for the running event loop.
    """

    def __init__(self, backend: str, make: Callable[[], Awaitable[Pool]]) -> None:
        self._backend = backend
        self._make = make
        self._lock = threading.Lock()
        self._homes: dict[AbstractEventLoop, _Home] = {}
        _OPENED.add(self)

    @override
    async def pool(self) -> Pool:
        """Return the pool of the running event loop, made if there is none yet."""
        loop = event_loop(self._backend)
        home = self._homes.get(loop)
        if home is None:
            with self._lock:
                for other in [one for one in self._homes if one.is_closed()]:
                    del self._homes[other]
                home = self._homes.setdefault(loop, _Home(self._backend, self._make))
        return await home.pool()

    @override
    def pool_now(self) -> Pool | None:
        """Return it where it was made before."""
        home = self._homes.get(event_loop(self._backend))
        return None if home is None else home.made

    @override
    async def close(self) -> None:
        """Close the pools of all event loops, those of other threads too."""
        with self._lock:
            homes, self._homes = self._homes, {}
        await close_all([home.close() for home in homes.values()])

    def forget(self) -> None:
        """Leave all pools to the parent of this process, as they are."""
        _PARENTS.append(self._homes)
        self._homes = {}
        self._lock = threading.Lock()


_OPENED: Final[WeakSet[OwnPools]] = WeakSet()
_PARENTS: Final[list[object]] = []
"""What a parent has open: kept, as letting go of it would close it for the parent."""


def _forget_all() -> None:
    for pools in _OPENED:
        pools.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
