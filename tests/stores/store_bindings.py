"""The kinds of stores that the checks run on, and journals around others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio.lowlevel
from around_journals import AroundJournal, as_journal
from journal_bindings import HARNESSES as JOURNALS
from journal_bindings import loops as journal_loops
from typing_extensions import override

from raf_session.clock import Clock, utc_now
from raf_session.conformance import JournalHarness
from raf_session.conformance.store_harness import (
    AGENT,
    NO_LIMITS,
    StoreCapability,
    StoreHarness,
    StoreOpener,
)
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.options import Limits, SessionTTLOptions
from raf_session.store import ISessionStore
from raf_session.stores import (
    FixedIsolationKeyProvider,
    InMemorySessionStore,
    IsolationScopedSessionStore,
    SessionStore,
)
from raf_session.stores.backends import OwningStore
from raf_session.wrapper import StoreWrapper

ALL = frozenset(StoreCapability) - {StoreCapability.DURABLE, StoreCapability.TRIO}
TRAIT_ONLY = frozenset(
    (StoreCapability.TYPES, StoreCapability.STRICT, StoreCapability.SHARED)
)
TENANT = "a::b/c%2fd"


class WaitingJournal(AroundJournal):
    """Waits before and after each call, as a journal with a server does."""

    @override
    async def called(
        self,
        name: str,
        call: Callable[..., Awaitable[Any]],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        await anyio.lowlevel.checkpoint()
        answer = await call(*args, **kwargs)
        await anyio.lowlevel.checkpoint()
        return answer


class CountingJournal(AroundJournal):
    """Notes the name of each call and the number of its entries."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.calls: list[tuple[str, int]] = []

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        at = {"create": 1, "append": 1, "splice": 3}.get(name, 99)
        entries = args[at] if len(args) > at else ()
        self.calls.append((name, len(entries) + len(kwargs.get("tail", ()))))
        return await call(*args, **kwargs)


class FailingJournal(AroundJournal):
    """Raises in place of the calls that are named, or after them."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.before: dict[str, Exception] = {}
        self.after: dict[str, Exception] = {}

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        if name in self.before:
            raise self.before[name]
        answer = await call(*args, **kwargs)
        if name in self.after:
            raise self.after[name]
        return answer


def _limits(ttl: SessionTTLOptions) -> Limits:
    return Limits(sessions=ttl)


JournalKind = Callable[[], AbstractAsyncContextManager[Callable[..., Journal]]]
Dress = Callable[[Journal, Sequence[type[Any]]], ISessionStore]


def over_memory(
    name: str, dress: Dress, capabilities: frozenset[StoreCapability]
) -> StoreHarness:
    """Bind stores that stand on one journal in memory."""

    @asynccontextmanager
    async def storage() -> AsyncGenerator[StoreOpener]:
        journals: list[Journal] = []

        @asynccontextmanager
        async def opened(
            *,
            ttl: SessionTTLOptions = NO_LIMITS,
            clock: Clock = utc_now,
            types: Sequence[type[Any]] = AGENT,
        ) -> AsyncGenerator[ISessionStore]:
            if not journals:
                journals.append(MemoryJournal.opened(limits=_limits(ttl), clock=clock))
            yield dress(journals[0], types)

        yield opened

    return StoreHarness(name, storage, capabilities)


@asynccontextmanager
async def _in_memory() -> AsyncGenerator[StoreOpener]:
    stores: list[InMemorySessionStore] = []

    @asynccontextmanager
    async def opened(
        *,
        ttl: SessionTTLOptions = NO_LIMITS,
        clock: Clock = utc_now,
        types: Sequence[type[Any]] = AGENT,
    ) -> AsyncGenerator[ISessionStore]:
        store: SessionStore
        if stores:
            store = SessionStore(stores[0].journal, types=types)
        else:
            store = InMemorySessionStore(ttl=ttl, types=types, clock=clock)
            stores.append(store)
        async with store:
            yield store

    yield opened


def on_journal(bound: JournalHarness) -> StoreHarness:
    """Bind stores that open and close a journal of their own."""

    @asynccontextmanager
    async def storage() -> AsyncGenerator[StoreOpener]:
        async with bound.storage() as journal:

            @asynccontextmanager
            async def opened(
                *,
                ttl: SessionTTLOptions = NO_LIMITS,
                clock: Clock = utc_now,
                types: Sequence[type[Any]] = AGENT,
            ) -> AsyncGenerator[ISessionStore]:
                owned = journal(limits=_limits(ttl), clock=clock)
                async with OwningStore(owned, types=types) as store:
                    yield store

            yield opened

    return StoreHarness(bound.name, storage, ALL | {StoreCapability.DURABLE})


def _waiting(journal: Journal, types: Sequence[type[Any]]) -> ISessionStore:
    return SessionStore(as_journal(WaitingJournal(journal)), types=types)


def _scoped(journal: Journal, types: Sequence[type[Any]]) -> ISessionStore:
    inner = SessionStore(journal, types=types)
    return IsolationScopedSessionStore(inner, FixedIsolationKeyProvider(TENANT))


def _wrapped(journal: Journal, types: Sequence[type[Any]]) -> ISessionStore:
    return StoreWrapper(SessionStore(journal, types=types))


HARNESSES = (
    StoreHarness("memory", _in_memory, ALL),
    over_memory("waiting", _waiting, ALL),
    over_memory("isolation", _scoped, ALL),
    over_memory("wrapper", _wrapped, TRAIT_ONLY),
    *(on_journal(bound) for bound in JOURNALS if bound.name != "memory"),
)


def loops(harness: StoreHarness) -> tuple[str, ...]:
    """Return the event loops that a store is tried on."""
    for bound in JOURNALS:
        if harness.name == bound.name:
            return journal_loops(bound)
    return ("asyncio", "trio")
