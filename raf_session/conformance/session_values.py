"""What the checks of sessions share: messages of every shape, and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from raf_session.calls import ToolCall
from raf_session.conformance.journal_values import same
from raf_session.frozen import thaw
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage, MessageRole, MessageSource
from raf_session.parts import ContentPart, ImagePart, TextPart

__all__ = (
    "HOSTILE_TEXTS",
    "PLAIN",
    "RAF_TEXT",
    "REJECTED_VALUES",
    "SHAPES",
    "STATES",
    "WIRE_SHAPES",
    "same_messages",
    "shown",
)

PLAIN: Final = (
    ChatMessage.system("You are helpful."),
    ChatMessage.user("What is the weather?"),
    ChatMessage.assistant("Sunny."),
)
"""A short conversation."""

HOSTILE_TEXTS: Final = (
    *("", " ", "\n", "\0", "a\0b", "\x1b[31m", "\\u0000", "\\", '"', "'", "\u2028"),
    *("\ud83d", "\udc00", "a\udfffb", "\udc00\ud83d", "{}", "null", "NaN", "%s{0}$1"),
    *(
        "😀👩‍👩‍👧‍👦",
        "你好",
        "こんにちは",
        "\u00e9",
        "e\u0301",
        "\ufeffx",
        "\U0010ffff",
    ),
    *("a" * 4095, "a" * 4096, "é" * 4096, "\r\n\t", "</script>", "--';DROP TABLE x"),
)
"""Text that encoders, databases and terminals have tripped over."""

WIRE_SHAPES: Final[tuple[dict[str, Any], ...]] = (
    {"role": "assistant", "content": None},
    {"role": "assistant"},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": []},
    {"role": "developer", "content": "Be brief."},
    {"role": "function", "content": "7", "name": "f"},
    {"role": "user", "content": "hi", "name": None},
    {"role": "user", "content": "hi", "name": ""},
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "content": "", "tool_calls": []},
    {"role": "assistant", "content": None, "tool_calls": None},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "data:,x", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f-1"}},
            {"type": "refusal", "refusal": "no"},
            {"type": "reasoning", "text": "hm", "signature": "s"},
            {"type": "text", "text": None},
            {"type": "video", "video": {"z": 1, "a": [None, 1, 1.0, True]}},
            {"type": 7},
            {},
        ],
    },
    {"role": "user", "content": ["a", 1]},
    {"role": "user", "content": {"z": 1, "a": 2}},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "f", "arguments": '{"b":1,"a":2}'},
            },
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "f", "arguments": {"b": 1, "a": [1, 1.0, True]}},
            },
            {"id": "c3", "type": "function", "function": {"name": "f"}},
            {"id": "c4", "type": "custom", "custom": {"input": "x"}, "index": 0},
            {"type": None, "function": {"arguments": None, "strict": True}},
            {},
        ],
    },
    {"role": "tool", "content": "21 °C", "tool_call_id": "c1"},
    {
        "role": "user",
        "content": "x",
        "z": {"b": [], "a": {}},
        "a": [0, -0.0, 0.0, 1, 1.0, True, None, "", 2**64, -(2**70), 1e300, 5e-324],
        "id": "the provider's",
        "metadata": {"k": "v"},
        "created_at": 1,
        "source": "external",
        "raf_session": {"openai": {}},
        "": None,
    },
)
"""Messages as providers and clients really send them, in OpenAI's shape."""

SHAPES: Final = (
    *(ChatMessage.from_openai(shape) for shape in WIRE_SHAPES),
    *(ChatMessage(role=role, content=role.value) for role in MessageRole),
    ChatMessage.user([TextPart(text="a"), ImagePart(image_url={"url": "u"})]),
    ChatMessage.user([ContentPart(type="new", extra={"z": 1, "a": None})]),
    ChatMessage.assistant_with_tools(
        None, [ToolCall(id="1", name="f", arguments={"z": {"b": 1}, "a": 2})]
    ),
    ChatMessage.assistant_with_tools("", [ToolCall(id="1", name="f", arguments="{}")]),
    ChatMessage.user("mine").model_copy(
        update={
            "id": "m-1",
            "created_at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            "metadata": {"z": [1, 1.0, True, None], "a": {"": "\ud83d\0"}},
            "source": MessageSource.CONTEXT_PROVIDER,
        }
    ),
)
"""A message for each shape that the model can have."""

STATES: Final[tuple[Any, ...]] = (
    *(0, -1, 2**64, 1.5, -0.0, True, False, "", "\ud83d\0😀", [], {}, [[], {}, None]),
    {"z": 1, "a": {"b": [1, 1.0, True, None]}},
)
"""Values that a provider may keep."""

_CYCLE: Final[list[Any]] = []
_CYCLE.append(_CYCLE)

REJECTED_VALUES: Final[tuple[tuple[Any, str], ...]] = (
    (float("nan"), ""),
    ({"a": [0, float("inf")]}, "a[1]"),
    ({"a": {"b": -float("inf")}}, "a.b"),
    ([b"bytes"], "[0]"),
    ({"a": {1: 2}}, "a"),
    ({"a": {"b": object()}}, "a.b"),
    ({"a": {1, 2}}, "a"),
    (datetime(2026, 1, 1, tzinfo=UTC), ""),
)
"""What is no JSON value, and the path to the fault."""

RAF_TEXT: Final = (
    '{"session_id":"s","metadata":{"created_at":"2026-01-02T03:04:05.123456789Z",'
    '"updated_at":"2026-01-02T03:04:06Z","message_count":3,'
    '"last_request_hash":18446744073709551615},"messages":['
    '{"role":"system","content":"Be brief."},'
    '{"role":"assistant","content":"","tool_calls":[{"id":"c","name":"f",'
    '"arguments":{"z":1,"a":[2]}}],"source":"chatHistory"},'
    '{"role":"tool","content":"7","tool_call_id":"c"}],'
    '"provider_states":{"states":{"p":{"n":1}}},'
    '"last_active_at":"2026-01-02T03:04:07.5Z"}'
)
"""A session as RAF itself writes it."""


def shown(message: ChatMessage) -> str:
    """Return a message as text that shows what ``==`` hides, ours included.

    Key order, 1 beside 1.0 and true, the sign of zero, null beside absent.
    """
    made = message.created_at
    return dump_json(
        [
            message.to_openai(),
            message.id,
            None if made is None else made.isoformat(),
            thaw(message.metadata),
            message.source,
        ]
    )


def same_messages(
    seen: Sequence[ChatMessage], expected: Iterable[ChatMessage], what: str
) -> None:
    """Raise where two lists of messages differ in anything that can be seen."""
    wanted = [shown(message) for message in expected]
    found = [shown(message) for message in seen]
    same(len(found), len(wanted), f"{what}: the number of messages")
    for index, (left, right) in enumerate(zip(found, wanted, strict=True)):
        same(left[:2000], right[:2000], f"{what}: message {index}")
        assert left == right, f"{what}: message {index} differs after 2,000 characters"
