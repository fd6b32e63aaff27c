"""The threads in which transactions run, at less cost a call than those of anyio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

__all__ = ("in_thread",)

_T = TypeVar("_T")

_MOST: Final = 40
"""So many at once, as anyio has them."""

_pools: Final[list[Executor]] = []
"""The threads of this process, once there are any; of no event loop."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


async def in_thread(work: Callable[[], _T]) -> _T:
    """Do this in a thread, with the context of the caller.

    A call that is cancelled before is not begun; one that is cancelled meanwhile ends
    when the work has.
    """
    if not _in_asyncio():
        return await anyio.to_thread.run_sync(work)
    await anyio.lowlevel.checkpoint_if_cancelled()
    context = copy_context()

    def run() -> _T:
        try:
            return context.run(work)
        except StopIteration as error:  # no future takes one
            raise RuntimeError("a StopIteration was raised in a thread") from error

    try:
        future = asyncio.get_running_loop().run_in_executor(_pool(), run)
    except RuntimeError:  # the main thread has ended, and with it all pools
        return await anyio.to_thread.run_sync(work)
    results: list[_T] = []
    try:
        with anyio.CancelScope(shield=True):
            results.append(await future)
    finally:
        del future  # it holds an error that holds this frame
    return results[0]


def _pool() -> Executor:
    if not _pools:
        from concurrent.futures import ThreadPoolExecutor

        _pools.append(ThreadPoolExecutor(_MOST, thread_name_prefix="raf_session"))
    return _pools[0]


def _in_asyncio() -> bool:
    """Tell whether a task of asyncio calls: a guest of its loop is none."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False
