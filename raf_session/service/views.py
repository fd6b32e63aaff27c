"""Views: which of its events a session shows, and which its storage keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from raf_session.filtering import DropRule, View, select
from raf_session.service.events import Event
from raf_session.toolcalls import CallGroups, find_groups

__all__ = (
    "LEAVES_STORAGE",
    "Filter",
    "groups_of",
    "long_running_calls",
    "view_of",
)

LEAVES_STORAGE: Final = frozenset(
    (DropRule.AGE, DropRule.COUNT, DropRule.GROUP, DropRule.TURN)
)
"""The rules by which an event leaves its session for good."""


class Filter(NamedTuple):
    """How many events may be shown, and how old they may be; 0: no limit."""

    max_events: int = 0
    event_ttl_seconds: float = 0.0

    def __bool__(self) -> bool:
        """Whether it limits anything."""
        return self.max_events > 0 or self.event_ttl_seconds > 0


def view_of(events: Sequence[Event], limits: Filter, now_us: int) -> View:
    """Return which of these events are shown at that moment."""
    ages = limits.event_ttl_seconds > 0
    return select(
        [event.content for event in events],
        [event.age_us for event in events] if ages else [0] * len(events),
        now_us=now_us,
        event_ttl_seconds=limits.event_ttl_seconds,
        max_events=limits.max_events,
        summaries=[i for i, event in enumerate(events) if event.is_summary],
        long_running=long_running_calls(events),
    )


def groups_of(events: Sequence[Event]) -> CallGroups:
    """Return which results belong to which calls of these events."""
    return find_groups([event.content for event in events], long_running_calls(events))


def long_running_calls(events: Sequence[Event]) -> frozenset[str]:
    """Return the ids of the calls whose tools answer later."""
    return frozenset[str]().union(
        *(event.long_running_tool_ids or () for event in events)
    )
