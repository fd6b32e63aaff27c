"""`AroundJournal`: a journal around another, to which a test lets things happen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, cast

from raf_session.journal import Journal

__all__ = ("AroundJournal", "as_journal")

CALLS = frozenset(
    (
        *("create", "load", "append", "splice", "update", "delete", "scan", "expire"),
        *("scoped_state", "update_scoped_state", "scopes"),
    )
)


class AroundJournal(ABC):
    """A journal around another, which sees each call of a primitive."""

    def __init__(self, inner: Journal) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if name not in CALLS:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self.called(name, value, *args, **kwargs)

        return call

    @abstractmethod
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        """Stand in for a call."""


def as_journal(around: AroundJournal) -> Journal:
    """Return it as the journal that it stands for."""
    return cast("Journal", around)
