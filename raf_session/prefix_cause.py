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

Otherwise `message_cause` compares the two messages at this place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from raf_session.message_cause import SYSTEM_ROLES
from raf_session.prefix_evidence import Evidence
from raf_session.prefix_match import Cause

__all__ = ("history_change",)

_REMOVED: Final = Cause.MESSAGE_REMOVED
_EDITED: Final = Cause.MESSAGE_EDITED


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
    at_head = all(after.role(index) in SYSTEM_ROLES for index in range(first))
    then, now = before.role(first), after.role(first)
    if new_end == first:
        if _reasoning(before, range(first, old_end)):
            return Cause.REASONING_DROPPED
        if at_head and then in SYSTEM_ROLES:
            return Cause.SYSTEM_CHANGED
        if at_head and then is None and first == 0:
            return Cause.UNKNOWN  # a system message, or the head of the history
        return Cause.TRUNCATED_HEAD if at_head else _REMOVED
    if old_end == first:
        return Cause.SYSTEM_CHANGED if at_head and now in SYSTEM_ROLES else _EDITED
    if new_end - first < old_end - first and not (
        now in SYSTEM_ROLES and (then is None or then in SYSTEM_ROLES)
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
