"""Why a request does not go on from the one before: the first difference, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from raf_session.frozen import EMPTY, join_path
from raf_session.message_cause import compare_messages
from raf_session.prefix_cause import history_change
from raf_session.prefix_decoding import LargeText
from raf_session.prefix_evidence import Evidence, paired
from raf_session.prefix_forms import (
    MISSING,
    Change,
    Leaf,
    Step,
    as_parts,
    canonical_digest,
    first_leaf,
    form_cause,
    is_object,
    plain_form,
    same,
    shown,
    wire_digest,
)
from raf_session.prefix_match import Cause, Difference, PrefixMatch
from raf_session.tools_cause import compare_tools

__all__ = ("explain",)

_HEADER_FIRST: Final = ("model", "tools")


def explain(
    match: PrefixMatch,
    before: Evidence,
    after: Evidence,
) -> PrefixMatch:
    """Return the match of two requests with its first difference and its cause.

    Args:
        match: what the digests say; returned as it is where it appends.  The cause is
            unknown as well where the stack is too deep to look into the values.
        before: the former request.
        after: this one.
    """
    if match.append_only:
        return match
    try:
        cause, difference = _explained(match, before, after)
    except RecursionError:  # of the caller's stack: what was recorded stays recorded
        cause, difference = Cause.UNKNOWN, _place(match)
    return match._replace(cause=cause, first_difference=difference)


def _explained(
    match: PrefixMatch, before: Evidence, after: Evidence
) -> tuple[Cause, Difference]:
    if match.first_different is None:
        cause, difference = _header_difference(before, after)
    else:
        cause, difference = _message_difference(before, after, match.first_different)
    if _differ_in_form(match, before, after):
        difference = replace(difference, only_form=True)
    return cause, difference


def _place(match: PrefixMatch) -> Difference:
    """Return where the requests part, as far as their digests tell."""
    first = match.first_different
    if first is None:
        return Difference("header", None, "header")
    return Difference("messages", first, f"messages[{first}]")


# Messages ---------------------------------------------------------------------------


def _message_difference(
    before: Evidence, after: Evidence, first: int
) -> tuple[Cause, Difference]:
    old, new = paired(_at(before, first), _at(after, first))
    place = f"messages[{first}]"
    change = Change(history_change(before, after, first) or Cause.UNKNOWN)
    if change.cause is Cause.UNKNOWN and old is not None and new is not None:
        change = compare_messages(old, new)
    ended = first == len(after.digests)
    then, now = _known(old), MISSING if ended else _known(new)
    if change.leaf is not None:
        place, then, now = _joined(place, change.leaf)
    texts = shown(then, now)
    known = old is not None and new is not None
    difference = Difference(
        section="messages",
        index=first,
        path=place,
        before=texts[0],
        after=texts[1],
        wire=None if ended else (before.digests[first], after.digests[first]),
        canonical=(canonical_digest(old), canonical_digest(new)) if known else None,
    )
    return change.cause, difference


def _at(request: Evidence, index: int) -> Any:
    return request.messages[index] if index < len(request.messages) else None


def _known(value: Any) -> Any:
    return MISSING if value is None else value


def _joined(place: str, leaf: Leaf) -> tuple[str, Any, Any]:
    return _path(place, leaf.path), leaf.before, leaf.after


def _path(place: str, steps: tuple[Step, ...]) -> str:
    return join_path(
        place, *(str(step) if isinstance(step, LargeText) else step for step in steps)
    )


# The header -------------------------------------------------------------------------


def _header_difference(before: Evidence, after: Evidence) -> tuple[Cause, Difference]:
    if not (before.header.known and after.header.known):
        return Cause.UNKNOWN, Difference("header", None, "header")
    old, new = before.header.value(), after.header.value()
    one: Any = EMPTY if old is None else old
    other: Any = EMPTY if new is None else new
    if is_object(one) and is_object(other):  # fields in reading order
        for name in dict.fromkeys((*_HEADER_FIRST, *one, *other)):
            then, now = one.get(name, MISSING), other.get(name, MISSING)
            if not same(then, now):
                return _field_difference(name, then, now)
        cause = Cause.PARAMETERS if one.keys() != other.keys() else Cause.KEY_ORDER
    else:
        cause = form_cause(one, other) or Cause.PARAMETERS
    leaf = first_leaf(one, other) or Leaf((), one, other)
    return cause, _difference("parameters", None, "header", leaf, (one, other))


def _field_difference(name: Step, then: Any, now: Any) -> tuple[Cause, Difference]:
    place = _path("", (name,))
    if name == "system":
        then, now = as_parts(then, now), as_parts(now, then)
    leaf = first_leaf(then, now) or Leaf((), then, now)
    if name == "tools":
        change, index = compare_tools(then, now)
        leaf = change.leaf or leaf
        return change.cause, _difference("tools", index, place, leaf, (then, now))
    if name == "model":
        return Cause.MODEL, _difference("model", None, place, leaf, (then, now))
    cause = form_cause(then, now)
    if name == "system":
        cause = cause or Cause.SYSTEM_CHANGED
        return cause, _difference("system", None, place, leaf, (then, now))
    cause = cause or Cause.PARAMETERS
    return cause, _difference("parameters", None, place, leaf, (then, now))


def _difference(
    section: str, index: int | None, place: str, leaf: Leaf, both: tuple[Any, Any]
) -> Difference:
    """Return the difference of a header field, from the leaf within it."""
    texts = shown(leaf.before, leaf.after)
    there = MISSING not in both
    return Difference(
        section=section,
        index=index,
        path=_path(place, leaf.path),
        before=texts[0],
        after=texts[1],
        wire=(wire_digest(both[0]), wire_digest(both[1])) if there else None,
        canonical=(canonical_digest(both[0]), canonical_digest(both[1]))
        if there
        else None,
    )


# Forms ------------------------------------------------------------------------------


def _differ_in_form(match: PrefixMatch, before: Evidence, after: Evidence) -> bool:
    """Whether the former request begins this one, but for forms of text and null."""
    count = len(before.digests)
    if count > len(after.digests):
        return False
    if match.header_changed and not _headers_alike(before, after):
        return False
    for index in range(count):
        if before.digests[index] == after.digests[index]:
            continue
        old, new = paired(before.messages[index], after.messages[index])
        if old is None or new is None or not same(plain_form(old), plain_form(new)):
            return False
    return True


def _headers_alike(before: Evidence, after: Evidence) -> bool:
    old, new = before.header.value(), after.header.value()
    if not is_object(old) or not is_object(new):
        return False
    one, other = (
        {**side, "system": plain_form(side.get("system"))} for side in (old, new)
    )
    return same(one, other)
