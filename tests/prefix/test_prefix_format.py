"""The encoding and the chain, version 1, byte by byte."""

from __future__ import annotations

import math
import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_inputs import (
    MARKS,
    deep,
    few_messages,
    outcome,
    plain_values,
    valid_messages,
)
from xxhash import xxh64_intdigest

from raf_session.prefix_match import ROOT, ZERO_SUBSTITUTE

P1, P2, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
USER = b"\x01m\x02s\x04roles\x04users\x01x"


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    length = bytearray()
    count = len(raw)
    while count > 0x7F:
        length.append(count & 0x7F | 0x80)
        count >>= 7
    length.append(count)
    if len(raw) < 4096:
        return b"s" + length + raw
    return b"S" + length + xxh64_intdigest(raw).to_bytes(8, "little")


def _value(impl: ModuleType, value: Any) -> bytes:
    """Return the encoding of a value, cut out of a message's."""
    encoding: bytes = impl.encode_message({"role": "user", "x": value})
    assert encoding.startswith(USER)
    digest = xxh64_intdigest(b"\x01" + encoding[len(USER) :])
    assert digest == impl.value_digest(value)
    return encoding[len(USER) :]


def test_constants_are_those_of_version_1(prefix_impl: ModuleType) -> None:
    assert prefix_impl.FORMAT_VERSION == 1
    assert xxh64_intdigest(b"raf_session prefix v1") == prefix_impl.ROOT
    assert prefix_impl.ROOT == 0xB0645159665B712B
    assert xxh64_intdigest(b"raf_session prefix v1 zero") == prefix_impl.ZERO_SUBSTITUTE
    assert prefix_impl.ZERO_SUBSTITUTE == 0x9E7381CE219C5C68


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        (None, b"n"),
        (False, b"f"),
        (True, b"t"),
        (0, b"i\x01\x00"),
        (1, b"i\x01\x01"),
        (-1, b"i\x01\xff"),
        (127, b"i\x01\x7f"),
        (128, b"i\x02\x80\x00"),
        (-128, b"i\x01\x80"),
        (-129, b"i\x02\x7f\xff"),
        (255, b"i\x02\xff\x00"),
        (2**63 - 1, b"i\x08" + b"\xff" * 7 + b"\x7f"),
        (-(2**63), b"i\x08" + b"\x00" * 7 + b"\x80"),
        (2**63, b"i\x09" + b"\x00" * 7 + b"\x80\x00"),
        (-(2**63) - 1, b"i\x09" + b"\xff" * 7 + b"\x7f\xff"),
        (2**64 - 1, b"i\x09" + b"\xff" * 8 + b"\x00"),
        (-(2**71), b"i\x09" + b"\x00" * 8 + b"\x80"),
        (2**1015, b"i\x80\x01" + b"\x00" * 126 + b"\x80\x00"),
        (1.0, b"d" + struct.pack("<d", 1.0)),
        (-0.0, b"d" + b"\x00" * 7 + b"\x80"),
        (5e-324, b"d\x01" + b"\x00" * 7),
        ("", b"s\x00"),
        ("é", b"s\x02\xc3\xa9"),
        ("\ud800", b"s\x03\xed\xa0\x80"),
        ("\ud83d\ude00", b"s\x06\xed\xa0\xbd\xed\xb8\x80"),
        ("\U0001f600", b"s\x04\xf0\x9f\x98\x80"),
        ("a" * 128, b"s\x80\x01" + b"a" * 128),
        ([], b"l\x00"),
        ((), b"l\x00"),
        ([[], {}], b"l\x02l\x00m\x00"),
        ({"b": 1, "a": None}, b"m\x02s\x01bi\x01\x01s\x01an"),
    ],
    ids=repr,
)
def test_values(prefix_impl: ModuleType, value: Any, encoding: bytes) -> None:
    assert _value(prefix_impl, value) == encoding


@given(number=st.integers() | st.integers(-(2**600), 2**600))
def test_integers_are_as_short_as_they_can_be(
    prefix_impl: ModuleType, number: int
) -> None:
    encoding = _value(prefix_impl, number)
    size, body = encoding[1], encoding[2:]
    assert encoding[:1] == b"i"
    assert size == len(body)
    assert int.from_bytes(body, "little", signed=True) == number
    if size > 1:
        assert int.from_bytes(body[:-1], "little", signed=True) != number


@pytest.mark.parametrize("unit", ["a", "é", "\u4f60", "\U0001f600", "\ud800"])
@pytest.mark.parametrize("at", [0, 1, 127, 128, 4095, 4096, 4097, 65535, 65536, 70001])
def test_strings_of_every_width(prefix_impl: ModuleType, unit: str, at: int) -> None:
    width = len(unit.encode("utf-8", "surrogatepass"))
    text = unit * (at // width) + "b" * (at % width)
    assert _value(prefix_impl, text) == _string(text)
    message = {"role": "user", "x": text}
    size = prefix_impl.message_size(message)
    assert size == len(USER) + len(_string(text)) + (at - 8 if at >= 4096 else 0)


def test_large_keys_are_hashed_too(prefix_impl: ModuleType) -> None:
    key = "k" * 5000
    assert _value(prefix_impl, {key: 1}) == b"m\x01" + _string(key) + b"i\x01\x01"
    assert prefix_impl.encode_message({"role": "user", key: 1}) == (
        b"\x01m\x02s\x04roles\x04user" + _string(key) + b"i\x01\x01"
    )


@pytest.mark.parametrize("unit", ["a", "\u4f60"])
def test_ten_megabytes(prefix_impl: ModuleType, unit: str) -> None:
    text = unit * (10_000_000 // len(unit.encode()))
    message = {"role": "user", "content": [{"type": "text", "text": text}, {"a": text}]}
    raw = text.encode()
    encoding = prefix_impl.encode_message(message)
    assert encoding.count(xxh64_intdigest(raw).to_bytes(8, "little")) == 2
    assert prefix_impl.message_size(message) == len(encoding) + 2 * (len(raw) - 8)


def test_declared_fields_come_first_in_their_order(prefix_impl: ModuleType) -> None:
    call = {
        "x": 1,
        "function": {"strict": True, "arguments": "{}", "name": "f"},
        "type": "function",
        "id": "c",
    }
    message = {
        "zeta": 1,
        "refusal": None,
        "tool_call_id": "t",
        "tool_calls": [call],
        "name": "n",
        "content": [
            {"detail": 1, "image_url": {"url": "u", "a": 1}, "type": "image_url"}
        ],
        "alpha": 2,
        "role": "tool",
    }
    sorted_message = {
        "role": "tool",
        "content": [
            {"type": "image_url", "image_url": {"url": "u", "a": 1}, "detail": 1}
        ],
        "name": "n",
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": "{}", "strict": True},
                "x": 1,
            }
        ],
        "tool_call_id": "t",
        "refusal": None,
        "zeta": 1,
        "alpha": 2,
    }
    plain = _value(prefix_impl, sorted_message)
    assert prefix_impl.encode_message(message) == b"\x01" + plain


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("text", "text"),
        ("reasoning", "text"),
        ("image_url", "image_url"),
        ("input_audio", "input_audio"),
        ("file", "file"),
        ("refusal", "refusal"),
    ],
)
def test_the_payload_of_a_part(
    prefix_impl: ModuleType, kind: str, payload: str
) -> None:
    for value in ("x", {"url": "u"}, None, 5):
        first = {"type": kind, payload: value, "a": 1, "texts": 2}
        other = {"texts": 2, payload: value, "a": 1, "type": kind}
        assert prefix_impl.encode_message(
            {"role": "user", "content": [first]}
        ) != prefix_impl.encode_message({"role": "user", "content": [other]})
        moved = {"a": 1, "texts": 2, payload: value, "type": kind}
        assert prefix_impl.encode_message(
            {"role": "user", "content": [first]}
        ) == prefix_impl.encode_message({"role": "user", "content": [moved]})


def test_untyped_objects_keep_their_key_order(prefix_impl: ModuleType) -> None:
    pairs: list[tuple[Any, Any]] = [
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"content": [{"a": 1, "b": 2}]}, {"content": [{"b": 2, "a": 1}]}),
        ({"content": [{"text": "", "a": 1}]}, {"content": [{"a": 1, "text": ""}]}),
        (
            {"content": [{"type": "t", "text": 1}, 1]},
            {"content": [{"text": 1, "type": "t"}, 1]},
        ),
        (
            {"tool_calls": [{"function": {"arguments": {"a": 1, "b": 2}}}]},
            {"tool_calls": [{"function": {"arguments": {"b": 2, "a": 1}}}]},
        ),
    ]
    for one, other in pairs:
        assert prefix_impl.message_digest({"role": "user", **one}) != (
            prefix_impl.message_digest({"role": "user", **other})
        )


def test_what_differs_on_the_wire_differs(prefix_impl: ModuleType) -> None:
    different: list[dict[str, Any]] = [
        {},
        {"content": None},
        {"content": ""},
        {"content": []},
        {"content": [{}]},
        {"content": ["ab", "c"]},
        {"content": ["a", "bc"]},
        {"content": "é"},
        {"content": "e\u0301"},
        {"content": 1},
        {"content": 1.0},
        {"content": True},
        {"content": "1"},
        {"content": 0.0},
        {"content": -0.0},
        {"content": [[], []]},
        {"content": [[[]]]},
        {"content": [{"type": "text", "text": "a"}]},
        {"content": "a"},
        {"name": "a"},
        {"refusal": "a"},
        {"tool_call_id": "a"},
        {"tool_calls": []},
        {"tool_calls": None},
        {"tool_calls": [{}]},
        {"tool_calls": [{"id": "a"}]},
        {"tool_calls": [{"id": "a", "type": "function"}]},
        {"tool_calls": [{"function": {}}]},
        {"tool_calls": [{"function": {"name": "a"}}]},
        {"tool_calls": [{"function": {"arguments": "a"}}]},
        {"tool_calls": [{"function": {"arguments": {}}}]},
        {"tool_calls": [{"cache_control": 1}]},
        {"x": {"cache_control": 1}},
        {"x": {}},
    ]
    digests = {prefix_impl.message_digest({"role": "user", **m}) for m in different}
    digests.add(prefix_impl.message_digest({"role": "system"}))
    assert len(digests) == len(different) + 1


@given(
    one=valid_messages,
    other=few_messages,
    mark=st.sampled_from(MARKS),
    value=plain_values,
)
def test_marks_are_left_out_and_nothing_else(
    prefix_impl: ModuleType, one: Any, other: Any, mark: str, value: Any
) -> None:
    digest = prefix_impl.message_digest
    assert digest({**one, mark: value}) == digest({mark: value, **one})
    bare = {key: item for key, item in one.items() if key not in MARKS}
    assert digest({**one, mark: value}) == digest(bare)
    same = prefix_impl.encode_message(one) == prefix_impl.encode_message(other)
    assert same == (digest(one) == digest(other))


def test_marks_on_parts(prefix_impl: ModuleType) -> None:
    def digest(*parts: Any) -> int:
        made: int = prefix_impl.message_digest({"role": "user", "content": parts})
        return made

    part = {"type": "text", "text": "x"}
    for mark in MARKS:
        assert digest({**part, mark: {}}) == digest({mark: 1, **part}) == digest(part)
        assert digest(part, {mark: {"type": "default"}}) == digest(part)
        assert digest({mark: 1}) == digest()
        assert digest({"type": mark}) != digest()
    assert digest({}) != digest()
    assert digest(part, dict.fromkeys(MARKS), part) == digest(part, part)


def test_the_value_of_a_mark_has_to_be_json(prefix_impl: ModuleType) -> None:
    for mark in MARKS:
        for message, path in (
            ({"role": "user", mark: {"a": math.nan}}, f"{mark}.a"),
            ({"role": "user", "content": [{mark: b""}]}, f"content[0].{mark}"),
            ({"role": "user", mark: deep(200)}, mark + _path(198)),
        ):
            assert outcome(prefix_impl.message_digest, message)[:2] == ("invalid", path)


def _path(levels: int) -> str:
    """Return the path into `deep(200)` after that many levels."""
    return "".join(
        "[0]" if level % 2 else ".k" for level in range(199, 199 - levels - 1, -1)
    )


def test_marks_in_headers(prefix_impl: ModuleType) -> None:
    digest = prefix_impl.header_digest
    tool = {"name": "t", "schema": {"cache_control": 1}}
    bare = {"model": "m", "tools": [tool], "system": [{"type": "text", "text": "s"}]}
    for mark in MARKS:
        marked = {
            mark: {},
            "model": "m",
            "tools": [{mark: 1, **tool}, {mark: 1}],
            "system": [{"type": "text", "text": "s", mark: 1}],
        }
        assert digest(marked) == digest(bare) == prefix_impl.value_digest(bare)
        for name in ("tools", "system"):
            assert digest({name: [{mark: 1}]}) == digest({name: []})
            assert digest({name: [{mark: 1}, 1]}) != digest({name: [{}, 1]})
        assert digest({"other": [{mark: 1}]}) != digest({"other": [{}]})
    assert digest({"tools": [{}]}) != digest({"tools": []})
    for value in (None, [], "x", [{"cache_control": 1}]):
        assert digest(value) == prefix_impl.value_digest(value)


@pytest.mark.parametrize("levels", [197, 198])
def test_two_hundred_levels_and_no_more(prefix_impl: ModuleType, levels: int) -> None:
    # Message, list, part: three levels stand above the part's own values.
    message = {"role": "user", "content": [{"type": "x", "v": deep(levels)}]}
    result = outcome(prefix_impl.message_digest, message)
    if levels == 197:
        assert result[0] == "value"
    else:
        path = "content[0].v" + "".join(
            "[0]" if level % 2 else ".k" for level in range(197, 0, -1)
        )
        assert result == ("invalid", path, "nested deeper than 200")


def test_a_cycle_is_too_deep(prefix_impl: ModuleType) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    result = outcome(prefix_impl.message_digest, {"role": "user", "content": cycle})
    assert result == (
        "invalid", "content" + "[0]" * 199, "nested deeper than 200",
    )  # fmt: skip


# The chain ---------------------------------------------------------------------


@given(requests=st.lists(few_messages, max_size=5))
def test_each_link_is_the_hash_of_the_former_and_a_digest(
    prefix_impl: ModuleType, requests: list[Any]
) -> None:
    link = ROOT
    links = []
    for message in requests:
        digest = xxh64_intdigest(prefix_impl.encode_message(message))
        assert digest == prefix_impl.message_digest(message)
        link = xxh64_intdigest(struct.pack("<QQ", link, digest)) or ZERO_SUBSTITUTE
        links.append(link)
    assert prefix_impl.prefix_hashes(requests) == links
    for at in range(len(requests)):
        seed = links[at - 1] if at else ROOT
        assert prefix_impl.prefix_hashes(requests[at:], seed) == links[at:]


def test_a_link_of_zero_is_replaced(prefix_impl: ModuleType) -> None:
    message = {"role": "user", "content": "zero"}
    seed = _seed_for_zero(prefix_impl.message_digest(message))
    digest = prefix_impl.message_digest(message)
    assert xxh64_intdigest(struct.pack("<QQ", seed, digest)) == 0
    assert prefix_impl.prefix_hashes([message], seed) == [ZERO_SUBSTITUTE]


def _seed_for_zero(digest: int) -> int:
    """Return the link after which this digest gives zero: XXH64 run backwards."""
    mask = 2**64 - 1

    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> (64 - bits)) & mask

    def scatter(lane: int) -> int:
        return rotate(lane * P2 & mask, 31) * P1 & mask

    def undo(acc: int) -> int:
        return rotate((acc - P4) * pow(P1, -1, 2**64) & mask, 64 - 27)

    before = undo(undo(0) ^ scatter(digest)) ^ (P5 + 16)
    return (
        rotate(before * pow(P1, -1, 2**64) & mask, 64 - 31) * pow(P2, -1, 2**64) & mask
    )
