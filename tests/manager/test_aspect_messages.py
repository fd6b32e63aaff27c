"""What of a run's messages is stored: what says something, whole, by fixed ids."""

from __future__ import annotations

import pytest
from aspect_values import BRIEF, asks, gives, outline, reply, violations
from hypothesis import given
from hypothesis import strategies as st

from raf_session.errors import InvalidValueError
from raf_session.manager.run_messages import (
    numbered,
    other_prefix,
    read_input,
    spoken,
    without_open_thoughts,
)
from raf_session.messages import ChatMessage, MessageRole
from raf_session.parts import ImagePart, TextPart
from raf_session.toolcalls import arrange

ASSISTANT = MessageRole.ASSISTANT
IMAGE = ImagePart(type="image_url", image_url={"url": "https://e.org/a.png"})
THOUGHT = ChatMessage.from_openai(
    {"role": "assistant", "content": [{"type": "reasoning", "text": "so"}]}
)
IDS = ("a", "b", "c", "d")
STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True).map(
            lambda ids: asks(*ids)
        ),
        st.sampled_from(IDS).map(gives),
        st.just(reply()),
        st.just(THOUGHT),
    ),
    max_size=10,
)


@given(STEPS)
def test_a_run_that_ends_anywhere_loses_nothing_but_thoughts_that_led_to_nothing(
    messages: list[ChatMessage],
) -> None:
    kept = without_open_thoughts(messages)
    assert list(kept) == messages[: len(kept)]
    assert all(message is THOUGHT for message in messages[len(kept) :])
    assert not kept or kept[-1] is not THOUGHT


@given(STEPS)
def test_a_run_that_ends_anywhere_can_be_sent_by_the_next(
    messages: list[ChatMessage],
) -> None:
    kept = [m for m in without_open_thoughts(messages) if m is not THOUGHT]
    sent = arrange([ChatMessage.user("hi"), *kept, ChatMessage.user("and?")])
    assert violations(sent.messages) == []


# Saying something ----------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        reply(""),
        reply(" \n"),
        ChatMessage(role=ASSISTANT, content=None),
        ChatMessage(role=ASSISTANT),
        ChatMessage(role=ASSISTANT, content=[]),
        ChatMessage(role=ASSISTANT, content=[TextPart(type="text", text=" ")]),
        ChatMessage(role=ASSISTANT, content=[TextPart(type="text", text="")]),
    ],
)
def test_a_message_that_says_nothing_is_left_out(message: ChatMessage) -> None:
    assert spoken([message]) == ()


@pytest.mark.parametrize(
    "message",
    [
        reply(),
        asks("a"),
        asks("a", text=""),
        gives("a", ""),
        ChatMessage(role=ASSISTANT, content=None, refusal="no"),
        ChatMessage(role=ASSISTANT, content=[IMAGE]),
        ChatMessage(role=ASSISTANT, content=None, extra={"audio": {"id": "x"}}),
        ChatMessage(
            role=ASSISTANT,
            content=None,
            extra={"function_call": {"name": "look", "arguments": "{}"}},
        ),
        THOUGHT,
    ],
)
def test_a_message_that_says_something_stays_as_it_is(message: ChatMessage) -> None:
    (found,) = spoken([message])
    assert found is message


def test_an_empty_text_beside_an_image_leaves() -> None:
    empty = TextPart(type="text", text="")
    own = read_input([ChatMessage.user([empty, IMAGE])], "r")
    assert own.said[0].content == (IMAGE,)


def test_an_input_that_says_nothing_is_refused() -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_input([BRIEF, ChatMessage.user(" ")], "r")
    assert caught.value.path == "messages[1]"


def test_instructions_are_no_part_of_what_is_said() -> None:
    developer = ChatMessage(role=MessageRole.DEVELOPER, content="in prose")
    own = read_input([BRIEF, ChatMessage.user("hi"), developer], "r")
    assert own.instructions == (BRIEF, developer)
    assert outline(own.said) == ["user: hi"]


# Ids -----------------------------------------------------------------------------


def test_ids_are_those_of_the_messages_or_their_places_in_the_run() -> None:
    mine = reply("mine").model_copy(update={"id": "mine"})
    found = numbered([reply("a"), mine, reply("b")], "r:out")
    assert [m.id for m in found] == ["r:out:0", "mine", "r:out:2"]
    assert found[1] is mine


def test_an_id_changes_nothing_that_is_sent() -> None:
    messages = [asks("a"), gives("a"), THOUGHT, reply()]
    found = numbered(messages, "r")
    assert [m.to_openai() for m in found] == [m.to_openai() for m in messages]


@given(STEPS, STEPS)
def test_other_outputs_of_a_run_have_other_ids(
    one: list[ChatMessage], other: list[ChatMessage]
) -> None:
    a, b = other_prefix(one, "r:out"), other_prefix(other, "r:out")
    assert (a == b) == (one == other)
    names = {m.id for m in numbered(one, a)}
    assert not names & {m.id for m in numbered(one, "r:out")}
    assert names.isdisjoint(m.id for m in numbered(other, b)) or one == other


def test_an_output_of_any_text_has_ids() -> None:
    odd = [reply("\ud83d"), reply("好"), gives("a", "\0")]
    assert len({m.id for m in numbered(odd, other_prefix(odd, "r:out"), 2)}) == 3
