"""`Listing`: which sessions the journal in memory holds, by key, activity and label."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice, takewhile
from typing import Final

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.journal import Order
from raf_session.journals._memory_order import ActivityOrder, Rank, rank_of
from raf_session.journals._memory_records import MemorySession
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Listing",)

_FEW: Final = 500
"""So many sessions are sorted rather than looked for in order of activity."""


class Listing:
    """Finds a page of sessions without a look at all of them.

    Args:
        sessions: the sessions, which the journal adds and removes.
    """

    def __init__(self, sessions: Mapping[SessionKey, MemorySession]) -> None:
        self._sessions = sessions
        self.keys: list[SessionKey] = []
        """All keys, sorted."""
        self.activity = ActivityOrder()
        """The order by activity, which whoever moves a time keeps up."""
        self._labelled: dict[str, set[SessionKey]] = {}

    def add(self, head: SessionHead, now: int) -> None:
        """Take in a session that was not there."""
        insort(self.keys, head.key)
        self.activity.move(head.key, head.last_active_at, now)
        self._label(head.key, head.labels)

    def relabel(self, former: SessionHead, head: SessionHead) -> None:
        """Take in that a session carries other labels."""
        self._unlabel(head.key, former.labels)
        self._label(head.key, head.labels)

    def remove(self, head: SessionHead) -> None:
        """Leave out a session from now on."""
        del self.keys[bisect_left(self.keys, head.key)]
        self.activity.remove(head.key)
        self._unlabel(head.key, head.labels)

    def _label(self, key: SessionKey, labels: Collection[str]) -> None:
        for label in labels:
            self._labelled.setdefault(label, set()).add(key)

    def _unlabel(self, key: SessionKey, labels: Collection[str]) -> None:
        for label in labels:
            keys = self._labelled[label]
            keys.remove(key)
            if not keys:
                del self._labelled[label]

    # Pages -----------------------------------------------------------------------

    def page(
        self,
        query: Query,
        after: Rank | None,
        order: Order,
        limit: int,
        matches: Callable[[SessionHead], bool],
    ) -> list[MemorySession]:
        """Return the sessions of a page, in order, and the one behind it if there is.

        Args:
            query: what to list.
            after: the session in front of the page.
            order: by activity or by key.
            limit: how many make a page.
            matches: whether a session is what the query asks for.
        """
        keys = (
            self._by_key(query, after)
            if order == "key"
            else self._by_activity(query, after)
        )
        sessions = map(self._sessions.__getitem__, keys)
        found = (session for session in sessions if matches(session.head))
        return list(islice(found, limit + 1))

    def _by_key(self, query: Query, after: Rank | None) -> Iterator[SessionKey]:
        few = self._few_labelled(query)
        keys = self.keys if few is None else sorted(few)
        low, high = _span(keys, query)
        if after is not None:
            low = max(low, bisect_right(keys, after[1]))
        return map(keys.__getitem__, range(low, high))

    def _by_activity(self, query: Query, after: Rank | None) -> Iterator[SessionKey]:
        few = self._few_labelled(query)
        if few is None:
            low, high = _span(self.keys, query)
            if high - low <= _FEW:
                few = self.keys[low:high]
        if few is None:
            return self._walk(query, after)
        ranks = sorted(
            rank_of(key, self._sessions[key].head.last_active_at) for key in few
        )
        first = 0 if after is None else bisect_right(ranks, after)
        return (key for _, key in islice(ranks, first, None))

    def _walk(self, query: Query, after: Rank | None) -> Iterator[SessionKey]:
        place: tuple[int, tuple[str, ...]] | None = after
        if query.active_before is not None:
            first = 1 - to_micros(query.active_before), ()
            place = first if place is None else max(place, first)
        keys = self.activity.after(place)
        since = query.active_since
        if since is None:
            return keys
        return takewhile(
            lambda key: self._sessions[key].head.last_active_at >= since, keys
        )

    def _few_labelled(self, query: Query) -> Collection[SessionKey] | None:
        """Return the keys that carry one of the labels, `None` where many do."""
        sets = (self._labelled.get(label, ()) for label in query.labels)
        least = min(sets, key=len, default=None)
        return None if least is None or len(least) > _FEW else least


def _span(keys: list[SessionKey], query: Query) -> tuple[int, int]:
    """Return where the keys stand that begin as the query says."""
    start: tuple[str, ...] = ()
    for part in (query.app, query.user, query.scope):
        if part is None:
            break
        start += (part,)
    low = bisect_left(keys, start)
    return low, bisect_right(keys, start, low, key=lambda key: key[: len(start)])
