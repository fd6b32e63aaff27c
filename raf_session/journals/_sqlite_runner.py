"""Where the work is done: on the thread of the event loop, or in another."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.lowlevel

from raf_session.errors import StorageBusyError
from raf_session.journals._sqlite_database import Database, Read, Write
from raf_session.journals._sqlite_faults import BACKEND, Busy, TooLong
from raf_session.journals._threads import in_thread

__all__ = ("Runner",)

_T = TypeVar("_T")

_INLINE_BYTES: Final = 64 * 1024
"""A write of fewer bytes may be made on the thread of the event loop."""
_INLINE_ENTRIES: Final = 64
_TURN: Final = 16
"""After so many writes on its thread, the event loop gets a turn."""


class Runner:
    """Runs transactions for coroutines, of any event loop and thread.

    A short write is made at once on the thread of the event loop, where nothing can
    block it: it finds the file free, or the waiting is left to a thread.  All else
    runs in threads.

    Args:
        database: the file.
        inline: whether writes may be made on the thread of an event loop.
        busy_timeout_secs: how long to wait for other writers.
    """

    def __init__(
        self, database: Database, *, inline: bool, busy_timeout_secs: float
    ) -> None:
        self.database = database
        self._inline = inline
        self._busy_timeout_secs = busy_timeout_secs
        self._turns = 0

    async def open(self) -> None:
        """Open the file, or make it."""
        await self.patiently(self.database.open)
        self._inline = self._inline and self.database.wal

    async def close(self) -> None:
        """Close the file, whatever is cancelled; idempotent."""
        with anyio.CancelScope(shield=True):
            await in_thread(self.database.close)

    async def patiently(self, step: Callable[[], _T]) -> _T:
        """Take this step in a thread, again and again while the file is locked.

        Raises:
            StorageBusyError: it was locked for too long.
        """
        until = time.monotonic() + self._busy_timeout_secs
        while True:
            try:
                return await in_thread(step)
            except Busy as busy:
                if time.monotonic() >= until:
                    detail = f"locked for {self._busy_timeout_secs:g} s: {busy}"
                    raise StorageBusyError(BACKEND, detail) from busy.__cause__

    async def read(self, work: Read[_T]) -> _T:
        """Read at one moment."""
        return await self.patiently(partial(self.database.read, work))

    async def write(self, work: Write[_T], *, size: int = 0, entries: int = 0) -> _T:
        """Write here if nothing can block, else in a thread.

        Args:
            work: what to do.
            size: how many bytes it writes, roughly.
            entries: how many entries are among them.
        """
        database = self.database
        if self._inline and size < _INLINE_BYTES and entries <= _INLINE_ENTRIES:
            self._turns += 1
            if self._turns >= _TURN:
                self._turns = 0
                await anyio.lowlevel.checkpoint()
            try:
                result = database.try_write(work, size)
            except (Busy, TooLong):
                result = await self.patiently(partial(database.write, work, size))
        else:
            result = await self.patiently(partial(database.write, work, size))
        if database.crowded:
            await self.checkpoint()
        return result

    async def checkpoint(self) -> None:
        """Move the log into the file, where it has grown long."""
        if self.database.crowded:
            await in_thread(self.database.checkpoint)
