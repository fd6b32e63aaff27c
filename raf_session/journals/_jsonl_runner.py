"""Where the work is done: on the thread of the event loop, or in another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.lowlevel

from raf_session.journals._jsonl_files import Busy, TooLong, faults
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_listing import Listing
from raf_session.journals._threads import in_thread

__all__ = ("Runner", "Work")

_T = TypeVar("_T")

Work = Callable[[bool], _T]
"""What to do, told whether it may wait and take long."""

_INLINE_BYTES: Final = 64 * 1024
"""A write of fewer bytes may be made on the thread of the event loop."""
_INLINE_ENTRIES: Final = 64
_TURN: Final = 16
"""After so many writes on its thread, the event loop gets a turn."""


class Runner:
    """Runs work on files for coroutines, of any event loop and thread.

    Args:
        folder: the base directory.
        inline: whether short writes may be made on the thread of an event loop.
        report: told, after the work, what was cut or skipped.
    """

    def __init__(
        self,
        folder: Folder,
        *,
        inline: bool,
        report: Callable[[str, str], None],
    ) -> None:
        self.folder = folder
        self.listing = Listing(folder)
        self._inline = inline
        self._report = report
        self._turns = 0

    async def run(self, work: Work[_T]) -> _T:
        """Do it in a thread."""
        try:
            return await in_thread(partial(self._patiently, work))
        finally:
            self.folder.tell(self._report)

    async def close(self) -> None:
        """Write what caches are behind, whatever is cancelled."""
        with anyio.CancelScope(shield=True):
            await self.run(lambda _: self._close())

    def _close(self) -> None:
        self.folder.close()
        self.listing.close()

    async def write(self, work: Work[_T], *, size: int = 0, entries: int = 0) -> _T:
        """Do it here if nothing can block, else in a thread.

        Args:
            work: what to do.
            size: how many bytes it writes, roughly.
            entries: how many entries are among them.
        """
        if self._inline and size < _INLINE_BYTES and entries <= _INLINE_ENTRIES:
            self._turns += 1
            if self._turns >= _TURN:
                self._turns = 0
                await anyio.lowlevel.checkpoint()
            try:
                with faults():
                    result = work(False)
            except (Busy, TooLong):
                pass  # nothing was done
            else:
                if self.folder.logs.waiting:
                    await in_thread(self._tidy)
                return result
            finally:
                self.folder.tell(self._report)
        return await self.run(work)

    def _patiently(self, work: Work[_T]) -> _T:
        with faults():
            result = work(True)
        self._tidy()
        return result

    def _tidy(self) -> None:
        self.folder.save(self.folder.logs.due(), patient=False)
