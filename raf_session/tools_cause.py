"""The rules by which a change of the tools gets its cause.

The four written forms, `prefix_forms.form_cause`; ``tools_order`` where they are the
same ones; ``tools_added`` and ``tools_removed`` where the others stand as they stood;
else ``tools_changed``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from raf_session.prefix_forms import (
    MISSING,
    Change,
    Leaf,
    Step,
    first_leaf,
    form_cause,
    is_array,
    is_object,
    wire_digest,
)
from raf_session.prefix_match import Cause, count_shared

__all__ = ("compare_tools",)


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
    index = count_shared(one, other)
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
