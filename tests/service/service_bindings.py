"""The session services that the tests run on: one over each journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from journal_bindings import HARNESSES as JOURNALS
from journal_bindings import loops as journal_loops

from raf_session.clock import Clock, utc_now
from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.service import SessionServiceConfig, SummarizerSessionManager
from raf_session.service.backends import OwningSessionService

NOTHING_ASKED = SessionServiceConfig()


def open_over(
    journals: JournalOpener,
    config: SessionServiceConfig = NOTHING_ASKED,
    *,
    manager: SummarizerSessionManager | None = None,
    clock: Clock = utc_now,
) -> OwningSessionService:
    """Return a service that opens its journal when it is first used."""
    return OwningSessionService(
        journals(limits=config.limits, clock=clock),
        summarizer_manager=manager,
        session_config=config,
    )


ServiceOpener = Callable[..., OwningSessionService]
"""`open_over` one storage: the same with each call, but for memory."""


@dataclass(frozen=True, slots=True)
class ServiceHarness:
    """How tests get at the services over one kind of journal."""

    journal: JournalHarness

    @property
    def name(self) -> str:
        """The journal's name."""
        return self.journal.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the journal claims."""
        return self.journal.capabilities

    @asynccontextmanager
    async def storage(self) -> AsyncGenerator[ServiceOpener]:
        """Hold new, empty storage."""
        async with self.journal.storage() as opener:
            yield partial(open_over, opener)

    @asynccontextmanager
    async def __call__(
        self,
        config: SessionServiceConfig = NOTHING_ASKED,
        *,
        manager: SummarizerSessionManager | None = None,
        clock: Clock = utc_now,
    ) -> AsyncGenerator[OwningSessionService]:
        """Hold a service over storage of its own."""
        async with (
            self.storage() as opener,
            opener(config, manager=manager, clock=clock) as service,
        ):
            yield service


HARNESSES = [ServiceHarness(bound) for bound in JOURNALS]

BY_NAME = {harness.name: harness for harness in HARNESSES}


def loops(harness: ServiceHarness) -> tuple[str, ...]:
    """Return the event loops that a service claims to run on."""
    return journal_loops(harness.journal)


EVERYWHERE = [
    pytest.param(bound, loop, id=f"{bound.name}-{loop}")
    for bound in HARNESSES
    for loop in loops(bound)
]

on_every_service = pytest.mark.parametrize(("bound", "anyio_backend"), EVERYWHERE)
"""Each service on each event loop that it claims to run on."""


def with_claims(*claims: Capability) -> pytest.MarkDecorator:
    """Return the mark of a test for the services whose journals claim these."""
    return pytest.mark.parametrize(
        ("bound", "anyio_backend"),
        [
            pytest.param(bound, "asyncio", id=bound.name)
            for bound in HARNESSES
            if bound.capabilities.issuperset(claims)
        ],
    )
