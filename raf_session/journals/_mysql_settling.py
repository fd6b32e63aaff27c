"""Waiting for what commits, whoever cancels the wait."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError, Future
from collections.abc import Awaitable, Coroutine, Generator
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
    """Wait for what the call waits for; return what cancelled that."""
    try:
        if waiting is None:
            yield
        else:
            yield from _mirror(waiting)
    except CancelledError as error:
        return error
    return None


def _patiently(waiting: Future[Any]) -> Generator[Any, Any, None]:
    """Wait for it whatever is cancelled, but not for ever."""
    with anyio.CancelScope(shield=True):  # noqa: ASYNC100  (a generator of awaits)
        giving_up = waiting.get_loop().call_later(_SETTLE_SECS, waiting.cancel)
        while not waiting.done():
            yield from _until_cancelled(waiting)
        giving_up.cancel()


def _mirror(waiting: Future[Any]) -> Future[None]:
    """Return a future that ends with this one, and may be cancelled without it."""
    mirror: Future[None] = waiting.get_loop().create_future()

    def end(_: Future[Any]) -> None:
        if not mirror.done():
            mirror.set_result(None)

    waiting.add_done_callback(end)
    return mirror


def _is_cancelled() -> bool:
    """Tell whether the task is; a time limit inside the call may have ended by now."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
