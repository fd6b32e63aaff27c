"""Write `prefix-v1.json`: inputs of the prefix hash with what version 1 makes of them.

Run as ``python tests/vectors/make.py`` where the package is installed; it uses the pure
twin.  The values of a published version never change: a new version is a new file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raf_session import _prefix_py as prefix

PATH = Path(__file__).with_name("prefix-v1.json")

TEXT = {"type": "text", "text": "What is on this picture?"}
IMAGE = {
    "type": "image_url",
    "image_url": {
        "url": "data:image/png;base64," + "iVBORw0KGgo" * 400,
        "detail": "low",
    },
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"q": "kv cache", "n": 5}'},
}
MARK = {"cache_control": {"type": "ephemeral"}}

MESSAGES: dict[str, dict[str, Any]] = {
    "system": {"role": "system", "content": "You are a helpful agent."},
    "developer": {"role": "developer", "content": "Be brief."},
    "user": {"role": "user", "content": "hi", "name": "ann"},
    "fields in another order": {"name": "ann", "content": "hi", "role": "user"},
    "content absent": {"role": "assistant"},
    "content null": {"role": "assistant", "content": None},
    "content empty": {"role": "assistant", "content": ""},
    "content without parts": {"role": "user", "content": []},
    "parts": {"role": "user", "content": [TEXT, IMAGE]},
    "part in another order": {"role": "user", "content": [dict([*TEXT.items()][::-1])]},
    "marked part": {"role": "user", "content": [{**TEXT, **MARK}], **MARK},
    "part of a mark alone": {"role": "user", "content": [TEXT, {"cachePoint": {}}]},
    "unknown part": {"role": "user", "content": [{"b": 1, "type": "video", "a": 2}]},
    "every payload": {
        "role": "user",
        "content": [
            {"type": "text", "text": "t"},
            {"type": "reasoning", "signature": "s", "text": "r"},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "refusal", "refusal": "no"},
            {"type": "image_url"},
            {"type": "text", "x": 1, "text": 5},
            {},
        ],
    },
    "content that is no text": {"role": "user", "content": [{"b": 1, "type": "t"}, 1]},
    "call": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "call with an object": {
        "role": "assistant",
        "tool_calls": [
            {
                "function": {
                    "strict": True,
                    "arguments": {"q": "x", "n": 5},
                    "name": "f",
                },
                "index": 0,
                "type": "function",
                "id": "call_2",
            },
            {"type": "custom", "custom": {"name": "g"}, "function": "none"},
        ],
    },
    "result": {"role": "tool", "tool_call_id": "call_1", "content": "42"},
    "refusal": {"role": "assistant", "content": None, "refusal": "I cannot."},
    "legacy function": {"role": "function", "name": "f", "content": "1"},
    "declared fields that do not fit": {
        "tool_calls": None,
        "role": "user",
        "name": None,
        "refusal": 5,
        "content": 1.5,
    },
    "unknown fields": {"role": "assistant", "content": "x", "z": {"b": 1, "a": [[]]}},
    "numbers": {
        "role": "user",
        "x": [0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63, -(2**63), 2**64, 10**30],
    },
    "floats": {
        "role": "user",
        "x": [0.0, -0.0, 1.0, 0.1, 1e16, 5e-324, 1.7976931348623157e308],
    },
    "one, one and true": {"role": "user", "x": [1, 1.0, True, False, None]},
    "unicode": {"role": "user", "content": "你好 é e\u0301 😀 \u0000"},
    "lone surrogates": {"role": "user", "content": "\ud800 \udc00"},
    "string of 127 bytes": {"role": "user", "content": "a" * 127},
    "string of 128 bytes": {"role": "user", "content": "a" * 128},
    "string of 4095 bytes": {"role": "user", "content": "a" * 4095},
    "string of 4096 bytes": {"role": "user", "content": "a" * 4096},
    "large, not ASCII": {"role": "user", "content": "你" * 1366},
    "large key": {"role": "user", "k" * 5000: 1},
}

TOOL = {"type": "function", "function": {"name": "f"}}


def nested(depth: int) -> Any:
    """Return that many lists in one another."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


HEADERS: dict[str, Any] = {
    "nothing": {},
    "model": {"model": "m"},
    "tools": {"model": "m", "tools": [{"type": "function", "function": {"name": "f"}}]},
    "marked tools": {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "f"}, **MARK}, MARK],
        **MARK,
    },
    "key order": {"tools": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]},
    "fields in another order": {"tools": [TOOL], "model": "m"},
    "fields in an order": {"model": "m", "tools": [TOOL]},
    "system": {"model": "m", "system": "Be brief."},
    "system as a list": {"system": [{"type": "text", "text": "Be brief."}]},
    "marked system": {
        "system": [
            {"type": "text", "text": "Be brief.", **MARK},
            {"cachePoint": {"type": "default"}},
        ],
        "prompt_cache_breakpoint": {"mode": "explicit"},
    },
    "mark that is null": {"tools": [{"name": "f", "cache_control": None}]},
    "lists of marks alone": {"tools": [MARK], "system": [{"cachePoint": {}}]},
    "empty lists and objects": {"tools": [], "system": [{}], "x": {}, "y": [[]]},
    "lists that hold more than objects": {"tools": [{"name": "f", **MARK}, "g"]},
    "lists under other names": {"x": [{"name": "f", **MARK}], "y": MARK},
    "sections that are no lists": {"tools": {"name": "f", **MARK}, "system": None},
    "marks inside of a tool": {"tools": [{"name": "f", "input": [MARK, {"x": MARK}]}]},
    "nested values": {
        "response_format": {"type": "json_schema", "schema": {"a": [{"b": [[], {}]}]}},
        "x": [[[[None, False, True]]], {"": {"": ""}}],
    },
    "nested 199 deep": {"x": nested(199)},
    "numbers": {
        "x": [0, -1, 127, 128, 2**31, 2**53 + 1, -(2**63), 2**64, -(10**40)],
        "y": [0.0, -0.0, 1.0, 0.5, -2.25, 1e16, 1e-7, 5e-324],
        "z": [1, 1.0, True],
    },
    "the largest integers": {"x": [2**14279 - 1, -(2**14279)]},
    "strings": {"model": "你好 e\u0301 \U0001f600 \u0000", "x": ["\ud800", "\udfff"]},
    "large strings": {
        "system": "a" * 4096,
        "tools": [{"name": "f", "description": "é" * 2048}, {"k" * 4096: "b" * 4095}],
    },
    "list of 128 values": {"x": [1] * 128},
    "null": None,
    "true": True,
    "integer": 1,
    "float": 1.0,
    "string": "m",
    "large string": "a" * 5000,
    "list": [],
    "list of marks": [MARK, {"tools": [MARK]}],
}


def vectors() -> dict[str, Any]:
    """Return everything that the file holds; whole numbers of 64 bits as hex."""
    links = prefix.prefix_hashes(list(MESSAGES.values()))
    return {
        "format": prefix.FORMAT_VERSION,
        "root": f"{prefix.ROOT:016x}",
        "zero_substitute": f"{prefix.ZERO_SUBSTITUTE:016x}",
        "messages": [
            {
                "name": name,
                "input": message,
                "encoding": prefix.encode_message(message).hex(),
                "digest": f"{prefix.message_digest(message):016x}",
                "size": prefix.message_size(message),
                "chain": f"{link:016x}",
            }
            for (name, message), link in zip(MESSAGES.items(), links, strict=True)
        ],
        "headers": [
            {
                "name": name,
                "input": header,
                "encoding": prefix.encode_header(header).hex(),
                "digest": f"{prefix.header_digest(header):016x}",
            }
            for name, header in HEADERS.items()
        ],
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1) + "\n", encoding="ascii")
