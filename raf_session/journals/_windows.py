"""Windows over what is in memory, in order of place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

from typing_extensions import Protocol

from raf_session.clock import to_micros
from raf_session.options import Window

__all__ = ("within",)


class Placed(Protocol):
    """What stands at a place of a session, since some time."""

    @property
    def seq(self) -> int:
        """The place."""
        ...

    @property
    def stored_at(self) -> int:
        """Microseconds since the epoch; it grows with the places."""
        ...


_P = TypeVar("_P", bound=Placed)


def within(placed: Sequence[_P], window: Window) -> Sequence[_P]:
    """Return those of the active entries that are in the window."""
    low, high = 0, len(placed)
    if window.after_seq is not None:
        low = bisect_right(placed, window.after_seq, key=attrgetter("seq"))
    if window.before_seq is not None:
        high = bisect_left(placed, window.before_seq, key=attrgetter("seq"))
    if window.after_time is not None:
        moment = to_micros(window.after_time)
        low = max(low, bisect_right(placed, moment, key=attrgetter("stored_at")))
    if window.last is not None:
        low = max(low, high - window.last)
    return placed[low:high]
