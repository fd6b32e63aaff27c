"""`ActivityOrder`: keys by their last activity, put in place by each activity."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from heapq import merge
from itertools import dropwhile, islice
from typing import Final, TypeAlias

from raf_session.clock import to_micros
from raf_session.keys import SessionKey

__all__ = ("ActivityOrder", "Rank", "rank_of")

Rank: TypeAlias = tuple[int, SessionKey]
"""The last activity, negated, and the key: it rises in the order of `scan`."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def rank_of(key: SessionKey, moment: datetime) -> Rank:
    """Return the rank of a key that was last active at that moment."""
    return -to_micros(moment), key


class ActivityOrder:
    """Keys, last active first, ties by key.

    A key that becomes active goes to the end of a dict, at a cost that the number of
    keys does not set.  Where that is the wrong place for it, because its time was given
    and is not the clock's, or is another key's too, it is a *stray*: it stands in a
    sorted list until it is active again.  Where the clock went back, those that are
    ahead of the clock become strays.
    """

    def __init__(self) -> None:
        self._recent: dict[SessionKey, datetime] = {}  # ranks fall
        self._latest = _NEVER  # none of them is later
        self._strays: dict[SessionKey, Rank] = {}
        self._ranks: list[Rank] = []  # of the strays; they rise

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._recent) + len(self._strays)

    def move(self, key: SessionKey, moment: datetime, now: int) -> None:
        """Give a key its place, the first one or another.

        Args:
            key: the key.
            moment: when it was last active.
            now: the journal's time.
        """
        recent = self._recent
        if moment > self._latest:
            if recent.pop(key, None) is None:
                self._end_straying(key)
            recent[key] = self._latest = moment
        elif recent.get(key) != moment:
            self.remove(key)
            self._place(rank_of(key, moment), moment, now)

    def remove(self, key: SessionKey) -> None:
        """Take a key out; one that is not there is no error."""
        if self._recent.pop(key, None) is None:
            self._end_straying(key)

    def after(
        self, place: tuple[int, tuple[str, ...]] | None = None
    ) -> Iterator[SessionKey]:
        """Return the keys whose rank is higher than this, all without one, in order.

        Nothing may move before the iterator is used up or dropped.
        """
        recent: Iterator[SessionKey] = reversed(self._recent)
        ranks: Iterable[Rank] = self._ranks
        if place is not None:
            times = list(self._recent.values())
            later = len(times) - bisect_right(times, -place[0], key=to_micros)
            recent = dropwhile(
                lambda key: self._rank(key) <= place, islice(recent, later, None)
            )
            first = bisect_right(self._ranks, place)
            ranks = map(self._ranks.__getitem__, range(first, len(self._ranks)))
        if not self._ranks:
            return recent
        return (key for _, key in merge(map(self._rank, recent), ranks))

    def _rank(self, key: SessionKey) -> Rank:
        return rank_of(key, self._recent[key])

    # Strays ----------------------------------------------------------------------

    def _place(self, rank: Rank, moment: datetime, now: int) -> None:
        active, key = rank
        last = self._last()
        if -active == now:
            while last is not None and last[0] < active:
                self._recent.popitem()
                self._stray(last)
                last = self._last()
        if last is None or last > rank:
            self._recent[key] = self._latest = moment
        else:
            self._stray(rank)

    def _last(self) -> Rank | None:
        key = next(reversed(self._recent), None)
        return None if key is None else self._rank(key)

    def _stray(self, rank: Rank) -> None:
        self._strays[rank[1]] = rank
        insort(self._ranks, rank)

    def _end_straying(self, key: SessionKey) -> None:
        rank = self._strays.pop(key, None)
        if rank is not None:
            del self._ranks[bisect_left(self._ranks, rank)]
