"""`messages`: what is stored, as the document's JSON has it."""

from __future__ import annotations

import pytest
from manager_bindings import ManagerHarness, on_every_manager
from manager_values import (
    ANN,
    KEY,
    Scribe,
    agent,
    call,
    configured,
    result,
    turns,
    user,
)

from raf_session.conformance import TickingClock
from raf_session.errors import SessionNotFoundError
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import SessionManager, SessionMessage
from raf_session.messages import MessageRole

pytestmark = pytest.mark.anyio

SMALL = configured(compaction={"keep_recent_count": 2, "min_messages_to_compact": 2})


def said(messages: tuple[SessionMessage, ...]) -> list[str]:
    return [message.content for message in messages]


@on_every_manager
async def test_an_export_has_the_ids_and_times_that_are_stored(
    bound: ManagerHarness,
) -> None:
    clock = TickingClock()
    async with bound(clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        stored_at = clock.tick(60)
        batch = [user("go", "m1"), call("c1", text="wait"), result("c1"), agent("done")]
        await manager.add_messages(session, batch)
        clock.tick(60)
        found = await manager.messages(KEY)
        assert [m.role for m in found] == [m.role for m in batch]
        assert said(found) == ["go", "wait", "found", "done"]
        assert [m.created_at for m in found] == [stored_at] * 4
        record = await manager.journal.load(session.key)
        assert [m.id for m in found] == [entry.id for entry in record.entries]
        assert await manager.messages(session) == found  # the same each time
        assert await manager.journal.load(session.key) == record


@on_every_manager
async def test_a_summary_is_the_assistants_and_the_archive_holds_what_it_stands_for(
    bound: ManagerHarness,
) -> None:
    async with bound(SMALL, summarizer=Scribe()) as manager:
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, turns(3))
        everything = await manager.messages(KEY)
        await manager.compact(KEY)
        summary, *recent = await manager.messages(KEY)
        assert summary.role is MessageRole.ASSISTANT
        assert summary.content == "[历史摘要] #1"
        assert summary.metadata["type"] == "compaction_summary"
        assert recent == [*everything[-2:]]
        whole = await manager.messages(KEY, archived=True)
        assert whole == (*everything[:-2], summary, *recent)


async def test_messages_of_what_is_not_there() -> None:
    journal = MemoryJournal.opened()
    manager = SessionManager(journal)
    with pytest.raises(SessionNotFoundError, match=KEY):
        await manager.messages(KEY)
    former = await manager.get_or_create(ANN)
    await SessionManager(journal).delete(KEY)
    await SessionManager(journal).get_or_create(ANN)
    with pytest.raises(SessionNotFoundError, match="replaced"):
        await manager.messages(former)


async def test_where_sessions_are_off_there_are_messages_of_a_live_one_alone() -> None:
    off = configured(session={"enabled": False})
    manager = SessionManager(MemoryJournal.opened(), off)
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(1))
    assert len(await manager.messages(session)) == 2
    assert await manager.messages(KEY) == ()
