"""The compiled and the pure twin agree on every input, and with `ChatMessage`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prefix_inputs import (
    MARKS,
    Liar,
    Pairs,
    Ratio,
    Word,
    any_messages,
    any_values,
    deep,
    odd_messages,
    outcome,
    valid_messages,
)

from raf_session.calls import ToolCall
from raf_session.messages import ChatMessage, MessageRole
from raf_session.parts import ContentPart, TextPart

Twins = tuple[ModuleType, ModuleType]

HOSTILE: list[Any] = [
    {},
    {"content": "no role"},
    {"role": "nobody"},
    {"role": None, "content": float("nan")},
    {"content": float("nan"), "role": None},
    {"role": "user", "name": None, "refusal": 5, "tool_call_id": []},
    {"role": "user", "content": 5},
    {"role": "user", "content": [{"type": "text"}, 1]},
    {"role": "user", "content": [[{"type": "text"}]]},
    {"role": "user", "content": [{"type": "text", "text": 5, "cache_control": b""}]},
    {"role": "user", "content": [{"cache_control": 1}, {"cachePoint": float("inf")}]},
    {"role": "user", "content": [{}, {"cachePoint": {}}]},
    {"role": "user", "content": [TextPart(text="x")]},
    {"role": "user", "content": (TextPart(text="x"),)},
    {"role": "assistant", "tool_calls": (ToolCall(name="x"),)},
    {"role": "assistant", "tool_calls": [{"function": ToolCall(name="x")}]},
    {"role": "assistant", "tool_calls": [{"function": None}, {"function": {}}]},
    {"role": "assistant", "tool_calls": [{"type": None, "id": 3}, {}]},
    {"role": "assistant", "tool_calls": {}},
    {"role": "user", **dict.fromkeys(MARKS, object())},
    {"role": "user", "x": Ratio(1.5)},
    {"role": "user", Word("content"): "hi", Liar("a"): 1, Liar("b"): 2},
    {Liar("x"): 1, "role": "user"},
    Pairs(role="user", content="hi"),
    ["role", "user"],
    "user",
    None,
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("name", ["encode_message", "message_digest", "message_size"])
def test_hostile(prefix_twins: Twins, name: str, message: Any) -> None:
    compiled, pure = prefix_twins
    made = outcome(getattr(compiled, name), message)
    assert made == outcome(getattr(pure, name), message)
    _assert_as_model(compiled, name, message, made)


@given(message=any_messages)
def test_any_message(prefix_twins: Twins, message: Any) -> None:
    compiled, pure = prefix_twins
    made = outcome(compiled.encode_message, message)
    assert made == outcome(pure.encode_message, message)
    _assert_as_model(compiled, "encode_message", message, made)
    for name in ("message_digest", "message_size"):
        assert outcome(getattr(compiled, name), message) == outcome(
            getattr(pure, name), message
        )


@given(message=st.one_of(valid_messages, odd_messages))
def test_dict_model_and_its_dict(prefix_twins: Twins, message: dict[Any, Any]) -> None:
    expected = prefix_twins[1].encode_message(message)
    model = ChatMessage.from_openai(message)
    for twin in prefix_twins:
        assert twin.encode_message(message) == expected
        assert twin.encode_message(model) == expected
        assert twin.encode_message(model.to_openai()) == expected
        fresh = ChatMessage.from_openai(model.to_openai())
        assert twin.message_digest(fresh) == twin.message_digest(message)
        assert twin.message_size(fresh) == twin.message_size(message)


@given(requests=st.lists(any_messages, max_size=4), seed=st.integers(-1, 2**64))
def test_chains(prefix_twins: Twins, requests: list[Any], seed: int) -> None:
    compiled, pure = prefix_twins
    for args in ((requests,), (tuple(requests), seed)):
        assert outcome(compiled.prefix_hashes, *args) == outcome(
            pure.prefix_hashes, *args
        )


@given(value=any_values)
@example(value=deep(200))
@example(value=deep(201))
@example(value=[{"a": [deep(197)]}])
@example(value=[{"a": [deep(198)]}])
def test_values(prefix_twins: Twins, value: Any) -> None:
    compiled, pure = prefix_twins
    assert outcome(compiled.value_digest, value) == outcome(pure.value_digest, value)


@given(
    header=st.one_of(
        any_values,
        st.fixed_dictionaries(
            {},
            optional={
                "tools": st.one_of(
                    st.lists(
                        st.dictionaries(
                            st.sampled_from([*MARKS, "name", "type"]),
                            any_values,
                            max_size=3,
                        ),
                        max_size=3,
                    ),
                    any_values,
                ),
                "system": any_values,
                "model": any_values,
                "cache_control": any_values,
            },
        ),
    )
)
def test_headers(prefix_twins: Twins, header: Any) -> None:
    compiled, pure = prefix_twins
    assert outcome(compiled.header_digest, header) == outcome(
        pure.header_digest, header
    )


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", None, True])
def test_seed_is_an_unsigned_64_bit_integer(prefix_twins: Twins, seed: Any) -> None:
    results = [outcome(twin.prefix_hashes, [], seed) for twin in prefix_twins]
    assert results[0] == results[1]
    assert issubclass(results[0][0], ValueError | TypeError)


@pytest.mark.parametrize("messages", [{}, {"role": "user"}, "user", b"", 5, None])
def test_messages_are_a_sequence(prefix_twins: Twins, messages: Any) -> None:
    for name in ("prefix_hashes", "touch"):
        results = [
            outcome(
                twin.PrefixTracker().touch if name == "touch" else twin.prefix_hashes,
                messages,
            )
            for twin in prefix_twins
        ]
        assert results[0] == results[1]
        assert results[0][0] is TypeError


def test_the_path_begins_with_the_faulty_message(prefix_impl: ModuleType) -> None:
    good, bad = {"role": "user"}, {"role": "user", "x": [1, float("nan")]}
    for call in (prefix_impl.prefix_hashes, prefix_impl.PrefixTracker().touch):
        kind, path, reason = outcome(call, [good, good, bad])
        assert (kind, path) == ("invalid", "messages[2].x[1]")
        assert reason == "nan is not a JSON number"


def user(**fields: Any) -> ChatMessage:
    return ChatMessage(role=MessageRole.USER, **fields)


class Whisper(ChatMessage):
    """A subclass, as somebody would write it."""

    volume: int = 3


class Video(ContentPart):
    """A part of somebody else's."""

    payload_name = "video"
    video: str


def test_subclasses_of_ours(prefix_twins: Twins) -> None:
    fields = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    for twin in prefix_twins:
        whisper = Whisper.from_openai(fields)
        assert twin.message_digest(whisper) == twin.message_digest(fields)
        message = user(content=[Video(type="video", video="v"), TextPart(text="t")])
        assert twin.encode_message(message) == twin.encode_message(message.to_openai())


def test_models_with_fields_kept_in_extra(prefix_twins: Twins) -> None:
    part = {"type": "text", "text": "x", "cache_control": {}}
    models = [
        user(extra={"content": [part, {"cachePoint": 1}], "a": 1}),
        user(extra={"tool_calls": [{"function": {"arguments": 1}}]}),
        user(extra={"name": None, "refusal": 3}),
        user(content=None),
        user(),
        user(content=[ContentPart(extra={"text": "x", "type": 5})]),
        user(content=[ContentPart(type="text", extra={"text": 1})]),
        user(content=[ContentPart(extra={"a": 1, "text": "x", "type": "text"})]),
        user(content=[ContentPart(extra={"cachePoint": 1})]),
        user(content=[ContentPart()]),
        user(content=[]),
        user(tool_calls=[]),
        user(tool_calls=[ToolCall(), ToolCall(type=None)]),
        user(
            tool_calls=[
                ToolCall(id="i", name="n", arguments={"b": 1, "a": [2]}),
                ToolCall(name="n", function_extra={"strict": True, "arguments": None}),
                ToolCall(function_extra={}),
                ToolCall(extra={"function": "f", "index": 0}),
            ],
        ),
    ]
    seen = set()
    for model in models:
        encodings = {twin.encode_message(model) for twin in prefix_twins}
        encodings |= {twin.encode_message(model.to_openai()) for twin in prefix_twins}
        assert len(encodings) == 1
        seen |= encodings
    assert len(seen) == len(models) - 1  # a part of marks only is no part


@pytest.mark.parametrize("where", ["name", "content", "tool_calls", "extra", "role"])
@pytest.mark.parametrize("value", [b"", float("nan"), {1: 2}, [object()], None, 5])
def test_messages_that_were_tampered_with(
    prefix_twins: Twins, where: str, value: Any
) -> None:
    # Nobody should; whoever does gets an answer, and no crash.
    for twin in prefix_twins:
        model = ChatMessage.user("x")
        model.__dict__[where] = value
        outcome(twin.encode_message, model)
        del model.__dict__[where]
        outcome(twin.encode_message, model)


def _assert_as_model(twin: ModuleType, name: str, message: Any, made: Any) -> None:
    """Check a dict's outcome against that of the message that it makes."""
    model = outcome(ChatMessage.from_openai, message)
    if isinstance(message, ChatMessage):
        return
    if model[0] == "value":
        assert made == outcome(getattr(twin, name), model[1])
    else:
        assert made == model


@pytest.mark.parametrize("where", ["id", "name", "extra", "function_extra"])
@pytest.mark.parametrize("value", [b"", {"k": 1}, [("k", 1)], None, 5])
def test_calls_that_were_tampered_with(
    prefix_twins: Twins, where: str, value: Any
) -> None:
    function = {"name": "f", "arguments": "{}"}
    call = {"id": "c", "type": "function", "function": function}
    message = ChatMessage.from_openai({"role": "assistant", "tool_calls": [call]})
    assert message.tool_calls
    message.tool_calls[0].__dict__[where] = value
    answers = [outcome(twin.encode_message, message) for twin in prefix_twins]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "number", [2**14279 - 1, -(2**14279), 2**14279, -(2**14279) - 1]
)
def test_the_longest_integers(prefix_twins: Twins, number: int) -> None:
    compiled, pure = prefix_twins
    message = {"role": "user", "n": number}
    seen = outcome(compiled.encode_message, message)
    assert seen == outcome(pure.encode_message, message)
    assert (seen[0] == "value") == (-(2**14279) <= number < 2**14279)
