"""`Contender`: one library on one backend, used as its own documentation shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self

from benches.machine import version
from benches.places import Place

__all__ = ("Contender",)


class Contender(ABC):
    """A store of sessions; a session is told by its name.

    Args:
        place: empty storage of its own, or one that another process filled.
    """

    label: ClassVar[str]
    """As tables name it: the distribution and, where it has several ways, which."""
    distribution: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """Distributions beside its own: drivers that it does not bring."""
    backend: ClassVar[str]
    how: ClassVar[str]
    """The class that is used, and what an acknowledged write survives."""
    imports: ClassVar[str] = ""
    """The import that its documentation begins with."""
    lacks: ClassVar[Mapping[str, str]] = {}
    """Kinds of work that it has no call for, each with what is there instead."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @classmethod
    def installed(cls) -> bool:
        """Return whether it can be used here."""
        return all(version(name) for name in (cls.distribution, *cls.needs))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @abstractmethod
    async def open(self) -> None:
        """Open the store, making its tables where they are missing."""

    async def close(self) -> None:  # noqa: B027  (most have nothing to close)
        """Close it."""

    @abstractmethod
    def message(self, message: dict[str, Any]) -> Any:
        """Return the library's own message of one in OpenAI's shape; not timed."""

    @abstractmethod
    def text(self, message: Any) -> str:
        """Return the text of a message that `load` returned; not timed."""

    @abstractmethod
    async def create(self, name: str) -> Any:
        """Return a live session of that name, new and empty."""

    @abstractmethod
    async def append(self, session: Any, message: Any) -> None:
        """Store one message; it is stored when this returns."""

    async def batch(self, session: Any, messages: Sequence[Any]) -> None:
        """Store several; one by one where the library has no call for it."""
        for message in messages:
            await self.append(session, message)

    async def fill(self, session: Any, messages: Sequence[Any]) -> None:
        """Store many, in the quickest way that there is; not timed."""
        await self.batch(session, messages)

    async def make(self, name: str, messages: Sequence[Any]) -> None:
        """Store a new session that holds these messages."""
        await self.fill(await self.create(name), messages)

    @abstractmethod
    async def load(self, name: str) -> Sequence[Any]:
        """Read the whole history anew from where it is kept, in order."""

    async def last(self, name: str, count: int) -> Sequence[Any]:
        """Read the last messages, in order."""
        raise NotImplementedError(self.lacks["load last 20"])

    async def listed(self, count: int) -> Sequence[str]:
        """Return the names of that many sessions; of all where there are no pages."""
        raise NotImplementedError(self.lacks["list"])
