"""The order of listings in memory, against a plain sort."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.changes import Change, LabelDelta
from raf_session.clock import from_micros, to_micros
from raf_session.entries import Entry, SessionHead
from raf_session.journal import Order
from raf_session.journals import _memory_listing
from raf_session.journals._memory_order import ActivityOrder, Rank, rank_of
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = [
    SessionKey(app, user, "", name)
    for app in ("a", "b")
    for user in ("", "u")
    for name in ("1", "2", "3")
]

moments = st.integers(-5, 5)  # microseconds: what is off by one shows
keys = st.sampled_from(KEYS)


# The order alone ----------------------------------------------------------------------

steps = st.lists(
    st.one_of(
        st.tuples(st.just("by the clock"), keys, st.integers(-2, 3)),
        st.tuples(st.just("given"), keys, moments),
        st.tuples(st.just("removed"), keys, st.just(0)),
    ),
    max_size=40,
)


@given(steps, keys, st.integers(-12, 100))
def test_keys_stand_as_a_sort_puts_them(
    taken: Sequence[tuple[str, SessionKey, int]], at: SessionKey, active: int
) -> None:
    order, times, now = ActivityOrder(), dict[SessionKey, int](), 0
    for what, key, number in taken:
        if what == "removed":
            order.remove(key)
            times.pop(key, None)
        else:
            if what == "by the clock":
                now += number
                times[key] = max(now, times.get(key, now))
            else:
                times[key] = now + number
            order.move(key, from_micros(times[key]), now)
        ranks = sorted((-time, key) for key, time in times.items())
        assert len(order) == len(times)
        assert list(order.after()) == [key for _, key in ranks]
        for place in ((-active, at), *ranks[:: len(ranks) // 2 + 1]):
            behind = [rank[1] for rank in ranks if rank > place]
            assert list(order.after(place)) == behind


def test_the_clock_alone_makes_no_strays() -> None:
    order = ActivityOrder()
    for now in range(200):
        order.move(KEYS[now * 7 % 12], from_micros(now), now)
    assert not order._ranks
    order.move(KEYS[0], from_micros(10**9), 200)  # given, far ahead
    for now in range(200, 400):
        order.move(KEYS[1 + now * 7 % 11], from_micros(now), now)
    assert order._ranks == [rank_of(KEYS[0], from_micros(10**9))]


# Whole journals -----------------------------------------------------------------------


def _shown(
    heads: Sequence[SessionHead], query: Query, order: Order, after: Rank | None
) -> list[SessionKey]:
    """Return the keys that a listing has to show, by a plain sort."""

    def place(head: SessionHead) -> Any:
        rank = rank_of(head.key, head.last_active_at)
        return rank if order == "activity" else (0, head.key)

    since, before = query.active_since, query.active_before
    return [
        head.key
        for head in sorted(heads, key=place)
        if query.app in {None, head.key.app}
        and query.user in {None, head.key.user}
        and head.labels.issuperset(query.labels)
        and (since is None or head.last_active_at >= since)
        and (before is None or head.last_active_at < before)
        and (after is None or place(head) > after)
    ]


acts = st.one_of(
    st.tuples(st.just("create"), keys, st.one_of(st.none(), moments)),
    st.tuples(st.just("append"), keys, st.none()),
    st.tuples(st.just("touch"), keys, moments),
    st.tuples(st.just("refresh"), keys, st.none()),
    st.tuples(st.just("label"), keys, st.sampled_from("xy")),
    st.tuples(st.just("unlabel"), keys, st.sampled_from("xy")),
    st.tuples(st.just("delete"), keys, st.none()),
    st.tuples(st.just("expire"), keys, st.none()),
    st.tuples(st.just("page"), keys, st.none()),
)
bounds = st.integers(-5, 15).map(lambda n: START + timedelta(0, 0, n))
queries = st.builds(
    Query,
    app=st.sampled_from((None, None, "a")),
    user=st.sampled_from((None, None, "u")),
    labels=st.sampled_from(((), (), ("x",), ("x", "y"))),
    active_since=st.none() | bounds,
    active_before=st.none() | bounds,
)


class _Run:
    """A journal whose clock goes back and forth, and a listing of it under way."""

    def __init__(self, order: Order, query: Query, limit: int, idle: float) -> None:
        self.now = START
        ttl = SessionTTLOptions(max_idle_secs=idle)
        self.journal = MemoryJournal.opened(
            limits=Limits(sessions=ttl), clock=lambda: self.now
        )
        self.query, self.order, self.limit = query, order, limit
        self.cursor: str | None = None
        self.after: Rank | None = None
        self.count = 0

    def heads(self) -> list[SessionHead]:
        rule, now = self.journal._rules.sessions, to_micros(self.now)
        kept = (session.head for session in self.journal._sessions.values())
        return [head for head in kept if not rule.head_expired(head, now)]

    async def act(self, what: str, key: SessionKey, value: Any) -> None:
        """Do one thing, where the session is there or is not, as that needs."""
        journal, there = self.journal, key in {head.key for head in self.heads()}
        if what == "create":
            given = None if value is None else self.now + timedelta(0, 0, value)
            if not there:
                await journal.create(NewSession(key=key, last_active_at=given))
        elif what == "expire":
            await journal.expire(2)
        elif what == "page":
            await self.page()
        elif not there:
            return
        elif what == "append":
            self.count += 1
            entry = Entry(f"e{self.count}", message=ChatMessage.user("hello"))
            await journal.append(key, [entry])
        elif what == "touch":
            await journal.update(key, Change(touch=self.now + timedelta(0, 0, value)))
        elif what == "refresh":
            await journal.load(key, refresh=True)
        elif what == "delete":
            await journal.delete(key)
        else:
            names = (value,), ()
            labels = LabelDelta(*(names if what == "label" else names[::-1]))
            await journal.update(key, Change(labels=labels))

    def check_listing(self) -> None:
        """Compare what the listing keeps with the sessions, expired ones included."""
        listing, kept = self.journal._listing, self.journal._sessions
        heads = [session.head for session in kept.values()]
        ranks = sorted(rank_of(head.key, head.last_active_at) for head in heads)
        assert listing.keys == sorted(kept)
        assert list(listing.activity.after()) == [key for _, key in ranks]
        labels = {label for head in heads for label in head.labels}
        assert listing._labelled == {
            label: {head.key for head in heads if label in head.labels}
            for label in labels
        }

    async def page(self) -> None:
        """Read the next page and compare it; behind the last one begin anew."""
        expected = _shown(self.heads(), self.query, self.order, self.after)
        page = await self.journal.scan(
            self.query, self.cursor, order=self.order, limit=self.limit
        )
        heads = [listed.head for listed in page.sessions]
        assert [head.key for head in heads] == expected[: self.limit]
        assert heads == [self.journal._sessions[head.key].head for head in heads]
        assert (page.cursor is None) == (len(expected) <= self.limit)
        self.cursor, self.after = page.cursor, None
        if page.cursor is not None:
            last = heads[-1]
            rank = rank_of(last.key, last.last_active_at)
            self.after = rank if self.order == "activity" else (0, last.key)


@pytest.mark.parametrize("order", ["activity", "key"])
@pytest.mark.parametrize("few", [0, 500])
@given(
    st.tuples(*[st.none() | moments for _ in KEYS]),
    st.lists(st.tuples(acts, st.integers(-2, 3)), max_size=30),
    st.tuples(queries, st.integers(1, 4), st.sampled_from((4e-6, 1000))),
)
def test_pages_are_as_a_sort_makes_them(
    order: Order,
    few: int,
    begun: Sequence[int | None],
    taken: Sequence[tuple[tuple[str, SessionKey, Any], int]],
    listing: tuple[Query, int, float],
) -> None:
    async def main() -> None:
        run = _Run(order, *listing)
        for key, active in zip(KEYS, begun, strict=True):
            await run.act("create", key, active)
        for act, passed in taken:
            run.now += timedelta(0, 0, passed)
            await run.act(*act)
            run.check_listing()
        for _ in range(len(KEYS) + 2):
            await run.page()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_memory_listing, "_FEW", few)
        anyio.run(main)


@pytest.mark.anyio
@pytest.mark.parametrize("active", [-(1 << 62), -1, 0, 1 << 62])
async def test_a_cursor_of_any_moment_is_a_place(active: int) -> None:
    journal = MemoryJournal.opened(clock=lambda: START)
    for key in KEYS:
        await journal.create(NewSession(key=key))
    page = await journal.scan(Query(), f"activity:{active}:{KEYS[0]}")
    shown = KEYS if active > to_micros(START) else []
    assert [listed.head.key for listed in page.sessions] == shown


@pytest.mark.anyio
async def test_labels_that_are_gone_are_no_way_to_a_session() -> None:
    journal = MemoryJournal.opened()
    for key in KEYS[:3]:
        change = Change(labels=LabelDelta(("x", "y")))
        await journal.create(NewSession(key=key), change=change)
    await journal.update(KEYS[0], Change(labels=LabelDelta((), ("x",))))
    await journal.delete(KEYS[1])
    for label, left in (("x", KEYS[2:3]), ("y", [KEYS[0], KEYS[2]])):
        page = await journal.scan(Query(labels=(label,)), order="key")
        assert [listed.head.key for listed in page.sessions] == left
        assert journal._listing._labelled[label] == set(left)
    await journal.delete(KEYS[2])
    assert list(journal._listing._labelled) == ["y"]
