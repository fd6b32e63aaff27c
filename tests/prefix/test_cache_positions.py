"""Positions of marks and of what is shared, counted as providers count blocks."""

from __future__ import annotations

from typing import Any

import pytest

from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_history import PrefixHistory
from raf_session.prefix_match import CacheHints

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
POINT = {"cachePoint": {"type": "default"}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {}}


def result(number: int, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": "r", **more}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(parts)}


def anthropic(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"model": "claude-opus-5", "max_tokens": 9, "messages": [*messages]}
    return {**body, **more}


def hints(before: dict[str, Any], after: dict[str, Any]) -> CacheHints:
    match = compare_requests(before, after)
    assert match.caching is not None
    history = PrefixHistory()
    history.touch_request(before)
    assert history.touch_request(after) == match
    return match.caching


def test_every_part_is_a_position_but_runs_of_calls_and_results_are_one() -> None:
    turns = [
        user(text("q"), text("more")),
        model(text("let me see"), use(1), use(2), use(3)),
        user(result(1), result(2), result(3, **MARK)),
        {"role": "assistant", "content": "done"},
    ]
    found = hints(anthropic(*turns[:3]), anthropic(*turns, user(text("next", **MARK))))
    assert (found.shared, found.total) == (5, 7)
    assert (found.written, found.read) == ((5,), (5, 7))


def test_a_mark_in_front_of_the_break_is_counted_within_its_message() -> None:
    document = text("a long document", **MARK)
    found = hints(
        anthropic(user(document, text("what is it?"))),
        anthropic(user(document, text("who wrote it?"))),
    )
    assert (found.shared, found.total) == (1, 2)
    assert found.written == (1,)


def test_the_front_has_two_ends() -> None:
    tools = [{"name": "f", "input_schema": {}, **MARK}]
    body = anthropic(user(text("q")), tools=tools, system=[text("s", **HOUR)])
    found = hints(body, body)
    assert found.written == (-1, 0)
    assert found.written_ttls == (None, 3600)
    bare = anthropic(user(text("q")), tools=tools)
    assert hints(bare, bare).written == (-1,)
    assert 0 < found.tools_bytes == hints(bare, bare).tools_bytes
    none = anthropic(user(text("q")))
    assert hints(none, none).tools_bytes == 0


def test_points_of_bedrock_are_no_blocks() -> None:
    messages = [
        {"role": "user", "content": [{"text": "q"}, POINT]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": n}} for n in "ab"],
        },
        {
            "role": "user",
            "content": [*({"toolResult": {"toolUseId": n}} for n in "ab"), POINT],
        },
    ]
    body = {"modelId": "m", "messages": messages}
    found = hints({**body, "messages": messages[:1]}, body)
    assert (found.shared, found.total) == (1, 3)
    assert (found.written, found.read) == ((1,), (1, 3))


@pytest.mark.parametrize(
    ("messages", "total"),
    [
        ([{"role": "user", "content": "q"}], 1),
        ([{"role": "assistant", "content": None, "tool_calls": [{}, {}]}], 1),
        ([{"role": "assistant", "content": "a", "tool_calls": [{}]}], 2),
        ([{"role": "tool", "tool_call_id": n, "content": "r"} for n in "ab"], 1),
        ([{"role": "user", "content": []}], 0),
        ([], 0),
    ],
)
def test_chat(messages: list[Any], total: int) -> None:
    body = {"model": "m", "messages": messages, "n": 1}
    found = hints(body, body)
    assert (found.shared, found.total) == (total, total)
    assert (found.written, found.read) == (None, None)


def test_items_and_contents() -> None:
    items = [
        {"role": "user", "content": "q"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "r"},
        {"type": "function_call_output", "call_id": "b", "output": "r"},
    ]
    body = {"model": "m", "input": items}
    assert hints(body, body).total == 3  # reasoning is no block of its own
    contents = [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {}}, {"functionCall": {}}]},
        {"role": "user", "parts": [{"functionResponse": {}}]},
    ]
    gemini = {"model": "m", "contents": contents}
    assert hints(gemini, gemini).total == 3


def test_keys_and_times_are_told() -> None:
    body = {"model": "m", "messages": [], "prompt_cache_retention": "24h"}
    before = {**body, "prompt_cache_key": "a"}
    found = hints(before, {**body, "prompt_cache_key": "b"})
    assert found.keys == {"prompt_cache_key": ("a", "b")}
    assert (found.ttl_seconds, found.model) == (86400, "m")


def test_many_marks_in_one_message_are_counted_once_each() -> None:
    parts = [text(str(number), **MARK) for number in range(20_000)]
    body = anthropic(user(*parts))
    found = hints(body, body)
    assert found.written == tuple(range(1, 20_001))
