"""`LoopGuard`: closes what belongs to one event loop, from wherever and in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from concurrent.futures import Future
from typing import Final

__all__ = ("LoopGuard", "close_all")

_PATIENCE_SECS: Final = 15.0
"""How long to wait for another event loop to close what it has,"""
_LOOK_SECS: Final = 0.02
"""and how often to look whether it still runs."""


async def close_all(closing: Iterable[Awaitable[None]]) -> None:
    """Close one after the other; all, even where some raise.

    Raises:
        Exception: what the first of those raised.
    """
    fault: Exception | None = None
    for one in closing:
        try:
            await one
        except Exception as error:  # noqa: BLE001  (raised below)
            fault = fault or error
    if fault is not None:
        raise fault


class LoopGuard:
    """Closes one thing on its event loop: when asked to, or when the loop ends.

    An event loop that ends, as `asyncio.run` does it, cancels its tasks, finishes the
    asynchronous generators that were begun on it, and runs callbacks until it is
    closed.  Whenever in this the thing is to be closed, it is, and no task is left.

    Args:
        close: closes it; called again where it was cancelled.
    """

    def __init__(self, close: Callable[[], Awaitable[None]]) -> None:
        self._close = close
        self._generator = self._until_the_end()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ending = False

    async def begin(self) -> None:
        """Guard the thing from now on, on the running event loop."""
        self._loop = asyncio.get_running_loop()
        await anext(self._generator)

    async def close(self) -> None:
        """Close the thing, from any event loop; nothing where it was not guarded.

        Returns when it is closed, or its event loop does not run, and then closes it
        when it runs again or ends.

        Raises:
            Exception: what closing it raised.
        """
        loop = self._loop
        if loop is None:
            return
        if loop is asyncio.get_running_loop():
            await self._generator.aclose()
            return
        closed: Future[None] = Future()
        try:
            loop.call_soon_threadsafe(self._begin_to_close, loop, closed)
        except RuntimeError:
            return  # it has ended
        waited = asyncio.wrap_future(closed)
        until = time.monotonic() + _PATIENCE_SECS
        while not waited.done() and loop.is_running() and time.monotonic() < until:
            await asyncio.wait([waited], timeout=_LOOK_SECS)
        if waited.done():
            waited.result()

    def _begin_to_close(
        self, loop: asyncio.AbstractEventLoop, closed: Future[None]
    ) -> None:
        if self._ending or self._closing is not None:
            closed.set_result(None)  # it is being closed already
        else:
            self._closing = loop.create_task(self._close_here(closed))

    async def _close_here(self, closed: Future[None]) -> None:
        try:
            await self._close()
        except Exception as error:  # noqa: BLE001  (raised where it is waited for)
            closed.set_exception(error)
        else:
            closed.set_result(None)
        if not self._ending:
            await self._generator.aclose()

    async def _until_the_end(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self._ending = True
            closing = self._closing
            if closing is None:
                await self._close()
            elif closing is not asyncio.current_task():
                await asyncio.wait([closing])
                if closing.cancelled():
                    await self._close()
