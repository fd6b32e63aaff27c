"""`JournalHarness`: how the checks get at a journal, and what it claims to do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from typing_extensions import Protocol

from raf_session.clock import Clock, utc_now
from raf_session.conformance.backdoor import BackdoorFactory
from raf_session.journal import Codec, Journal
from raf_session.options import Limits

__all__ = (
    "Capability",
    "JournalCheck",
    "JournalFactory",
    "JournalHarness",
    "JournalOpener",
    "StorageFactory",
)

NO_LIMITS: Final = Limits()


class Capability(StrEnum):
    """What not every journal can do; a check that needs it runs where it is claimed."""

    DURABLE = "durable"
    """What was stored is there when the storage is opened again."""
    SHARED = "shared"
    """Several journals may be open over one storage at the same time."""
    ATOMIC_SCOPES = "atomic_scopes"
    """State of user and app commits in one step with what the same call stores."""
    THREADS = "threads"
    """An open journal may be used from any thread and event loop."""
    CODEC = "codec"
    """It takes a `Codec`."""
    TRIO = "trio"
    """It runs on trio as on asyncio."""


class JournalFactory(Protocol):
    """Gives an open journal over new, empty storage with each call."""

    @abstractmethod
    def __call__(
        self, *, limits: Limits = NO_LIMITS, clock: Clock = utc_now
    ) -> AbstractAsyncContextManager[Journal]:
        """Return a context that holds the journal open."""
        ...


class JournalOpener(Protocol):
    """Gives a journal, not opened yet, over one storage: the same with each call."""

    @abstractmethod
    def __call__(
        self,
        *,
        limits: Limits = NO_LIMITS,
        clock: Clock = utc_now,
        codec: Codec | None = None,
    ) -> Journal:
        """Return a journal; ``async with`` opens it."""
        ...


StorageFactory: TypeAlias = Callable[[], AbstractAsyncContextManager[JournalOpener]]
"""Makes new, empty storage, and removes it when its context is left."""


@dataclass(frozen=True, slots=True)
class JournalHarness:
    """What binds the checks to one kind of journal; itself a `JournalFactory`."""

    name: str
    """What reports call it."""
    storage: StorageFactory
    capabilities: frozenset[Capability] = frozenset()
    """What it claims; a claim that is not kept fails a check."""
    backdoor: BackdoorFactory | None = None
    """How to look at the storage past the journal, where that can be."""

    def __post_init__(self) -> None:
        claims = frozenset(map(Capability, self.capabilities))
        object.__setattr__(self, "capabilities", claims)

    @asynccontextmanager
    async def __call__(
        self, *, limits: Limits = NO_LIMITS, clock: Clock = utc_now
    ) -> AsyncGenerator[Journal]:
        """Hold a journal open over storage of its own."""
        async with self.storage() as opened, opened(limits=limits, clock=clock) as held:
            yield held

    @classmethod
    def transient(
        cls,
        name: str,
        opener: JournalOpener,
        *capabilities: Capability,
        backdoor: BackdoorFactory | None = None,
    ) -> JournalHarness:
        """Return the harness of a journal that holds its storage itself."""

        @asynccontextmanager
        async def storage() -> AsyncGenerator[JournalOpener]:
            yield opener

        return cls(name, storage, frozenset(capabilities), backdoor)


JournalCheck: TypeAlias = Callable[[JournalHarness], Coroutine[Any, Any, None]]
"""A check: returns where the requirement in its docstring is kept, else raises."""
