"""`AgentRun.save`, and what is kept of runs that end in the middle of calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any

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
    outline,
    reply,
    run,
    violations,
)
from hypothesis import given as given_
from hypothesis import strategies as st

from raf_session.compaction import CompactionOutcome
from raf_session.errors import SessionNotFoundError
from raf_session.manager import AgentRun, TurnRequest
from raf_session.messages import ChatMessage, Usage
from raf_session.toolcalls import INTERRUPTED

pytestmark = pytest.mark.anyio


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


OUTPUT = (
    asks("a", "b"),
    gives("a", "paid 100"),
    gives("b"),
    asks("c"),
    gives("c"),
    reply("done"),
)


async def test_a_tool_that_acted_before_the_run_failed_is_remembered(
    aspects: Aspects,
) -> None:
    with suppress(TimeoutError):
        async with aspects.new().around(run("1"), given("pay")) as one:
            one.add(asks("p1", "p2"), gives("p1", "paid 100"))
            raise TimeoutError
    stored = ["user: pay", "assistant: p1 p2", "tool: paid 100"]
    assert outline(await aspects.stored()) == stored
    for name in ("1", "2"):
        said = given("pay") if name == "1" else given("and?")
        prepared = await aspects.new().before(run(name), said)
        assert violations(tuple(prepared.messages)) == []
        assert outline(prepared.messages)[2:4] == [
            "tool: paid 100",
            f"tool: {INTERRUPTED}",
        ]


async def test_a_checkpoint_is_stored_at_once_and_the_rest_at_the_end(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    former = sent = tuple[ChatMessage, ...]()
    async with aspect.around(run("1"), given(BRIEF, "pay")) as one:
        for place, message in enumerate(OUTPUT):
            one.add(message, usage=Usage(completion_tokens=place + 1))
            await one.save()
            revision = (await aspects.journal.load(KEY)).head.revision
            await one.save()
            assert (await aspects.journal.load(KEY)).head.revision == revision
            assert outline(await aspects.stored())[1:] == outline(OUTPUT[: place + 1])
            sent = await one.request()
            assert violations(sent) == []
            assert outline(sent).count("user: pay") == 1
            if place in (0, 2, 4):
                former = sent
            if place in (3, 5):
                assert begins(former, sent)
    record = await aspects.journal.load(KEY)
    assert [e.id for e in record.entries][1:] == [f"1:out:{i}" for i in range(6)]
    tokens = [e.usage.completion_tokens for e in record.entries if e.usage is not None]
    assert [tokens[i] for i in (1, 4, 6)] == [1, 4, 6]
    prepared = await aspects.new().before(run("2"), given(BRIEF, "and?"))
    assert begins(sent, tuple(prepared.messages))


PLACES = st.sets(st.integers(0, len(OUTPUT)))


@given_(PLACES, PLACES, st.integers(0, len(OUTPUT)))
def test_wherever_a_run_was_saved_and_ended_its_repetition_is_stored_once(
    first: set[int], second: set[int], end: int
) -> None:
    async def repeat() -> None:
        async with Aspects() as aspects:
            for saves, last in ((first, end), (second, len(OUTPUT))):
                with suppress(TimeoutError):
                    async with aspects.new().around(run("1"), given("pay")) as one:
                        for place, message in enumerate(OUTPUT[:last]):
                            one.add(message)
                            if place in saves:
                                await one.save()
                        if last < len(OUTPUT):
                            raise TimeoutError
            assert outline(await aspects.stored()) == ["user: pay", *outline(OUTPUT)]

    anyio.run(repeat)


async def test_another_attempt_that_saves_is_stored_behind_the_first_once(
    aspects: Aspects,
) -> None:
    for _ in range(2):
        for answer in ("one", "two"):
            async with aspects.new().around(run("1"), given("hi")) as one:
                for n in range(3):
                    one.add(asks(f"{answer}{n}"), gives(f"{answer}{n}"))
                    await one.save()
                    assert violations(await one.request()) == []
                one.add(reply(answer))
    expected = ["user: hi"]
    for answer in ("one", "two"):
        for n in range(3):
            expected += [f"assistant: {answer}{n}", "tool: done"]
        expected.append(f"assistant: {answer}")
    assert outline(await aspects.stored()) == expected


async def test_an_attempt_that_ends_as_the_first_is_stored_whole(
    aspects: Aspects,
) -> None:
    for name in ("a", "b"):
        async with aspects.new().around(run("1"), given("hi")) as one:
            one.add(asks(name), gives(name))
            await one.save()
            one.add(reply("done"))
    assert outline(await aspects.stored())[1:] == [
        *("assistant: a", "tool: done", "assistant: done"),
        *("assistant: b", "tool: done", "assistant: done"),
    ]


async def test_what_is_saved_while_a_request_is_made_stands_in_it_once(
    aspects: Aspects, monkeypatch: pytest.MonkeyPatch
) -> None:
    aspect = aspects.new()
    request = aspect.manager.request
    async with (
        aspect.around(run("1"), given("hi")) as one,
        anyio.create_task_group() as tasks,
    ):

        async def slow(*args: Any, **options: Any) -> TurnRequest:
            tasks.start_soon(one.save)
            await anyio.wait_all_tasks_blocked()
            return await request(*args, **options)

        monkeypatch.setattr(aspect.manager, "request", slow)
        one.add(asks("a"), gives("a"))
        assert outline(await one.request()) == outline(
            [ChatMessage.user("hi"), asks("a"), gives("a")]
        )
    assert len(await aspects.stored()) == 3


async def test_tools_that_run_at_once_may_each_save(aspects: Aspects) -> None:
    ids = [f"c{n}" for n in range(8)]
    async with aspects.new().around(run("1"), given("hi")) as one:
        one.add(asks(*ids))

        async def call(name: str) -> None:
            await anyio.lowlevel.checkpoint()
            one.add(gives(name))
            await one.save()

        async with anyio.create_task_group() as tasks:
            for name in ids:
                tasks.start_soon(call, name)
            sent = await one.request()
            assert violations(sent) == []
        sent = await one.request()
        assert violations(sent) == []
        assert len(sent) == 10
        one.add(reply())
    assert len(await aspects.stored()) == 11


async def test_a_checkpoint_that_another_process_archives_stays_in_the_run(
    aspects: Aspects,
) -> None:
    class Short:
        async def summarize(
            self, messages: Sequence[ChatMessage], previous: str | None = None
        ) -> str:
            return f"{len(messages)} messages, after {previous}"

    other = aspects.new(
        config(compaction={"keep_recent_count": 1, "min_messages_to_compact": 1}),
        summarizer=Short(),
    ).manager
    async with aspects.new().around(run("1"), given("hi " * 200)) as one:
        one.add(asks("a"), gives("a", "x" * 900), asks("b", "c"), gives("b"))
        await one.save()
        report = await other.compact(KEY)
        assert report.outcome is CompactionOutcome.COMPACTED
        one.add(gives("c"))
        sent = await one.request()
        assert violations(sent) == []
        calls = [c.id for m in sent for c in m.tool_calls or ()]
        assert calls == ["a", "b", "c"]
        said = next(i for i, m in enumerate(sent) if m.text.startswith("hi hi"))
        assert [m.role.value for m in sent[said + 1 :]] == [
            *("assistant", "tool", "assistant", "tool", "tool"),
        ]
        one.add(reply())
    everything = outline(await aspects.everything())
    assert len(everything) == 7
    assert everything.count("tool: done") == 2
    assert len(set(everything)) == 6


async def test_calls_that_are_not_saved_wait_for_the_end(aspects: Aspects) -> None:
    aspect = aspects.new(config(tool_calls={"save_tool_calls": False}))
    async with aspect.around(run("1"), given("hi")) as one:
        one.add(asks("a", text="let me see"), gives("a"))
        await one.save()
        sent = await one.request()
        assert outline(sent)[1:] == ["assistant: let me see", "tool: done"]
        one.add(reply())
    assert outline(await aspects.stored())[1:] == [
        "assistant: let me see",
        "assistant: well",
    ]


async def test_a_checkpoint_of_a_deleted_session_is_refused(aspects: Aspects) -> None:
    places: list[str] = []

    async def saved() -> None:
        async with aspects.new().around(run("1"), given("hi")) as one:
            await aspects.new().manager.delete(KEY)
            one.add(asks("a"))
            places.append("save")
            await one.save()
            places.append("end")

    with pytest.raises(SessionNotFoundError):
        await saved()
    assert places == ["save"]


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
async def test_a_run_whose_block_has_ended_takes_nothing(
    aspects: Aspects, *, fails: bool, enabled: bool
) -> None:
    aspect = aspects.new(config(session={"enabled": enabled}))
    runs: list[AgentRun] = []
    with suppress(TimeoutError):
        async with aspect.around(run("1"), given("hi")) as one:
            one.add(reply())
            runs.append(one)
            if fails:
                raise TimeoutError
    (one,) = runs
    with pytest.raises(RuntimeError, match="ended"):
        one.add(reply("late"))
    with pytest.raises(RuntimeError, match="ended"):
        await one.request()
    with pytest.raises(RuntimeError, match="ended"):
        await one.save()
    assert len(one.added) == 1
    assert one.report.append_only
