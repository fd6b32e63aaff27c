"""The session managers that the tests run on: one over each journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from journal_bindings import HARNESSES as JOURNALS
from journal_bindings import loops as journal_loops
from manager_values import CharacterCounter

from raf_session.clock import Clock, utc_now
from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.manager import AgentsConfig, SessionManager
from raf_session.summarizers import Summarizer
from raf_session.tokens import TokenCounter

DEFAULTS = AgentsConfig()


def open_over(
    journals: JournalOpener,
    config: AgentsConfig = DEFAULTS,
    *,
    summarizer: Summarizer | None = None,
    counter: TokenCounter | None = None,
    clock: Clock = utc_now,
) -> SessionManager:
    """Return a manager that opens its journal when it is first used."""
    return SessionManager(
        journals(limits=config.session.limits, clock=clock),
        config,
        summarizer=summarizer,
        counter=counter or CharacterCounter(),
        owns_journal=True,
    )


ManagerOpener = Callable[..., SessionManager]
"""`open_over` one storage: the same with each call, but for memory."""


@dataclass(frozen=True, slots=True)
class ManagerHarness:
    """How tests get at the managers over one kind of journal."""

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
    async def storage(self) -> AsyncGenerator[ManagerOpener]:
        """Hold new, empty storage."""
        async with self.journal.storage() as opener:
            yield partial(open_over, opener)

    @asynccontextmanager
    async def __call__(
        self,
        config: AgentsConfig = DEFAULTS,
        *,
        summarizer: Summarizer | None = None,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
    ) -> AsyncGenerator[SessionManager]:
        """Hold a manager over storage of its own."""
        async with (
            self.storage() as opener,
            opener(
                config, summarizer=summarizer, counter=counter, clock=clock
            ) as manager,
        ):
            yield manager


HARNESSES = [ManagerHarness(bound) for bound in JOURNALS]

BY_NAME = {harness.name: harness for harness in HARNESSES}


def loops(harness: ManagerHarness) -> tuple[str, ...]:
    """Return the event loops that a manager claims to run on."""
    return journal_loops(harness.journal)


on_every_manager = pytest.mark.parametrize(
    ("bound", "anyio_backend"),
    [
        pytest.param(bound, loop, id=f"{bound.name}-{loop}")
        for bound in HARNESSES
        for loop in loops(bound)
    ],
)
"""Each manager on each event loop that it claims to run on."""


def with_claims(*claims: Capability) -> pytest.MarkDecorator:
    """Return the mark of a test for the managers whose journals claim these."""
    return pytest.mark.parametrize(
        ("bound", "anyio_backend"),
        [
            pytest.param(bound, "asyncio", id=bound.name)
            for bound in HARNESSES
            if bound.capabilities.issuperset(claims)
        ],
    )
