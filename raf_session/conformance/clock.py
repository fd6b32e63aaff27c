"""`TickingClock`, a clock that moves when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from raf_session.clock import utc

__all__ = ("START", "TickingClock")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When a `TickingClock` begins."""


class TickingClock:
    """A clock of the test's own: `clock=` of a journal, so that no test sleeps."""

    def __init__(self, start: datetime = START) -> None:
        self._now = utc(start)

    def __call__(self) -> datetime:
        """Return the moment at which the clock stands."""
        return self._now

    def tick(self, seconds: float = 1, *, microseconds: int = 0) -> datetime:
        """Move on, or back where the sum is negative, and return the new moment."""
        self._now += timedelta(seconds=seconds, microseconds=microseconds)
        return self._now

    def set(self, moment: datetime) -> datetime:
        """Stand at that moment, earlier or later, and return it."""
        self._now = utc(moment)
        return self._now
