"""The threads in which files are worked on, at less cost a call than those of anyio."""

from __future__ import annotations

import asyncio
import os
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

__all__ = ("in_thread",)

_T = TypeVar("_T")

_MOST: Final = 40
"""So many at once, as anyio has them."""


async def in_thread(work: Callable[[], _T]) -> _T:
    """Do this in a thread, with the context of the caller.

    A call that is cancelled before is not begun; one that is cancelled meanwhile ends
    when the work has.
    """
    if not _in_asyncio():
        return await anyio.to_thread.run_sync(work)
    await anyio.lowlevel.checkpoint_if_cancelled()
    context = copy_context()
    call = _Call(asyncio.get_running_loop(), lambda: context.run(work))
    _threads.begin(call)
    await call.wait()
    return call.outcome()


def _in_asyncio() -> bool:
    """Tell whether a task of asyncio calls: a guest of its loop is none."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


class _Call(Generic[_T]):
    """Work that a coroutine waits for."""

    __slots__ = ("_ended", "_error", "_loop", "_result", "_woken", "_work")
    _result: _T

    def __init__(self, loop: AbstractEventLoop, work: Callable[[], _T]) -> None:
        self._loop = loop
        self._work = work
        self._woken = loop.create_future()
        self._ended = False
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work, in a thread."""
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001  (the coroutine raises it)
            self._error = error

    def tell(self) -> None:
        """Wake the coroutine, from a thread."""
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._ended = True
        if not self._woken.done():
            self._woken.set_result(None)

    async def wait(self) -> None:
        """Wait until the work has ended, however often this is cancelled."""
        try:
            await self._woken
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                while not self._ended:
                    self._woken = self._loop.create_future()
                    with suppress(asyncio.CancelledError):
                        await self._woken
            raise

    def outcome(self) -> _T:
        """Return what the work returned, or raise what it raised, once."""
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error


class _Thread:
    """A thread that does one call after another; it keeps no process from its end."""

    def __init__(self, threads: _Threads) -> None:
        self._threads = threads
        self._calls: SimpleQueue[_Call[Any]] = SimpleQueue()
        self.give = self._calls.put
        threading.Thread(target=self._run, name="raf_session", daemon=True).start()

    def _run(self) -> None:
        while True:
            call = self._calls.get()
            call.run()
            # What comes next from who is told now finds this thread, still awake.
            self._threads.free(self)
            call.tell()
            del call


class _Threads:
    """The threads of a process: as many as there was work for at once.

    What was used last is used first, so that it is seldom asleep for long.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with none: those there were are left to the parent of this process."""
        self._lock = threading.Lock()
        self._started = 0
        self._idle: list[_Thread] = []
        self._waiting: deque[_Call[Any]] = deque()

    def begin(self, call: _Call[Any]) -> None:
        """Let a thread do this, as soon as one is free."""
        with self._lock:
            if self._idle:
                thread = self._idle.pop()
            elif self._started < _MOST:
                thread = _Thread(self)
                self._started += 1
            else:
                self._waiting.append(call)
                return
        thread.give(call)

    def free(self, thread: _Thread) -> None:
        """Take a thread back, or let it do what waits."""
        with self._lock:
            if not self._waiting:
                self._idle.append(thread)
                return
            call = self._waiting.popleft()
        thread.give(call)


_threads: Final = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forget)
