"""A journal around another, one of whose calls fails or is cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint

from raf_session.errors import SessionError, StorageError
from raf_session.journal import Journal

__all__ = ("Fault", "InterruptingJournal")

_CALLS: Final = frozenset(
    (
        *("create", "load", "append", "splice", "update", "delete", "scan", "expire"),
        *("scoped_state", "update_scoped_state", "scopes"),
    )
)


class Fault(Enum):
    """What befalls a call."""

    REFUSED = "refused"
    """It raises, and does nothing."""
    UNANSWERED = "unanswered"
    """It does its work, and raises."""
    CANCELLED = "cancelled"
    """Its task is cancelled before it does anything."""
    CANCELLED_LATE = "cancelled late"
    """Its task is cancelled once it has done its work."""


class InterruptingJournal:
    """Counts calls, and lets one of them be befallen by a fault.

    Attributes:
        calls: the names of the calls so far.
        scope: what a fault cancels.
    """

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self.calls: list[str] = []
        self.scope = anyio.CancelScope()
        self._at = -1
        self._fault = Fault.REFUSED

    def arm(self, at: int, fault: Fault) -> None:
        """Let this fault befall the call of this number, from now and from 0."""
        self.calls.clear()
        self._at, self._fault = at, fault

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in _CALLS:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._called(name, value, *args, **kwargs)

        return call

    async def _called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        await checkpoint()  # as one that waits for something
        number = len(self.calls)
        self.calls.append(name)
        if number != self._at:
            return await call(*args, **kwargs)
        if self._fault is Fault.REFUSED:
            raise StorageError("memory", "refused")
        if self._fault is Fault.CANCELLED:
            self.scope.cancel()
            await checkpoint()
        with anyio.CancelScope(shield=True), suppress(SessionError):
            await call(*args, **kwargs)
        if self._fault is Fault.UNANSWERED:
            raise StorageError("memory", "no answer")
        self.scope.cancel()
        await checkpoint()
        raise AssertionError("nothing was cancelled")
