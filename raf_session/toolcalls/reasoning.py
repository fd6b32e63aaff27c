"""Reasoning that stands in a message of its own, and the message that it led to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from raf_session.frozen import FrozenDict
from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls.results import from_wire, wire_parts
from raf_session.toolcalls.shapes import part_container

__all__ = ("REASONING_FIELDS", "is_silent", "is_thought", "with_thoughts")

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields of a message that hold what the assistant thought before it spoke."""

_ASSISTANT: Final = MessageRole.ASSISTANT
_THOUGHTS: Final = frozenset(("reasoning", "thinking", "redacted_thinking"))
_SIGNATURES: Final = ("thoughtSignature", "thought_signature")
"""Gemini's, of which an empty text may be the carrier."""
_UNSAID: Final = frozenset(("role", "content", "tool_calls"))
_CALLS_OR_SPEECH: Final = ("function_call", "audio")


def is_silent(message: ChatMessage) -> bool:
    """Tell whether the assistant says nothing here: it thinks, at most.

    Its parts are reasoning or blank texts, or it has none; no provider takes such a
    message by itself.
    """
    if message.role is not _ASSISTANT or message.tool_calls or message.refusal:
        return False
    content, extra = message.content, message.extra
    if isinstance(content, str):
        if content and not content.isspace():
            return False
    elif content is None and "content" in extra:
        return False
    if extra and any(extra.get(name) for name in _CALLS_OR_SPEECH):
        return False
    return all(is_thought(part) or _is_blank(part) for part in wire_parts(message))


def is_thought(part: object) -> bool:
    """Tell whether a part, as it is sent, is reasoning."""
    if not isinstance(part, Mapping):
        return False
    fields = cast("Mapping[str, Any]", part)
    if fields.get("type") in _THOUGHTS or fields.get("thought") is True:
        return True
    return _is_blank(part) and any(fields.get(name) for name in _SIGNATURES)


def _is_blank(part: object) -> bool:
    if not isinstance(part, Mapping):
        return False
    fields = cast("Mapping[str, Any]", part)
    text = fields.get("text")
    typed = fields.get("type") in {"text", None}
    return typed and isinstance(text, str) and not text.strip()


def with_thoughts(thoughts: Sequence[ChatMessage], message: ChatMessage) -> ChatMessage:
    """Return a message with the reasoning of silent ones in front of what it says.

    Parts stand in front of its own, fields are set, or put in front of its own of the
    same type.  It keeps its id and all else; where the others hold no reasoning, it is
    returned itself.

    Args:
        thoughts: messages for which `is_silent` holds.
        message: what the assistant says or asks for behind them.
    """
    parts = [part for thought in thoughts for part in _thought_parts(thought)]
    fields: dict[str, Any] = {}
    for spoken in (*thoughts, message):
        for name in REASONING_FIELDS:
            value = spoken.extra.get(name)
            if value:
                fields[name] = _both(fields.get(name), value)
    fields = {k: v for k, v in fields.items() if v != message.extra.get(k)}
    if not parts and not fields:
        return message
    wire = {**message.wire(), **fields}
    if parts:
        container, _ = part_container(message)
        said = wire_parts(message)
        if isinstance(message.content, str) and message.content:
            text = {"type": "text", "text": message.content}
            said = [FrozenDict[Any](text)]
        wire[container] = (*parts, *said)
    return from_wire(message, wire)


def _thought_parts(thought: ChatMessage) -> Iterator[Any]:
    """Yield the reasoning of a message, which may be an item of OpenAI's itself."""
    if thought.extra.get("type") in _THOUGHTS:
        item = {k: v for k, v in thought.wire().items() if k not in _UNSAID}
        yield FrozenDict[Any](item)
    yield from filter(is_thought, wire_parts(thought))


def _both(former: Any, value: Any) -> Any:
    """Return what two messages hold in one field; of two types, the later one's."""
    if isinstance(former, str) and isinstance(value, str):
        return f"{former}\n\n{value}"
    if isinstance(former, tuple) and isinstance(value, tuple):
        return former + value
    return value
