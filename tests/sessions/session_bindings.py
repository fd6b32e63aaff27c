"""The kinds of sessions that the conformance checks run on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

from journal_bindings import HARNESSES as JOURNALS
from journal_bindings import loops as journal_loops
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.base_session import BaseSession
from raf_session.clock import Clock
from raf_session.conformance import JournalHarness
from raf_session.conformance.session_harness import (
    CoreFactory,
    SessionCapability,
    SessionHarness,
)
from raf_session.journal import Journal
from raf_session.journaled_session import JournaledSession
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.session import ISession
from raf_session.wrapper import SessionWrapper

ALL = frozenset(SessionCapability) - {SessionCapability.TRIO}


class ListSession(BaseSession):
    """The least that an implementer of the trait must write."""

    def __init__(self, session_id: str | None = None) -> None:
        super().__init__(session_id)
        self.said: list[ChatMessage] = []

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        self.said.append(message)

    @override
    async def get_messages(self) -> list[ChatMessage]:
        return list(self.said)

    @override
    async def clear(self) -> None:
        self.said = []


class BareSession:
    """The four members of `SessionCore`, and nothing inherited."""

    def __init__(self, session_id: str | None = None) -> None:
        self.session_id = session_id or str(uuid4())
        self.said: list[ChatMessage] = []

    async def add_message(self, message: ChatMessage, /) -> None:
        self.said.append(message)

    async def get_messages(self) -> list[ChatMessage]:
        return list(self.said)

    async def clear(self) -> None:
        self.said.clear()


async def make_agent_session(
    session_id: str | None = None, *, clock: Clock
) -> AgentSession:
    return AgentSession(session_id, clock=clock)


async def make_wrapper(
    session_id: str | None = None, *, clock: Clock
) -> SessionWrapper[ISession]:
    return SessionWrapper(AgentSession(session_id, clock=clock))


async def make_list_session(
    session_id: str | None = None,
    *,
    clock: Clock,  # noqa: ARG001  (it knows no time)
) -> ListSession:
    return ListSession(session_id)


async def make_bare_session(
    session_id: str | None = None,
    *,
    clock: Clock,  # noqa: ARG001  (it knows no time)
) -> BareSession:
    return BareSession(session_id)


def journaled(bound: JournalHarness) -> SessionHarness:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[CoreFactory]:
        async with AsyncExitStack() as stack:
            journals: dict[int, Journal] = {}
            made: list[JournaledSession] = []

            async def make(
                session_id: str | None = None, *, clock: Clock
            ) -> JournaledSession:
                if id(clock) not in journals:
                    journal = await stack.enter_async_context(bound(clock=clock))
                    journals[id(clock)] = journal
                key = SessionKey.raf(session_id or str(uuid4()))
                session = await JournaledSession.open(journals[id(clock)], key)
                made.append(session)
                return session

            yield make
            for session in made:
                await session.flush()

    return SessionHarness(
        f"journaled-{bound.name}", opened, ALL - {SessionCapability.DESERIALIZES}
    )


HARNESSES = (
    SessionHarness.of("agent", make_agent_session, *ALL),
    *map(journaled, JOURNALS),
    SessionHarness.of(
        "base",
        make_list_session,
        SessionCapability.TRAIT,
        SessionCapability.SYNC_READS,
        SessionCapability.DESERIALIZES,
    ),
    SessionHarness.of("bare", make_bare_session),
    SessionHarness.of(
        "wrapper", make_wrapper, *(ALL - {SessionCapability.DESERIALIZES})
    ),
)


def loops(harness: SessionHarness) -> tuple[str, ...]:
    """Return the event loops that a session is tried on."""
    for bound in JOURNALS:
        if harness.name == f"journaled-{bound.name}":
            return journal_loops(bound)
    return ("asyncio", "trio")
