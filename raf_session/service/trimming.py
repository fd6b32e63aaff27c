"""Trimming: what leaves a session's view for good leaves its storage, in steps."""

from __future__ import annotations

from raf_session.clock import to_micros
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.journal import Commit, Journal
from raf_session.service.config import SessionServiceConfig
from raf_session.service.event_entries import event_of
from raf_session.service.views import LEAVES_STORAGE, Filter, view_of

__all__ = ("Trimmer",)


class Trimmer:
    """Moves events that a session shows no more to its archive, or deletes them.

    In steps of `step` events, so that an append costs the same in the long run and the
    beginning of the history, which providers cache, moves seldom.

    Args:
        config: how many events a session holds, and for how long.
    """

    def __init__(self, config: SessionServiceConfig) -> None:
        self._limits = Filter(config.max_events, config.event_ttl_seconds)
        self._archives = config.store_historical_events
        self.step: int = max(32, config.max_events // 4)
        """How many events leave at once, at least."""

    def is_due(self, commit: Commit) -> bool:
        """Tell whether an append made it time to look."""
        head = commit.head
        if self._limits.max_events:
            excess = head.active.entries - self._limits.max_events
            if excess >= self.step:
                return True
        if not self._limits.event_ttl_seconds:
            return False
        before = head.last_seq - len(commit.entries)
        return head.last_seq // self.step > before // self.step

    async def trim(self, journal: Journal, commit: Commit) -> Commit | None:
        """Trim the session of that append, unless it was written in between.

        The session's first message of the user's stays, since a view may need it.

        Returns:
            The splice; `None` where there was not enough to trim.
        """
        head = commit.head
        try:
            record = await journal.load(head.key)
            events = [event_of(entry) for entry in record.entries]
            dropped = view_of(events, self._limits, to_micros(journal.clock())).dropped
            first = next((e.seq for e in events if e.is_user_turn), 0)
            leaving = {events[i].seq for i, r in dropped.items() if r in LEAVES_STORAGE}
            leaving.discard(first)
            if len(leaving) < self.step:
                return None
            low, high = min(leaving), max(leaving)
            between = {e.seq for e in record.entries if low <= e.seq <= high}
            return await journal.splice(
                head.key,
                low,
                high,
                keep=between - leaving,
                archive=self._archives,
                expected_revision=record.head.revision,
                incarnation=head.incarnation,
            )
        except (StaleSessionError, SessionNotFoundError):
            return None  # the next append looks again
