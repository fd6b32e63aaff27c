"""Wrong arguments of an aspect and its runs are refused at once, with their kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from aspect_values import KEY, Aspects, asks, config, given, gives, outline, reply, run

from raf_session.errors import InvalidValueError, SessionNotFoundError
from raf_session.manager import AgentOutput, AgentsConfig
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


@pytest.mark.parametrize("wrong", [AgentsConfig(), None, "manager", SessionAspect])
def test_an_aspect_needs_a_manager(wrong: Any) -> None:
    with pytest.raises(TypeError, match="manager: expected SessionManager, not"):
        SessionAspect(wrong)


@pytest.mark.parametrize("enabled", [True, False])
async def test_other_arguments_are_refused_and_nothing_is_stored(
    aspects: Aspects, *, enabled: bool
) -> None:
    aspect = aspects.new(config(session={"enabled": enabled}))
    point, said = run("1"), given("hi")
    pairs: list[tuple[Any, Any, str]] = [
        ("assistant", said, "point: expected AgentPoint, not str"),
        (said, point, "point: expected AgentPoint, not AgentInput"),
        (point, "hi", "input: expected AgentInput, not str"),
        (point, None, "input: expected AgentInput, not NoneType"),
    ]
    for first, second, reason in pairs:
        with pytest.raises(TypeError, match=reason):
            await aspect.before(first, second)
        with pytest.raises(TypeError, match=reason):
            async with aspect.around(first, second):
                raise AssertionError
        with pytest.raises(TypeError, match=reason):
            await aspect.after(first, second, AgentOutput())
    outputs: list[Any] = ["x", [reply()], None, reply()]
    for wrong in outputs:
        with pytest.raises(TypeError, match="output: expected AgentOutput, not"):
            await aspect.after(point, said, wrong)
    with pytest.raises(SessionNotFoundError):
        await aspects.stored()


async def test_what_is_no_message_is_not_added(aspects: Aspects) -> None:
    async def model() -> ChatMessage:
        return reply()

    unawaited = model()
    async with aspects.new().around(run("1"), given("hi")) as one:
        others: list[Any] = ["text", None, [reply()], unawaited, {}]
        for wrong in others:
            with pytest.raises(InvalidValueError) as caught:
                one.add(reply("so"), wrong)
            assert caught.value.path == "messages[1]"
            assert type(wrong).__name__ in caught.value.reason
        with pytest.raises(InvalidValueError, match="usage: expected Usage"):
            one.add(reply(), usage=cast("Any", {"total_tokens": 3}))
        assert one.added == ()
        one.add(await unawaited)
    assert outline(await aspects.stored()) == ["user: hi", "assistant: well"]


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_result_of_a_call_that_nobody_made_is_not_added(
    aspects: Aspects, *, enabled: bool
) -> None:
    aspect = aspects.new(config(session={"enabled": enabled}))
    async with aspect.around(run("1"), given("hi")) as one:
        one.add(asks("a", "b"), gives("a"))
        with pytest.raises(InvalidValueError, match="'call_7'") as caught:
            one.add(gives("b"), gives("call_7"))
        assert caught.value.path == "messages[1]"
        assert len(one.added) == 2
        one.add(gives("b"))
        await one.request()
        one.add(asks("c"), gives("c"), reply())


async def test_the_result_of_a_call_of_an_earlier_run_may_come_in_a_run(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    async with aspect.around(run("1"), given("build it")) as one:
        one.add(asks("build"))
    async with aspect.around(run("2"), given("and?")) as one:
        one.add(gives("build", "built"))
        sent = outline(await one.request())
        assert "tool: built" in sent
        one.add(reply())
    assert (await aspects.journal.load(KEY)).head.key == KEY
