"""Journals around others that fail, note or wait, as a test tells them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from around_journals import AroundJournal, as_journal
from typing_extensions import override

from raf_session.journal import Journal
from raf_session.service import SessionService

__all__ = ("Failing", "Noting", "over")


class Failing(AroundJournal):
    """Raises in place of calls, or after them, once for each error that is given.

    Attributes:
        before: errors by the name of the call, raised before anything is done.
        after: errors raised once it is done: the answer is lost.
    """

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.before: dict[str, list[BaseException]] = {}
        self.after: dict[str, list[BaseException]] = {}

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        """Fail, or pass the call on."""
        if self.before.get(name):
            raise self.before[name].pop(0)
        answer = await call(*args, **kwargs)
        if self.after.get(name):
            raise self.after[name].pop(0)
        return answer


class Noting(AroundJournal):
    """Notes each call with its arguments, and how many entries it read.

    Attributes:
        calls: the name and the arguments of each call.
        entries_read: how many entries all loads have given.
    """

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.entries_read = 0

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        """Note the call, and pass it on."""
        self.calls.append((name, args, kwargs))
        answer = await call(*args, **kwargs)
        if name == "load":
            self.entries_read += len(answer.entries) + len(answer.archived)
        return answer

    def named(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Return the arguments of the calls of one name."""
        return [(args, kwargs) for at, args, kwargs in self.calls if at == name]


def over(around: AroundJournal, like: SessionService) -> SessionService:
    """Return a service of the same configuration over another journal."""
    return SessionService(
        as_journal(around),
        summarizer_manager=like.summarizer_manager,
        session_config=like.session_config,
    )
