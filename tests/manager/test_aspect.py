"""`SessionAspect.before` and `after`: what they store, and what a run is given."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from aspect_values import (
    BRIEF,
    KEY,
    ROOMY,
    Aspects,
    asks,
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

from raf_session.errors import (
    EntryConflictError,
    InvalidValueError,
    SessionNotFoundError,
)
from raf_session.manager import AgentInput, AgentOutput, AgentPoint
from raf_session.manager.agent_run import PreparedInput
from raf_session.manager.aspect import SessionAspect
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.options import Query
from raf_session.parts import ImagePart, TextPart
from raf_session.toolcalls import INTERRUPTED

pytestmark = pytest.mark.anyio

IMAGE = ImagePart(type="image_url", image_url={"url": "data:image/png;base64,aaaa"})
THOUGHT = {"role": "assistant", "content": [{"type": "reasoning", "text": "so"}]}
PHOTO = ChatMessage.user([TextPart(type="text", text="what is it?"), IMAGE])


@pytest.fixture
async def aspects() -> AsyncGenerator[Aspects]:
    async with Aspects() as made:
        yield made


def named(text: str, message_id: str | None) -> ChatMessage:
    """Return what the user says under an id of the channel's."""
    return ChatMessage(role=MessageRole.USER, content=text, id=message_id)


async def turn(
    aspect: SessionAspect, name: str, said: AgentInput, *output: ChatMessage
) -> AgentInput:
    """Do a whole run; return what it was given."""
    prepared = await aspect.before(run(name), said)
    judge(prepared.messages, aspect.manager)
    await aspect.after(run(name), prepared, AgentOutput(output))
    return prepared


# Before --------------------------------------------------------------------------


async def test_a_run_is_given_instructions_history_and_input(aspects: Aspects) -> None:
    aspect = aspects.new()
    await turn(aspect, "1", given(BRIEF, "hi"), reply("hello"))
    prepared = await turn(aspect, "2", given(BRIEF, "and?"), reply("so"))
    assert outline(prepared.messages) == [
        "system: be brief",
        "user: hi",
        "assistant: hello",
        "user: and?",
    ]
    assert outline(prepared.history) == ["user: hi", "assistant: hello"]
    assert prepared.report is not None
    assert prepared.report.match.append_only
    assert prepared.report.messages == prepared.messages


async def test_what_the_user_says_is_stored_before_anything_else(
    aspects: Aspects,
) -> None:
    await aspects.new().before(run("1"), given(BRIEF, "hi"))
    assert outline(await aspects.stored()) == ["user: hi"]


async def test_images_are_stored_and_come_back(aspects: Aspects) -> None:
    await turn(aspects.new(), "1", given(PHOTO), reply("a cat"))
    prepared = await aspects.new().before(run("2"), given("sure?"))
    assert wire(prepared.history)[0] == PHOTO.to_openai()


async def test_several_messages_of_an_input_are_stored_in_order(
    aspects: Aspects,
) -> None:
    prepared = await aspects.new().before(run("1"), given("a", BRIEF, "b"))
    assert [m.id for m in await aspects.stored()] == ["1:in:0", "1:in:1"]
    assert outline(prepared.messages) == ["system: be brief", "user: a", "user: b"]
    assert prepared.history == ()


async def test_an_input_of_instructions_alone_goes_on_with_the_history(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    await turn(aspect, "1", given("hi"), reply("hello"))
    prepared = await aspect.before(run("2"), given(BRIEF))
    assert outline(prepared.messages)[1:] == ["user: hi", "assistant: hello"]
    assert len(await aspects.stored()) == 2


@pytest.mark.parametrize("message_id", [None, "telegram-7"])
async def test_a_retried_before_stores_once(
    message_id: str | None, aspects: Aspects
) -> None:
    said = given(named("hi", message_id))
    first = await aspects.new().before(run("1"), said)
    for aspect in (aspects.new(), aspects.new()):
        again = await aspect.before(run("1"), said)
        assert again.messages == first.messages
        await aspect.before(run("1"), said)
    assert outline(await aspects.stored()) == ["user: hi"]


async def test_a_message_that_is_delivered_again_is_stored_once(
    aspects: Aspects,
) -> None:
    said = given(named("hi", "telegram-7"))
    await turn(aspects.new(), "1", said, reply("hello"))
    prepared = await aspects.new().before(run("2"), said)
    assert outline(await aspects.stored()) == ["user: hi", "assistant: hello"]
    assert violations(tuple(prepared.messages)) == []
    async with aspects.new().around(run("2"), said) as again:
        assert again.report.already_answered


async def test_of_messages_delivered_together_those_that_are_new_are_stored(
    aspects: Aspects,
) -> None:
    one, other = (named(text, text) for text in ("one", "other"))
    await aspects.new().before(run("1"), given(one))
    prepared = await aspects.new().before(run("2"), given(one, other))
    assert outline(prepared.messages) == ["user: one", "user: other"]


async def test_another_text_under_a_stored_id_is_refused(aspects: Aspects) -> None:
    aspect = aspects.new()
    await aspect.before(run("1"), given("hi"))
    with pytest.raises(EntryConflictError):
        await aspect.before(run("1"), given("ho"))
    assert outline(await aspects.stored()) == ["user: hi"]


async def test_what_before_returned_may_be_given_to_it_again(aspects: Aspects) -> None:
    aspect = aspects.new()
    await turn(aspect, "1", given(BRIEF, "hi"), reply())
    prepared = await aspect.before(run("2"), given(BRIEF, "and?"))
    again = await aspect.before(run("2"), prepared)
    assert again.messages == prepared.messages
    assert len(await aspects.stored()) == 3


async def test_an_input_that_says_nothing_is_refused_and_nothing_is_stored(
    aspects: Aspects,
) -> None:
    with pytest.raises(InvalidValueError):
        await aspects.new().before(run("1"), given("hi", ""))
    with pytest.raises(SessionNotFoundError):
        await aspects.stored()


async def test_a_field_that_the_scope_names_has_to_be_given(aspects: Aspects) -> None:
    aspect = aspects.new()
    with pytest.raises(InvalidValueError) as caught:
        await aspect.before(run("1"), AgentInput("chat", messages=[PHOTO]))
    assert caught.value.path == "peer"


async def test_the_fields_of_an_input_stay(aspects: Aspects) -> None:
    said = given("hi", metadata={"a": 1}, header={"model": "m"}, thread="t")
    prepared = await aspects.new().before(run("1"), said)
    assert (prepared.channel, prepared.peer, prepared.thread) == ("chat", "ann", "t")
    assert prepared.metadata == {"a": 1}
    assert prepared.header == {"model": "m"}


async def test_a_late_result_is_an_input(aspects: Aspects) -> None:
    aspect = aspects.new()
    await turn(aspect, "1", given("build it"), asks("c1"))
    prepared = await aspect.before(run("2"), given(gives("c1", "built")))
    assert outline(prepared.messages) == [
        "user: build it",
        "assistant: c1",
        "tool: built",
    ]
    assert violations(tuple(prepared.messages)) == []


async def test_runs_of_a_model_tell_the_session_its_name(aspects: Aspects) -> None:
    aspect = aspects.new()
    await aspect.before(run("1", model="m-1"), given("hi"))
    assert (await aspects.journal.load(KEY)).head.model == "m-1"
    prepared = await aspect.before(run("2"), given("ho"))
    await aspect.after(run("2"), prepared, AgentOutput([reply()], model="m-2"))
    assert (await aspects.journal.load(KEY)).head.model == "m-2"


# After ---------------------------------------------------------------------------


async def test_calls_results_and_reply_are_stored_in_one_step(aspects: Aspects) -> None:
    aspect = aspects.new()
    prepared = await aspect.before(run("1"), given("hi"))
    revision = (await aspects.journal.load(KEY)).head.revision
    output = [asks("a", "b"), gives("b"), gives("a"), reply()]
    await aspect.after(run("1"), prepared, AgentOutput(output, Usage(total_tokens=9)))
    record = await aspects.journal.load(KEY)
    assert record.head.revision == revision + 1
    names = [f"1:out:{i}" for i in range(4)]
    assert [entry.id for entry in record.entries] == ["1:in:0", *names]


@pytest.mark.parametrize("own", [False, True])
async def test_a_retried_after_stores_once(aspects: Aspects, *, own: bool) -> None:
    aspect = aspects.new()
    prepared = await aspect.before(run("1"), given("hi"))
    output = AgentOutput([asks("a"), gives("a"), reply()])
    if own:
        named = [
            m.model_copy(update={"id": f"m{i}"}) for i, m in enumerate(output.messages)
        ]
        output = AgentOutput(named)
    await aspect.after(run("1"), prepared, output)
    await aspect.after(run("1"), prepared, output)
    await aspects.new().after(run("1"), given("hi"), output)
    assert len(await aspects.stored()) == 4


async def test_the_output_of_another_attempt_is_stored_behind_the_first_once(
    aspects: Aspects,
) -> None:
    for _ in range(2):
        for text in ("one", "two"):
            aspect = aspects.new()
            prepared = await aspect.before(run("1"), given("hi"))
            await aspect.after(run("1"), prepared, AgentOutput([reply(text)]))
    assert outline(await aspects.stored()) == [
        "user: hi",
        "assistant: one",
        "assistant: two",
    ]


async def test_an_attempt_that_repeats_the_first_stores_what_is_new(
    aspects: Aspects,
) -> None:
    group = [asks("a"), gives("a")]
    for output in (group, [*group, reply()]):
        aspect = aspects.new()
        prepared = await aspect.before(run("1"), given("hi"))
        await aspect.after(run("1"), prepared, AgentOutput(output))
    assert len(await aspects.stored()) == 4


async def test_two_attempts_in_two_processes_store_what_both_say_once(
    aspects: Aspects,
) -> None:
    group = [asks("a"), gives("a")]
    attempts = [(aspects.new(), group), (aspects.new(), [*group, reply()])]
    prepared = [await aspect.before(run("1"), given("hi")) for aspect, _ in attempts]
    for (aspect, output), said in zip(attempts, prepared, strict=True):
        await aspect.after(run("1"), said, AgentOutput(output))
    assert len(await aspects.stored()) == 4


async def test_another_message_under_an_id_of_its_own_is_refused(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    prepared = await aspect.before(run("1"), given("hi"))
    for text in ("one", "one"):
        message = reply(text).model_copy(update={"id": "m"})
        await aspect.after(run("1"), prepared, AgentOutput([message]))
    other = reply("two").model_copy(update={"id": "m"})
    with pytest.raises(EntryConflictError):
        await aspect.after(run("1"), prepared, AgentOutput([other]))
    assert outline(await aspects.stored()) == ["user: hi", "assistant: one"]


async def test_answers_to_commands_are_not_stored(aspects: Aspects) -> None:
    aspect = aspects.new()
    prepared = await aspect.before(run("1"), given("/help"))
    output = AgentOutput([reply("commands: …")], is_command=True)
    await aspect.after(run("1"), prepared, output)
    assert outline(await aspects.stored()) == ["user: /help"]


async def test_a_reply_that_says_nothing_is_not_stored(aspects: Aspects) -> None:
    aspect = aspects.new()
    await turn(aspect, "1", given("hi"), reply(" "))
    prepared = await turn(aspect, "2", given("hm"), reply())
    assert outline(prepared.messages) == ["user: hi", "user: hm"]


async def test_a_failed_model_call_leaves_a_history_for_the_next(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    prepared = await aspect.before(run("1"), given(BRIEF, "hi"))
    failed = AgentOutput(
        [asks("a"), gives("a"), asks("b", "c"), gives("c")], error="429"
    )
    await aspect.after(run("1"), prepared, failed)
    prepared = await turn(aspect, "2", given(BRIEF, "again"), reply())
    assert outline(prepared.messages)[1:] == [
        "user: hi",
        "assistant: a",
        "tool: done",
        "assistant: b c",
        f"tool: {INTERRUPTED}",
        "tool: done",
        "user: again",
    ]


async def test_tool_calls_are_not_saved_where_the_configuration_says_so(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(config(tool_calls={"save_tool_calls": False}))
    async with aspect.around(run("1"), given("hi")) as one:
        one.add(asks("a", text="let me see"), gives("a"))
        sent = await one.request()
        assert outline(sent)[1:] == ["assistant: let me see", "tool: done"]
        assert violations(sent) == []
        one.add(reply())
    assert outline(await aspects.stored()) == [
        "user: hi",
        "assistant: let me see",
        "assistant: well",
    ]


async def test_the_output_of_a_session_that_was_deleted_revives_nothing(
    aspects: Aspects,
) -> None:
    aspect = aspects.new()
    for again in (False, True):
        prepared = await aspect.before(run("1"), given("hi"))
        await aspect.manager.delete(KEY)
        if again:
            await aspect.before(run("2"), given("anew"))
        for said in (prepared, given("hi")) if not again else (prepared,):
            with pytest.raises(SessionNotFoundError):
                await aspect.after(run("1"), said, AgentOutput([reply()]))
    assert outline(await aspects.stored()) == ["user: anew"]


# Disabled ------------------------------------------------------------------------


async def test_disabled_sessions_leave_the_input_as_it_is_and_store_nothing(
    aspects: Aspects,
) -> None:
    aspect = aspects.new(config(session={"enabled": False}))
    said = given(BRIEF, "hi")
    assert await aspect.before(run("1"), said) is said
    await aspect.after(run("1"), said, AgentOutput([reply()]))
    async with aspect.around(run("2"), said) as one:
        assert one.input is said
        assert one.report.append_only
        assert one.report.reuse is None
        assert one.report.dropped == ()
        assert await one.request() == said.messages
        one.add(asks("a"), gives("a"))
        assert await one.request() == (*said.messages, *one.added)
        one.add(ChatMessage.from_openai(THOUGHT), asks("b"), gives("b"))
        assert violations(await one.request()) == []
    assert (await aspects.journal.scan(Query())).sessions == ()


def test_a_prepared_input_is_an_input() -> None:
    assert issubclass(PreparedInput, AgentInput)
    assert AgentPoint().run_id is None
    assert ROOMY.session.enabled
