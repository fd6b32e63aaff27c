"""Compaction around runs: the input stays in the request, whatever becomes of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise

import anyio
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
    judge,
    outline,
    reply,
    run,
    violations,
    wire,
)

from raf_session.compaction import CompactionOutcome
from raf_session.manager import AgentsConfig, SessionRequest
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


class Writer:
    """Writes a summary; or raises, or is empty, or takes for ever."""

    def __init__(self, text: str | None = "what was said before") -> None:
        self.text = text
        self.asked = 0

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        assert messages
        self.asked += 1
        if self.text is None:
            raise RuntimeError("no model")
        if self.text == "slow":
            await anyio.sleep_forever()
        return self.text and f"{self.text}, after {previous}"


def narrow(mode: str = "safeguard", **compaction: object) -> AgentsConfig:
    options = {"mode": mode, "keep_recent_count": 2, "target_tokens": 300}
    return config(
        session={"max_token_count": 1000}, compaction={**options, **compaction}
    )


async def talk(aspect: SessionAspect, turns: range) -> list[tuple[ChatMessage, ...]]:
    """Do so many runs; return the requests that they began with."""
    requests: list[tuple[ChatMessage, ...]] = []
    for n in turns:
        async with aspect.around(run(f"{n}"), given(BRIEF, f"question {n}")) as one:
            judge(one.messages, aspect.manager)
            requests.append(one.messages)
            one.add(asks(f"c{n}"), gives(f"c{n}", f"{n} " * 150), reply(f"answer {n}"))
    return requests


async def test_a_request_that_would_not_fit_is_compacted_once(aspects: Aspects) -> None:
    aspect = aspects.new(narrow(), summarizer=Writer())
    requests = await talk(aspect, range(20))
    heads = [wire(request)[1] for request in requests]
    summaries = [head for head in heads if "[历史摘要]" in str(head["content"])]
    assert summaries
    for former, later in pairwise(requests):
        assert begins(former, later) or wire(former)[1] != wire(later)[1]
    said = outline(await aspects.everything())
    assert [said.count(f"user: question {n}") for n in range(20)] == [1] * 20
    assert len(said) == 80


async def test_the_report_of_a_run_tells_of_the_compaction(aspects: Aspects) -> None:
    aspect = aspects.new(narrow(), summarizer=Writer())
    outcomes: list[CompactionOutcome | None] = []
    for n in range(12):
        async with aspect.around(run(f"{n}"), given(BRIEF, f"question {n}")) as one:
            told = one.report.compaction
            outcomes.append(None if told is None else told.outcome)
            assert one.report.append_only or told
            one.add(reply("word " * 100))
    assert CompactionOutcome.COMPACTED in outcomes
    assert outcomes.count(None) > len(outcomes) / 2


async def test_an_input_that_is_compacted_at_once_stands_in_its_request(
    aspects: Aspects,
) -> None:
    configuration = narrow(keep_recent_count=0)
    aspect = aspects.new(configuration, summarizer=Writer())
    for n, request in enumerate(await talk(aspect, range(12))):
        texts = outline(request)
        assert texts[-1] == f"user: question {n}"
        assert texts.count(f"user: question {n}") == 1
    said = outline(await aspects.everything())
    assert [said.count(f"user: question {n}") for n in range(12)] == [1] * 12


async def test_a_run_is_repeated_after_its_input_was_compacted(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(narrow(keep_recent_count=0), summarizer=Writer())
    await talk(aspect, range(3))
    await aspect.before(run("now"), given(BRIEF, "and now?"))
    await aspect.manager.compact(KEY)
    async with aspects.new(narrow()).around(
        run("now"), given(BRIEF, "and now?")
    ) as one:
        assert outline(one.messages)[-1] == "user: and now?"
        one.add(asks("n"), gives("n"))
        sent = await one.request()
        assert outline(sent)[-3:] == ["user: and now?", "assistant: n", "tool: done"]
        assert violations(sent) == []
        one.add(reply())
    said = outline(await aspects.everything())
    assert said.count("user: and now?") == 1


@pytest.mark.parametrize("text", [None, "", "slow", "long " * 3000])
async def test_a_summary_that_fails_leaves_runs_that_go_on(
    aspects: Aspects, text: str | None
) -> None:
    writer = Writer(text)
    aspect = aspects.new(narrow(summary_timeout=0.01), summarizer=writer)
    await talk(aspect, range(14))
    assert writer.asked <= 2
    assert len(await aspects.stored()) == 56


async def test_a_session_that_is_deleted_while_a_run_begins_is_made_anew(
    aspects: Aspects, monkeypatch: pytest.MonkeyPatch
) -> None:
    aspect = aspects.new()
    manager, times = aspect.manager, 0
    get_or_create = manager.get_or_create

    async def deleted_at_first(request: SessionRequest) -> object:
        nonlocal times
        session = await get_or_create(request)
        times += 1
        if times == 1:
            await aspects.journal.delete(KEY)
        return session

    monkeypatch.setattr(manager, "get_or_create", deleted_at_first)
    prepared = await aspect.before(run("1"), given("hi"))
    assert outline(prepared.messages) == ["user: hi"]
    assert outline(await aspects.stored()) == ["user: hi"]


# Mode auto -----------------------------------------------------------------------


class Waiting:
    """Writes a summary once it is told to.

    Attributes:
        asked: set when a summary is wanted.
        told: lets it be written.
    """

    def __init__(self) -> None:
        self.asked, self.told = anyio.Event(), anyio.Event()

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        self.asked.set()
        await self.told.wait()
        return f"{len(messages)}, {previous}"


LARGE = reply("word " * 400)
AUTO = narrow("auto", min_messages_to_compact=0, keep_recent_count=0, summary_timeout=1)


async def test_a_run_that_is_cancelled_waits_for_no_summary(aspects: Aspects) -> None:
    writer = Waiting()
    aspect = aspects.new(AUTO, summarizer=writer)
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with aspect.around(run("1"), given("hi")) as one:
            one.add(LARGE)
            scope.cancel()
            await anyio.sleep_forever()
    assert not writer.asked.is_set()
    assert len(await aspects.stored()) == 2


async def test_a_run_that_is_cancelled_during_its_compaction_is_stored_once(
    aspects: Aspects,
) -> None:
    writer = Waiting()
    aspect = aspects.new(AUTO, summarizer=writer)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await writer.asked.wait()
                assert len(await aspects.stored()) == 2
                group.cancel_scope.cancel()

            group.start_soon(cancel)
            async with aspect.around(run("1"), given("hi")) as one:
                one.add(LARGE)
    assert outline(await aspects.stored()) == ["user: hi", f"assistant: {LARGE.text}"]


async def test_a_run_that_raises_is_compacted_behind_what_it_kept(
    aspects: Aspects,
) -> None:
    writer = Writer()
    aspect = aspects.new(AUTO, summarizer=writer)

    async def fail() -> None:
        async with aspect.around(run("1"), given("hi")) as one:
            one.add(LARGE, reply())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert writer.asked == 1
    assert len(await aspects.stored()) == 1
    assert len(await aspects.everything()) == 3


async def test_the_next_save_compacts_what_a_cancelled_run_left(
    aspects: Aspects,
) -> None:
    writer = Writer()
    aspect = aspects.new(AUTO, summarizer=writer)
    with anyio.CancelScope() as scope:
        async with aspect.around(run("1"), given("hi")) as one:
            one.add(LARGE, reply())
            scope.cancel()
            await anyio.sleep_forever()
    assert writer.asked == 0
    prepared = await aspect.before(run("2"), given(BRIEF, "and?"))
    assert writer.asked == 1
    judge(prepared.messages, aspect.manager)
    assert len(await aspects.stored()) == 1
    assert outline(prepared.messages)[-1] == "user: and?"
    assert len(await aspects.everything()) == 4
