"""Request bodies of every shape: realistic ones, marked ones and hostile ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

from raf_session.request_shapes import RequestShape

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
PNG = "iVBORw0KGgo="

OPENAI_CHAT: dict[str, Any] = {
    "model": "gpt-5",
    "tools": [
        {"type": "function", "function": {"name": "read", "parameters": SCHEMA}},
        {"type": "function", "function": {"name": "find", "parameters": SCHEMA}},
    ],
    "reasoning_effort": "low",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": f"data:;base64,{PNG}"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "look it up",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "find", "arguments": '{"q":"cat"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        {"role": "assistant", "content": "A cat."},
    ],
}

OPENAI_RESPONSES: dict[str, Any] = {
    "model": "gpt-5",
    "instructions": "Be brief.",
    "tools": [
        {"type": "function", "name": "find", "parameters": SCHEMA},
        {"type": "mcp", "server_label": "s", "authorization": "secret"},
    ],
    "reasoning": {"effort": "low", "summary": "auto"},
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": f"data:;base64,{PNG}"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "find",
            "arguments": '{"q":"cat"}',
        },
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "a cat"}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "A cat.", "annotations": []}],
        },
    ],
}

ANTHROPIC: dict[str, Any] = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "tools": [
        {"name": "read", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "system": [{"type": "text", "text": "Be brief."}],
    "tool_choice": {"type": "any"},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": PNG,
                    },
                },
                {
                    "type": "document",
                    "source": {
                        "type": "content",
                        "content": [{"type": "text", "text": "p"}] * 2,
                    },
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "look it up", "signature": "s"},
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "read",
                    "input": {"cache_control": "of the tool's own"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "a cat"},
                        {
                            "type": "search_result",
                            "source": "https://example.org",
                            "title": "t",
                            "content": [{"type": "text", "text": "found"}],
                        },
                    ],
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
    ],
}

GEMINI: dict[str, Any] = {
    "model": "gemini-3-pro",
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "find", "parameters": SCHEMA}]}],
    "generationConfig": {"temperature": 1, "thinkingConfig": {"thinkingLevel": "low"}},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "What is this?"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "look it up", "thought": True},
                {
                    "functionCall": {"name": "find", "args": {"q": "cat"}},
                    "thoughtSignature": "s",
                },
            ],
        },
        {
            "role": "function",
            "parts": [{"functionResponse": {"name": "find", "response": {"r": 1}}}],
        },
        {"role": "model", "parts": [{"text": "A cat."}]},
    ],
}

BEDROCK: dict[str, Any] = {
    "modelId": "anthropic.claude-opus-5",
    "system": [{"text": "Be brief."}],
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "find", "inputSchema": {"json": SCHEMA}}}],
        "toolChoice": {"any": {}},
    },
    "inferenceConfig": {"maxTokens": 100},
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "What is this?"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "look it up"}}},
                {"toolUse": {"toolUseId": "c1", "name": "find", "input": {"q": "cat"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "a cat"}]}}
            ],
        },
        {"role": "assistant", "content": [{"text": "A cat."}]},
    ],
}


class Example(NamedTuple):
    shape: RequestShape
    body: dict[str, Any]
    history: str
    """The field that holds the messages."""
    more: dict[str, Any]
    """One more message."""
    excluded: dict[str, Any]
    """Fields that are not rendered, as dotted paths."""
    included: dict[str, Any]
    """Fields that are, with values other than those of the body."""
    defaults: dict[str, Any]
    """Fields that are, with the value that is their default."""


_OPENAI_EXCLUDED: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.5,
    "stream": True,
    "stream_options": {"include_usage": True},
    "metadata": {"a": "b"},
    "user": "u",
    "store": True,
    "safety_identifier": "u",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"mode": "explicit"},
    "top_logprobs": 3,
}
_OPENAI_INCLUDED: dict[str, Any] = {
    "model": "gpt-6",
    "tools": [],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "service_tier": "flex",
    "a_new_parameter": 1,
}
_OPENAI_DEFAULTS: dict[str, Any] = {
    "parallel_tool_calls": True,
    "service_tier": "auto",
    "a_new_parameter": None,
}

EXAMPLES = (
    Example(
        RequestShape.OPENAI_CHAT,
        OPENAI_CHAT,
        "messages",
        {"role": "user", "content": "And now?"},
        {
            **_OPENAI_EXCLUDED,
            "max_tokens": 5,
            "max_completion_tokens": 5,
            "stop": ["x"],
            "seed": 5,
            "n": 2,
            "logprobs": True,
            "logit_bias": {"5": 1},
            "presence_penalty": 1,
            "frequency_penalty": 1,
            "cache_salt": "s",
            "user_id": "u",
            "top_k": 5,
            "guided_json": SCHEMA,
            "cache_control": {"type": "ephemeral"},
        },
        {
            **_OPENAI_INCLUDED,
            "functions": [{"name": "f"}],
            "function_call": {"name": "f"},
            "reasoning_effort": "high",
            "verbosity": "low",
            "response_format": {"type": "json_object"},
            "modalities": ["text", "audio"],
            "chat_template_kwargs": {"enable_thinking": False},
            "thinking": {"type": "enabled"},
            "system": "x",
        },
        {
            **_OPENAI_DEFAULTS,
            "verbosity": "medium",
            "response_format": {"type": "text"},
            "modalities": ["text"],
            "tool_choice": "auto",
            "function_call": "none",
            "functions": [],
        },
    ),
    Example(
        RequestShape.OPENAI_RESPONSES,
        OPENAI_RESPONSES,
        "input",
        {"role": "user", "content": "And now?"},
        {
            **_OPENAI_EXCLUDED,
            "background": True,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 5,
            "max_tool_calls": 5,
            "reasoning.summary": "detailed",
        },
        {
            **_OPENAI_INCLUDED,
            "instructions": "x",
            "reasoning.effort": "high",
            "text.verbosity": "low",
            "text.format": {"type": "json_object"},
            "truncation": "auto",
            "prompt": {"id": "p"},
        },
        {
            **_OPENAI_DEFAULTS,
            "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "truncation": "disabled",
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
        },
    ),
    Example(
        RequestShape.ANTHROPIC,
        ANTHROPIC,
        "messages",
        {"role": "user", "content": "And now?"},
        {
            "max_tokens": 5,
            "metadata": {"user_id": "u"},
            "stop_sequences": ["x"],
            "stream": True,
            "temperature": 0.5,
            "top_k": 5,
            "top_p": 0.5,
            "service_tier": "auto",
            "inference_geo": "eu",
            "diagnostics": {"previous_message_id": "m"},
            "cache_control": {"type": "ephemeral"},
            "container": "c1",
        },
        {
            "model": "claude-opus-6",
            "tools": [],
            "system": "x",
            "tool_choice": {"type": "tool", "name": "read"},
            "thinking": {"type": "adaptive"},
            "output_config.effort": "low",
            "speed": "fast",
            "context_management": {"edits": []},
            "container": {"skills": [{"skill_id": "pdf"}]},
            "mcp_servers": [{"name": "s", "authorization_token": "t"}],
            "a_new_parameter": 1,
        },
        {
            "system": "Be brief.",
            "output_config": {"effort": "high"},
            "speed": "standard",
            "a_new_parameter": None,
        },
    ),
    Example(
        RequestShape.GEMINI,
        GEMINI,
        "contents",
        {"role": "user", "parts": [{"text": "And now?"}]},
        {
            "generationConfig.temperature": 0.5,
            "generationConfig.topP": 0.5,
            "generationConfig.topK": 5,
            "generationConfig.maxOutputTokens": 5,
            "generationConfig.stopSequences": ["x"],
            "generationConfig.seed": 5,
            "generationConfig.candidateCount": 2,
            "labels": {"a": "b"},
            "safetySettings": [],
            "config": {"http_options": {}, "max_output_tokens": 5},
        },
        {
            "model": "gemini-4",
            "tools": [],
            "systemInstruction": "x",
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "cachedContent": "cachedContents/1",
            "generationConfig.responseSchema": SCHEMA,
            "generationConfig.responseMimeType": "application/json",
            "generationConfig.thinkingConfig": {"thinkingLevel": "high"},
            "generationConfig.responseModalities": ["AUDIO"],
            "generationConfig.mediaResolution": "MEDIA_RESOLUTION_LOW",
            "config": {"a_new_parameter": 1},
        },
        {
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "generationConfig.responseMimeType": "text/plain",
            "generationConfig.responseModalities": ["TEXT"],
        },
    ),
    Example(
        RequestShape.BEDROCK,
        BEDROCK,
        "messages",
        {"role": "user", "content": [{"text": "And now?"}]},
        {
            "inferenceConfig": {"temperature": 0.5},
            "requestMetadata": {"a": "b"},
            "promptVariables": {"a": {"text": "b"}},
            "performanceConfig": {"latency": "optimized"},
            "guardrailConfig": {"guardrailIdentifier": "g"},
            "serviceTier": {"type": "flex"},
            "additionalModelResponseFieldPaths": ["/a"],
            "additionalModelRequestFields": {
                "top_k": 5,
                "inferenceConfig": {"topK": 5},
            },
        },
        {
            "modelId": "amazon.nova-pro-v1:0",
            "system": [{"text": "x"}],
            "toolConfig.tools": [],
            "toolConfig.toolChoice": {"tool": {"name": "find"}},
            "toolConfig.a_new_field": 1,
            "additionalModelRequestFields": {"top_k": 5, "thinking": {}},
            "outputConfig": {"textFormat": {}},
            "a_new_parameter": 1,
        },
        {"a_new_parameter": None},
    ),
)


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with the field at a dotted path set."""
    made = copy.deepcopy(body)
    *outer, last = path.split(".")
    place = made
    for name in outer:
        place = place.setdefault(name, {})
    place[last] = value
    return made


# Marks ---------------------------------------------------------------------------

MARK_NAMES = {
    RequestShape.OPENAI_CHAT: "prompt_cache_breakpoint",
    RequestShape.OPENAI_RESPONSES: "prompt_cache_breakpoint",
    RequestShape.ANTHROPIC: "cache_control",
    RequestShape.BEDROCK: "cachePoint",
}
MARKED = tuple(e for e in EXAMPLES if e.shape in MARK_NAMES)

marks = st.sampled_from(
    [None, {"type": "ephemeral"}, {"type": "default", "ttl": "1h"}, {"ttl": "soon"}]
)


def _lists(example: Example, body: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield every list whose elements the API lets be marked."""
    for place in (body, body.get("toolConfig", {})):
        yield from (
            place[n] for n in ("tools", "system") if isinstance(place.get(n), list)
        )
    for message in body[example.history]:
        yield from _inner_lists(message)


def _inner_lists(block: Any) -> Iterator[list[Any]]:
    for name in ("content", "output"):
        inner = block.get(name)
        if isinstance(inner, list):
            yield inner
            for item in inner:
                yield from _inner_lists(item)
    source = block.get("source")
    if isinstance(source, dict):
        yield from _inner_lists(source)


@st.composite
def marked_bodies(draw: Callable[[Any], Any], example: Example) -> dict[str, Any]:
    """The body with marks on and between whatever can hold one."""
    body = copy.deepcopy(example.body)
    name = MARK_NAMES[example.shape]
    for blocks in list(_lists(example, body)):
        for block in blocks:
            if draw(st.booleans()):
                block[name] = draw(marks)
        for _ in range(draw(st.integers(0, 2))):
            blocks.insert(draw(st.integers(0, len(blocks))), {name: draw(marks)})
    for message in body[example.history]:
        if draw(st.booleans()):
            message[name] = draw(marks)
    return body


# Hostile bodies --------------------------------------------------------------------

_names = sorted(
    {
        name
        for e in EXAMPLES
        for name in [*e.body, *e.excluded, *e.included, *e.defaults]
    }
    | {"config", "generation_config", "system_instruction", "functions", "toolChoice"}
    | {"cache_control", "output_config", "reasoning", "text", "prompt_cache_options"}
)
_keys = st.one_of(
    st.sampled_from(
        [
            *("role", "content", "parts", "type", "text", "tools", "system", "source"),
            *("output", "cache_control", "cachePoint", "toolChoice", "ttl", "model"),
            *("functionCall", "functionCallingConfig", "mode", "tool_calls", "id"),
        ]
    ),
    st.text(max_size=3),
)
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(["user", "model", "text", "auto", "tool_result", "mcp", "x"]),
        st.text(max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=4)
    ),
    max_leaves=12,
)
_histories = st.lists(
    st.one_of(
        json_values,
        st.builds(
            lambda role, rest: {**rest, "role": role},
            st.sampled_from(["user", "assistant", "model", "system", "tool"]),
            st.dictionaries(_keys, json_values, max_size=3),
        ),
    ),
    max_size=3,
)


@st.composite
def hostile_bodies(draw: Callable[[Any], Any]) -> dict[str, Any]:
    """Objects with the names that the APIs know, and any values."""
    body: dict[str, Any] = draw(
        st.dictionaries(
            st.one_of(st.sampled_from(_names), _keys), json_values, max_size=5
        )
    )
    name = draw(st.sampled_from(["messages", "input", "contents", None]))
    if name is not None:
        body[name] = draw(st.one_of(_histories, json_values))
    return body
