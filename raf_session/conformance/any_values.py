"""Properties: whatever a strategy can think of comes back as it was given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from anyio.from_thread import start_blocking_portal
from hypothesis import given
from hypothesis import settings as Settings  # noqa: N812  (a class with a small name)
from hypothesis.strategies import SearchStrategy

from raf_session.agent_session import AgentSession
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import JournalHarness
from raf_session.conformance.journal_values import NEW, body, same, varied
from raf_session.conformance.profiles import values
from raf_session.conformance.session_harness import SessionHarness
from raf_session.conformance.session_values import same_messages
from raf_session.conformance.store_harness import StoreHarness
from raf_session.conformance.store_values import read, same_session
from raf_session.conformance.strategies import entries, messages, snapshots
from raf_session.entries import Entry
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionSnapshot

__all__ = ("run_journal_values", "run_session_values", "run_store_values")


async def _entry_comes_back(harness: JournalHarness, entry: Entry) -> None:
    async with harness() as journal:
        await journal.create(NEW, [entry])
        record = await journal.load(NEW.key)
        same(body(record.entries[0]), body(entry), "the entry")
        again = await journal.append(NEW.key, [varied(entry)])
        same(again.repeated, True, "known as the same body")


async def _message_comes_back(harness: SessionHarness, message: ChatMessage) -> None:
    async with harness.opened() as make:
        session = await make("s", clock=TickingClock())
        await session.add_message(message)
        same_messages(await session.get_messages(), [message], "the message")


async def _session_comes_back(harness: StoreHarness, snapshot: SessionSnapshot) -> None:
    session = AgentSession.from_snapshot(snapshot)
    async with harness(clock=TickingClock()) as store:
        await store.save_session(session)
        again = await read(store, session.session_id)
        await same_session(again, session, "the session")


def _run(
    comes_back: Callable[[Any, Any], Awaitable[None]],
    harness: object,
    strategy: SearchStrategy[Any],
    settings: Settings | None,
    backend: str,
) -> None:
    with start_blocking_portal(backend) as portal:

        @(settings or values())
        @given(value=strategy)
        def any_value(value: Any) -> None:
            portal.call(partial(comes_back, harness, value))

        any_value()


def run_journal_values(
    harness: JournalHarness,
    settings: Settings | None = None,
    *,
    backend: str = "asyncio",
) -> None:
    """Store any entry, and raise where it does not come back, or is not known again."""
    _run(_entry_comes_back, harness, entries(), settings, backend)


def run_session_values(
    harness: SessionHarness,
    settings: Settings | None = None,
    *,
    backend: str = "asyncio",
) -> None:
    """Add any message, and raise where it does not come back."""
    _run(_message_comes_back, harness, messages(), settings, backend)


def run_store_values(
    harness: StoreHarness,
    settings: Settings | None = None,
    *,
    backend: str = "asyncio",
) -> None:
    """Save any session, and raise where it does not come back."""
    _run(_session_comes_back, harness, snapshots(), settings, backend)
