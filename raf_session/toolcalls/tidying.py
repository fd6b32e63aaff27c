"""What a message holds, or lacks, by itself so that a provider refuses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls.reasoning import is_blank_text
from raf_session.toolcalls.repairs import BLANK, RepairRule
from raf_session.toolcalls.results import from_wire, wire_parts
from raf_session.toolcalls.shapes import part_container, results_in

__all__ = ("Tidied", "says_nothing", "text_of", "tidy")

_TEXTS: Final = ("text", "refusal")
"""The kinds of parts that are a text, in a field of that name."""
_PROOFS: Final = {"thinking": "signature", "redacted_thinking": "data"}
"""What Anthropic wants in each kind of thinking."""
_CARRIERS: Final = ("audio", "content")
"""Fields beside the typed ones in which a user may say something."""


class Tidied(NamedTuple):
    """A message as a provider takes it by itself, and why it differs."""

    message: ChatMessage
    rules: tuple[RepairRule, ...]
    """Empty iff the message is the one that was given."""


def tidy(message: ChatMessage) -> Tidied:
    """Return the message without what providers refuse wherever it stands.

    An empty list of calls leaves (OpenAI refuses it), and so do empty texts beside
    other parts and thinking of Anthropic's that is not signed (Anthropic refuses
    these).  A user who says nothing is given a placeholder.  What the assistant says
    may become nothing.
    """
    rules: list[RepairRule] = []
    wire: dict[str, Any] = {}
    if message.tool_calls is not None and not message.tool_calls:
        rules.append(RepairRule.EMPTY)
        wire = message.wire()
        del wire["tool_calls"]
    parts = wire_parts(message)
    kept, reasons = _without_refused(message, parts)
    if reasons:
        rules += [rule for rule in reasons if rule not in rules]
        container, _ = part_container(message)
        wire = {**(wire or message.wire()), container: kept or None}
    if message.role is MessageRole.USER and says_nothing(message):
        rules.append(RepairRule.BLANK)
        wire = message.wire()
        for name in ("content", "parts"):
            wire.pop(name, None)
        wire["content"] = BLANK
    if not rules:
        return Tidied(message, ())
    return Tidied(from_wire(message, wire), tuple(rules))


def _without_refused(
    message: ChatMessage, parts: Sequence[Any]
) -> tuple[tuple[Any, ...], list[RepairRule]]:
    """Return the parts that may stay, and why the others may not."""
    thinks = message.role is MessageRole.ASSISTANT
    signed = [part for part in parts if not (thinks and _is_unsigned(part))]
    rules = [RepairRule.UNSIGNED] if len(signed) < len(parts) else []
    kept = [part for part in signed if text_of(part) != ""]
    if len(kept) < len(signed) and (kept or message.tool_calls or message.refusal):
        return tuple(kept), [*rules, RepairRule.EMPTY]
    return tuple(signed), rules


def _is_unsigned(part: object) -> bool:
    """Tell whether a part is thinking of Anthropic's without its proof.

    Thinking that is a list of parts is Mistral's, which signs none.
    """
    if not isinstance(part, Mapping):
        return False
    fields = cast("Mapping[str, Any]", part)
    kind = fields.get("type")
    if kind == "thinking" and not isinstance(fields.get("thinking"), str):
        return False
    proof = fields.get(_PROOFS[kind]) if kind in _PROOFS else "none is asked for"
    return not (isinstance(proof, str) and proof)


def says_nothing(message: ChatMessage) -> bool:
    """Tell whether a message of the user's holds no printed text, and nothing else."""
    if message.text.strip() or any(message.extra.get(name) for name in _CARRIERS):
        return False
    parts = wire_parts(message)
    return all(map(is_blank_text, parts)) and not results_in(message)


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
