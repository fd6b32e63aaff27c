"""The rules by which a break of the prefix gets its cause.

Each rule looks at the first difference in reading order.  Where a former value is not
known any more, the digests decide what they can, and otherwise the cause is unknown.

Messages, first rule that holds:

``message_removed``, ``reasoning_dropped``
    The request only ends sooner; what is missing is reasoning items alone.
``message_reordered``
    The next messages are the former ones of these places in another order.
``reasoning_dropped``, ``system_changed``, ``truncated_head``, ``message_removed``
    Former messages are missing, and all that followed them follows: reasoning items
    alone; a system message at the head; those right after the system messages; others.
``system_changed``, ``message_edited``
    Messages were put in front of former ones: a system message at the head; others.
``compacted``
    Former messages gave way to fewer others, and all that followed them follows; not
    where the first of them is a system message then and now.

Otherwise the two messages at this place are compared, first rule that holds:

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

Tools: the four forms; ``tools_order`` where they are the same ones; ``tools_added`` and
``tools_removed`` where the others stand as they stood; else ``tools_changed``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

from raf_session.prefix_evidence import REASONING_TYPES, Evidence
from raf_session.prefix_forms import (
    MISSING,
    Leaf,
    Step,
    as_parts,
    first_leaf,
    form_cause,
    is_array,
    is_object,
    plain_form,
    same,
    wire_digest,
)
from raf_session.prefix_match import Cause

__all__ = ("Change", "compare_messages", "compare_tools", "history_change")

_SYSTEM: Final = frozenset(("system", "developer"))
_REMOVED: Final = Cause.MESSAGE_REMOVED
_EDITED: Final = Cause.MESSAGE_EDITED


class Change(NamedTuple):
    """What happened, and where in the two values."""

    cause: Cause
    leaf: Leaf | None = None


# The history ------------------------------------------------------------------------


def history_change(before: Evidence, after: Evidence, first: int) -> Cause | None:
    """Return what happened to the messages as a whole; their digests decide.

    Args:
        before: the former request.
        after: this one.
        first: the first message that differs.

    Returns:
        `None` where the two messages at that place have to be compared.
    """
    old, new = before.digests, after.digests
    if first == len(new):
        dropped = range(first, len(old))
        return Cause.REASONING_DROPPED if _reasoning(before, dropped) else _REMOVED
    rest = old[first + 1 :]
    if rest and rest == new[first + 1 : len(old)]:
        return None  # one message alone, whose place is kept
    if _reordered(old, new, first):
        return Cause.MESSAGE_REORDERED
    old_end, new_end = _resumption(old, new, first)
    if old_end == len(old):
        return None  # nothing of the rest is found again
    at_head = all(after.role(index) in _SYSTEM for index in range(first))
    then, now = before.role(first), after.role(first)
    if new_end == first:
        if _reasoning(before, range(first, old_end)):
            return Cause.REASONING_DROPPED
        if at_head and then in _SYSTEM:
            return Cause.SYSTEM_CHANGED
        if at_head and then is None and first == 0:
            return Cause.UNKNOWN  # a system message, or the head of the history
        return Cause.TRUNCATED_HEAD if at_head else _REMOVED
    if old_end == first:
        return Cause.SYSTEM_CHANGED if at_head and now in _SYSTEM else _EDITED
    if new_end - first < old_end - first and not (
        now in _SYSTEM and (then is None or then in _SYSTEM)
    ):
        return Cause.COMPACTED
    return None


def _reasoning(request: Evidence, indexes: range) -> bool:
    return all(request.is_reasoning(index) for index in indexes)


def _reordered(
    before: Sequence[Hashable], after: Sequence[Hashable], first: int
) -> bool:
    """Whether some next messages are the former ones of these places, turned round."""
    balance: Counter[Hashable] = Counter()
    uneven = 0
    for one, other in zip(before[first:], after[first:], strict=False):
        for digest, by in ((one, 1), (other, -1)):
            was = balance[digest]
            balance[digest] = was + by
            uneven += (balance[digest] != 0) - (was != 0)
        if not uneven:
            return True
    return False


def _resumption(
    before: Sequence[int], after: Sequence[int], first: int
) -> tuple[int, int]:
    """Return from where on all that is left of the former request is found again.

    Returns:
        The places in both; the former one is its end where nothing is found again.
    """
    old, new = before[first:][::-1], after[first:][::-1]
    lengths = _prefix_lengths([*old, None, *new])[len(old) + 1 :]
    longest = max(lengths, default=0)
    if not longest:
        return len(before), first
    # The last of equals in turned order: the first in the order of the messages.
    place = len(lengths) - 1 - lengths[::-1].index(longest)
    return len(before) - longest, len(after) - place - longest


def _prefix_lengths(items: Sequence[int | None]) -> list[int]:
    """Return, for each place, how much of the beginning stands there again."""
    lengths = [0] * len(items)
    left = right = 0
    for place in range(1, len(items)):
        if place < right:
            lengths[place] = min(right - place, lengths[place - left])
        while (
            place + lengths[place] < len(items)
            and items[lengths[place]] == items[place + lengths[place]]
        ):
            lengths[place] += 1
        if place + lengths[place] > right:
            left, right = place, place + lengths[place]
    return lengths


# One message ------------------------------------------------------------------------


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
    if before.get("role") in _SYSTEM and after.get("role") in _SYSTEM:
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
        part.get("type") in REASONING_TYPES
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
    if fields.get("type") in _IMAGE_TYPES or is_object(fields.get("image")):
        return True
    for name in _DATA_FIELDS:
        data = fields.get(name)
        if is_object(data):
            kind = data.get("mimeType", data.get("mime_type"))
            return isinstance(kind, str) and kind.startswith("image/")
    return False


# Tools ------------------------------------------------------------------------------


class Tool(NamedTuple):
    """One tool, and the way to it from the list of tools."""

    path: tuple[Step, ...]
    value: Any


def compare_tools(before: Any, after: Any) -> tuple[Change, int]:
    """Return the cause of a change of the tools, and the index of the first changed.

    The path of the leaf begins at the list of tools.
    """
    old, new = _tools(before), _tools(after)
    one = [wire_digest(tool.value) for tool in old]
    other = [wire_digest(tool.value) for tool in new]
    index = _shared(one, other)
    cause = form_cause(before, after) or _tools_cause(one, other)
    then = old[index] if index < len(old) else None
    now = new[index] if index < len(new) else None
    if then is None or now is None:
        there = now or then
        if there is None:  # nothing but how they are listed
            return Change(cause, first_leaf(before, after)), index
        leaf = Leaf(
            there.path,
            MISSING if then is None else then.value,
            MISSING if now is None else now.value,
        )
    else:
        leaf = Leaf(now.path, then.value, now.value)
        inner = first_leaf(then.value, now.value)
        if inner is not None and cause not in _ABOUT_THE_LIST:
            leaf = inner._replace(path=(*now.path, *inner.path))
    return Change(cause, leaf), index


_ABOUT_THE_LIST: Final = frozenset(
    (Cause.TOOLS_ADDED, Cause.TOOLS_REMOVED, Cause.TOOLS_ORDER)
)


def _tools_cause(before: Sequence[int], after: Sequence[int]) -> Cause:
    if Counter(before) == Counter(after):
        return Cause.TOOLS_ORDER if list(before) != list(after) else Cause.TOOLS_CHANGED
    if _is_within(before, after):
        return Cause.TOOLS_ADDED
    if _is_within(after, before):
        return Cause.TOOLS_REMOVED
    return Cause.TOOLS_CHANGED


def _is_within(fewer: Sequence[int], more: Sequence[int]) -> bool:
    rest = iter(more)
    return all(digest in rest for digest in fewer)


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _tools(value: Any) -> list[Tool]:
    """Return the tools of a list; an element of Gemini's holds several."""
    found: list[Tool] = []
    if not is_array(value):
        return found
    for index, element in enumerate(value):
        if not is_object(element) or element.keys().isdisjoint(_DECLARATIONS):
            found.append(Tool((index,), element))
            continue
        for key, item in element.items():
            if key in _DECLARATIONS and is_array(item):
                declared = item
                found += [Tool((index, key, n), d) for n, d in enumerate(declared)]
            else:
                found.append(Tool((index, key), item))
    return found


_DECLARATIONS: Final = frozenset(("functionDeclarations", "function_declarations"))
