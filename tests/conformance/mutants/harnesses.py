"""How the checks get at a mutant, which claims everything that its origin can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from backdoors import MemoryBackdoor

from raf_session.agent_session import AgentSession
from raf_session.base_session import BaseSession
from raf_session.clock import Clock, utc_now
from raf_session.conformance import (
    Capability,
    JournalHarness,
    JournalOpener,
    SessionCapability,
    SessionHarness,
    StoreCapability,
    StoreHarness,
)
from raf_session.conformance.session_harness import CoreFactory
from raf_session.conformance.store_harness import AGENT, NO_LIMITS, StoreOpener
from raf_session.journaled_session import JournaledSession
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, SessionTTLOptions
from raf_session.session import SessionCore
from raf_session.store import ISessionStore
from raf_session.stores import SessionStore

__all__ = ("journal_harness", "session_harness", "store_harness")


def journal_harness(cls: type[MemoryJournal]) -> JournalHarness:
    """Return the harness of journals that share their dicts, as a file is shared."""

    @asynccontextmanager
    async def storage() -> AsyncGenerator[JournalOpener]:
        first: list[MemoryJournal] = []

        def opener(**options: Any) -> MemoryJournal:
            journal = cls(**options)
            first.append(journal)
            for name in ("_sessions", "_listing", "_scopes", "_lock"):
                setattr(journal, name, getattr(first[0], name))
            return journal

        yield opener

    claims = frozenset(Capability)
    return JournalHarness(cls.__name__, storage, claims, MemoryBackdoor)


def session_harness(cls: type[Any]) -> SessionHarness:
    """Return the harness of sessions in memory, or of those on a journal in memory."""
    name = cls.__name__
    if issubclass(cls, JournaledSession):
        return _journaled(cls)
    claims = frozenset[SessionCapability]()
    if issubclass(cls, AgentSession):
        claims = frozenset(SessionCapability)
    elif issubclass(cls, BaseSession):
        claims = frozenset(
            (
                SessionCapability.TRAIT,
                SessionCapability.SYNC_READS,
                SessionCapability.DESERIALIZES,
            )
        )

    async def make(session_id: str | None = None, *, clock: Clock) -> SessionCore:
        made: SessionCore = (
            cls(session_id, clock=clock)
            if issubclass(cls, AgentSession)
            else cls(session_id)
        )
        return made

    return SessionHarness.of(name, make, *claims)


def _journaled(cls: type[JournaledSession]) -> SessionHarness:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[CoreFactory]:
        journals: dict[int, MemoryJournal] = {}
        made: list[JournaledSession] = []

        async def make(
            session_id: str | None = None, *, clock: Clock
        ) -> JournaledSession:
            if id(clock) not in journals:
                journals[id(clock)] = MemoryJournal.opened(clock=clock)
            key = SessionKey.raf(session_id or str(uuid4()))
            session = await cls.open(journals[id(clock)], key)
            made.append(session)
            return session

        yield make
        for session in made:
            await session.flush()

    claims = frozenset(SessionCapability) - {SessionCapability.DESERIALIZES}
    return SessionHarness(cls.__name__, opened, claims)


def store_harness(cls: type[SessionStore]) -> StoreHarness:
    """Return the harness of stores over one journal in memory."""

    @asynccontextmanager
    async def storage() -> AsyncGenerator[StoreOpener]:
        journals: list[MemoryJournal] = []

        @asynccontextmanager
        async def opened(
            *,
            ttl: SessionTTLOptions = NO_LIMITS,
            clock: Clock = utc_now,
            types: Sequence[type[Any]] = AGENT,
        ) -> AsyncGenerator[ISessionStore]:
            if not journals:
                limits = Limits(sessions=ttl)
                journals.append(MemoryJournal.opened(limits=limits, clock=clock))
            yield cls(journals[0], types=types)

        yield opened

    return StoreHarness(cls.__name__, storage, frozenset(StoreCapability))
