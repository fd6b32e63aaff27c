"""Compaction: which messages a summary may stand for, and what became of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from raf_session.messages import ChatMessage
from raf_session.toolcalls import CallGroups, find_groups, is_preamble, is_user_turn

__all__ = ("CompactionOutcome", "CompactionPlan", "has_open_calls", "plan_compaction")


class CompactionOutcome(StrEnum):
    """How an attempt to summarise a session ended."""

    COMPACTED = "compacted"
    """The summary stands for what it covers."""
    NOTHING_TO_DO = "nothing_to_do"
    """There is nothing that a summary may stand for; no summary was asked for."""
    CANNOT_SHRINK = "cannot_shrink"
    """The summary is no shorter than what it would stand for; nothing changed."""
    SUMMARIZER_FAILED = "summarizer_failed"
    """There is no summary; nothing changed."""
    CONFLICT = "conflict"
    """What was summarised was changed in the meantime; nothing changed."""


class CompactionPlan(NamedTuple):
    """Which messages of a history a summary may stand for, by their places."""

    covered: tuple[int, ...]
    """What the summary stands for, ascending; empty: nothing to do."""
    kept: tuple[int, ...]
    """What stays although later messages are covered: calls that wait for results."""


def plan_compaction(
    messages: Sequence[ChatMessage | None],
    *,
    keep_recent: int,
    from_user_turn: bool = True,
    long_running: Collection[str] = (),
) -> CompactionPlan:
    """Return what a summary may stand for, so that what is left is whole.

    Leading instructions stay in front.  The last messages stay; the boundary moves
    towards the beginning, to where no group of calls and results is cut.  Calls that
    still wait for results stay, with what they have so far: those of long-running
    tools, and those behind which no message of the user's stands.

    Args:
        messages: the history; `None` stands for an event without a message.
        keep_recent: how many messages stay, at least.
        from_user_turn: let what stays begin with a message of the user's, where there
            is one in front of the boundary with something to cover before it.
        long_running: the ids of calls whose tools answer later.

    Raises:
        ValueError: `keep_recent` is negative.
    """
    if keep_recent < 0:
        raise ValueError(f"keep_recent={keep_recent} is negative")
    first = _behind_instructions(messages)
    groups = find_groups(messages, long_running)
    waiting = _waiting(messages, groups)
    end = _between_groups(len(messages) - keep_recent, groups, waiting)
    if from_user_turn and end < len(messages):
        turns = (i for i in range(end, first, -1) if _is_turn(messages, i))
        end = _between_groups(next(turns, end), groups, waiting)
    covered = tuple(i for i in range(first, end) if i not in waiting)
    if not covered:
        return CompactionPlan((), ())
    last = covered[-1]
    return CompactionPlan(
        covered, tuple(i for i in sorted(waiting) if first <= i < last)
    )


def has_open_calls(
    messages: Sequence[ChatMessage | None], long_running: Collection[str] = ()
) -> bool:
    """Tell whether a call still waits for its result."""
    return bool(_waiting(messages, find_groups(messages, long_running)))


def _behind_instructions(messages: Sequence[ChatMessage | None]) -> int:
    for index, message in enumerate(messages):
        if message is None or not is_preamble(message):
            return index
    return len(messages)


def _is_turn(messages: Sequence[ChatMessage | None], index: int) -> bool:
    return index < len(messages) and is_user_turn(messages[index])


def _waiting(
    messages: Sequence[ChatMessage | None], groups: CallGroups
) -> frozenset[int]:
    """Return the messages of the groups that wait for results."""
    last_turn = max((i for i, m in enumerate(messages) if is_user_turn(m)), default=-1)
    callers = {
        group.message_index
        for group in groups.groups
        if any(c.long_running or c.message_index > last_turn for c in group.open_calls)
    }
    bundles = (b for b in groups.bundles() if not callers.isdisjoint(b))
    return frozenset[int]().union(*bundles)


def _between_groups(end: int, groups: CallGroups, waiting: frozenset[int]) -> int:
    """Return the last place up to `end` that cuts no bundle of groups."""
    bundles = [b for b in groups.bundles() if not waiting.issuperset(b)]
    for bundle in sorted(bundles, reverse=True):
        if bundle[0] < end <= bundle[-1]:
            end = bundle[0]
    return max(end, 0)
