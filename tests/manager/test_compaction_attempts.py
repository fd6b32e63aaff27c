"""Attempts to compact are bounded: each counts, whatever ends it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from around_journals import AroundJournal, as_journal
from manager_values import ANN, KEY, Scribe, configured, stored, texts, turns, user
from typing_extensions import override

from raf_session.attempts import AttemptTurns
from raf_session.changes import Change, StateDelta
from raf_session.conformance import TickingClock
from raf_session.entries import Entry
from raf_session.errors import StorageError
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import CompactionOutcome, ManagedSession, SessionManager
from raf_session.manager.compaction_rule import COMPACTION

CONFIG = configured(
    session={"max_token_count": 1000, "ttl": None, "idle_timeout": None},
    compaction={
        "mode": "auto",
        "keep_recent_count": 2,
        "target_tokens_percent": 5,
        "min_messages_to_compact": 0,
        "summary_timeout": None,
    },
)
SAID = turns(8)


class Fatal(BaseException):
    """What no summarizer should raise."""


async def begun(manager: SessionManager) -> ManagedSession:
    return await manager.get_or_create(ANN)


@pytest.mark.anyio
async def test_a_summary_that_is_cancelled_is_not_asked_for_at_each_turn() -> None:
    clock, scribe = TickingClock(), Scribe(anyio.sleep_forever)
    manager = SessionManager(
        MemoryJournal.opened(clock=clock), CONFIG, summarizer=scribe
    )
    session = await begun(manager)
    for n in range(20):
        with anyio.move_on_after(0.005):
            await session.add_messages_batch(turns(3, start=3 * n))
    assert len(scribe.inputs) == 1
    statistics = await manager.statistics(KEY)
    assert (statistics.failures, statistics.compactions) == (1, 0)
    clock.tick(60)
    scribe.act = None
    await session.add_message(user("and now"))
    statistics = await manager.statistics(KEY)
    assert (statistics.failures, statistics.compactions) == (0, 1)


@pytest.mark.anyio
async def test_a_summarizer_that_ends_the_program_is_counted_too() -> None:
    journal = MemoryJournal.opened(clock=TickingClock())
    manager = SessionManager(journal, CONFIG, summarizer=Scribe(answer=Fatal()))
    with pytest.raises(Fatal):
        await (await begun(manager)).add_messages_batch(SAID)
    after = Scribe()
    again = SessionManager(journal, CONFIG, summarizer=after)
    await again.add_message(KEY, user("more"))
    assert not after.inputs
    assert (await again.statistics(KEY)).failures == 1


@pytest.mark.anyio
async def test_a_process_that_dies_during_a_summary_has_made_an_attempt() -> None:
    journal, seen = MemoryJournal.opened(), list[Any]()

    async def look() -> None:
        record = await journal.load((await begun(manager)).key)
        seen.append(record.provider_states[COMPACTION])

    manager = SessionManager(journal, CONFIG, summarizer=Scribe(look))
    await (await begun(manager)).add_messages_batch(SAID)
    assert [(s["failures"], s["reason"]) for s in seen] == [(1, "interrupted")]
    statistics = await manager.statistics(KEY)
    assert (statistics.failures, statistics.compactions) == (0, 1)


class Broken(AroundJournal):
    """Fails each splice."""

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        if name == "splice":
            raise StorageError("memory", "the disk is on fire")
        return await call(*args, **kwargs)


@pytest.mark.anyio
async def test_a_summary_that_cannot_be_stored_is_not_asked_for_at_each_save() -> None:
    journal = as_journal(Broken(MemoryJournal.opened(clock=TickingClock())))
    scribe = Scribe()
    manager = SessionManager(journal, CONFIG, summarizer=scribe)
    session = await begun(manager)
    for n in range(10):
        await session.add_messages_batch(turns(3, start=3 * n))
    assert len(scribe.inputs) == 1


@pytest.mark.anyio
async def test_without_anything_new_twelve_attempts_are_all() -> None:
    clock, scribe = TickingClock(), Scribe(answer="")
    manager = SessionManager(
        MemoryJournal.opened(clock=clock), CONFIG, summarizer=scribe
    )
    session = await begun(manager)
    await session.add_messages_batch(SAID)
    for n in range(28):
        clock.tick(3600)
        await session.add_message(user(f"still there? {n}"))
    assert len(scribe.inputs) == 12
    scribe.answer = None
    for n in range(32):
        clock.tick(3600)
        await session.add_message(user(f"and now? {n}"))
    assert len(scribe.inputs) > 12
    assert (await manager.statistics(KEY)).failures == 0


@pytest.mark.anyio
async def test_a_clock_that_goes_back_stops_no_compaction() -> None:
    clock, scribe = TickingClock(), Scribe(answer="")
    manager = SessionManager(
        MemoryJournal.opened(clock=clock), CONFIG, summarizer=scribe
    )
    session = await begun(manager)
    clock.tick(400 * 86_400)
    await session.add_messages_batch(SAID)
    clock.tick(-399 * 86_400)
    scribe.answer = None
    await session.add_message(user("the clock was wrong"))
    assert (await manager.statistics(KEY)).compactions == 1


@pytest.mark.anyio
async def test_a_failure_does_not_undo_what_another_process_compacted() -> None:
    journal = MemoryJournal.opened(clock=TickingClock())
    done = {"compactions": 7, "left": 3, "spliced_at": 99}

    async def compact_elsewhere() -> None:
        record = await journal.load((await begun(manager)).key)
        await journal.splice(
            record.head.key,
            1,
            record.entries[-3].seq,
            [Entry("s", "summary", user("so far"))],
            archive=True,
            change=Change(providers=StateDelta(set={COMPACTION: done})),
        )

    manager = SessionManager(
        journal, CONFIG, summarizer=Scribe(compact_elsewhere, answer="")
    )
    session = await begun(manager)
    await session.add_messages_batch(SAID)
    await session.refresh()
    assert session.get_provider_state(COMPACTION) == done
    assert stored(session) == ["so far", *texts(SAID[-2:])]


@pytest.mark.anyio
async def test_what_another_process_has_compacted_already_is_not_summarised() -> None:
    inner = MemoryJournal.opened(clock=TickingClock())
    scribe = Scribe()

    class Late(AroundJournal):
        """Compacts elsewhere once the attempt has read the session."""

        ready = False

        @override
        async def called(
            self,
            name: str,
            call: Callable[..., Awaitable[Any]],
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            answer = await call(*args, **kwargs)
            if self.ready and name == "load" and len(answer.entries) == len(SAID):
                self.ready = False
                await inner.splice(
                    args[0],
                    1,
                    answer.entries[-3].seq,
                    [Entry("s", "summary", user("so far"))],
                    archive=True,
                )
            return answer

    around = Late(inner)
    manager = SessionManager(as_journal(around), CONFIG, summarizer=scribe)
    session = await begun(manager)
    entries = [Entry(f"e{i}", "message", m) for i, m in enumerate(SAID)]
    await inner.append(session.key, entries)
    await session.refresh()
    around.ready = True
    report = await manager.compact(session)
    assert report.outcome is CompactionOutcome.CONFLICT
    assert not scribe.inputs
    await session.refresh()
    assert stored(session) == ["so far", *texts(SAID[-2:])]


def test_a_turn_that_died_with_its_loop_ends_no_later_one() -> None:
    turns_ = AttemptTurns()

    async def abandoned() -> None:
        async with turns_.taken("s"):
            await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    task = loop.create_task(abandoned())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    async def later() -> bool:
        nonlocal task
        async with turns_.taken("s"):
            del task
            gc.collect()
            return turns_.is_taken("s")

    assert asyncio.run(later())
    assert not turns_.is_taken("s")
