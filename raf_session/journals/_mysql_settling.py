"""Waiting for what commits, whoever cancels the wait."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, CancelledError, Future
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, Final, Generic, TypeVar

import anyio
from typing_extensions import override

__all__ = ("Settled",)

_T = TypeVar("_T")

_SETTLE_SECS: Final = 5.0


class Settled(Awaitable[_T], Generic[_T]):
    """A call that ends before it is cancelled.

    A server goes on with a commit when its client is gone: cancelled at once, the call
    would take effect some time later. Cancellation is raised when the answer is there,
    or, where none comes for five seconds, when the call was cancelled as well.

    It runs in the task that awaits it: one of its own would double the turns of the
    event loop that an append takes.

    Args:
        call: what to wait for.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Coroutine[Any, Any, _T]) -> None:
        self._call = call

    @override
    def __await__(self) -> Generator[Any, Any, _T]:
        """Wait for its end."""
        call = self._call
        cancelled = None
        try:
            while True:
                waiting: Future[Any] | None = call.send(None)
                if cancelled is None:
                    cancelled = yield from _until_cancelled(waiting)
                if cancelled is not None and waiting is not None:
                    yield from _patiently(waiting)
        except StopIteration as end:
            if cancelled is not None and _is_cancelled():
                raise cancelled from None
            result: _T = end.value
            return result
        except (Exception, CancelledError):
            if cancelled is not None and _is_cancelled():
                raise cancelled from None
            raise


def _until_cancelled(
    waiting: Future[Any] | None,
) -> Generator[Any, Any, CancelledError | None]:
    """Wait for what the call waits for; return what cancelled that.

    How it ended is for the call, which looks when it goes on.
    """
    try:
        if waiting is None:
            yield
        else:
            yield _Shielded(waiting)
    except CancelledError as error:
        return None if waiting is not None and waiting.cancelled() else error
    except Exception:
        if waiting is None or not waiting.done():
            raise
    return None


def _patiently(waiting: Future[Any]) -> Generator[Any, Any, None]:
    """Wait for it whatever is cancelled, but not for ever."""
    with anyio.CancelScope(shield=True):  # noqa: ASYNC100  (a generator of awaits)
        giving_up = waiting.get_loop().call_later(_SETTLE_SECS, waiting.cancel)
        while not waiting.done():
            yield from _until_cancelled(waiting)
        giving_up.cancel()


class _Shielded:
    """A future as a task waits for it, that may be cancelled without it.

    `asyncio.shield` takes a turn of the event loop more to say that the future is done:
    here the task is woken by the future itself.

    Args:
        waiting: the future.
    """

    __slots__ = ("_asyncio_future_blocking", "_context", "_waiting", "_wake")

    def __init__(self, waiting: Future[Any]) -> None:
        self._waiting = waiting
        # By this a task knows what it can wait for; it takes it back then.
        self._asyncio_future_blocking = True
        waiting._asyncio_future_blocking = False  # noqa: SLF001  (as a task does)

    def get_loop(self) -> AbstractEventLoop:
        return self._waiting.get_loop()

    def add_done_callback(
        self, wake: Callable[[Future[Any]], object], *, context: Context | None = None
    ) -> None:
        self._wake, self._context = wake, context
        self._waiting.add_done_callback(wake, context=context)

    def cancel(self, msg: object = None) -> bool:
        if self._waiting.done() or not self._waiting.remove_done_callback(self._wake):
            return False  # the task is about to be woken
        cancelled: Future[Any] = self.get_loop().create_future()
        cancelled.add_done_callback(self._wake, context=self._context)
        return cancelled.cancel(msg)


def _is_cancelled() -> bool:
    """Tell whether the task is; a time limit inside the call may have ended by now."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
