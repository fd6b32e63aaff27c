"""Write `prefix-requests-v1.json`: request bodies with what version 1 makes of them.

Run as ``python tests/vectors/make_requests.py`` where the package is installed; it uses
the pure twin.  The values of a published version never change: more bodies may come.

A vector holds:

``name``, ``shape``
    What the body shows, and the API that it is for.
``body``
    The body as it is sent.
``header``
    What is rendered before the messages, in reading order, with the cache marks that
    are left out of its encoding.
``header_encoding``, ``header_digest``
    The header's encoding, and its XXH64.
``messages``
    Of each message that the body is reduced to: the encoding, and its XXH64.
``hash``
    The last link of the chain.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, TypeAlias

from raf_session import _prefix_py as prefix
from raf_session.request_shapes import read_request

PATH = Path(__file__).with_name("prefix-requests-v1.json")

Json: TypeAlias = dict[str, Any]

CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
ANTHROPIC: Final = "anthropic"
GEMINI: Final = "gemini"
BEDROCK: Final = "bedrock"

MARK: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BREAKPOINT: Json = {"prompt_cache_breakpoint": {"mode": "explicit"}}
POINT: Json = {"cachePoint": {"type": "default"}}
PNG = "iVBORw0KGgo" * 400
SCHEMA: Json = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["to"],
}
SYSTEM = "You plan train journeys in Europe."
ASK = "Turin \u2192 Graz, s'il vous pla\u00eet \U0001f686"
ANSWER = "By way of Venice and Villach."


def text(value: str, **more: Any) -> Json:
    """Return a text block."""
    return {"type": "text", "text": value, **more}


def said(role: str, content: Any, **more: Any) -> Json:
    """Return a message."""
    return {"role": role, "content": content, **more}


# Chat Completions ----------------------------------------------------------------

CHAT_TOOL: Json = {
    "type": "function",
    "function": {"name": "plan", "description": "Plan.", "parameters": SCHEMA},
}
CHAT_CALL: Json = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "plan", "arguments": '{"to": "Graz",  "days":2}'},
}
CHAT_LEFT_OUT: Json = {
    "temperature": 0.2,
    "top_p": 1,
    "top_k": 40,
    "min_p": 0.05,
    "n": 2,
    "seed": 7,
    "stop": ["\n"],
    "stop_regex": "x+",
    "stop_token_ids": [2],
    "include_stop_str_in_output": True,
    "no_stop_trim": True,
    "bad_words": ["x"],
    "allowed_token_ids": [1],
    "logits_processors": [],
    "custom_logit_processor": "x",
    "max_tokens": 100,
    "max_completion_tokens": 100,
    "min_tokens": 1,
    "ignore_eos": True,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "repetition_penalty": 1.1,
    "length_penalty": 1.0,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "top_logprobs": 5,
    "prompt_logprobs": 1,
    "best_of": 2,
    "use_beam_search": False,
    "prediction": {"type": "content", "content": "x"},
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "guided_json": SCHEMA,
    "guided_regex": "x",
    "guided_choice": ["x"],
    "guided_grammar": "x",
    "guided_decoding_backend": "x",
    "guided_whitespace_pattern": " ",
    "regex": "x",
    "ebnf": "x",
    "structured_outputs": {"json": SCHEMA},
    "echo": True,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
    "return_hidden_states": True,
    "include_reasoning": True,
    "separate_reasoning": True,
    "stream_reasoning": True,
    "priority": 1,
    "request_id": "r",
    "rid": "r",
    "kv_transfer_params": {},
    "metadata": {"a": "b"},
    "user": "u",
    "user_id": "u",
    "safety_identifier": "s",
    "store": True,
    "moderation": {},
    "stream": True,
    "stream_options": {"include_usage": True},
    "prompt_cache_key": "k",
    "cache_salt": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"ttl": "30m"},
    "cache_control": {"type": "ephemeral"},
    "extra_headers": {"x-trace": "1"},
    "extra_query": {"a": "b"},
    "timeout": 30,
}

CHAT_BODIES: Json = {
    "worked example": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"content": [{"text": "hi", "type": "text", **MARK}], "role": "user"},
        ],
        "temperature": 0.5,
        "reasoning_effort": "low",
    },
    "text": {
        "model": "gpt-5",
        "messages": [
            said("system", SYSTEM),
            said("user", ASK, name="ann"),
            said("assistant", ANSWER),
            said("user", "And back?"),
        ],
    },
    "no messages": {"messages": [], "model": "gpt-5"},
    "tool calls and results": {
        "messages": [
            said("developer", SYSTEM),
            said("user", ASK),
            {
                "tool_calls": [
                    CHAT_CALL,
                    {
                        "function": {
                            "strict": True,
                            "arguments": {"to": "Graz", "days": 2.0},
                            "name": "plan",
                        },
                        "index": 1,
                        "type": "function",
                        "id": "call_2",
                    },
                ],
                "content": None,
                "role": "assistant",
            },
            said("tool", "11 h 20", tool_call_id="call_1"),
            {"tool_call_id": "call_2", "content": [text("13 h")], "role": "tool"},
        ],
        "tools": [CHAT_TOOL, {"type": "custom", "custom": {"name": "sql"}}],
        "tool_choice": {"type": "function", "function": {"name": "plan"}},
        "parallel_tool_calls": False,
        "model": "gpt-5",
    },
    "images, audio and files": {
        "model": "gpt-5",
        "modalities": ["text", "audio"],
        "messages": [
            said(
                "user",
                [
                    text("What is this?"),
                    {
                        "image_url": {
                            "url": f"data:image/png;base64,{PNG}",
                            "detail": "low",
                        },
                        "type": "image_url",
                    },
                    {
                        "type": "image_url",
                        "image_url": {"detail": "low", "url": "https://example.org/a"},
                    },
                    {
                        "input_audio": {"data": "AA==", "format": "wav"},
                        "type": "input_audio",
                    },
                    {"file": {"file_id": "f"}, "x": 1, "type": "file"},
                    {"video_url": {"url": "v"}, "type": "video_url"},
                ],
            )
        ],
    },
    "reasoning and refusals": {
        "model": "deepseek-reasoner",
        "reasoning_effort": "high",
        "messages": [
            said("user", ASK),
            {
                "reasoning_content": "Look it up.",
                "content": ANSWER,
                "role": "assistant",
            },
            said(
                "assistant",
                [
                    {"signature": "s", "text": "Think.", "type": "reasoning"},
                    {"refusal": "I cannot.", "type": "refusal"},
                ],
                refusal=None,
            ),
            said("assistant", None, refusal="I cannot."),
        ],
    },
    "marks everywhere": {
        "model": "anthropic/claude-opus-5",
        "tools": [{**CHAT_TOOL, **MARK}, MARK, POINT],
        "cache_control": {"type": "ephemeral"},
        "prompt_cache_breakpoint": {"mode": "explicit"},
        "messages": [
            said("system", [text(SYSTEM, **MARK), POINT], **MARK),
            said("user", [text(ASK, **BREAKPOINT), BREAKPOINT, {**MARK, **POINT}]),
            said("user", [MARK]),
            said("user", [{}, text("x", cache_control=None)], cache_control=None),
            said("assistant", None, tool_calls=[CHAT_CALL], **POINT),
        ],
    },
    "fields that are left out": {
        "model": "m",
        "messages": [said("user", ASK)],
        **CHAT_LEFT_OUT,
    },
    "defaults written out": {
        "model": "m",
        "tools": [],
        "functions": [],
        "function_call": "auto",
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "service_tier": "auto",
        "modalities": ["text"],
        "response_format": {"type": "text"},
        "verbosity": "medium",
        "reasoning_effort": None,
        "messages": [said("user", ASK)],
    },
    "what is nearly a default": {
        "model": "m",
        "function_call": {"name": "plan"},
        "tool_choice": "required",
        "parallel_tool_calls": 1,
        "service_tier": "default",
        "modalities": [],
        "response_format": {"type": "text", "x": None},
        "verbosity": "low",
        "messages": [said("user", ASK)],
    },
    "functions in place of tools": {
        "model": "gpt-4",
        "functions": [{"name": "plan", "parameters": SCHEMA}],
        "tools": [MARK],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
        "messages": [
            said("user", ASK),
            said("assistant", None, function_call={"name": "plan", "arguments": "{}"}),
            said("function", "11 h", name="plan"),
        ],
    },
    "functions and tools": {
        "model": "gpt-4",
        "functions": [{"name": "plan"}],
        "tools": [CHAT_TOOL],
        "function_call": "none",
        "tool_choice": "none",
        "messages": [],
    },
    "unknown fields, and values that do not fit": {
        "messages": [
            {
                "refusal": 5,
                "tool_calls": None,
                "z": [1, 1.0, True, -0.0, 10**20],
                "name": None,
                "role": "user",
                "content": ["a", text("b", x=[[]])],
                "a": {"b": {}, "a": ""},
            },
            said("user", {"text": "x", "type": "text"}),
            said("assistant", "", tool_calls=[]),
            {"role": "assistant", "tool_calls": [CHAT_CALL, "x"]},
            said("user", [{"x": 1, "text": 5, "type": "text"}, {"a": 1, "type": 2}]),
        ],
        "tools": {"name": "plan"},
        "model": 5,
        "zeta": 1.0,
        "Zeta": 1,
        "\u00e9": "\ud800",
        "\U0001f600": 0,
        "\uffff": 0,
        "system": [text(SYSTEM, **MARK)],
        "chat_template_kwargs": {"b": None, "a": True},
    },
}


# Responses -----------------------------------------------------------------------

RESPONSES_TOOL: Json = {"type": "function", "name": "plan", "parameters": SCHEMA}
RESPONSES_CALL: Json = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "plan",
    "arguments": '{"to":"Graz"}',
}
RESPONSES_LEFT_OUT: Json = {
    "background": False,
    "include": ["reasoning.encrypted_content"],
    "max_output_tokens": 100,
    "max_tool_calls": 3,
    "previous_response_id": None,
    "conversation": None,
    "metadata": {"a": "b"},
    "user": "u",
    "user_id": "u",
    "safety_identifier": "s",
    "store": False,
    "moderation": {},
    "stream": True,
    "stream_options": {"include_obfuscation": False},
    "temperature": 0.2,
    "top_p": 1.0,
    "top_logprobs": 5,
    "prompt_cache_key": "k",
    "cache_salt": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"ttl": "30m"},
    "cache_control": {"type": "ephemeral"},
    "extra_headers": {},
    "extra_query": {},
    "timeout": 30,
}

RESPONSES_BODIES: Json = {
    "a string as input": {"model": "gpt-5", "input": ASK, "instructions": SYSTEM},
    "text": {
        "model": "gpt-5",
        "instructions": "",
        "input": [
            said("developer", SYSTEM),
            said("user", [{"type": "input_text", "text": ASK}]),
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
            },
            said("user", "And back?", type="message"),
        ],
    },
    "tool calls and results": {
        "model": "gpt-5",
        "tools": [RESPONSES_TOOL, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "plan"},
        "parallel_tool_calls": False,
        "input": [
            said("user", ASK),
            RESPONSES_CALL,
            {"type": "function_call_output", "call_id": "call_1", "output": "11 h"},
            {"type": "custom_tool_call", "call_id": "call_2", "input": "x"},
            {
                "type": "custom_tool_call_output",
                "call_id": "call_2",
                "output": [{"type": "input_text", "text": "13 h"}],
            },
            {"type": "mcp_approval_request", "id": "a", "arguments": "{}"},
            {"type": "mcp_approval_response", "approve": True},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"role": None, "type": "item_reference", "id": "x"},
            {"id": "y"},
            {"type": 5, "id": "z"},
        ],
    },
    "images": {
        "model": "gpt-5",
        "input": [
            said(
                "user",
                [
                    {"type": "input_text", "text": "What is this?"},
                    {
                        "type": "input_image",
                        "image_url": f"data:image/png;base64,{PNG}",
                    },
                    {"file_id": "f", "type": "input_file"},
                ],
            )
        ],
    },
    "reasoning": {
        "model": "gpt-5",
        "reasoning": {"effort": "low", "summary": "auto", "generate_summary": None},
        "input": [
            said("user", ASK),
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Think."}],
                "encrypted_content": "gAAAA",
            },
            said("assistant", ANSWER),
        ],
    },
    "marks everywhere": {
        "model": "gpt-5",
        "instructions": [text(SYSTEM, **BREAKPOINT), BREAKPOINT],
        "tools": [{**RESPONSES_TOOL, **BREAKPOINT}],
        "prompt_cache_breakpoint": {"mode": "explicit"},
        "input": [
            said("user", [{"type": "input_text", "text": ASK, **BREAKPOINT}]),
            said("user", "x", **BREAKPOINT),
            {**RESPONSES_CALL, **BREAKPOINT},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [
                    {"type": "input_text", "text": "11 h", **BREAKPOINT},
                    BREAKPOINT,
                    "as it is",
                    {},
                ],
                **MARK,
            },
            {"type": "function_call_output", "call_id": "c", "output": [BREAKPOINT]},
        ],
    },
    "fields that are left out": {"model": "m", "input": ASK, **RESPONSES_LEFT_OUT},
    "defaults written out": {
        "model": "m",
        "instructions": None,
        "tools": [],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
        "parallel_tool_calls": True,
        "service_tier": "auto",
        "reasoning": {"summary": "auto", "effort": None},
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "truncation": "disabled",
        "input": ASK,
    },
    "what is nearly a default": {
        "model": "m",
        "instructions": [],
        "tool_choice": "required",
        "reasoning": "low",
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "s", "schema": SCHEMA},
            "x": None,
        },
        "truncation": "auto",
        "input": [],
    },
    "tools of a server, with secrets": {
        "model": "m",
        "tools": [
            {
                "type": "mcp",
                "server_label": "s",
                "authorization": "secret",
                "headers": {"x": "secret"},
                "require_approval": None,
                **MARK,
            },
            {**RESPONSES_TOOL, "headers": "kept", "strict": None},
        ],
        "input": ASK,
    },
    "a stored template": {
        "prompt": {"id": "pmpt_1", "variables": {"b": "1", "a": "2"}},
        "input": None,
    },
}


# Anthropic -----------------------------------------------------------------------

ANTHROPIC_TOOL: Json = {
    "name": "plan",
    "description": "Plan.",
    "input_schema": SCHEMA,
}
TOOL_USE: Json = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "plan",
    "input": {"to": "Graz", "days": 2},
}
ANTHROPIC_LEFT_OUT: Json = {
    "max_tokens": 100,
    "stop_sequences": ["x"],
    "stream": True,
    "metadata": {"user_id": "u"},
    "user_profile_id": "u",
    "temperature": 0.5,
    "top_k": 5,
    "top_p": 0.9,
    "service_tier": "auto",
    "inference_geo": "eu",
    "diagnostics": {"previous_message_id": "msg_1"},
    "fallbacks": [{"model": "x"}],
    "fallback_credit_token": "t",
    "anthropic_version": "bedrock-2023-05-31",
    "cache_control": {"type": "ephemeral"},
    "extra_headers": {},
    "extra_query": {},
    "timeout": 30,
}


def result(content: Any, **more: Any) -> Json:
    """Return a tool's result."""
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


def document(*blocks: Any, **more: Any) -> Json:
    """Return a document of blocks."""
    source = {"type": "content", "content": list(blocks)}
    return {"type": "document", "source": source, **more}


ANTHROPIC_BODIES: Json = {
    "text": {
        "model": "claude-opus-5",
        "max_tokens": 1024,
        "system": SYSTEM,
        "messages": [
            said("user", ASK),
            said("assistant", [text(ANSWER), text("Eleven hours.")]),
            said("user", "And back?"),
            said("system", "Be brief."),
        ],
    },
    "tool calls and results": {
        "model": "claude-opus-5",
        "tools": [ANTHROPIC_TOOL, {"type": "web_search_20250305", "name": "web"}],
        "tool_choice": {"type": "tool", "name": "plan"},
        "messages": [
            said("user", ASK),
            said("assistant", [text("Let me see."), TOOL_USE]),
            said("user", [result("11 h"), result([text("11 h"), text("13 h")])]),
            said("user", [result([text("11 h")], is_error=False), text("So?")]),
            said("user", [result([])]),
            said("user", [{"type": "tool_result", "tool_use_id": "toolu_1"}]),
        ],
    },
    "images and documents": {
        "model": "claude-opus-5",
        "messages": [
            said(
                "user",
                [
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
                        "source": {"type": "text", "data": "x"},
                        "title": "T",
                        "citations": {"enabled": True},
                    },
                    document(text("a"), {"type": "image", "source": {"type": "file"}}),
                    text("What is this?"),
                ],
            )
        ],
    },
    "thinking": {
        "model": "claude-opus-5",
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "output_config": {"effort": "low"},
        "messages": [
            said("user", ASK),
            said(
                "assistant",
                [
                    {"type": "thinking", "thinking": "Think.", "signature": "s"},
                    {"type": "redacted_thinking", "data": "d"},
                    text(ANSWER, citations=None),
                ],
            ),
        ],
    },
    "marks everywhere": {
        "model": "claude-opus-5",
        "cache_control": {"type": "ephemeral"},
        "tools": [ANTHROPIC_TOOL, {**ANTHROPIC_TOOL, "name": "b", **MARK}],
        "system": [text(SYSTEM), text("Be brief.", **MARK)],
        "messages": [
            said("user", [text(ASK, **MARK), text("x")]),
            said("assistant", [text("x"), {**TOOL_USE, **MARK}], **MARK),
            said("user", [result("11 h", **MARK), MARK]),
        ],
    },
    "marks inside of results and documents": {
        "model": "claude-opus-5",
        "messages": [
            said("user", [result([text("11 h", **MARK)])]),
            said("user", [result([text("11 h", **MARK), MARK])]),
            said("user", [result([MARK])]),
            said("user", [result([text("11 h", **MARK), text("13 h", **MARK)])]),
            said("user", [document(text("a", **MARK), "as it is", **MARK)]),
            said(
                "user",
                [
                    result(
                        [
                            {
                                "type": "search_result",
                                "source": "https://example.org",
                                "title": "T",
                                "content": [text("a", **MARK)],
                                **MARK,
                            },
                            document(text("b", **MARK), text("c")),
                            document(document(text("d", **MARK), text("e"), **MARK)),
                        ],
                        **MARK,
                    ),
                    text("So?", **MARK),
                ],
            ),
        ],
    },
    "single texts": {
        "model": "claude-opus-5",
        "system": [text(SYSTEM, **MARK), MARK],
        "messages": [
            said("user", [{"text": ASK, "type": "text"}]),
            said("assistant", [text(ANSWER, **MARK)]),
            said("user", [MARK, text("And back?")]),
            said("user", [text("a"), {}]),
            said("user", [text("a", citations=[])]),
            said("user", [{"type": "text", "text": 5}]),
            said("user", ["a"]),
            said("user", [MARK]),
            said("user", []),
            said("user", [text("a", **MARK)], name="n"),
        ],
    },
    "marks that are none": {
        "model": "claude-opus-5",
        "messages": [
            said("assistant", [{**TOOL_USE, "input": {**MARK, "to": "Graz"}}]),
            said("user", [result([{"type": "x", "y": [text("a", **MARK)]}])]),
            said(
                "user",
                [
                    result(
                        [result([result([result([result([text("5", **MARK)])])])])],
                    )
                ],
            ),
        ],
    },
    "fields that are left out": {
        "model": "m",
        "messages": [said("user", ASK)],
        **ANTHROPIC_LEFT_OUT,
    },
    "defaults written out": {
        "model": "m",
        "tools": [],
        "system": [],
        "tool_choice": {"disable_parallel_tool_use": False, "type": "auto"},
        "output_config": {"effort": "high"},
        "speed": "standard",
        "container": "container_1",
        "thinking": None,
        "messages": [said("user", ASK)],
    },
    "what is nearly a default": {
        "model": "m",
        "tools": [ANTHROPIC_TOOL],
        "system": "",
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True, "x": None},
        "output_config": {"effort": "high", "format": {"type": "json_schema"}},
        "speed": "fast",
        "container": {"id": "c", "skills": [{"type": "anthropic", "skill_id": "pdf"}]},
        "betas": ["x"],
        "mcp_servers": [
            {"type": "url", "url": "u", "authorization_token": "secret", "name": "s"},
            {"type": "url", "url": "v", "tool_configuration": None},
        ],
        "messages": [said("user", ASK)],
    },
    "objects that are left empty": {
        "model": "m",
        "tool_choice": {"disable_parallel_tool_use": False},
        "output_config": {"effort": None},
        "container": {},
        "mcp_servers": [{"authorization_token": "secret"}, "s", {"x": None}],
        "system": [text("a"), MARK, "b"],
        "messages": [
            said("user", [document(text("a", **MARK)), {"source": MARK, "content": 5}]),
            {
                "content": [
                    {"source": {"source": document(text("b", **MARK))["source"]}}
                ],
                "role": "user",
            },
            {
                "content": [{"source": {"content": [], "source": {"content": [MARK]}}}],
                "role": "user",
            },
        ],
    },
    "servers without secrets": {
        "model": "m",
        "mcp_servers": [{"type": "url", "url": "v", "tool_configuration": {"a": None}}],
        "container": {"id": "c"},
        "messages": [],
    },
}


# Gemini --------------------------------------------------------------------------

DECLARATION: Json = {"name": "plan", "description": "Plan.", "parameters": SCHEMA}
GEMINI_LEFT_OUT: Json = {
    "temperature": 0.2,
    "topP": 1,
    "topK": 40,
    "seed": 7,
    "candidateCount": 1,
    "maxOutputTokens": 100,
    "stopSequences": ["x"],
    "responseLogprobs": True,
    "logprobs": 5,
    "presencePenalty": 0.1,
    "frequencyPenalty": 0.1,
}

GEMINI_BODIES: Json = {
    "text": {
        "model": "models/gemini-3-pro",
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": [
            {"role": "user", "parts": [{"text": ASK}]},
            {"parts": [{"text": ANSWER}], "role": "model"},
            {"parts": [{"text": "And back?"}]},
            {"role": None, "parts": []},
        ],
    },
    "tool calls and results": {
        "tools": [{"functionDeclarations": [DECLARATION]}, {"googleSearch": {}}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["plan"]}
        },
        "contents": [
            {"role": "user", "parts": [{"text": ASK}]},
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "plan", "args": {"to": "Graz"}}}],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"name": "plan", "response": {"h": 11}}}
                ],
            },
        ],
    },
    "images": {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": PNG}},
                    {"fileData": {"fileUri": "gs://a/b", "mimeType": "image/png"}},
                    {"text": "What is this?"},
                ],
            }
        ],
        "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"},
    },
    "thinking": {
        "generationConfig": {
            "thinkingConfig": {"thinkingLevel": "low", "includeThoughts": None},
            "temperature": 0.5,
        },
        "contents": [
            {"role": "user", "parts": [{"text": ASK}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Think.", "thought": True},
                    {"text": ANSWER, "thoughtSignature": "c2ln"},
                ],
            },
        ],
    },
    "the SDK's arguments": {
        "model": "gemini-3-pro",
        "contents": [
            "Two questions.",
            {"text": ASK},
            {"file_data": {"file_uri": "gs://a/b"}},
            {"function_call": {"name": "plan", "args": {}}},
            {"functionCall": {"name": "plan", "args": {}}},
            "So?",
            {"parts": [{"text": ANSWER}], "role": "model"},
            "And back?",
            ["as a list", {"text": "b"}],
            [],
            "after it",
            {},
        ],
        "config": {
            "system_instruction": SYSTEM,
            "tools": [{"function_declarations": [DECLARATION]}],
            "tool_config": {"function_calling_config": {"mode": "AUTO"}},
            "thinking_config": {"thinking_budget": 0},
            "response_mime_type": "application/json",
            "max_output_tokens": 100,
            "http_options": {"timeout": 1},
        },
    },
    "a string as contents": {"model": "m", "contents": ASK},
    "a part as contents": {"model": "m", "contents": {"functionCall": {"name": "f"}}},
    "a content as contents": {"contents": {"role": "user", "name": "n"}},
    "fields that are left out": {
        "model": "m",
        "contents": ASK,
        "labels": {"a": "b"},
        "safetySettings": [],
        "modelArmorConfig": {},
        "serviceTier": "x",
        "store": True,
        "httpOptions": {},
        "automaticFunctionCalling": {},
        "shouldReturnHttpResponse": True,
        "generationConfig": GEMINI_LEFT_OUT,
        "config": {},
    },
    "defaults written out": {
        "model": "m",
        "tools": [],
        "systemInstruction": [],
        "generationConfig": {
            "responseMimeType": "text/plain",
            "responseModalities": ["TEXT"],
            "thinkingConfig": None,
        },
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "contents": [],
    },
    "what is nearly a default": {
        "model": "m",
        "cachedContent": "cachedContents/x",
        "toolConfig": {
            "retrievalConfig": {"languageCode": "de"},
            "functionCallingConfig": {"mode": "NONE", "x": None},
            "y": None,
        },
        "generation_config": {
            "response_modalities": ["TEXT", "IMAGE"],
            "response_schema": SCHEMA,
            "cache_control": 1,
        },
        "contents": [{"role": "user", "parts": [{"text": ASK, "x": {}}]}],
    },
}


# Bedrock -------------------------------------------------------------------------

TOOL_SPEC: Json = {
    "toolSpec": {
        "name": "plan",
        "description": "Plan.",
        "inputSchema": {"json": SCHEMA},
    }
}
SAMPLING: Json = {
    "temperature": 0.2,
    "top_p": 1,
    "topP": 1,
    "top_k": 5,
    "topK": 5,
    "seed": 7,
    "max_tokens": 100,
    "maxTokens": 100,
    "stop_sequences": [],
    "stopSequences": [],
}

BEDROCK_BODIES: Json = {
    "text": {
        "modelId": "amazon.nova-pro-v1:0",
        "system": [{"text": SYSTEM}],
        "messages": [
            said("user", [{"text": ASK}]),
            said("assistant", [{"text": ANSWER}]),
            said("user", [{"text": "And"}, {"text": "back?"}]),
        ],
    },
    "tool calls and results": {
        "modelId": "amazon.nova-pro-v1:0",
        "toolConfig": {"toolChoice": {"tool": {"name": "plan"}}, "tools": [TOOL_SPEC]},
        "messages": [
            said("user", [{"text": ASK}]),
            said(
                "assistant",
                [
                    {
                        "toolUse": {
                            "toolUseId": "t1",
                            "name": "plan",
                            "input": {"to": "Graz", "days": 2},
                        }
                    }
                ],
            ),
            said(
                "user",
                [
                    {
                        "toolResult": {
                            "toolUseId": "t1",
                            "content": [{"json": {"h": 11.5}}],
                            "status": "success",
                        }
                    }
                ],
            ),
        ],
    },
    "images and documents": {
        "modelId": "amazon.nova-pro-v1:0",
        "messages": [
            said(
                "user",
                [
                    {"image": {"format": "png", "source": {"bytes": PNG}}},
                    {"document": {"format": "pdf", "name": "d", "source": {}}},
                    {"text": "What is this?"},
                ],
            )
        ],
    },
    "reasoning": {
        "modelId": "anthropic.claude-opus-5",
        "additionalModelRequestFields": {
            "thinking": {"type": "enabled", "budget_tokens": 4096}
        },
        "messages": [
            said("user", [{"text": ASK}]),
            said(
                "assistant",
                [
                    {
                        "reasoningContent": {
                            "reasoningText": {"text": "Think.", "signature": "s"}
                        }
                    },
                    {"text": ANSWER},
                ],
            ),
        ],
    },
    "marks everywhere": {
        "modelId": "anthropic.claude-opus-5",
        "system": [{"text": SYSTEM}, POINT],
        "toolConfig": {"tools": [TOOL_SPEC, POINT]},
        "messages": [
            said("user", [{"text": ASK}, POINT]),
            said("assistant", [{"text": ANSWER, "cachePoint": None}], **POINT),
            said("user", [POINT]),
        ],
    },
    "fields that are left out": {
        "modelId": "m",
        "toolConfig": {},
        "inferenceConfig": {"maxTokens": 100},
        "guardrailConfig": {"guardrailIdentifier": "g"},
        "requestMetadata": {"a": "b"},
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "priority"},
        "additionalModelResponseFieldPaths": ["/x"],
        "promptVariables": {"a": {"text": "b"}},
        "additionalModelRequestFields": {**SAMPLING, "inferenceConfig": SAMPLING},
        "messages": [said("user", [{"text": ASK}])],
    },
    "defaults written out": {
        "modelId": "m",
        "system": [POINT],
        "toolConfig": {"tools": [], "toolChoice": {"auto": {}}, "x": None},
        "additionalModelRequestFields": {},
        "messages": [said("user", [{"text": ASK}])],
    },
    "what is nearly a default": {
        "modelId": "m",
        "system": [{"text": SYSTEM}],
        "toolConfig": {"tools": [TOOL_SPEC], "toolChoice": {"any": {}}, "x": [POINT]},
        "additionalModelRequestFields": {
            "reasoningConfig": {"type": "enabled"},
            "inferenceConfig": {"topK": 5, "x": {"topK": 5}},
            "y": None,
        },
        "outputConfig": {"textFormat": {"type": "json_schema"}},
        "messages": [said("user", [{"text": ASK}])],
    },
    "sections under other names": {
        "modelId": None,
        "toolConfig": {"toolChoice": {"auto": {}}, "z": 1, "a": {"b": None}},
        "tool_choice": "own",
        "tools": [POINT],
        "model": "m",
        "aa": 1,
        "system": [{"text": SYSTEM}, {}],
        "messages": [],
    },
    "a stored prompt": {
        "modelId": "arn:aws:bedrock:eu-west-1:1:prompt/P:1",
        "promptVariables": {"a": {"text": "b"}},
        "messages": [],
    },
}

BODIES: dict[str, Json] = {
    CHAT: CHAT_BODIES,
    RESPONSES: RESPONSES_BODIES,
    ANTHROPIC: ANTHROPIC_BODIES,
    GEMINI: GEMINI_BODIES,
    BEDROCK: BEDROCK_BODIES,
}


def vector(name: str, shape: str, body: Json) -> Json:
    """Return what the file holds of a body; whole numbers of 64 bits as hex."""
    request = read_request(body, shape)
    return {
        "name": name,
        "shape": shape,
        "body": body,
        "header": request.header,
        "header_encoding": prefix.encode_header(request.header).hex(),
        "header_digest": f"{prefix.header_digest(request.header):016x}",
        "messages": [
            {
                "encoding": prefix.encode_message(message).hex(),
                "digest": f"{prefix.message_digest(message):016x}",
            }
            for message in request.messages
        ],
        "hash": f"{[prefix.ROOT, *prefix.prefix_hashes(request.messages)][-1]:016x}",
    }


def vectors() -> list[Json]:
    """Return everything that the file holds."""
    return [
        vector(name, shape, body)
        for shape, bodies in BODIES.items()
        for name, body in bodies.items()
    ]


def lines(made: list[Json]) -> str:
    """Return the file: JSON with a line for each field of a vector."""
    blocks = [
        ",\n".join(f"  {json.dumps(name)}: {json.dumps(one[name])}" for name in one)
        for one in made
    ]
    return "[\n" + ",\n".join(f" {{\n{block}\n }}" for block in blocks) + "\n]\n"


if __name__ == "__main__":
    PATH.write_text(lines(vectors()), encoding="ascii")
