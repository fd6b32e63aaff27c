"""Messages and JSON: nothing lost on the way in, and nothing let in that is no JSON."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from raf_session.calls import ToolCall
from raf_session.changes import StateDelta
from raf_session.conformance.session_values import HOSTILE_TEXTS, WIRE_SHAPES
from raf_session.errors import InvalidValueError
from raf_session.frozen import FrozenDict, freeze, thaw
from raf_session.json_text import dump_json, load_json
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.metadata import ProviderStateStore
from raf_session.parts import ContentPart, TextPart

TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(
    [text for text in HOSTILE_TEXTS if len(text) < 100]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)
ROLES = st.sampled_from([role.value for role in MessageRole])
NAMES = st.sampled_from(
    [
        *("id", "type", "function", "name", "arguments", "text", "image_url"),
        *("refusal", "input_audio", "file", "content", "tool_calls", "extra", ""),
    ]
)
TYPES = st.sampled_from(
    ["text", "image_url", "input_audio", "file", "refusal", "reasoning", "function", ""]
)
LOOSE = st.dictionaries(NAMES | TEXT, TYPES | JSON, max_size=5)
CALLS = st.lists(
    st.dictionaries(NAMES, LOOSE | JSON, max_size=4)
    | st.builds(
        lambda name, arguments, call_id: {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        },
        TEXT,
        TEXT | JSON,
        TEXT,
    ),
    max_size=3,
)
PARTS = st.lists(
    LOOSE | st.builds(lambda text: {"type": "text", "text": text}, TEXT), max_size=3
)
WIRE = st.builds(
    lambda role, fields, more: {**more, "role": role, **fields},
    ROLES,
    st.fixed_dictionaries(
        {},
        optional={
            "content": TEXT | PARTS | JSON,
            "name": TEXT | JSON,
            "tool_calls": CALLS | JSON,
            "tool_call_id": TEXT | JSON,
            "refusal": TEXT | JSON,
        },
    ),
    st.dictionaries(TEXT | NAMES, JSON, max_size=3),
)
DECLARED = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")


def exact(value: Any) -> str:
    """Show a JSON value with its types and its key order."""
    return json.dumps(value)


def typed(value: Any) -> Any:
    """Show a JSON value with its types; objects without their key order."""
    if isinstance(value, dict):
        return ("object", {key: typed(item) for key, item in value.items()})
    if isinstance(value, list):
        return ("list", [typed(item) for item in value])
    return (type(value).__name__, repr(value))


# What goes in comes out --------------------------------------------------------


@given(WIRE)
def test_to_openai_gives_back_what_from_openai_took(wire: dict[str, Any]) -> None:
    before = exact(wire)
    message = ChatMessage.from_openai(wire)
    back = message.to_openai()
    assert exact(wire) == before
    assert typed(back) == typed(wire)
    assert exact(message.to_openai()) == exact(back)
    for name, value in wire.items():
        if name not in {"content", "tool_calls"}:
            assert exact(back[name]) == exact(value)
    unknown = [name for name in wire if name not in DECLARED]
    assert [name for name in back if name not in DECLARED] == unknown
    again = ChatMessage.from_openai(back)
    assert again == message
    assert hash(again) == hash(message)
    assert exact(again.to_openai()) == exact(back)


@given(JSON)
def test_untyped_values_keep_their_key_order(value: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f"}}
    wire = {"role": "user", "content": [{"type": "x", "v": value}], "v": value}
    assert exact(ChatMessage.from_openai(wire).to_openai()) == exact(wire)
    call["function"] = {"name": "f", "arguments": value}
    wire = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert exact(ChatMessage.from_openai(wire).to_openai()) == exact(wire)
    assert exact(thaw(freeze(value))) == exact(value)


@given(JSON)
def test_freeze_keeps_an_equal_value_that_has_a_hash(value: Any) -> None:
    frozen = freeze(value)
    hash(frozen)
    assert exact(thaw(frozen)) == exact(value)
    assert freeze(frozen) == frozen


def test_freeze_takes_the_order_that_the_caller_sees() -> None:
    ordered = OrderedDict(a=1, b=2, c=3)
    ordered.move_to_end("a")
    assert exact(thaw(freeze(ordered))) == exact(ordered)


@pytest.mark.parametrize("wire", WIRE_SHAPES, ids=str)
def test_each_shape_comes_back(wire: dict[str, Any]) -> None:
    message = ChatMessage.from_openai(wire)
    assert typed(message.to_openai()) == typed(wire)


@given(WIRE)
def test_a_dump_of_what_was_given_is_read_as_the_same(wire: dict[str, Any]) -> None:
    message = ChatMessage.from_openai(wire)
    dump = message.model_dump(exclude_unset=True)
    assert ChatMessage.model_validate(dump) == message


def test_null_absent_and_empty_are_three_values() -> None:
    null = ChatMessage.from_openai({"role": "user", "content": None})
    absent = ChatMessage.from_openai({"role": "user"})
    empty = ChatMessage.from_openai({"role": "user", "content": ""})
    assert len({exact(m.to_openai()) for m in (null, absent, empty)}) == 3
    assert null != absent
    assert null != empty
    assert absent != empty
    assert null == ChatMessage(role=MessageRole.USER, content=None)
    assert absent == ChatMessage(role=MessageRole.USER)
    assert null.model_copy() == null
    assert absent.model_copy() == absent


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: ascii(text)[:24])
def test_any_text_passes_everywhere(text: str) -> None:
    made = ChatMessage.user(text)
    assert made.content == text
    parts = [TextPart(text=text)]
    assert ChatMessage(role=MessageRole.USER, content=parts).text == text
    assert load_json(dump_json(made.to_openai()).encode()) == made.to_openai()
    noted = ChatMessage.user("x").model_copy(update={"metadata": {text: text}})
    assert noted.metadata == {text: text}
    assert ProviderStateStore().set("p", {text: text}).get("p") == {text: text}
    call = ToolCall(id=text, name=text, arguments=text)
    assert call.to_openai()["function"] == {"name": text, "arguments": text}


def test_ten_megabytes_pass() -> None:
    text = "é\0" * 5_000_000
    message = ChatMessage.user(text)
    assert ChatMessage.from_openai(load_json(dump_json(message.to_openai()))) == message


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**400])
def test_large_integers_pass(number: int) -> None:
    wire = {"role": "user", "content": "x", "n": number}
    message = ChatMessage.from_openai(wire)
    assert message.to_openai()["n"] == number
    assert load_json(dump_json(message.to_openai())) == wire


def test_content_of_a_sequence_is_a_tuple() -> None:
    parts = [TextPart(text="a")]
    message = ChatMessage(role=MessageRole.USER, content=parts)
    parts.append(TextPart(text="b"))
    assert message.content == (TextPart(text="a"),)
    assert ChatMessage(role=MessageRole.USER, content=tuple(parts[:1])) == message
    with pytest.raises(ValidationError):
        ChatMessage(role=MessageRole.USER, content=b"bytes")  # type: ignore[arg-type]


def test_constructors_are_rafs() -> None:
    call = ToolCall(id="1", name="f", arguments="{}")
    assert ChatMessage.system("a").role is MessageRole.SYSTEM
    assert ChatMessage.user("a").role is MessageRole.USER
    assert ChatMessage.assistant("a").role is MessageRole.ASSISTANT
    message = ChatMessage.assistant_with_tools("a", [call])
    assert message.tool_calls == (call,)
    result = ChatMessage.tool("7", "1")
    assert (result.role, result.tool_call_id) == (MessageRole.TOOL, "1")


def test_the_ratio_of_cache_hits() -> None:
    assert Usage().cache_hit_ratio() == 0.0
    hit = Usage(prompt_tokens=10, prompt_cache_hit_tokens=4)
    assert math.isclose(hit.cache_hit_ratio(), 0.4)
    both = hit.model_copy(update={"prompt_cache_miss_tokens": 12})
    assert math.isclose(both.cache_hit_ratio(), 0.25)
    none = Usage(prompt_cache_hit_tokens=0, prompt_cache_miss_tokens=0)
    assert none.cache_hit_ratio() == 0.0


# What is no JSON is refused ------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def cycle() -> Any:
    value: dict[str, Any] = {}
    value["again"] = [value]
    return value


FAULTS = (
    (float("nan"), ""),
    (float("inf"), ""),
    (-float("inf"), ""),
    (b"bytes", ""),
    (bytearray(b"x"), ""),
    (object(), ""),
    ({1, 2}, ""),
    ({1: 2}, ""),
    ({None: 2}, ""),
    ([0, {"a": [float("nan")]}], "[1].a[0]"),
    ({"a": {"b": {3: 4}}}, ".a.b"),
    ({"a.b": [b""]}, ".a.b[0]"),
)


@pytest.mark.parametrize(("value", "at"), FAULTS, ids=range(len(FAULTS)))
def test_what_is_no_json_is_refused_with_its_path(value: Any, at: str) -> None:
    def path_of(call: Any) -> str:
        with pytest.raises(ValueError, match=r".") as caught:
            call()
        error: Any = caught.value
        if isinstance(error, ValidationError):
            error = error.errors()[0]["ctx"]["error"]
        assert isinstance(error, InvalidValueError)
        return error.path

    wire = {"role": "user", "content": "x", "x": value}
    assert path_of(lambda: ChatMessage.from_openai(wire)) == f"x{at}"
    wire = {"role": "user", "content": [{"type": "text", "text": "t", "x": value}]}
    assert path_of(lambda: ChatMessage.from_openai(wire)) == f"content[0].x{at}"
    call = {"id": "c", "function": {"name": "f", "arguments": value}}
    wire = {"role": "user", "tool_calls": [call]}
    path = f"tool_calls[0].function.arguments{at}"
    assert path_of(lambda: ChatMessage.from_openai(wire)) == path
    hi = {"role": "user", "content": "hi"}
    path = path_of(lambda: ChatMessage.from_openai(hi, metadata={"x": value}))
    assert path == f"metadata.x{at}"
    path = path_of(lambda: ProviderStateStore().set("p", {"x": value}))
    assert path == f"p.x{at}"
    assert path_of(lambda: StateDelta({"x": value})) == f"x{at}"
    for made in (
        lambda: ChatMessage.user("hi").model_copy(update={"metadata": {"x": value}}),
        lambda: ChatMessage.user("hi").model_copy(update={"extra": {"x": value}}),
        lambda: ContentPart(type="t", extra={"x": value}),
        lambda: ToolCall(name="f", extra={"x": value}),
        lambda: ToolCall(name="f", arguments={"x": value}),
    ):
        assert path_of(made) == f"x{at}"
    assert path_of(lambda: freeze(value, "p")) == f"p{at}"


def test_nesting_past_200_and_cycles_are_refused() -> None:
    for value in (nested(201), cycle()):
        calls: tuple[Callable[[], object], ...] = (
            partial(ChatMessage.from_openai, {"role": "user", "x": value}),
            partial(ChatMessage, role=MessageRole.USER, extra={"x": value}),
            partial(ChatMessage, role=MessageRole.USER, metadata={"x": value}),
            partial(StateDelta, {"x": value}),
            partial(ProviderStateStore, states={"x": value}),
            partial(ProviderStateStore().set, "x", value),
        )
        for call in calls:
            with pytest.raises(ValueError, match="nested deeper than 200"):
                call()
    with pytest.raises(ValueError, match="nested deeper than 200"):
        ChatMessage.from_openai({"role": "user", "x": nested(200)})
    ChatMessage.from_openai({"role": "user", "x": nested(199)})
    ChatMessage(role=MessageRole.USER, extra={"x": nested(199)})
    wire = {"role": "user", "content": [{"type": "x", "x": nested(197)}]}
    ChatMessage.from_openai(wire)
    ChatMessage(role=MessageRole.USER, content=wire["content"])  # type: ignore[arg-type]
    wire = {"role": "user", "content": [{"type": "x", "x": nested(198)}]}
    with pytest.raises(ValueError, match="nested deeper than 200"):
        ChatMessage.from_openai(wire)
    with pytest.raises(ValueError, match="nested deeper than 200"):
        ChatMessage(role=MessageRole.USER, content=wire["content"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wire",
    [{}, {"role": None}, {"role": "king"}, {"role": ["x"]}, {"role": {}}, [], "user"],
    ids=repr,
)
def test_what_is_no_message_is_refused(wire: Any) -> None:
    with pytest.raises(InvalidValueError):
        ChatMessage.from_openai(wire)


# JSON text -----------------------------------------------------------------------


@given(JSON)
def test_dump_json_writes_what_json_reads(value: Any) -> None:
    text = dump_json(value)
    text.encode()
    assert exact(json.loads(text)) == exact(value)
    assert exact(load_json(text)) == exact(value)
    assert exact(load_json(text.encode())) == exact(value)
    assert exact(load_json(json.dumps(value))) == exact(value)
    assert exact(load_json(json.dumps(value, indent=1))) == exact(value)
    assert dump_json(freeze(value)) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match=r"."):
        dump_json({"a": [value]})


TEXTS = (
    *("", " ", "{", "[1,]", "[1 2]", "01", "-", "1.", ".5", "+1", "1e", "tru", "'a'"),
    *('"', '"\\x"', '"\\u12"', '"\n"', '{"a"}', "{1:2}", '{"a":1,}', "[]x", "nul"),
    *("0", "-0", "-0.0", "1e5", "1E+2", "1e-400", "123456789012345678901234567890"),
    *('"\\ud83d"', '"\\ud83d\\ude00"', '"\\udc00\\ud83d"', '"\\u0000"', " [ ] "),
    "null",
    *('{"a":1,"a":2}', '{"a":1,"b":2,"a":3}', "0.1", "1.7976931348623157e308"),
    *('"\\/"', '"\x7f"', "[" * 300 + "]" * 300, "5e-324", "1e22", "1" * 4300),
)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:30])
def test_load_json_agrees_with_json(text: str) -> None:
    try:
        expected = exact(json.loads(text))
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            load_json(text)
    else:
        assert exact(load_json(text)) == expected
        assert exact(load_json(text.encode())) == expected


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", "-Infinity", '{"a":NaN}', "1e999", "[-1e999]"]
)
def test_load_json_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_json(text)


@pytest.mark.parametrize("prefix", ["", '["\\ud83d",'])
def test_no_infinity_comes_by_a_side_door(prefix: str) -> None:
    text = f"{prefix}1e999]" if prefix else "1e999"
    with pytest.raises(ValueError, match=r"."):
        load_json(text)


def test_a_raw_surrogate_is_read() -> None:
    assert load_json('"\ud83d"') == "\ud83d"
    assert load_json('["\ud83d", "\\ud83d"]') == ["\ud83d", "\ud83d"]


def test_frozen_dict_reads_like_a_dict() -> None:
    frozen: FrozenDict[int] = FrozenDict({"b": 1, "a": 2})
    assert frozen == {"a": 2, "b": 1}
    assert list(frozen) == ["b", "a"]
    assert type(frozen.copy()) is dict
    assert frozen | {"c": 3} == {"b": 1, "a": 2, "c": 3}
    assert json.dumps(frozen) == '{"b": 1, "a": 2}'
