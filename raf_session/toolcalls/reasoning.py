"""Reasoning that stands apart from what it led to, and how it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from raf_session.frozen import FrozenDict
from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls.results import from_wire, wire_parts
from raf_session.toolcalls.shapes import part_container

__all__ = (
    "REASONING_FIELDS",
    "Parted",
    "holds_thoughts",
    "is_blank_text",
    "is_silent",
    "is_thought",
    "with_thoughts",
    "without_last_thoughts",
)

REASONING_FIELDS: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "thinking",
    "thinking_blocks",
)
"""Fields of a message that hold what the assistant thought before it spoke."""

_ASSISTANT: Final = MessageRole.ASSISTANT
_THOUGHTS: Final = frozenset(
    ("reasoning", "reasoning_text", "thinking", "redacted_thinking")
)
_UNTYPED_THOUGHT: Final = "reasoningContent"
"""Bedrock's."""
_SIGNATURES: Final = ("thoughtSignature", "thought_signature")
"""Gemini's, of which an empty text may be the carrier."""
_UNSAID: Final = frozenset(("role", "content", "tool_calls"))
_SAYS_NOTHING: Final = frozenset((*REASONING_FIELDS, "id", "status", "index", "parts"))
"""Fields of which a message may have any value and yet say nothing, parts aside."""


def is_silent(message: ChatMessage) -> bool:
    """Tell whether the assistant says nothing here: it thinks, at most.

    Its parts are reasoning or blank texts, or it has none, and it has no field that
    might say something; or it is an item of reasoning itself.  No provider takes such a
    message by itself.
    """
    if message.role is not _ASSISTANT or message.tool_calls or message.refusal:
        return False
    content, extra = message.content, message.extra
    if isinstance(content, str) and content and not content.isspace():
        return False
    if extra and not _is_item(message):
        others = extra.keys() - _SAYS_NOTHING
        if any(extra[name] for name in others if (name, extra[name]) != _MESSAGE):
            return False
    return all(is_thought(part) or is_blank_text(part) for part in _all_parts(message))


_MESSAGE: Final = ("type", "message")
"""How an item of OpenAI's Responses says that it is a message."""


def holds_thoughts(message: ChatMessage) -> bool:
    """Tell whether there is reasoning in a message."""
    if any(message.extra.get(name) for name in REASONING_FIELDS):
        return True
    return _is_item(message) or any(map(is_thought, _all_parts(message)))


def is_thought(part: object) -> bool:
    """Tell whether a part, as it is sent, is reasoning."""
    if not isinstance(part, Mapping):
        return False
    fields = cast("Mapping[str, Any]", part)
    if fields.get("type") is not None:
        return fields["type"] in _THOUGHTS
    if _UNTYPED_THOUGHT in fields:
        return True
    text = fields.get("text")
    if not isinstance(text, str):
        return False
    signed = any(fields.get(name) for name in _SIGNATURES)
    return fields.get("thought") is True or (signed and not text.strip())


def _is_item(message: ChatMessage) -> bool:
    """Tell whether a message is reasoning as OpenAI's Responses write it."""
    return message.extra.get("type") in _THOUGHTS


def is_blank_text(part: object) -> bool:
    """Tell whether a part, as it is sent, is a text without a printed character."""
    if not isinstance(part, Mapping):
        return False
    fields = cast("Mapping[str, Any]", part)
    text = fields.get("text")
    return (
        isinstance(text, str)
        and not text.strip()
        and fields.get("type") in {"text", None}
    )


def _all_parts(message: ChatMessage) -> Iterator[Any]:
    """Yield the parts in ``content``, and those in ``parts`` beside them."""
    yield from wire_parts(message)
    if message.content:
        native = message.extra.get("parts")
        if isinstance(native, tuple) and isinstance(message.content, tuple):
            yield from native


# Joined with what it led to ----------------------------------------------------------


def with_thoughts(thoughts: Sequence[ChatMessage], message: ChatMessage) -> ChatMessage:
    """Return a message with the reasoning of silent ones in front of what it says.

    Parts stand in front of its own; fields are set, or put in front of its own of the
    same type, or else become parts.  It keeps its id and all else; where the others
    hold no reasoning, it is returned itself.

    Args:
        thoughts: messages for which `is_silent` holds.
        message: what the assistant says or asks for behind them.
    """
    parts = [part for thought in thoughts for part in _thought_parts(thought)]
    fields: dict[str, Any] = {}
    for name in REASONING_FIELDS:
        given = [thought.extra[name] for thought in thoughts if thought.extra.get(name)]
        if given:
            own = message.extra.get(name)
            field, others = _together([*given, own] if own else given)
            fields[name] = field
            parts += [
                FrozenDict[Any]({"type": "reasoning", name: other}) for other in others
            ]
    if not parts and not fields:
        return message
    wire = {**message.wire(), **fields}
    if parts:
        container, _ = part_container(message)
        said = wire_parts(message)
        if container == "content" and isinstance(message.content, str):
            text = {"type": "text", "text": message.content}
            said = [FrozenDict[Any](text)] if message.content else []
        wire[container] = (*parts, *said)
    return from_wire(message, wire)


def _together(values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the last value, texts or lists like it in front, and the others."""
    last = values[-1]
    if isinstance(last, str):
        texts = [value for value in values if isinstance(value, str)]
        return "\n\n".join(texts), [v for v in values if not isinstance(v, str)]
    if isinstance(last, tuple):
        lists: list[tuple[Any, ...]] = [v for v in values if isinstance(v, tuple)]
        items = tuple(item for value in lists for item in value)
        return items, [v for v in values if not isinstance(v, tuple)]
    return last, [*values[:-1]]


def _thought_parts(thought: ChatMessage) -> Iterator[Any]:
    """Yield the reasoning of a message, which may be an item of OpenAI's itself."""
    if _is_item(thought):
        item = {k: v for k, v in thought.wire().items() if k not in _UNSAID}
        yield FrozenDict[Any](item)
    yield from filter(is_thought, _all_parts(thought))


class Parted(NamedTuple):
    """A message, and the reasoning that stood behind what it says."""

    message: ChatMessage
    thoughts: ChatMessage | None
    """As a message of its own; `None`: there is none."""


def without_last_thoughts(message: ChatMessage) -> Parted:
    """Return a message that is not silent without reasoning at its end.

    Reasoning leads to what comes next; Anthropic refuses a turn that ends in it.
    """
    if message.role is not _ASSISTANT or message.tool_calls:
        return Parted(message, None)
    parts = wire_parts(message)
    size = len(parts)
    while size and is_thought(parts[size - 1]):
        size -= 1
    if size in {0, len(parts)}:
        return Parted(message, None)
    container, _ = part_container(message)
    thoughts = {"role": _ASSISTANT.value, container: tuple(parts[size:])}
    kept = {**message.wire(), container: tuple(parts[:size])}
    return Parted(from_wire(message, kept), from_wire(message, thoughts, ()))
