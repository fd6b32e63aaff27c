"""Messages without their calls or results: what else they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raf_session.frozen import FrozenDict
from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls import calls_in, has_more_than, results_in
from raf_session.toolcalls.reasoning import REASONING_FIELDS, is_silent, is_thought
from raf_session.toolcalls.results import from_wire, wire_parts, without_parts
from raf_session.toolcalls.shapes import part_container

__all__ = ("without_calls", "without_results")


def without_results(message: ChatMessage) -> ChatMessage | None:
    """Return what a message says beside results and reasoning; `None`: nothing.

    A message that is neither is returned itself.
    """
    marks = results_in(message)
    if not marks:
        return None if is_silent(message) else message
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
    for name in REASONING_FIELDS:
        wire.pop(name, None)
    if not items:
        text = message.content if isinstance(message.content, str) else ""
        if not text.strip():
            return _standing_for(message, placeholder)
        if placeholder is not None:
            wire["content"] = f"{text}\n\n{placeholder}"
        return from_wire(message, wire)
    parts = [part for part in wire_parts(bare) if not is_thought(part)]
    if not any(map(_says, parts)):
        return _standing_for(message, placeholder)
    if placeholder is not None:
        typed = {} if container == "parts" else {"type": "text"}
        parts.append(FrozenDict[Any]({**typed, "text": placeholder}))
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
    parts = wire_parts(message)
    if parts:
        container, _ = part_container(message)
        left = [part for place, part in enumerate(parts) if place not in called]
        wire[container] = tuple(left)
    return _without_marks(from_wire(message, wire))


def _says(part: Mapping[str, Any]) -> bool:
    text = part.get("text")
    return isinstance(text, str) and bool(text.strip())
