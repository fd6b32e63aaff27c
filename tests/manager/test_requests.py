"""What a run hands in and out: checked, frozen, and one session per request."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from raf_session import ChatMessage, ImagePart, TextPart, Usage
from raf_session.errors import InvalidValueError
from raf_session.keys import SessionKey
from raf_session.manager import (
    AgentInput,
    AgentOutput,
    AgentPoint,
    SessionRequest,
    SessionScope,
)

HELLO = ChatMessage.user("hello")


def test_the_documents_request_is_made_of_point_and_input() -> None:
    point = AgentPoint("assistant")
    given = AgentInput("feishu", "per_channel_peer", "oc_xxx_user123", messages=[HELLO])
    request = given.request(point.agent_id)
    assert request == SessionRequest(
        agent_id="assistant",
        channel="feishu",
        scope=SessionScope.PER_CHANNEL_PEER,
        scope_id="oc_xxx_user123",
    )
    assert request.key("per_peer") == SessionKey(
        "assistant", "", "feishu:per_channel_peer", "oc_xxx_user123"
    )


def test_an_input_hands_every_field_to_its_request() -> None:
    fields: dict[str, Any] = {
        name: f"the {name}"
        for name in ("channel", "scope_id", "account", "chat", "peer", "thread", "task")
    }
    given = AgentInput(scope="task", **fields)
    request = given.request("agent")
    assert dataclasses.asdict(request) == {
        **fields,
        "agent_id": "agent",
        "scope": SessionScope.TASK,
    }


@pytest.mark.parametrize("kind", [SessionRequest, AgentInput])
def test_user_id_is_another_name_of_peer(
    kind: type[SessionRequest | AgentInput],
) -> None:
    assert kind(user_id="u") == kind(peer="u") == kind(peer="u", user_id="u")
    assert kind(user_id="u").peer == "u"
    moved = dataclasses.replace(kind(user_id="u"), peer="v")
    assert moved.peer == "v"
    with pytest.raises(InvalidValueError, match="user_id"):
        kind(peer="u", user_id="v")


@pytest.mark.parametrize("kind", [SessionRequest, AgentInput])
def test_a_scope_that_is_none_is_refused(
    kind: type[SessionRequest | AgentInput],
) -> None:
    for scope in ("", "per_planet", 3):
        with pytest.raises(InvalidValueError, match="expected one of main, per_peer"):
            kind(scope=scope)  # type: ignore[arg-type]


def test_what_was_given_as_a_list_cannot_be_changed_behind_it() -> None:
    messages, metadata = [HELLO], {"a": [1]}
    given = AgentInput(messages=messages, history=messages, metadata=metadata)
    output = AgentOutput(messages)
    messages.clear()
    metadata["a"].append(2)
    assert given.messages == given.history == output.messages == (HELLO,)
    assert given.metadata == {"a": (1,)}
    for held, field in (
        (given, "channel"),
        (output, "usage"),
        (AgentPoint("a"), "run_id"),
        (SessionRequest("a"), "scope"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(held, field, "x")


def test_images_are_part_of_an_input() -> None:
    parts = (
        TextPart(text="What is this?"),
        ImagePart(image_url={"url": "data:image/png;base64,AAAA"}),
    )
    said = ChatMessage.user(parts)
    assert AgentInput(messages=[said]).messages[0].content == parts


@pytest.mark.parametrize("wrong", [{"role": "user", "content": "x"}, "x", None])
def test_what_is_no_message_is_refused_with_its_place(wrong: Any) -> None:
    for make in (
        lambda: AgentInput(messages=[HELLO, wrong]),
        lambda: AgentInput(history=[HELLO, wrong]),
        lambda: AgentOutput([HELLO, wrong]),
    ):
        with pytest.raises(InvalidValueError, match=r"\w+\[1\]: not a ChatMessage,"):
            make()


def test_metadata_is_json() -> None:
    for make in (AgentPoint, AgentInput):
        with pytest.raises(InvalidValueError, match=r"metadata\.x"):
            make(metadata={"x": {1}})


@pytest.mark.parametrize("kind", [AgentPoint, AgentInput])
def test_a_run_may_be_named(kind: type[AgentPoint | AgentInput]) -> None:
    assert kind().run_id is None
    assert kind(run_id="r" * 480).run_id == "r" * 480
    for run_id in ("", "r" * 481, "\0", "\ud800"):
        with pytest.raises(InvalidValueError, match="run_id"):
            kind(run_id=run_id)


@pytest.mark.parametrize("wrong", ["hello", b"hello", HELLO, None, 7, {"a": HELLO}])
def test_messages_that_are_no_list_are_refused_with_their_kind(wrong: Any) -> None:
    for make in (AgentInput, AgentOutput):
        with pytest.raises(InvalidValueError) as caught:
            make(messages=wrong)
        assert caught.value.path == "messages"
        assert type(wrong).__name__ in caught.value.reason


NAMES = ("channel", "scope_id", "account", "chat", "peer", "thread", "task", "user_id")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (SessionRequest, ("agent_id", *NAMES)),
        (AgentInput, (*NAMES, "run_id", "report")),
        (AgentPoint, ("agent_id", "run_id", "model")),
        (AgentOutput, ("usage", "model")),
    ],
)
def test_a_field_of_another_kind_is_refused_at_once(
    kind: type[Any], fields: tuple[str, ...]
) -> None:
    for name in fields:
        with pytest.raises(InvalidValueError, match="not int") as caught:
            kind(**{name: 42})
        assert caught.value.path == name


def test_an_output_says_what_came_of_the_run() -> None:
    assert AgentOutput() == AgentOutput((), None, None, is_command=False, error=None)
    output = AgentOutput(
        [HELLO], Usage(total_tokens=3), "m", is_command=True, error="x"
    )
    assert output.usage == Usage(total_tokens=3)
    assert (output.model, output.is_command, output.error) == ("m", True, "x")
    failure = RuntimeError("no answer")
    assert AgentOutput(error=failure).error is failure


def test_requests_travel_between_processes() -> None:
    for held in (
        SessionRequest("a", "c", user_id="u"),
        AgentPoint("a", "r1", metadata={"x": 1}),
        AgentInput("c", messages=[HELLO]),
        AgentOutput([HELLO]),
    ):
        assert pickle.loads(pickle.dumps(held)) == held  # noqa: S301
