"""A path leads through the body as it was sent, whatever it was reduced to."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from raf_session.errors import InvalidValueError
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_history import PrefixHistory

MARK = {"cache_control": {"type": "ephemeral"}}
POINT = {"cachePoint": {"type": "default"}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def anthropic(**more: Any) -> dict[str, Any]:
    body = {"model": "claude-opus-5", "max_tokens": 9, "system": [text("s", **MARK)]}
    return {**body, "messages": [{"role": "user", "content": [text("q")]}], **more}


def bedrock(**more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": [{"text": "q"}]}]
    return {"modelId": "m", "messages": messages, **more}


def gemini(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gemini-3-pro", "contents": list(contents), **more}


def user(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


TOOL = {"toolSpec": {"name": "a", "inputSchema": {"json": {}}}}
OTHER = {"toolSpec": {"name": "b", "inputSchema": {"json": {}}}}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "the only block of a message": (
        anthropic(),
        anthropic(**user(text("other"))),
        "messages[0].content[0].text",
    ),
    "the only block behind a mark": (
        anthropic(),
        anthropic(**user(MARK, text("other"))),
        "messages[0].content[1].text",
    ),
    "a string that was the only block": (
        anthropic(),
        anthropic(messages=[{"role": "user", "content": "other"}]),
        "messages[0].content",
    ),
    "the only block of the system prompt": (
        anthropic(),
        anthropic(system=[text("other")]),
        "system[0].text",
    ),
    "a system prompt of two blocks": (
        anthropic(system=[text("s"), text("t")]),
        anthropic(system=[text("s"), text("u")]),
        "system[1].text",
    ),
    "an image behind the only block": (
        anthropic(),
        anthropic(**user(text("q"), {"type": "image", "source": {}})),
        "messages[0].content[1]",
    ),
    "a part behind a mark": (
        bedrock(**user({"text": "q"}, POINT, {"text": "r"})),
        bedrock(**user({"text": "q"}, POINT, {"text": "other"})),
        "messages[0].content[2].text",
    ),
    "a part that is gone": (
        bedrock(**user({"text": "q"}, POINT, {"text": "r"})),
        bedrock(**user({"text": "q"}, POINT)),
        "messages[0].content[2]",
    ),
    "a block of the system prompt behind a mark": (
        bedrock(system=[{"text": "s"}, POINT, {"text": "t"}]),
        bedrock(system=[{"text": "s"}, POINT, {"text": "u"}]),
        "system[2].text",
    ),
    "a tool behind a mark": (
        bedrock(toolConfig={"tools": [TOOL, POINT, TOOL]}),
        bedrock(toolConfig={"tools": [TOOL, POINT, OTHER]}),
        "toolConfig.tools[2].toolSpec.name",
    ),
    "the model": (bedrock(), bedrock(modelId="n"), "modelId"),
    "input that is a text": (
        {"model": "m", "input": "a"},
        {"model": "m", "input": "b"},
        "input",
    ),
    "input in a list": (
        {"model": "m", "input": [{"role": "user", "content": "a"}]},
        {"model": "m", "input": [{"role": "user", "content": "b"}]},
        "input[0].content",
    ),
    "contents that are a text": (
        {"model": "m", "contents": "a"},
        {"model": "m", "contents": "b"},
        "contents",
    ),
    "a string among strings": (
        gemini("a", "b", "c"),
        gemini("a", "b", "d"),
        "contents[2]",
    ),
    "a content behind strings": (
        gemini("a", "b", {"role": "model", "parts": [{"text": "x"}]}),
        gemini("a", "b", {"role": "model", "parts": [{"text": "y"}]}),
        "contents[2].parts[0].text",
    ),
    "a string behind a content": (
        gemini({"role": "user", "parts": [{"text": "x"}]}, "a", "b"),
        gemini({"role": "user", "parts": [{"text": "x"}]}, "a", "z"),
        "contents[2]",
    ),
    "a string in a list": (gemini(["a", "b"]), gemini(["a", "c"]), "contents[0][1]"),
    "a bare part": (gemini({"a": 1}), gemini({"a": 2}), "contents[0].a"),
    "a configuration that is gone": (
        gemini("a", generationConfig={"thinkingConfig": {"thinkingBudget": 1}}),
        gemini("a"),
        "generationConfig.thinkingConfig",
    ),
    "a role that no item has": (
        {"model": "m", "input": [{"role": "user", "content": "a"}]},
        {"model": "m", "input": [{"type": "function_call", "call_id": "c"}]},
        "input[0]",
    ),
    "functions": (
        {"model": "m", "messages": [], "functions": [{"name": "f"}]},
        {"model": "m", "messages": [], "functions": [{"name": "g"}]},
        "functions[0].name",
    ),
    "a parameter inside of a configuration": (
        {"contents": "a", "config": {"thinking_config": {"thinking_budget": 1}}},
        {"contents": "a", "config": {"thinking_config": {"thinking_budget": 2}}},
        "config.thinking_config.thinking_budget",
    ),
}


NAN = float("nan")
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "a role": ({"model": "m", "messages": [{"role": "x"}]}, "messages[0].role"),
    "a number in a tool": (
        bedrock(toolConfig={"tools": [POINT, {"toolSpec": NAN}]}),
        "toolConfig.tools[1].toolSpec",
    ),
    "a number in an item": (
        {"model": "m", "input": [{"role": "user", "content": [{"x": [NAN]}]}]},
        "input[0].content[0].x[0]",
    ),
    "a number behind a mark": (
        bedrock(**user({"text": "q"}, POINT, {"text": NAN})),
        "messages[0].content[2].text",
    ),
    "a key of the history": ({"model": "m", "input": "a", "conversation": "c"}, ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_where_it_stands(name: str) -> None:
    body, path = FAULTS[name]
    good = {**body, "messages": []} if "messages" in body else body
    for call in (PrefixHistory().touch_request, lambda b: compare_requests(good, b)):
        with pytest.raises(InvalidValueError) as caught:
            call(body)
        assert caught.value.path == (path or "conversation")


@pytest.mark.parametrize("name", CASES)
def test_where_the_requests_part(name: str) -> None:
    before, after, path = CASES[name]
    match = compare_requests(before, after)
    assert str(match.first_difference) == path
    history = PrefixHistory()
    history.touch_request(before)
    later = copy.deepcopy(after)
    assert str(history.touch_request(later).first_difference) == path
    assert later == after


IMAGE = {"type": "image_url", "image_url": {"url": "u"}}


@pytest.mark.parametrize("parts", [[IMAGE], [text("x"), IMAGE]])
def test_parts_that_became_a_text(parts: list[Any]) -> None:
    before, after = (
        {"model": "m", "messages": [{"role": "user", "content": content}]}
        for content in (parts, "y")
    )
    match = compare_requests(before, after, provider="openai")
    assert str(match.first_difference) == "messages[0].content"
