"""Long results: short enough, still JSON, no character broken, the same each time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.history import HistoryPolicy, select_history
from raf_session.history.shortening import fit_text
from raf_session.history.truncation import Truncation, shorten_results
from raf_session.messages import ChatMessage
from raf_session.tokens import EstimatingTokenCounter

CHARACTERS = [
    *(
        "a",
        "9",
        " ",
        "\n",
        "ä",
        "中",
        "한",
        "\r\n",
        "e\u0301",
        "👍🏽",
        "🇩🇪",
        "👨‍👩‍👧‍👦",
    ),
    *("नि", "กำ", "\u1112\u1161\u11ab", "1\ufe0f\u20e3", "\ud83d\ude00"),
]
PROSE = st.lists(st.sampled_from(CHARACTERS), max_size=60)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(st.sampled_from([*CHARACTERS, '"', "\\", "\x00"])).map("".join),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@given(PROSE.map(lambda ch: ["x", *ch]), st.integers(1, 80))
def test_prose_keeps_its_beginning_and_breaks_no_character(
    characters: list[str], limit: int
) -> None:
    text = "".join(characters)
    short = fit_text(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short is text
        return
    head, mark, tail = short.rpartition("…")
    assert mark
    ends = {"".join(characters[:n]) for n in range(len(characters) + 1)}
    # Neighbours may cling: what is cut off begins with a whole character all the same.
    assert head in ends
    if tail:
        count = len(text) - len(head)
        assert tail == f" [{count:,} character{'' if count == 1 else 's'} cut]"


@given(VALUES, st.integers(2, 120), st.sampled_from([None, 2]), st.booleans())
def test_json_stays_json_of_its_kind(
    value: Any, limit: int, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    short = fit_text(text, limit)
    if len(text) <= limit:
        assert short is text
        return
    assert len(short) <= limit
    for kind in (dict, list, str):
        assert not isinstance(value, kind) or isinstance(json.loads(short), kind)


@given(VALUES.map(json.dumps) | PROSE.map("".join), st.integers(1, 120))
def test_to_shorten_again_changes_nothing(text: str, limit: int) -> None:
    once = fit_text(text, limit)
    assert fit_text(once, limit) == once
    assert fit_text(text, limit) == once


def test_what_is_missing_is_said() -> None:
    assert fit_text("a" * 100, 30) == "aaaaaaaa… [92 characters cut]"
    record = json.dumps({"id": 7, "log": "x" * 90, "ok": True})
    short = json.loads(fit_text(record, 60))
    assert short["id"] == 7
    assert short["ok"] is True
    assert short["log"].endswith("characters cut]")
    numbered = [{"n": n} for n in range(40)]
    rows = json.loads(fit_text(json.dumps(numbered), 60))
    assert rows[0] == {"n": 0}
    assert rows[-1] == f"… [{40 - len(rows) + 1} items cut]"
    many = json.loads(fit_text(json.dumps({f"k{n}": n for n in range(50)}), 60))
    assert many["k0"] == 0
    assert many["…"] == f"… [{50 - len(many) + 1} fields cut]"


@pytest.mark.parametrize(
    "text", ["[" * 3000 + "]" * 3000, '{"a":' * 150 + "1" + "}" * 150, "1" * 5000]
)
def test_depth_and_length_do_not_matter(text: str) -> None:
    short = fit_text(text, 100)
    assert len(short) <= 100


# Results in every shape ---------------------------------------------------------------

LONG = "word " * 100
SHAPES: list[dict[str, Any]] = [
    {"role": "tool", "tool_call_id": "c", "content": LONG},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": LONG}]},
    {
        "role": "tool",
        "tool_call_id": "c",
        "content": [{"type": "text", "text": LONG}, {"type": "text", "text": "end"}],
    },
    {"role": "function", "name": "f", "content": LONG},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": LONG}],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c",
                "content": [{"type": "text", "text": LONG}],
                "is_error": True,
            },
            {"type": "text", "text": LONG},
        ],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": LONG}]}}],
    },
    {
        "role": "user",
        "parts": [{"functionResponse": {"name": "f", "response": {"output": LONG}}}],
    },
    {
        "role": "user",
        "content": [{"type": "function_call_output", "call_id": "c", "output": LONG}],
    },
]


@pytest.mark.parametrize("wire", SHAPES)
def test_results_are_shortened_in_every_shape(wire: dict[str, Any]) -> None:
    message = ChatMessage.from_openai(wire, id="m1", metadata={"k": 1})
    short, truncation = shorten_results(message, 60)
    assert truncation is not None
    assert truncation.size >= len(LONG)
    assert truncation.shown <= 60
    assert (short.id, short.metadata, short.role) == ("m1", {"k": 1}, message.role)
    text = json.dumps(short.to_openai(), ensure_ascii=False)
    assert "characters cut]" in text
    beside = (
        sum(part == {"type": "text", "text": LONG} for part in wire["content"][1:])
        if isinstance(wire.get("content"), list) and wire["role"] == "user"
        else 0
    )
    assert text.count(LONG) == beside
    assert shorten_results(short, 60) == (short, None)
    assert shorten_results(message, 100_000) == (message, None)


def test_images_are_not_cut() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 999}}
    part = {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [image, {"type": "text", "text": LONG}],
    }
    message = ChatMessage.from_openai({"role": "user", "content": [part]})
    short, truncation = shorten_results(message, 50)
    assert truncation == Truncation(len(LONG), 50)
    assert short.to_openai()["content"][0]["content"][0] == image


def test_the_view_says_which_results_are_short() -> None:
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": LONG},
            }
        ],
    }
    history = [ChatMessage.user(LONG), ChatMessage.from_openai(call)]
    history.append(ChatMessage.tool(LONG, "c"))
    policy = HistoryPolicy(max_tool_result_size=40)
    view = select_history(history, policy, EstimatingTokenCounter())
    assert dict(view.truncated) == {2: Truncation(500, 40)}
    assert len(view.messages[2].text) == 40
    assert view.messages[:2] == tuple(history[:2])
