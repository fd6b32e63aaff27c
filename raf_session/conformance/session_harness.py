"""`SessionHarness`: how the checks get at a session, and what it claims to do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from typing_extensions import Protocol

from raf_session.clock import Clock
from raf_session.session import ISession, SessionCore

__all__ = (
    "CoreCheck",
    "CoreFactory",
    "SessionCapability",
    "SessionCheck",
    "SessionFactory",
    "SessionHarness",
)


class SessionCapability(StrEnum):
    """What not every session can do; a check that needs it runs where it is claimed."""

    TRAIT = "trait"
    """It has every member of `ISession`, not those of `SessionCore` alone."""
    SYNC_READS = "sync_reads"
    """Its sync members know the messages: `get_messages` does not wait, or
    `messages_now` is overridden."""
    ATOMIC_BATCH = "atomic_batch"
    """`add_messages_batch` stores all or none."""
    TELLS_TIMES = "tells_times"
    """It tells when it began and when there was activity, by the clock of `make`."""
    DESERIALIZES = "deserializes"
    """Its class reads what it serialises."""
    MESSAGE_IDS = "message_ids"
    """It keeps a message that carries an id once."""
    THREADS = "threads"
    """It may be used from any thread and event loop."""
    TRIO = "trio"
    """It runs on trio as on asyncio."""


class CoreFactory(Protocol):
    """Makes a new, empty session with each call."""

    @abstractmethod
    async def __call__(
        self, session_id: str | None = None, *, clock: Clock
    ) -> SessionCore:
        """Return a session of that id, or of one of its own, on that clock.

        A session that knows no clock may ignore it.
        """
        ...


class SessionFactory(Protocol):
    """A `CoreFactory` whose sessions have every member of the trait."""

    @abstractmethod
    async def __call__(
        self, session_id: str | None = None, *, clock: Clock
    ) -> ISession:
        """Return a session of that id, or of one of its own, on that clock."""
        ...


CoreCheck: TypeAlias = Callable[[CoreFactory], Coroutine[Any, Any, None]]
"""A check of `SessionCore`: returns where its docstring's requirement is kept."""

SessionCheck: TypeAlias = Callable[[SessionFactory], Coroutine[Any, Any, None]]
"""A check of `ISession`."""


@dataclass(frozen=True, slots=True)
class SessionHarness:
    """What binds the checks to one kind of session."""

    name: str
    """What reports call it."""
    opened: Callable[[], AbstractAsyncContextManager[CoreFactory]]
    """Gives the factory, and closes what it needed when the context is left."""
    capabilities: frozenset[SessionCapability] = frozenset()
    """What it claims; a claim that is not kept fails a check."""

    def __post_init__(self) -> None:
        claims = frozenset(map(SessionCapability, self.capabilities))
        object.__setattr__(self, "capabilities", claims)

    @classmethod
    def of(
        cls, name: str, make: CoreFactory, *capabilities: SessionCapability
    ) -> SessionHarness:
        """Return the harness of sessions that need nothing to be closed."""

        @asynccontextmanager
        async def opened() -> AsyncGenerator[CoreFactory]:
            yield make

        return cls(name, opened, frozenset(capabilities))
