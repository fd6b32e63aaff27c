"""`SessionAspect.around`: the requests of a run, and what is stored at its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

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

from raf_session.errors import InvalidValueError, SessionNotFoundError
from raf_session.history import HistoryRule
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage, Usage
from raf_session.prefix_match import Cause

pytestmark = pytest.mark.anyio

GROUP = (asks("a", "b"), gives("b"), gives("a"))


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


async def answered(aspect: SessionAspect, name: str, *texts: str) -> None:
    """Do a run without tools: what is said, then the reply."""
    said, answer = texts
    async with aspect.around(run(name), given(BRIEF, said)) as one:
        one.add(reply(answer))


async def test_each_request_of_a_run_goes_on_from_the_one_before(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    await answered(aspect, "0", "hi", "hello")
    former: tuple[ChatMessage, ...] = ()
    async with aspect.around(run("1"), given(BRIEF, "look")) as one:
        assert one.messages == one.input.messages
        for ids in (("a", "b"), ("c",), ("d", "e", "f")):
            sent = await one.request()
            assert begins(former, sent)
            assert one.report.append_only
            assert one.report.cause is Cause.NONE
            judge(sent, aspect.manager)
            former = sent
            one.add(asks(*ids))
            one.add(*map(gives, reversed(ids)))
        one.add(reply())
    prepared = await aspects.new().before(run("2"), given(BRIEF, "and?"))
    assert begins(former, tuple(prepared.messages))
    assert prepared.report is not None
    assert prepared.report.match.append_only


async def test_a_request_is_the_same_until_something_is_added(aspects: Aspects) -> None:
    aspect = aspects.new()
    async with aspect.around(run("1"), given("hi")) as one:
        first = await one.request()
        assert await one.request() is first
        one.add(*GROUP)
        second = await one.request()
        assert await one.request() is second
        one.add(reply())
    assert aspect.manager.reuse(KEY).requests == 2


async def test_calls_results_and_reply_of_a_run_are_stored_in_one_step(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    async with aspect.around(run("1"), given("hi")) as one:
        revision = (await aspects.journal.load(KEY)).head.revision
        one.add(GROUP[0], usage=Usage(completion_tokens=3))
        one.add(*GROUP[1:])
        await one.request()
        one.add(reply(), usage=Usage(completion_tokens=5))
        assert len(await aspects.stored()) == 1
    record = await aspects.journal.load(KEY)
    assert record.head.revision == revision + 1
    assert [entry.id for entry in record.entries][1:] == [
        f"1:out:{i}" for i in range(4)
    ]


async def test_the_usage_of_a_reply_is_its_own(aspects: Aspects) -> None:
    async with aspects.new().around(run("1"), given("hi")) as one:
        one.add(reply(), usage=Usage(completion_tokens=5))
    entry = (await aspects.journal.load(KEY)).entries[-1]
    assert entry.usage is not None
    assert entry.usage.total_tokens == 5


async def test_a_reply_that_says_nothing_is_in_no_request(aspects: Aspects) -> None:
    async with aspects.new().around(run("1"), given("hi")) as one:
        one.add(reply(""))
        assert violations(await one.request()) == []
        assert one.added == ()
        one.add(reply("now"))
    assert outline(await aspects.stored()) == ["user: hi", "assistant: now"]


# Runs that do not end well -------------------------------------------------------


class ModelFailedError(Exception):
    """What the provider's client raises."""


async def fail(aspect: SessionAspect, *said: ChatMessage) -> None:
    """Do a run whose model fails once this was said."""
    async with aspect.around(run("1"), given(BRIEF, "hi")) as one:
        one.add(*said)
        raise ModelFailedError


PARTS = [
    pytest.param([], [], id="nothing"),
    pytest.param([*GROUP], ["a b", "done", "done"], id="a whole group"),
    pytest.param([*GROUP[:1]], ["a b"], id="no result came"),
    pytest.param([*GROUP[:2]], ["a b", "done"], id="a result is missing"),
    pytest.param(
        [*GROUP, asks("c"), asks("d"), gives("c")],
        ["a b", "done", "done", "c", "d", "done"],
        id="another one is missing",
    ),
    pytest.param([*GROUP, reply("so")], ["a b", "done", "done", "so"], id="a reply"),
]


@pytest.mark.parametrize(("said", "kept"), PARTS)
async def test_a_run_that_raises_keeps_what_came(
    aspects: Aspects, said: list[ChatMessage], kept: list[str]
) -> None:
    with pytest.raises(ModelFailedError):
        await fail(aspects.new(), *said)
    await judge_kept(aspects, kept)


@pytest.mark.parametrize(("said", "kept"), PARTS)
async def test_a_run_that_is_cancelled_keeps_what_came(
    aspects: Aspects, said: list[ChatMessage], kept: list[str]
) -> None:
    with anyio.CancelScope() as scope:
        async with aspects.new().around(run("1"), given(BRIEF, "hi")) as one:
            one.add(*said)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    await judge_kept(aspects, kept)


async def judge_kept(aspects: Aspects, kept: list[str]) -> None:
    texts = [line.partition(": ")[2] for line in outline(await aspects.stored())]
    assert texts == ["hi", *kept]
    prepared = await aspects.new().before(run("2"), given(BRIEF, "again"))
    sent = outline(prepared.messages)
    assert violations(tuple(prepared.messages)) == []
    assert sent.count("user: hi") == sent.count("user: again") == 1


async def test_a_run_that_is_cancelled_at_its_end_is_stored_whole(
    aspects: Aspects,
) -> None:
    with anyio.CancelScope() as scope:
        async with aspects.new().around(run("1"), given("hi")) as one:
            one.add(*GROUP, reply(), asks("pending"))
            scope.cancel()
    assert len(await aspects.stored()) == 6


async def test_a_stream_that_nobody_reads_on_keeps_what_came(
    aspects: Aspects,
) -> None:
    async def stream() -> AsyncIterator[str]:
        async with aspects.new().around(run("1"), given("hi")) as one:
            one.add(*GROUP, asks("c"))
            yield "let me"
            one.add(reply())

    answer = stream()
    assert await anext(answer) == "let me"
    await answer.aclose()  # type: ignore[attr-defined]
    assert len(await aspects.stored()) == 5


async def test_another_attempt_goes_on_from_what_was_kept(aspects: Aspects) -> None:
    with pytest.raises(ModelFailedError):
        await fail(aspects.new(), *GROUP)
    async with aspects.new().around(run("1"), given(BRIEF, "hi")) as one:
        assert wire(await one.request())[1:] == wire([ChatMessage.user("hi"), *GROUP])
        assert not one.report.already_answered
        one.add(reply())
    texts = outline(await aspects.stored())
    assert texts == outline([ChatMessage.user("hi"), *GROUP, reply()])


async def test_a_session_that_is_deleted_meanwhile_ends_the_run(
    aspects: Aspects,
) -> None:
    async def forgotten() -> None:
        async with aspects.new().around(run("1"), given("hi")) as one:
            one.add(reply())
            await aspects.new().manager.delete(KEY)
            raise ModelFailedError

    with pytest.raises(SessionNotFoundError) as caught:
        await forgotten()
    assert isinstance(caught.value.__context__, ModelFailedError)
    with pytest.raises(SessionNotFoundError):
        await aspects.stored()


async def test_an_input_that_is_refused_begins_no_run(aspects: Aspects) -> None:
    with pytest.raises(InvalidValueError):
        async with aspects.new().around(run("1"), given("")):
            raise AssertionError
    with pytest.raises(SessionNotFoundError):
        await aspects.stored()


# What a request shows ------------------------------------------------------------


async def test_a_long_result_looks_the_same_in_the_run_and_in_later_turns(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(config(tool_calls={"max_tool_result_size": 100}))
    async with aspect.around(run("1"), given("look")) as one:
        one.add(asks("a"), gives("a", "long " * 100))
        sent = await one.request()
        assert len(sent[-1].text) <= 100
        one.add(reply())
    assert (await aspects.stored())[2].text == "long " * 100
    prepared = await aspect.before(run("2"), given("and?"))
    assert begins(sent, tuple(prepared.messages))


async def test_the_report_says_what_left_and_why(aspects: Aspects) -> None:
    aspect = aspects.new(config(session={"max_messages": 5}))
    for n in range(4):
        await answered(aspect, str(n), f"question {n}", f"answer {n}")
    async with aspect.around(run("4"), given(BRIEF, "question 4")) as one:
        report = one.report
        assert report.dropped
        assert {entry.rule for entry in report.dropped} <= set(HistoryRule)
        assert HistoryRule.MAX_MESSAGES in {entry.rule for entry in report.dropped}
        left = outline(entry.message for entry in report.dropped)
        assert left == outline(await aspects.stored())[: len(left)]
        shown = outline(one.messages)[1:]
        assert shown == outline(await aspects.stored())[len(left) :]
        one.add(reply())


async def test_the_report_says_why_a_request_does_not_append(aspects: Aspects) -> None:
    aspect = aspects.new()
    await answered(aspect, "1", "hi", "hello")
    other = ChatMessage.system("be long")
    async with aspect.around(run("2"), given(other, "and?")) as one:
        assert not one.report.append_only
        assert one.report.cause is Cause.SYSTEM_CHANGED
        assert one.report.reuse == 0
        assert one.report.request.messages == one.messages
        assert one.report.compaction is None
        one.add(reply())


async def test_a_header_is_part_of_the_comparison(aspects: Aspects) -> None:
    aspect = aspects.new()
    for number, model in enumerate(("one", "one", "other")):
        said = given(BRIEF, f"{number}", header={"model": model})
        async with aspect.around(run(f"{number}"), said) as one:
            assert one.report.append_only == (number < 2)
            one.add(*GROUP, reply())
            await one.request()
            assert one.reports[-1].append_only


async def test_what_is_stored_is_what_was_sent(aspects: Aspects) -> None:
    odd = ChatMessage.from_openai(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"b":1.0, "a" : 1}'},
                    "index": 0,
                }
            ],
            "reasoning_content": "so\u2028",
        }
    )
    async with aspects.new().around(run("1"), given("hi")) as one:
        one.add(odd, gives("a", "\U0001f600"))
        sent = await one.request()
        one.add(reply())
    prepared = await aspects.new().before(run("2"), given("and?"))
    assert wire(prepared.messages)[: len(sent)] == wire(sent)
