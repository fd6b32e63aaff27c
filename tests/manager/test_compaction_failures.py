"""Compactions that fail, come too late, or are cut off: the history is as it was."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest
from around_journals import AroundJournal, as_journal
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
    stored,
    texts,
    turns,
    user,
)
from typing_extensions import override

from raf_session.conformance import Capability, TickingClock
from raf_session.errors import StorageError, SummaryFailedError
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import (
    CompactionOutcome,
    CompactionReport,
    ManagedSession,
    SessionManager,
)

pytestmark = pytest.mark.anyio

FAILED = CompactionOutcome.SUMMARIZER_FAILED
CONFIG = configured(
    session={"max_token_count": 1000, "ttl": None, "idle_timeout": None},
    compaction={
        "mode": "auto",
        "keep_recent_count": 2,
        "target_tokens_percent": 50,
        "min_messages_to_compact": 0,
        "summary_timeout": 0.01,
    },
)
SAID = turns(8)
INPUT = "\n".join(texts(SAID[:-2]))


BAD_SUMMARIES: dict[str, tuple[Scribe, CompactionOutcome, str]] = {
    "empty": (Scribe(answer=""), FAILED, "empty"),
    "blank": (Scribe(answer=" \n\t "), FAILED, "empty"),
    "none": (Scribe(act=anyio.lowlevel.checkpoint, answer=()), FAILED, "malformed"),
    "raised": (Scribe(answer=RuntimeError("no")), FAILED, "raised"),
    "refused": (Scribe(answer=SummaryFailedError("refused", "no")), FAILED, "refused"),
    "late": (Scribe(act=anyio.sleep_forever), FAILED, "timeout"),
    "longer": (
        Scribe(answer=INPUT + INPUT),
        CompactionOutcome.CANNOT_SHRINK,
        "cannot_shrink",
    ),
    "equal": (Scribe(answer=INPUT), CompactionOutcome.CANNOT_SHRINK, "cannot_shrink"),
}


@pytest.mark.parametrize("name", BAD_SUMMARIES)
async def test_a_summary_that_cannot_be_used_changes_nothing(name: str) -> None:
    scribe, outcome, reason = BAD_SUMMARIES[name]
    manager = SessionManager(
        MemoryJournal.opened(clock=TickingClock()),
        CONFIG,
        summarizer=scribe,
        counter=CharacterCounter(),
    )
    session = await manager.get_or_create(ANN)
    scribe.inputs.clear()
    await manager.add_messages(session, SAID)
    last = (await manager.statistics(KEY)).last
    assert last is not None
    assert (last.outcome, last.reason, last.failures) == (outcome, reason, 1)
    assert (last.tokens_before, last.tokens_after) == (640, 640)
    record = await session.journal.load(session.key, archived=True)
    assert [entry.message for entry in record.entries] == SAID
    assert record.archived == ()
    assert record.head.active.tokens == 640
    assert (await manager.request(session)).compaction == last
    await manager.close()
    assert len(scribe.inputs) == 1


async def test_a_summary_that_says_the_input_in_one_line_is_no_summary() -> None:
    """Many short messages cost more than their text; that is no shrinking."""
    scribe = Scribe(answer="".join("ok" for _ in range(28)))
    manager = SessionManager(MemoryJournal.opened(), CONFIG, summarizer=scribe)
    session = await manager.get_or_create(ANN)
    short = [said("ok") for _ in range(15) for said in (user, agent)]
    await manager.add_messages(session, short)
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.CANNOT_SHRINK


async def test_a_summary_of_more_than_requests_show_is_none() -> None:
    """It is shorter than a result as stored, and longer than that as it is sent."""
    scribe = Scribe(answer="x" * 1000)
    options = {"tool_calls": {"max_tool_result_size": 200}}
    manager = SessionManager(
        MemoryJournal.opened(),
        CONFIG.from_mapping(options, base=CONFIG),
        summarizer=scribe,
        counter=CharacterCounter(),
    )
    session = await manager.get_or_create(ANN)
    long = [user("go"), call("c1"), result("c1", "y" * 50_000)]
    await manager.add_messages(session, [*long, *turns(1)])
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.CANNOT_SHRINK
    scribe.answer = "x" * 100
    report = await manager.compact(KEY)
    assert report.outcome is CompactionOutcome.COMPACTED


@on_every_manager
async def test_attempts_that_fail_wait_longer_and_longer(
    bound: ManagerHarness,
) -> None:
    clock, scribe = TickingClock(), Scribe(answer="")
    async with bound(CONFIG, summarizer=scribe, clock=clock) as manager:
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, SAID)
        for failures, wait in enumerate((60, 120, 240), 1):
            for n in range(3):
                await manager.add_message(session, user(f"more {n}"))
            assert len(scribe.inputs) == failures
            statistics = await manager.statistics(KEY)
            assert (statistics.failures, statistics.compactions) == (failures, 0)
            clock.tick(wait - 1)
            await manager.add_message(session, user("not yet"))
            assert len(scribe.inputs) == failures
            clock.tick(1)
            await manager.add_message(session, user("now"))
            assert len(scribe.inputs) == failures + 1
        scribe.answer = None
        report = await manager.compact(KEY)  # by hand it is tried at once
        assert report.outcome is CompactionOutcome.COMPACTED
        statistics = await manager.statistics(KEY)
        assert (statistics.failures, statistics.compactions) == (0, 1)


async def test_a_wait_is_never_longer_than_an_hour() -> None:
    clock, scribe = TickingClock(), Scribe(answer="")
    manager = SessionManager(
        MemoryJournal.opened(clock=clock), CONFIG, summarizer=scribe
    )
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, SAID)
    for _ in range(12):
        report = await manager.compact(KEY)
        assert report.retry_at is not None
        waits = (report.retry_at - clock()).total_seconds()
        assert waits == min(60 * 2 ** (report.failures - 1), 3600)


@with_claims(Capability.DURABLE)
async def test_a_restart_does_not_forget_failures(bound: ManagerHarness) -> None:
    clock = TickingClock()
    async with bound.storage() as opener:
        first = Scribe(answer="")
        async with opener(CONFIG, summarizer=first, clock=clock) as manager:
            await manager.add_messages(await manager.get_or_create(ANN), SAID)
        second = Scribe()
        async with opener(CONFIG, summarizer=second, clock=clock) as manager:
            await manager.add_message(KEY, user("more"))
            assert not second.inputs
            clock.tick(60)
            await manager.add_message(KEY, user("and more"))
        assert (len(first.inputs), len(second.inputs)) == (1, 1)


# While the summary is being written ------------------------------------------------


Meanwhile = Callable[[SessionManager, ManagedSession], Awaitable[Any]]


async def run_meanwhile(
    manager: SessionManager, scribe: Scribe, meanwhile: Meanwhile
) -> CompactionReport:
    """Compact a session, and do something while the summary is being written."""
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, SAID)
    scribe.act = partial(meanwhile, manager, session)
    return await manager.compact(KEY)


def by_hand(bound: ManagerHarness, scribe: Scribe) -> Any:
    config = CONFIG.from_mapping(
        {"compaction": {"mode": "off", "summary_timeout": None}}, base=CONFIG
    )
    return bound(config, summarizer=scribe)


@on_every_manager
async def test_what_is_said_during_a_summary_stays(bound: ManagerHarness) -> None:
    async def talk(manager: SessionManager, session: ManagedSession) -> None:
        await manager.add_messages(session, [user("meanwhile"), agent("indeed")])

    scribe = Scribe()
    async with by_hand(bound, scribe) as manager:
        report = await run_meanwhile(manager, scribe, talk)
        assert report.outcome is CompactionOutcome.COMPACTED
        session = await manager.get(KEY)
        assert session is not None
        kept = [*texts(SAID[-2:]), "meanwhile", "indeed"]
        assert stored(session) == ["[历史摘要] #1", *kept]


@on_every_manager
async def test_a_session_that_was_cleared_during_a_summary_stays_empty(
    bound: ManagerHarness,
) -> None:
    async def clear(_: SessionManager, session: ManagedSession) -> None:
        await session.clear()

    scribe = Scribe()
    async with by_hand(bound, scribe) as manager:
        report = await run_meanwhile(manager, scribe, clear)
        assert report.outcome is CompactionOutcome.CONFLICT
        session = await manager.get(KEY)
        assert session is not None
        assert stored(session) == []


@on_every_manager
@pytest.mark.parametrize("fails", [False, True])
async def test_a_session_that_was_deleted_during_a_summary_stays_so(
    bound: ManagerHarness,
    fails: bool,
) -> None:
    async def delete(manager: SessionManager, _: ManagedSession) -> None:
        await manager.delete(KEY)
        if fails:
            raise RuntimeError("no")

    scribe = Scribe()
    async with by_hand(bound, scribe) as manager:
        report = await run_meanwhile(manager, scribe, delete)
        assert report.outcome is (FAILED if fails else CompactionOutcome.CONFLICT)
        assert await manager.get(KEY) is None


@on_every_manager
@pytest.mark.parametrize("fails", [False, True])
async def test_a_session_that_was_made_anew_during_a_summary_is_not_touched(
    bound: ManagerHarness,
    fails: bool,
) -> None:
    async def replace(manager: SessionManager, _: ManagedSession) -> None:
        await manager.delete(KEY)
        session = await manager.get_or_create(ANN)
        await manager.add_messages(session, turns(2, start=50))
        if fails:
            raise RuntimeError("no")

    scribe = Scribe()
    async with by_hand(bound, scribe) as manager:
        report = await run_meanwhile(manager, scribe, replace)
        assert report.outcome is (FAILED if fails else CompactionOutcome.CONFLICT)
        session = await manager.get(KEY)
        assert session is not None
        assert stored(session) == texts(turns(2, start=50))
        assert (await manager.statistics(KEY)).failures == 0


async def test_of_two_summaries_at_once_one_counts() -> None:
    journal = MemoryJournal.opened()
    scribe = Scribe()
    one = SessionManager(journal, CONFIG, summarizer=scribe)
    session = await one.get_or_create(ANN)
    await session.add_messages_batch(SAID)
    async with anyio.create_task_group() as tasks:
        for manager in (one, SessionManager(journal, CONFIG, summarizer=scribe)):
            tasks.start_soon(manager.compact, KEY)
    record = await journal.load(session.key)
    summaries = [e for e in record.entries if e.kind == "summary"]
    assert len(summaries) == 1
    assert len(scribe.inputs) == 1  # the second found nothing to do


# Cut off ---------------------------------------------------------------------------


class CutOff(AroundJournal):
    """Cancels, before or after one of its calls, the scope that it is given."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.calls = 0
        self.at: tuple[int, bool] | None = None
        self.scope = anyio.CancelScope()

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        self.calls += 1
        if self.at == (self.calls, False):
            self.scope.cancel()
            await anyio.lowlevel.checkpoint()
        answer = await call(*args, **kwargs)
        if self.at == (self.calls, True):
            self.scope.cancel()
            await anyio.lowlevel.checkpoint()
        return answer


async def test_a_compaction_that_is_cut_off_is_done_whole_or_not_at_all() -> None:
    seen: set[int] = set()
    at = 0
    while True:
        at += 1
        finished = False
        for after in (False, True):
            around = CutOff(MemoryJournal.opened())
            manager = SessionManager(as_journal(around), CONFIG, summarizer=Scribe())
            session = await manager.get_or_create(ANN)
            await manager.add_messages(session, SAID)
            around.calls, around.at = 0, (at, after)
            with around.scope:
                await manager.compact(KEY)
            finished = around.calls < at
            other = SessionManager(around.inner)
            shown = await other.get(KEY)
            assert shown is not None
            whole = stored(shown) == texts(SAID)
            assert whole or stored(shown) == ["[历史摘要] #1", *texts(SAID[-2:])]
            assert all(message.text for message in shown.messages_now())
            seen.add(len(stored(shown)))
            again = await SessionManager(around.inner, summarizer=Scribe()).get(KEY)
            assert again is not None
        if finished:
            break
    assert seen == {3, len(SAID)}
    assert at > 3


class Broken(AroundJournal):
    """Fails each splice."""

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        if name == "splice":
            raise StorageError("memory", "the disk is on fire")
        return await call(*args, **kwargs)


async def test_a_save_is_done_although_the_compaction_behind_it_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal = as_journal(Broken(MemoryJournal.opened()))
    manager = SessionManager(
        journal, CONFIG, summarizer=Scribe(), counter=CharacterCounter()
    )
    session = await manager.get_or_create(ANN)
    with caplog.at_level(logging.ERROR):
        await manager.add_messages(session, SAID)
    assert "was not compacted" in caplog.text
    assert texts(await session.get_messages()) == texts(SAID)
    with pytest.raises(StorageError):
        await manager.compact(KEY)
