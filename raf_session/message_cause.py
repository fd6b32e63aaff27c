"""The rules by which a change within one message gets its cause.

The first rule that holds:

``key_order``, ``whitespace``, ``unicode``, ``number_form``
    They differ in written form alone, `prefix_forms.form_cause`.
``message_reordered``
    They differ in the order of their parts or calls alone.
``call_id``
    They differ in the ids of calls and results alone.
``reasoning_dropped``
    They differ in reasoning alone, and no other reasoning came.
``image_changed``
    The first difference lies in an image, then or now.
``system_changed``
    Both are system messages.
``message_edited``
    Everything else.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from raf_session.prefix_evidence import REASONING_TYPES
from raf_session.prefix_forms import (
    Change,
    Leaf,
    Step,
    as_parts,
    first_leaf,
    form_cause,
    is_array,
    is_object,
    plain_form,
    same,
    type_of,
    wire_digest,
)
from raf_session.prefix_match import Cause

__all__ = ("SYSTEM_ROLES", "compare_messages")

SYSTEM_ROLES: Final = frozenset(("system", "developer"))
"""Who speaks in a system message."""


def compare_messages(before: Any, after: Any) -> Change:
    """Return the cause of a change within one message, and its leaf."""
    one, other = before.get("content"), after.get("content")
    if is_array(one) is not is_array(other):
        before = _with_content(before, as_parts(one, other))
        after = _with_content(after, as_parts(other, one))
    leaf = first_leaf(before, after)
    if leaf is None:
        return Change(Cause.UNKNOWN)
    form = form_cause(before, after)
    if form is not None:
        return Change(form, leaf)
    for field in ("content", "parts", "tool_calls"):
        if _turned(before, after, field):
            return Change(Cause.MESSAGE_REORDERED, leaf)
    if same(_without_ids(before), _without_ids(after)):
        return Change(Cause.CALL_ID, leaf)
    if _lost_reasoning(before, after):
        return Change(Cause.REASONING_DROPPED, leaf)
    if _in_image(before, after, leaf):
        return Change(Cause.IMAGE_CHANGED, leaf)
    if before.get("role") in SYSTEM_ROLES and after.get("role") in SYSTEM_ROLES:
        return Change(Cause.SYSTEM_CHANGED, leaf)
    return Change(Cause.MESSAGE_EDITED, leaf)


def _with_content(message: dict[Step, Any], content: Any) -> dict[Step, Any]:
    return {**message, "content": content} if "content" in message else message


def _turned(before: dict[Step, Any], after: dict[Step, Any], field: str) -> bool:
    one, other = before.get(field), after.get(field)
    if not is_array(one) or not is_array(other):
        return False
    old, new = one, other
    if len(old) != len(new) or not same(
        {**before, field: None}, {**after, field: None}
    ):
        return False
    return Counter(map(wire_digest, old)) == Counter(map(wire_digest, new))


_RESULT_IDS: Final = frozenset(("tool_call_id", "tool_use_id", "toolUseId", "call_id"))
_CALL_PARTS: Final = (
    "toolUse", "toolResult", "functionCall", "functionResponse",
    "function_call", "function_response",
)  # fmt: skip
_CALL_TYPES: Final = ("tool_use", "call")


def _without_ids(message: dict[Step, Any]) -> Any:
    """Return the message without the ids that tie results to calls.

    By their places: an ``id`` in the arguments of a call is none of them.
    """
    bare = _bare(message)
    for field in ("content", "parts", "tool_calls"):
        items = bare.get(field)
        if is_array(items):
            listed = items
            bare[field] = [_bare(i, call=field == "tool_calls") for i in listed]
    return bare


def _bare(item: Any, *, call: bool = False) -> Any:
    if not is_object(item):
        return item
    fields = item
    bare = {key: value for key, value in fields.items() if key not in _RESULT_IDS}
    if call or str(bare.get("type", "")).endswith(_CALL_TYPES):
        bare.pop("id", None)
    for name in _CALL_PARTS:
        if is_object(bare.get(name)):
            bare[name] = _bare(bare[name], call=True)
    return bare


_REASONING_FIELDS: Final = frozenset(
    ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
)
_THOUGHT_SIGNATURES: Final = frozenset(("thoughtSignature", "thought_signature"))


def _lost_reasoning(before: dict[Step, Any], after: dict[Step, Any]) -> bool:
    old_rest, old = _split_reasoning(before)
    new_rest, new = _split_reasoning(after)
    if not old or not same(plain_form(old_rest), plain_form(new_rest)):
        return False
    return not Counter(map(wire_digest, new)) - Counter(map(wire_digest, old))


def _split_reasoning(message: dict[Step, Any]) -> tuple[dict[Step, Any], list[Any]]:
    """Return the message without its reasoning, and the reasoning."""
    rest = {k: v for k, v in message.items() if k not in _REASONING_FIELDS}
    reasoning = [v for k, v in message.items() if k in _REASONING_FIELDS and v]
    for field in ("content", "parts"):
        parts = rest.get(field)
        if not is_array(parts):
            continue
        kept: list[Any] = []
        for part in parts:
            if _is_thought(part):
                reasoning.append(part)
                continue
            bare = part
            if is_object(part):
                fields = part
                bare = {k: v for k, v in fields.items() if k not in _THOUGHT_SIGNATURES}
                reasoning += [v for k, v in fields.items() if k in _THOUGHT_SIGNATURES]
            kept.append(bare)
        rest[field] = kept
    return rest, reasoning


def _is_thought(part: Any) -> bool:
    return is_object(part) and (
        type_of(part) in REASONING_TYPES
        or "reasoningContent" in part
        or part.get("thought") is True
    )


_IMAGE_TYPES: Final = frozenset(("image", "image_url", "input_image"))
_DATA_FIELDS: Final = ("inlineData", "inline_data", "fileData", "file_data")


def _in_image(before: Any, after: Any, leaf: Leaf) -> bool:
    """Whether the way to the leaf leads through an image, then or now."""
    one, other = before, after
    for step in leaf.path:
        one, other = _child(one, step), _child(other, step)
        if _is_image(one) or _is_image(other):
            return True
    return False


def _child(value: Any, step: Step) -> Any:
    if is_object(value):
        return value.get(step)
    if is_array(value) and isinstance(step, int):
        items = value
        return items[step] if step < len(items) else None
    return None


def _is_image(part: Any) -> bool:
    if not is_object(part):
        return False
    fields = part
    if type_of(fields) in _IMAGE_TYPES or is_object(fields.get("image")):
        return True
    for name in _DATA_FIELDS:
        data = fields.get(name)
        if is_object(data):
            kind = data.get("mimeType", data.get("mime_type"))
            return isinstance(kind, str) and kind.startswith("image/")
    return False
