"""`StoreHarness`: how the checks get at a store, and what it claims to do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from typing_extensions import Protocol

from raf_session.agent_session import AgentSession
from raf_session.clock import Clock, utc_now
from raf_session.options import SessionTTLOptions
from raf_session.store import ISessionStore

__all__ = ("StoreCapability", "StoreCheck", "StoreHarness", "StoreOpener")

NO_LIMITS: SessionTTLOptions = SessionTTLOptions()
AGENT: tuple[type[Any], ...] = (AgentSession,)


class StoreCapability(StrEnum):
    """What not every store can do; a check that needs it runs where it is claimed."""

    TYPES = "types"
    """It keeps the session types that it is given."""
    STRICT = "strict"
    """It refuses types that it was not given."""
    DURABLE = "durable"
    """What was saved is there when the storage is opened again."""
    SHARED = "shared"
    """Several stores may be open over one storage at the same time."""
    OVERWRITE = "overwrite"
    """`save_session` takes ``overwrite=True``."""
    OPENS = "opens"
    """It has `open_session`, which gives a live session."""
    TRIO = "trio"
    """It runs on trio as on asyncio."""


class StoreOpener(Protocol):
    """Gives a store over one storage: the same with each call."""

    @abstractmethod
    def __call__(
        self,
        *,
        ttl: SessionTTLOptions = NO_LIMITS,
        clock: Clock = utc_now,
        types: Sequence[type[Any]] = AGENT,
    ) -> AbstractAsyncContextManager[ISessionStore]:
        """Return a context that holds a store open; it sweeps when it is told to."""
        ...


@dataclass(frozen=True, slots=True)
class StoreHarness:
    """What binds the checks to one kind of store; itself a `StoreOpener`."""

    name: str
    """What reports call it."""
    storage: Callable[[], AbstractAsyncContextManager[StoreOpener]]
    """Makes new, empty storage, and removes it when its context is left."""
    capabilities: frozenset[StoreCapability] = frozenset()
    """What it claims; a claim that is not kept fails a check."""

    def __post_init__(self) -> None:
        claims = frozenset(map(StoreCapability, self.capabilities))
        object.__setattr__(self, "capabilities", claims)

    @asynccontextmanager
    async def __call__(
        self,
        *,
        ttl: SessionTTLOptions = NO_LIMITS,
        clock: Clock = utc_now,
        types: Sequence[type[Any]] = AGENT,
    ) -> AsyncGenerator[ISessionStore]:
        """Hold a store open over storage of its own."""
        async with (
            self.storage() as opened,
            opened(ttl=ttl, clock=clock, types=types) as store,
        ):
            yield store


StoreCheck: TypeAlias = Callable[[StoreHarness], Coroutine[Any, Any, None]]
"""A check: returns where the requirement in its docstring is kept, else raises."""
