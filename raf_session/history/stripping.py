"""Messages without their calls or results: what else they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from raf_session.frozen import freeze
from raf_session.messages import ChatMessage, MessageRole
from raf_session.parts import ContentPart
from raf_session.toolcalls import calls_in, has_more_than, results_in
from raf_session.toolcalls.results import without_parts
from raf_session.toolcalls.shapes import is_reasoning, part_container

__all__ = ("from_wire", "without_calls", "without_results")

_OWN = ("id", "metadata", "created_at", "source")


def without_results(message: ChatMessage) -> ChatMessage | None:
    """Return what a message says beside results and reasoning; `None`: nothing.

    A message that is neither is returned itself.
    """
    marks = results_in(message)
    if not marks:
        return None if is_reasoning(message) else message
    if not has_more_than(message, marks):
        return None
    return without_parts(message, {mark.part for mark in marks})


def without_calls(message: ChatMessage, placeholder: str | None) -> ChatMessage | None:
    """Return what the assistant says beside the calls of a message; `None`: nothing.

    Reasoning leaves with the calls that it led to.

    Args:
        message: one with calls.
        placeholder: text that stands behind what it says; `None`: none.
    """
    bare = _without_marks(message)
    container, items = part_container(bare)
    wire = bare.wire()
    if not items:
        text = message.content if isinstance(message.content, str) else ""
        if not text.strip():
            return _standing_for(message, placeholder)
        if placeholder is not None:
            wire["content"] = f"{text}\n\n{placeholder}"
        return from_wire(message, wire)
    parts = [_wire(item) for item in items if not _is_thought(container, item)]
    if not any(map(_says, parts)):
        return _standing_for(message, placeholder)
    if placeholder is not None:
        typed = {} if container == "parts" else {"type": "text"}
        parts.append({**typed, "text": placeholder})
    return from_wire(message, {**wire, container: tuple(parts)})


def _standing_for(message: ChatMessage, placeholder: str | None) -> ChatMessage | None:
    if placeholder is None:
        return None
    role = MessageRole.ASSISTANT.value
    return from_wire(message, {"role": role, "content": placeholder})


def _without_marks(message: ChatMessage) -> ChatMessage:
    """Return the message without calls; one that stands twice in it is found twice."""
    marks = calls_in(message)
    if not marks:
        return message
    wire = message.wire()
    for mark in marks:
        if mark.part is None:
            wire.pop(mark.kind, None)
    called = {mark.part for mark in marks}
    container, items = part_container(message)
    if items:
        left = [_wire(m) for place, m in enumerate(items) if place not in called]
        wire[container] = tuple(left)
    return _without_marks(from_wire(message, wire))


def from_wire(message: ChatMessage, wire: Mapping[str, Any]) -> ChatMessage:
    """Return a message of these fields that keeps what of the other is ours."""
    given = message.model_fields_set
    own = {name: getattr(message, name) for name in _OWN if name in given}
    return ChatMessage.from_frozen(cast("Mapping[str, Any]", freeze(dict(wire))), own)


def _wire(item: Any) -> Any:
    return item.wire() if isinstance(item, ContentPart) else item


def _is_thought(container: str, item: Any) -> bool:
    fields = {"role": MessageRole.ASSISTANT.value, container: (_wire(item),)}
    return is_reasoning(ChatMessage.from_frozen(fields, {}))


def _says(part: Mapping[str, Any]) -> bool:
    text = part.get("text")
    return isinstance(text, str) and bool(text.strip())
