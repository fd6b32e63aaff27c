"""What a compaction covers, keeps and stores, and what its report says."""

from __future__ import annotations

import pytest
from manager_bindings import ManagerHarness, on_every_manager, with_claims
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    Scribe,
    agent,
    call,
    configured,
    result,
    texts,
    turns,
    user,
)

from raf_session.changes import SessionStatus
from raf_session.conformance import Capability, TickingClock
from raf_session.entries import EntryKind
from raf_session.errors import SessionNotFoundError
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import (
    CompactionOutcome,
    CompactionReport,
    CompactionTrigger,
    ManagedSession,
    SessionManager,
)
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio

KEEPS_TWO = configured(
    compaction={"keep_recent_count": 2, "min_messages_to_compact": 0}
)


async def made(
    scribe: Scribe, *messages: ChatMessage, **compaction: object
) -> tuple[SessionManager, ManagedSession]:
    """Return a manager, and a session that holds these messages."""
    config = configured(
        compaction={"keep_recent_count": 2, "min_messages_to_compact": 0} | compaction
    )
    manager = SessionManager(
        MemoryJournal.opened(clock=TickingClock()),
        config,
        summarizer=scribe,
        counter=CharacterCounter(),
    )
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, messages)
    return manager, session


@on_every_manager
async def test_a_summary_takes_the_place_of_what_it_stands_for(
    bound: ManagerHarness,
) -> None:
    clock, scribe = TickingClock(), Scribe(answer="they talked")
    async with bound(KEEPS_TWO, summarizer=scribe, clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        said = turns(5)
        await manager.add_messages(session, said)
        report = await manager.compact(KEY)
        assert report == CompactionReport(
            CompactionOutcome.COMPACTED,
            CompactionTrigger.MANUAL,
            covered=8,
            tokens_before=400,
            tokens_after=80 + len("[历史摘要] they talked"),
        )
        record = await manager.journal.load(session.key, archived=True)
        summary, *recent = record.entries
        assert [entry.message for entry in recent] == said[8:]
        assert [entry.message for entry in record.archived] == said[:8]
        assert summary.kind is EntryKind.SUMMARY
        assert summary.message is not None
        assert summary.message.role == "assistant"
        assert summary.message.content == "[历史摘要] they talked"
        assert summary.message.metadata == {
            "type": "compaction_summary",
            "original_count": 8,
            "compacted_at": "2026-01-01T00:00:00Z",
        }
        assert record.head.status is SessionStatus.COMPACTED
        assert record.head.active.tokens == report.tokens_after
        assert (record.head.active.messages, record.head.total.messages) == (3, 11)
        assert session.summary == "they talked"
        assert scribe.inputs == [(tuple(said[:8]), None)]
        # as a request takes it, the summary is the user's
        view = await manager.load_history(KEY)
        assert [m.role for m in view.messages][:1] == ["user"]
        assert view.tokens == report.tokens_after


async def test_the_former_summary_is_handed_on_and_is_never_a_message() -> None:
    scribe = Scribe()
    manager, session = await made(scribe, *turns(3))
    await manager.compact(KEY)
    await manager.add_messages(session, turns(3, start=3))
    await manager.compact(KEY)
    assert scribe.inputs[1][1] == "#1"
    assert scribe.given[1] == texts([*turns(1, start=2), *turns(2, start=3)])
    assert session.summary == "#2"
    (summary, *_) = session.messages_now()
    assert summary.metadata["original_count"] == 10
    assert (await manager.statistics(KEY)).compactions == 2


async def test_to_compact_again_with_nothing_new_changes_nothing() -> None:
    scribe = Scribe()
    manager, session = await made(scribe, *turns(3))
    await manager.compact(KEY)
    before = await session.journal.load(session.key)
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.NOTHING_TO_DO
    assert report.tokens_after == report.tokens_before
    assert await session.journal.load(session.key) == before
    assert len(scribe.inputs) == 1


@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_what_is_kept_anyway_is_not_summarised(count: int) -> None:
    scribe = Scribe()
    manager, _ = await made(scribe, *turns(2)[:count], keep_recent_count=3)
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.NOTHING_TO_DO
    assert not scribe.inputs


async def test_below_the_least_number_of_messages_nothing_is_compacted() -> None:
    scribe = Scribe()
    manager, session = await made(scribe, *turns(3), min_messages_to_compact=7)
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.NOTHING_TO_DO
    await manager.add_message(session, user("one more"))
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.COMPACTED


@pytest.mark.parametrize("keep", [0, 1, 4, 7])
async def test_the_last_messages_are_kept(keep: int) -> None:
    manager, session = await made(Scribe(), *turns(6), keep_recent_count=keep)
    await manager.compact(KEY)
    kept = session.messages_now()[1:]
    assert list(kept) == turns(6)[12 - len(kept) :]
    assert keep <= len(kept) <= keep + 1  # from the user's turn


async def test_pinned_messages_stay_with_the_calls_that_they_are_of() -> None:
    scribe = Scribe()
    said = [
        *turns(2),
        user("never forget this", pinned=True),
        call("c1", pinned=True),
        result("c1"),
        call("c2", text="look there"),
        result("c2"),
        *turns(3, start=2),
        user("not quite pinned", pinned="yes"),
        *turns(1, start=5),
    ]
    manager, session = await made(scribe, *said)
    for _ in range(3):
        await manager.compact(KEY)
        await manager.add_messages(session, turns(2, start=6))
    kept = session.messages_now()
    assert said[4] in kept
    assert said[5] in kept
    assert said[6] in kept
    given = [message for messages, _ in scribe.inputs for message in messages]
    assert not {m.text for m in said[4:6]} & {m.text for m in given} - {""}
    assert said[7] in given
    assert said[13] in given


async def test_calls_that_wait_for_results_stay_until_these_come() -> None:
    scribe = Scribe()
    long = call("c1", text="slow", long_running_tool_ids=["c1"])
    said = [*turns(2), long, *turns(12, start=2)]
    manager, session = await made(scribe, *said)
    await manager.compact(KEY)
    assert long in session.messages_now()
    await manager.add_messages(session, [result("c1", "at last")])
    view = await manager.load_history(KEY)
    assert "at last" in texts(view.messages)
    await manager.add_messages(session, turns(2, start=14))
    await manager.compact(KEY)
    assert long not in session.messages_now()
    given = [message for messages, _ in scribe.inputs for message in messages]
    assert long in given


async def test_a_call_that_was_abandoned_stops_no_compaction() -> None:
    scribe = Scribe()
    manager, session = await made(scribe, *turns(2), call("lost"), *turns(4, start=2))
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.COMPACTED
    assert session.head.active.messages == 3


async def test_leading_instructions_stay_in_front() -> None:
    system = ChatMessage.system("be brief")
    manager, session = await made(Scribe(), system, *turns(5))
    await manager.compact(KEY)
    first, summary, *_ = session.messages_now()
    assert first == system
    assert summary.metadata["type"] == "compaction_summary"


async def test_a_turn_that_is_most_of_the_history_is_cut_between_its_groups() -> None:
    scribe = Scribe()
    calls = [m for n in range(30) for m in (call(f"c{n}"), result(f"c{n}", "x" * 50))]
    manager, session = await made(scribe, *turns(1), user("go " * 9), *calls)
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.COMPACTED
    assert len(scribe.given[0]) == 61
    assert session.messages_now()[1:] == calls[-2:]


async def test_what_the_window_hides_is_summarised_too() -> None:
    scribe = Scribe()
    config = configured(
        session={"max_messages": 4},
        tool_calls={"keep_tool_calls_count": 0},
        compaction={"keep_recent_count": 2, "min_messages_to_compact": 0},
    )
    manager = SessionManager(MemoryJournal.opened(), config, summarizer=scribe)
    session = await manager.get_or_create(ANN)
    hidden = [*turns(3), call("c1", text="wait"), result("c1"), *turns(3, start=3)]
    await manager.add_messages(session, hidden)
    assert len((await manager.load_history(KEY)).kept) <= 4
    await manager.compact(KEY)
    assert scribe.given == [texts(hidden[:-2])]


async def test_without_a_summarizer_nothing_is_compacted() -> None:
    manager = SessionManager(MemoryJournal.opened())
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(20))
    with pytest.raises(ValueError, match="no summarizer"):
        await manager.compact(KEY)
    assert await manager.compact_if_due(session, 10**9) is None


async def test_what_is_not_there_is_not_compacted() -> None:
    manager = SessionManager(MemoryJournal.opened(), summarizer=Scribe())
    with pytest.raises(SessionNotFoundError):
        await manager.compact(KEY)


# Live handles ----------------------------------------------------------------------


@with_claims(Capability.SHARED)
@pytest.mark.parametrize("flushes", [True, False])
async def test_live_sessions_of_other_managers_show_it_at_once_or_when_they_read(
    bound: ManagerHarness,
    flushes: bool,
) -> None:
    config = configured(
        compaction={
            "keep_recent_count": 2,
            "min_messages_to_compact": 0,
            "memory_flush": flushes,
        }
    )
    async with (
        bound.storage() as opener,
        opener(config, summarizer=Scribe()) as one,
        opener(config) as other,
    ):
        here = await one.get_or_create(ANN)
        there = await other.get_or_create(ANN)
        await one.add_messages(here, turns(4))
        await there.refresh()
        there.set_provider_state("mine", {"kept": True})
        await one.compact(KEY)
        shown = [here.get_message_count(), there.get_message_count()]
        assert shown == ([3, 3] if flushes else [8, 8])
        assert len(await here.get_messages()) == 3
        await other.add_message(there, agent("more"))
        assert there.get_message_count() == 4
        assert there.get_provider_state("mine") == {"kept": True}
