"""The reports of a run: of each request and of the turn, with the cause of a break."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from aspect_values import (
    BRIEF,
    KEY,
    Aspects,
    asks,
    begins,
    config,
    given,
    gives,
    reply,
    run,
)

from raf_session.compaction import CompactionOutcome
from raf_session.history import HistoryRule
from raf_session.manager import AgentPoint, RunReport, TurnRequest
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage
from raf_session.prefix_match import Cause

pytestmark = pytest.mark.anyio

POINT = AgentPoint()
ALL = {"keep_recent_count": 0, "min_messages_to_compact": 1}


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


class Short:
    """Writes short summaries, no two alike."""

    def __init__(self) -> None:
        self.asked = 0

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        assert messages
        self.asked += 1
        return f"summary no. {self.asked}, after {previous!r:.20}"


async def turn(
    aspect: SessionAspect, number: int, *, calls: int = 0, words: int = 1
) -> tuple[RunReport, ...]:
    """Do a run with so many groups of calls; return the reports of its requests."""
    said = given(BRIEF, f"question {number} " + "word " * words)
    async with aspect.around(POINT, said) as one:
        for n in range(calls):
            name = f"c{number}-{n}"
            one.add(asks(name, text=f"looking {name}"), gives(name))
            await one.request()
        one.add(reply(f"answer {number} " + "word " * words))
        return one.reports


def breaks(reports: Sequence[RunReport]) -> Counter[Cause]:
    return Counter(report.cause for report in reports if not report.append_only)


async def test_the_report_of_a_turn_shows_the_break_of_any_of_its_requests(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    await turn(aspect, 0, words=200)
    other = ChatMessage.system("be long")
    async with aspect.around(POINT, given(other, "and?")) as one:
        one.add(asks("a"), gives("a"))
        await one.request()
        one.add(reply())
    first, second = one.reports
    assert (first.append_only, second.append_only) == (False, True)
    assert second.reuse is not None
    assert second.reuse > 0.8
    report = one.report
    assert not report.append_only
    assert report.cause is first.cause is Cause.SYSTEM_CHANGED
    matches = [each.request.match for each in one.reports]
    shared = sum(match.shared_bytes for match in matches)
    assert report.reuse == shared / sum(match.bytes for match in matches)
    assert report.request is second.request


async def test_the_first_request_of_a_session_counts_in_no_share(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    async with aspect.around(POINT, given("hi")) as one:
        assert one.report.reuse is None
        one.add(asks("a"), gives("a"))
        await one.request()
        assert one.report.reuse == one.reports[1].reuse
        assert [report.reuse is None for report in one.reports] == [True, False]
        one.add(reply())


async def test_a_turn_leaves_out_what_any_of_its_requests_left_out(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(config(session={"max_messages": 8}))
    for n in range(4):
        await turn(aspect, n)
    async with aspect.around(POINT, given(BRIEF, "and?")) as one:
        for n in range(4):
            one.add(asks(f"{n}"), gives(f"{n}"))
            await one.request()
        one.add(reply())
    stored = await aspects.stored()
    dropped = [id(entry.message) for entry in one.report.dropped]
    assert len(dropped) == len(set(dropped))
    each = {id(e.message) for report in one.reports for e in report.dropped}
    assert set(dropped) == each
    assert {m.text for m in stored} >= {e.message.text for e in one.report.dropped}
    assert len(one.reports[0].dropped) < len(dropped)


async def test_the_compaction_of_a_turn_is_told_whole(aspects: Aspects) -> None:
    aspect = aspects.new(summarizer=Short())
    for n in range(12):
        await turn(aspect, n, words=20)
    done = await aspect.manager.compact(KEY)
    assert done.outcome is CompactionOutcome.COMPACTED
    async with aspect.around(POINT, given(BRIEF, "and?")) as one:
        one.add(asks("a"), gives("a"))
        await one.request()
        one.add(reply())
    assert [report.compaction for report in one.reports] == [done, None]
    assert one.report.compaction == done
    assert one.report.cause is Cause.COMPACTED


async def test_an_answered_input_that_comes_again_is_told(aspects: Aspects) -> None:
    aspect = aspects.new()
    for again in (False, True):
        async with aspect.around(run("1"), given("hi")) as one:
            assert one.report.already_answered == again
            if not again:
                one.add(reply())
    async with aspect.around(run("2"), given("and?")) as one:
        await one.request()
        one.add(reply())
    assert not one.report.already_answered


# Causes --------------------------------------------------------------------------


async def test_calls_that_leave_are_removed_messages_and_no_compaction(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(config(tool_calls={"keep_tool_calls_count": 2}))
    found: list[RunReport] = []
    for n in range(40):
        found += await turn(aspect, n, calls=n % 3, words=n % 4)
    assert len(breaks(found)) == 1
    assert breaks(found)[Cause.MESSAGE_REMOVED] > 5
    assert aspect.manager.reuse(KEY).causes == dict(breaks(found))


@pytest.mark.parametrize("calls", [0, 1, 3])
async def test_every_compaction_is_told_as_one(aspects: Aspects, calls: int) -> None:
    options = {"mode": "safeguard", "keep_recent_count": 4, "target_tokens": 400}
    configuration = config(
        session={"max_token_count": 1500, "max_messages": None},
        compaction={**options, "min_messages_to_compact": 4},
        tool_calls={"keep_tool_calls_count": 2},
    )
    aspect = aspects.new(configuration, summarizer=Short())
    compacted = 0
    for n in range(60):
        for report in await turn(aspect, n, calls=calls, words=25):
            done = report.compaction
            if done is not None and done.outcome is CompactionOutcome.COMPACTED:
                compacted += 1
                assert report.cause is Cause.COMPACTED
            else:
                assert report.cause is not Cause.COMPACTED
            if report.append_only:
                assert report.cause is Cause.NONE
        if n == 30:
            aspect = aspects.new(configuration, summarizer=Short())
    assert compacted > 1


async def test_a_summary_in_the_place_of_a_summary_is_a_compaction(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(config(compaction=ALL), summarizer=Short())
    for n in range(12):
        await turn(aspect, n, words=20)
        if n < 4:
            continue
        await aspect.manager.compact(KEY)
        (report,) = await turn(aspect, n + 100, words=20)
        assert report.cause is Cause.COMPACTED


async def test_a_compaction_is_told_where_another_process_compacts_right_after(
    aspects: Aspects, monkeypatch: pytest.MonkeyPatch
) -> None:
    aspect = aspects.new(config(compaction=ALL), summarizer=Short())
    await turn(aspect, 0, words=200)
    done = await aspect.manager.compact(KEY)
    assert done.outcome is CompactionOutcome.COMPACTED
    request = aspect.manager.request

    async def late(*args: Any, **options: Any) -> TurnRequest:
        monkeypatch.setattr(aspect.manager, "request", request)
        other = aspects.new(config(compaction=ALL), summarizer=Short()).manager
        assert (await other.compact(KEY)).outcome is CompactionOutcome.COMPACTED
        return await request(*args, **options)

    monkeypatch.setattr(aspect.manager, "request", late)
    prepared = await aspect.before(POINT, given(BRIEF, "and? " * 100))
    assert prepared.report is not None
    assert prepared.report.compaction == done


@pytest.mark.parametrize("limit", [{"max_messages": 9}, {"max_token_count": 400}])
@pytest.mark.parametrize("summary", [True, False])
async def test_a_window_that_moves_is_a_truncated_head(
    aspects: Aspects, limit: dict[str, int], *, summary: bool
) -> None:
    aspect = aspects.new(summarizer=Short())
    for n in range(12):
        await turn(aspect, n)
    if summary:
        await aspect.manager.compact(KEY)
        await turn(aspect, 12)
    found: list[RunReport] = []
    aspect = aspects.new(config(session=limit))
    await turn(aspect, 13)
    for n in range(14, 50):
        found += await turn(aspect, n, words=n % 7)
    assert set(breaks(found)) == {Cause.TRUNCATED_HEAD}
    assert breaks(found)[Cause.TRUNCATED_HEAD] > 2
    rules = {entry.rule for report in found for entry in report.dropped}
    assert rules <= {HistoryRule.MAX_MESSAGES, HistoryRule.MAX_TOKENS, HistoryRule.TURN}


async def test_the_cause_is_known_in_another_process_too(aspects: Aspects) -> None:
    configuration = config(session={"max_messages": 9})
    causes: Counter[Cause] = Counter()
    sent: tuple[ChatMessage, ...] = ()
    for n in range(30):
        aspect = aspects.new(configuration)
        (report,) = await turn(aspect, n)
        assert report.append_only == begins(sent, report.request.messages)
        sent = report.request.messages
        causes[report.cause] += 1
        await aspect.manager.close()
    assert set(causes) == {Cause.NONE, Cause.TRUNCATED_HEAD}


async def test_where_instructions_change_they_are_the_cause(aspects: Aspects) -> None:
    aspect = aspects.new(summarizer=Short())
    for n in range(12):
        await turn(aspect, n, words=20)
    await aspect.manager.compact(KEY)
    other = ChatMessage.system("be long")
    async with aspect.around(POINT, given(other, "and?")) as one:
        one.add(reply())
    assert one.report.cause is Cause.SYSTEM_CHANGED
    difference = one.report.request.match.first_difference
    assert difference is not None
    assert difference.index == 0
