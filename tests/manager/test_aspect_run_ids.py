"""Which calls of an aspect are one run: what is repeated, and what is said again."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from aspect_values import KEY, Aspects, given, outline, reply, run

from raf_session.errors import EntryConflictError, InvalidValueError
from raf_session.manager import AgentInput, AgentOutput, AgentPoint
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


POINT = AgentPoint("guide", model="m")


@pytest.mark.parametrize("texts", [("yes", "no"), ("yes", "yes")])
async def test_a_point_serves_any_number_of_runs(
    aspects: Aspects, texts: tuple[str, str]
) -> None:
    aspect = aspects.new()
    point = AgentPoint()
    for text in texts:
        async with aspect.around(point, given(text)) as one:
            assert outline(await one.request())[-1] == f"user: {text}"
            assert not one.report.already_answered
            one.add(reply("well"))
    first, second = texts
    assert outline(await aspects.stored()) == [
        f"user: {first}",
        "assistant: well",
        f"user: {second}",
        "assistant: well",
    ]


async def test_before_draws_the_id_of_a_run_and_after_has_it(aspects: Aspects) -> None:
    aspect = aspects.new()
    first = await aspect.before(AgentPoint(), given("yes"))
    second = await aspect.before(AgentPoint(), given("yes"))
    assert first.run_id is not None
    assert first.run_id != second.run_id
    for _ in range(2):
        await aspect.after(AgentPoint(), second, AgentOutput([reply()]))
    ids = [message.id for message in await aspects.stored()]
    assert ids == [
        f"{first.run_id}:in:0",
        f"{second.run_id}:in:0",
        f"{second.run_id}:out:0",
    ]


async def test_what_before_returned_is_the_same_run_again(aspects: Aspects) -> None:
    aspect = aspects.new()
    prepared = await aspect.before(AgentPoint(), given("yes"))
    again = await aspects.new().before(AgentPoint(), prepared)
    assert again.run_id == prepared.run_id
    async with aspects.new().around(AgentPoint(), again) as one:
        assert one.input.run_id == prepared.run_id
        one.add(reply())
    assert outline(await aspects.stored()) == ["user: yes", "assistant: well"]


async def test_the_id_is_that_of_the_point_and_else_of_the_input(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    named = AgentInput("chat", peer="ann", messages=given("hi").messages, run_id="mine")
    assert (await aspect.before(AgentPoint(), named)).run_id == "mine"
    assert (await aspect.before(run("point"), named)).run_id == "point"
    assert [m.id for m in await aspects.stored()] == ["mine:in:0", "point:in:0"]


async def test_an_after_that_belongs_to_no_run_is_refused(aspects: Aspects) -> None:
    aspect = aspects.new()
    await aspect.before(AgentPoint(), given("hi"))
    with pytest.raises(InvalidValueError, match="what `before` returned"):
        await aspect.after(AgentPoint(), given("hi"), AgentOutput([reply()]))
    assert outline(await aspects.stored()) == ["user: hi"]


async def test_another_text_in_the_same_run_is_refused_with_the_runs_id(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    await aspect.before(run("turn-7"), given("hi"))
    with pytest.raises(EntryConflictError, match="run_id 'turn-7' is that of another"):
        await aspect.before(run("turn-7"), given("ho"))
    own = ChatMessage.user("hi").model_copy(update={"id": "m"})
    await aspect.before(run("8"), given(own))
    other = ChatMessage.user("ho").model_copy(update={"id": "m"})
    with pytest.raises(EntryConflictError) as caught:
        await aspect.before(run("8"), given(other))
    assert "run_id" not in str(caught.value)


# Model and header ----------------------------------------------------------------


async def test_another_model_of_the_point_breaks_the_prefix(aspects: Aspects) -> None:
    aspect = aspects.new()
    causes: list[str] = []
    for model in ("m1", "m1", "m2", None):
        async with aspect.around(AgentPoint(model=model), given("hi")) as one:
            causes += [report.cause.value for report in one.reports]
            one.add(reply("one"))
            await one.request()
            assert one.reports[-1].append_only
            one.add(reply("two"))
    assert causes[:3] == ["none", "none", "model"]
    assert causes[3] != "none"


async def test_other_tools_in_the_header_are_told_from_another_model(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    tool = {"type": "function", "function": {"name": "look"}}
    causes: list[str] = []
    for model, tools in (("m", []), ("m", [tool]), ("n", [tool])):
        said = given("hi", header={"tools": tools})
        prepared = await aspect.before(AgentPoint(model=model), said)
        assert prepared.report is not None
        causes.append(prepared.report.match.cause.value)
    assert causes == ["none", "tools_added", "model"]


@pytest.mark.parametrize("header", [{"model": "of the header"}, ["a tool"], "text"])
async def test_any_header_goes_with_a_model(aspects: Aspects, header: object) -> None:
    aspect = aspects.new()
    appends: list[bool] = []
    for model in ("m", "m", "n"):
        said = given("hi", header=header)
        prepared = await aspect.before(AgentPoint(model=model), said)
        assert prepared.report is not None
        appends.append(prepared.report.match.append_only)
    assert appends == [True, True, isinstance(header, dict)]
    assert (await aspects.journal.load(KEY)).head.model == "n"
