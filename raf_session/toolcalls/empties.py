"""What a message holds that says nothing, and that providers refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from raf_session.messages import ChatMessage
from raf_session.toolcalls.results import from_wire, wire_parts
from raf_session.toolcalls.shapes import part_container

__all__ = ("text_of", "without_empties")

_TEXTS: Final = ("text", "refusal")
"""The kinds of parts that are a text, in a field of that name."""


def text_of(part: object) -> str | None:
    """Return the text that a part, as it is sent, is, if it is one and nothing else."""
    if not isinstance(part, Mapping):
        return None
    fields = cast("Mapping[str, Any]", part)
    kind = fields.get("type")
    if kind is None:
        text = fields.get("text") if len(fields) == 1 else None
    else:
        text = fields.get(kind) if kind in _TEXTS else None
    return text if isinstance(text, str) else None


def without_empties(message: ChatMessage) -> ChatMessage:
    """Return the message without an empty list of calls, and without empty texts.

    OpenAI refuses the one, Anthropic the others.  A message that says nothing else
    keeps them; one that holds none of these is returned itself.
    """
    wire: dict[str, Any] = {}
    if message.tool_calls is not None and not message.tool_calls:
        wire = message.wire()
        del wire["tool_calls"]
    parts = wire_parts(message)
    kept = tuple(part for part in parts if text_of(part) != "")
    if len(kept) < len(parts) and (kept or message.tool_calls or message.refusal):
        container, _ = part_container(message)
        wire = {**(wire or message.wire()), container: kept or None}
    return from_wire(message, wire) if wire else message
