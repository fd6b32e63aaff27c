"""`Turn`: one at a time, whichever event loop or thread waits."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

__all__ = ("Turn",)


class Turn:
    """A lock of no event loop, which can be referenced weakly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @asynccontextmanager
    async def taken(self) -> AsyncGenerator[None]:
        """Wait until nobody else has it, and hold it."""
        pause = 0.0
        while not self._lock.acquire(blocking=False):
            await anyio.sleep(pause)
            pause = min(pause + 0.0005, 0.01)
        try:
            yield
        finally:
            self._lock.release()
