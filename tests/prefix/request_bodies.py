"""Conversations of any length and content, as each API takes them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from prefix_inputs import plain_leaves, texts, values

from raf_session.request_shapes import RequestShape


@dataclass
class Call:
    """A call and its result; results follow all calls of a turn."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: str


@dataclass
class Turn:
    """What the user said, and what the model did about it."""

    user: str
    image: bytes | None
    reasoning: str
    calls: list[Call] = field(default_factory=list)
    answer: str = ""


@dataclass
class Tool:
    name: str
    description: str
    schema: dict[str, Any]


@dataclass
class Dialogue:
    system: str
    tools: list[Tool]
    turns: list[Turn]


def _name(front: str, number: int, text: str) -> str:
    return f"{front}{number} {text}"


@st.composite
def dialogues(draw: st.DrawFn, turns: int = 4) -> Dialogue:
    """Draw one in which no two messages, parts or tools are equal."""
    made = Dialogue(
        f"You are an agent. {draw(texts)}",
        [
            Tool(f"tool{n}", _name("does", n, draw(texts)), draw(schemas))
            for n in range(draw(st.integers(0, 3)))
        ],
        [],
    )
    for n in range(draw(st.integers(1, turns))):
        turn = Turn(
            _name("question", n, draw(texts)),
            draw(st.none() | st.just(bytes([n, 1, 2]))),
            draw(st.sampled_from(["", f"thought {n}"])),
        )
        for c in range(draw(st.integers(0, 2))):
            call = Call(
                f"call_{n}_{c}",
                f"tool{c}",
                draw(st.dictionaries(words, values(plain_leaves, words), max_size=3)),
                _name("result", 10 * n + c, draw(texts)),
            )
            turn.calls.append(call)
        turn.answer = _name("answer", n, draw(texts))
        made.turns.append(turn)
    return made


words = st.sampled_from(["a", "b", "q", "limit", "ключ", "x y"])
schemas = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(
            words,
            st.fixed_dictionaries({"type": st.just("string"), "description": texts}),
            max_size=3,
        ),
        "required": st.lists(words, unique=True, max_size=3),
    }
)


# Shapes -----------------------------------------------------------------------------


def _chat(made: Dialogue) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": made.system}]
    for turn in made.turns:
        content: Any = turn.user
        if turn.image is not None:
            url = f"data:image/png;base64,{_base64(turn.image)}"
            content = [
                {"type": "text", "text": turn.user},
                {"type": "image_url", "image_url": {"url": url}},
            ]
        messages.append({"role": "user", "content": content})
        if turn.calls:
            asked: dict[str, Any] = {"role": "assistant", "content": None}
            if turn.reasoning:
                asked["reasoning_content"] = turn.reasoning
            asked["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": _json(call.arguments)},
                }
                for call in turn.calls
            ]
            messages.append(asked)
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": call.result}
            for call in turn.calls
        ]
        messages.append({"role": "assistant", "content": turn.answer})
    return {
        "model": "gpt-5.5",
        "messages": messages,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                },
            }
            for tool in made.tools
        ],
        "reasoning_effort": "low",
        "temperature": 0.5,
    }


def _responses(made: Dialogue) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in made.turns:
        parts = [{"type": "input_text", "text": turn.user}]
        if turn.image is not None:
            url = f"data:image/png;base64,{_base64(turn.image)}"
            parts.append({"type": "input_image", "image_url": url})
        items.append({"role": "user", "content": parts})
        if turn.reasoning:
            items.append(
                {
                    "type": "reasoning",
                    "summary": [],
                    "encrypted_content": turn.reasoning,
                }
            )
        items += [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": _json(call.arguments),
            }
            for call in turn.calls
        ]
        items += [
            {"type": "function_call_output", "call_id": call.id, "output": call.result}
            for call in turn.calls
        ]
        items.append({"role": "assistant", "content": turn.answer})
    return {
        "model": "gpt-5.6",
        "instructions": made.system,
        "input": items,
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            }
            for tool in made.tools
        ],
        "reasoning": {"effort": "low"},
        "max_output_tokens": 100,
    }


def _anthropic(made: Dialogue) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in made.turns:
        parts: list[dict[str, Any]] = [{"type": "text", "text": turn.user}]
        if turn.image is not None:
            source = {
                "type": "base64",
                "media_type": "image/png",
                "data": _base64(turn.image),
            }
            parts.append({"type": "image", "source": source})
        messages.append({"role": "user", "content": parts})
        if turn.calls:
            asked: list[dict[str, Any]] = []
            if turn.reasoning:
                asked.append(
                    {"type": "thinking", "thinking": turn.reasoning, "signature": "s"}
                )
            asked += [
                {"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments}
                for c in turn.calls
            ]
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": c.result}
                for c in turn.calls
            ]
            messages += [
                {"role": "assistant", "content": asked},
                {"role": "user", "content": results},
            ]
        messages.append({"role": "assistant", "content": turn.answer})
    return {
        "model": "claude-opus-5",
        "max_tokens": 100,
        "system": [
            {"type": "text", "text": made.system},
            {"type": "text", "text": "Be brief."},
        ],
        "messages": messages,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.schema,
            }
            for tool in made.tools
        ],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }


def _gemini(made: Dialogue) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for turn in made.turns:
        parts: list[dict[str, Any]] = [{"text": turn.user}]
        if turn.image is not None:
            data = {"mimeType": "image/png", "data": _base64(turn.image)}
            parts.append({"inlineData": data})
        contents.append({"role": "user", "parts": parts})
        if turn.calls:
            asked: list[dict[str, Any]] = []
            if turn.reasoning:
                asked.append({"text": turn.reasoning, "thought": True})
            asked += [
                {"functionCall": {"id": c.id, "name": c.name, "args": c.arguments}}
                for c in turn.calls
            ]
            results = [
                {
                    "functionResponse": {
                        "id": c.id,
                        "name": c.name,
                        "response": {"result": c.result},
                    }
                }
                for c in turn.calls
            ]
            contents += [
                {"role": "model", "parts": asked},
                {"role": "user", "parts": results},
            ]
        contents.append({"role": "model", "parts": [{"text": turn.answer}]})
    declared = [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        for tool in made.tools
    ]
    return {
        "model": "gemini-3-pro",
        "systemInstruction": {"parts": [{"text": made.system}]},
        "contents": contents,
        "tools": [{"functionDeclarations": declared}] if declared else [],
        "generationConfig": {
            "temperature": 1.0,
            "thinkingConfig": {"thinkingLevel": "low"},
        },
    }


def _bedrock(made: Dialogue) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in made.turns:
        parts: list[dict[str, Any]] = [{"text": turn.user}]
        if turn.image is not None:
            source = {"bytes": _base64(turn.image)}
            parts.append({"image": {"format": "png", "source": source}})
        messages.append({"role": "user", "content": parts})
        if turn.calls:
            asked: list[dict[str, Any]] = []
            if turn.reasoning:
                thought = {"reasoningText": {"text": turn.reasoning}}
                asked.append({"reasoningContent": thought})
            asked += [
                {"toolUse": {"toolUseId": c.id, "name": c.name, "input": c.arguments}}
                for c in turn.calls
            ]
            results = [
                {"toolResult": {"toolUseId": c.id, "content": [{"text": c.result}]}}
                for c in turn.calls
            ]
            messages += [
                {"role": "assistant", "content": asked},
                {"role": "user", "content": results},
            ]
        messages.append({"role": "assistant", "content": [{"text": turn.answer}]})
    body: dict[str, Any] = {
        "modelId": "anthropic.claude-opus-5",
        "system": [{"text": made.system}],
        "messages": messages,
        "inferenceConfig": {"maxTokens": 100},
        "additionalModelRequestFields": {"thinking": {"type": "enabled"}},
    }
    if made.tools:
        tools = [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": tool.schema},
                }
            }
            for tool in made.tools
        ]
        body["toolConfig"] = {"tools": tools}
    return body


SHAPES: dict[RequestShape, Callable[[Dialogue], dict[str, Any]]] = {
    RequestShape.OPENAI_CHAT: _chat,
    RequestShape.OPENAI_RESPONSES: _responses,
    RequestShape.ANTHROPIC: _anthropic,
    RequestShape.GEMINI: _gemini,
    RequestShape.BEDROCK: _bedrock,
}

MESSAGES = {
    RequestShape.OPENAI_RESPONSES: "input",
    RequestShape.GEMINI: "contents",
}
"""Where the messages stand, if not under ``messages``."""


def messages_name(shape: RequestShape) -> str:
    return MESSAGES.get(shape, "messages")


def bodies(shape: RequestShape, turns: int = 4) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies of that API, each with objects of its own."""
    return dialogues(turns).map(SHAPES[shape]).map(_copied)


def _copied(body: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(body))
    return copied


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _json(value: Any) -> str:
    return json.dumps(value)


# Edits ------------------------------------------------------------------------------

Path = tuple[str | int, ...]


def places(value: Any, path: Path = ()) -> list[Path]:
    """Return the way to everything in a JSON value, itself excepted."""
    steps: Sequence[Any] = ()
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, list):
        steps = range(len(value))
    found: list[Path] = []
    for step in steps:
        found += [(*path, step), *places(value[step], (*path, step))]
    return found


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value
