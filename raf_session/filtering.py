"""`select`: the events of a session that a view shows, and why the others do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from raf_session.messages import ChatMessage
from raf_session.options import micros
from raf_session.toolcalls import (
    CallGroups,
    find_groups,
    has_more_than,
    is_preamble,
    is_user_turn,
    results_in,
)

__all__ = ("DropRule", "View", "select")


class DropRule(StrEnum):
    """Why an event is not shown; the first of these that demands it is named."""

    ORPHAN = "orphan"
    """It is nothing but results whose calls are nowhere in the history."""
    AGE = "age"
    """It is older than `event_ttl_seconds`."""
    COUNT = "count"
    """So many newer ones are as `max_events` allows."""
    TURN = "turn"
    """It is what a limit left of a turn of the conversation, and a later one stays."""
    GROUP = "group"
    """It belongs to calls and results of which another rule took a part."""


class View(NamedTuple):
    """Which events are shown, by their places in what was given."""

    kept: tuple[int, ...]
    """Ascending."""
    dropped: Mapping[int, DropRule]
    """All others."""
    overrun: int
    """How many more than `max_events` are kept; 0 without that limit."""


def select(
    messages: Sequence[ChatMessage | None],
    times_us: Sequence[int],
    *,
    now_us: int,
    event_ttl_seconds: float = 0,
    max_events: int = 0,
    summaries: Collection[int] = (),
    long_running: Collection[str] = (),
) -> View:
    """Return the view of a history under limits.

    The newest events within the limits stay.  Besides,

    * leading instructions (of the system or the developer) stay whatever their age,
      and a leading summary of role ``user`` stays but for its age; both count.  Beside
      them at least one event stays;
    * calls and their results stay or go together.  Two kinds of groups stay whole
      even where that makes more than `max_events`: those with a long-running call
      that is open, but for their age; and the newest one where a part of it is within
      the limits and no user's turn follows it;
    * a turn begins with a user's turn.  Where a limit took its beginning, the rest of
      it leaves too, if a later user's turn stays; so does the rest of what stands in
      front of the first turn, or behind a leading summary;
    * if all this leaves no user's turn, the session's first, which is no summary,
      stays at its place, whatever its age, and counts; the oldest of the others makes
      room.

    Without limits only orphans leave, and what is within its limits is left as it is.
    To select from what was kept, at the same time, changes nothing.

    Args:
        messages: the history in its order; `None`: an event without a message, which
            ages and counts as any other.
        times_us: of each event, the smaller of its own time and that at which it was
            stored, in microseconds since the epoch.
        now_us: the time of the view, likewise.
        event_ttl_seconds: what is strictly older than this leaves; 0: no limit.
        max_events: how many stay; 0: no limit.
        summaries: the places of summaries.
        long_running: the ids of calls whose tools answer later.

    Raises:
        ValueError: a limit is negative, no number, or not finite; there is not one
            time for each message; a summary is not in the history.

    Linear in the number of events.
    """
    _check_limits(event_ttl_seconds, max_events)
    if len(times_us) != len(messages):
        raise ValueError(f"{len(times_us)} times for {len(messages)} messages")
    if any(not 0 <= place < len(messages) for place in summaries):
        raise ValueError(f"a summary is not one of {len(messages)} events")
    history = _History(
        messages, frozenset(summaries), find_groups(messages, long_running)
    )
    ttl_us = micros(event_ttl_seconds) if event_ttl_seconds else None
    oldest = None if ttl_us is None else now_us - ttl_us
    dropped = history.drop(times_us, oldest, max_events, first_turn=None)
    first = history.first_turn
    if first is not None and not history.keeps_turn(dropped):
        dropped = history.drop(times_us, oldest, max_events, first_turn=first)
    kept = tuple(i for i in range(len(messages)) if i not in dropped)
    overrun = max(0, len(kept) - max_events) if max_events else 0
    return View(kept, dict(sorted(dropped.items())), overrun)


def _check_limits(event_ttl_seconds: object, max_events: object) -> None:
    if (
        isinstance(event_ttl_seconds, bool)
        or not isinstance(event_ttl_seconds, int | float)
        or not 0 <= event_ttl_seconds < math.inf
    ):
        raise ValueError(f"event_ttl_seconds is not {event_ttl_seconds!r}")
    if (
        isinstance(max_events, bool)
        or not isinstance(max_events, int)
        or max_events < 0
    ):
        raise ValueError(f"max_events is not {max_events!r}")


_Dropped: TypeAlias = dict[int, DropRule]
_LIMITS: Final = frozenset((DropRule.AGE, DropRule.COUNT))


class _History:
    """What the rules have to know of the events, whatever the limits."""

    def __init__(
        self,
        messages: Sequence[ChatMessage | None],
        summaries: frozenset[int],
        groups: CallGroups,
    ) -> None:
        self._size: Final = len(messages)
        self._orphans = _pure_orphans(messages, groups)
        self._turns = [i for i, m in enumerate(messages) if is_user_turn(m)]
        self._heads = frozenset(self._turns)
        self.first_turn: Final = next(
            (i for i in self._turns if i not in summaries), None
        )
        self._bundles = groups.bundles()
        waiting = {
            group.message_index
            for group in groups.groups
            if any(call.long_running for call in group.open_calls)
        }
        self._waiting = [b for b in self._bundles if not waiting.isdisjoint(b)]
        self._newest: Sequence[int] = max(
            self._bundles, key=lambda bundle: bundle[-1], default=()
        )
        if self._newest and self._turns and self._turns[-1] > self._newest[-1]:
            self._newest = ()
        self._instructions: set[int] = set()
        """The leading ones."""
        self._summary: int | None = None
        """The leading one."""
        for index, message in enumerate(messages):
            if message is None or index in self._orphans:
                continue
            if is_preamble(message):
                self._instructions.add(index)
                continue
            if index in summaries and is_user_turn(message):
                self._summary = index
            break

    def keeps_turn(self, dropped: _Dropped) -> bool:
        """Tell whether a user's turn is kept."""
        return any(index not in dropped for index in self._turns)

    def drop(
        self,
        times_us: Sequence[int],
        oldest: int | None,
        max_events: int,
        *,
        first_turn: int | None,
    ) -> _Dropped:
        """Return what leaves if this turn of the user's, if any, stays in any case."""
        dropped: _Dropped = dict.fromkeys(self._orphans, DropRule.ORPHAN)
        leading = set(self._instructions)
        if first_turn is not None:
            leading.add(first_turn)
        if oldest is not None:
            for index, time in enumerate(times_us):
                if time < oldest and index not in leading:
                    dropped.setdefault(index, DropRule.AGE)
        if self._summary is not None and self._summary not in dropped:
            leading.add(self._summary)
        protected = set(leading)
        for bundle in self._waiting:
            if dropped.keys().isdisjoint(bundle):
                protected.update(bundle)
        if max_events:
            fixed = len(leading) - (first_turn is not None)
            room = max(1, max_events - fixed) - (first_turn is not None)
            gone = dropped.keys() | leading
            others = [i for i in range(self._size) if i not in gone]
            for index in others[: max(0, len(others) - room)]:
                if index not in protected:
                    dropped[index] = DropRule.COUNT
        if any(index not in dropped for index in self._newest):
            protected.update(self._newest)
            for index in self._newest:
                dropped.pop(index, None)
        self._drop_turns(dropped, leading, protected)
        self._drop_groups(dropped, protected)
        return dropped

    def _drop_turns(
        self, dropped: _Dropped, leading: Collection[int], protected: Collection[int]
    ) -> None:
        """Drop what limits left of turns, and of what stands in front of the first."""
        last = next((i for i in reversed(self._turns) if i not in dropped), -1)
        for start, end in pairwise((0, *self._turns)):
            if end > last:
                return
            headed = start in self._heads and start not in dropped
            if headed and start not in leading:
                continue
            section = range(start, end)
            if any(dropped.get(index) in _LIMITS for index in section):
                for index in section:
                    if index not in protected:
                        dropped.setdefault(index, DropRule.TURN)

    def _drop_groups(self, dropped: _Dropped, protected: Collection[int]) -> None:
        """Drop the rest of the groups of which a part was dropped."""
        for bundle in self._bundles:
            if bundle[0] in protected or dropped.keys().isdisjoint(bundle):
                continue
            for index in bundle:
                dropped.setdefault(index, DropRule.GROUP)


def _pure_orphans(
    messages: Sequence[ChatMessage | None], groups: CallGroups
) -> frozenset[int]:
    """Return the messages that are nothing but orphans."""
    count = Counter(result.message_index for result in groups.orphans)
    return frozenset(
        index
        for index, orphans in count.items()
        if (message := messages[index]) is not None
        and not has_more_than(message, marks := results_in(message))
        and len(marks) == orphans
    )
