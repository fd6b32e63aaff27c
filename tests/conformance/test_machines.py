"""The state machines can fail: each catches what is broken in its own way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, Phase, settings
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.clock import Clock
from raf_session.conformance import (
    JournalHarness,
    SessionCapability,
    SessionHarness,
    StoreCapability,
    StoreHarness,
    run_journal_machine,
    run_session_machine,
    run_session_values,
    run_store_machine,
)
from raf_session.errors import StaleSessionError
from raf_session.journal import Commit
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits
from raf_session.session import SessionCore
from raf_session.stores import SessionStore

MANY = settings(
    max_examples=300,
    stateful_step_count=30,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


class ComparesIds(AgentSession):
    """An id that is known is taken for a retry, whatever its message says."""

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        known = {message.id for message in await self.get_messages()} - {None}
        new = [message for message in messages if message.id not in known]
        await super().add_messages_batch(new)


class ForgetsStates(AgentSession):
    """`clear` takes the provider states along."""

    @override
    async def clear(self) -> None:
        await super().clear()
        self.set_provider_state("p", None)


class GoesBack(AgentSession):
    """Activity is whatever the clock says."""

    @override
    async def touch_last_active(self) -> None:
        self._view = self._view._replace(last_active_at=self._clock())


class TornBySuspension(AgentSession):
    """Adds a message, waits, and adds what belongs to it."""

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        await super().add_message(message)
        await checkpoint()
        await super().clear()
        await super().add_message(message)


def session_harness(cls: type[AgentSession]) -> SessionHarness:
    async def make(session_id: str | None = None, *, clock: Clock) -> SessionCore:
        return cls(session_id, clock=clock)

    return SessionHarness.of(cls.__name__, make, *SessionCapability)


@pytest.mark.parametrize(
    "cls", [ComparesIds, ForgetsStates, GoesBack, TornBySuspension]
)
def test_the_session_machine_catches(cls: type[AgentSession]) -> None:
    with pytest.raises(AssertionError):
        run_session_machine(session_harness(cls), MANY)


class DropsSurrogates(AgentSession):
    @override
    async def get_messages(self) -> list[ChatMessage]:
        return [
            message.model_copy(
                update={"content": message.content.encode(errors="replace").decode()}
            )
            if isinstance(message.content, str)
            else message
            for message in await super().get_messages()
        ]


def test_any_message_is_tried() -> None:
    with pytest.raises(AssertionError):
        run_session_values(session_harness(DropsSurrogates), MANY)


# Stores ------------------------------------------------------------------------------


class Overwrites(SessionStore):
    """The last save wins, whatever it never saw."""

    @override
    async def save_session(
        self, session: SessionCore, /, *, overwrite: bool = False
    ) -> None:
        try:
            await super().save_session(session, overwrite=overwrite)
        except StaleSessionError:
            await super().save_session(session, overwrite=True)


class CountsNothing(SessionStore):
    """Sweeps, and says that there was nothing."""

    @override
    async def cleanup_expired(self) -> int:
        return 0 * await super().cleanup_expired()


class Refreshes(SessionStore):
    """Reading is activity."""

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        session = await super().get_session(session_id)
        if session is not None:
            await self.journal.load(SessionKey.raf(session_id), refresh=True)
        return session


def store_harness(cls: type[SessionStore]) -> StoreHarness:
    @asynccontextmanager
    async def storage() -> AsyncGenerator[Any]:
        journals: list[MemoryJournal] = []

        @asynccontextmanager
        async def opened(
            *, ttl: Any, clock: Clock, types: Sequence[type[Any]] = (AgentSession,)
        ) -> AsyncGenerator[SessionStore]:
            if not journals:
                limits = Limits(sessions=ttl)
                journals.append(MemoryJournal.opened(limits=limits, clock=clock))
            yield cls(journals[0], types=types)

        yield opened

    claims = frozenset(StoreCapability)
    return StoreHarness(cls.__name__, storage, claims)


@pytest.mark.parametrize("cls", [Overwrites, CountsNothing, Refreshes])
def test_the_store_machine_catches(cls: type[SessionStore]) -> None:
    with pytest.raises(AssertionError):
        run_store_machine(store_harness(cls), MANY)


# Journals ----------------------------------------------------------------------------


class TornByCancellation(MemoryJournal):
    """Two steps and a wait between them, where one call has to be one step."""

    @override
    async def append(self, key: SessionKey, entries: Any, **options: Any) -> Commit:
        change = options.pop("change", None)
        commit = await super().append(key, entries, **options)
        if change is None or commit.repeated:
            return commit
        await checkpoint()
        await super().update(key, change)
        return commit


def test_the_journal_machine_cancels() -> None:
    harness = JournalHarness.transient("torn", TornByCancellation)
    with pytest.raises(AssertionError):
        run_journal_machine(harness, MANY)
