"""Checks of `Journal.scan`: orders, filters and completeness."""

from __future__ import annotations

from typing import Any, Final

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import KEY, NEW, batch, every, same
from raf_session.journal import Journal, Order
from raf_session.keys import SessionKey
from raf_session.options import NewSession, Query

_ORDERS: Final[tuple[Order, ...]] = ("key", "activity")


def _key(n: int) -> SessionKey:
    return SessionKey("app", f"u{n % 3}", "", f"s{n:03}")


def _exact(key: SessionKey) -> tuple[bytes, ...]:
    return tuple(part.encode() for part in key)


async def _keys(journal: Journal, query: Query, **options: Any) -> list[SessionKey]:
    return [x.head.key for x in await every(journal, query, **options)]


async def check_scan_of_nothing_is_empty(make: JournalFactory) -> None:
    """An empty journal lists nothing, in one page."""
    async with make() as journal:
        for order in _ORDERS:
            page = await journal.scan(Query(), order=order)
            same((page.sessions, page.cursor), ((), None), f"the page by {order}")


async def check_scan_lists_each_session_once(make: JournalFactory) -> None:
    """For any page size both orders list every session once, with its stored head."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        heads: dict[SessionKey, object] = {}
        for n in range(25):
            clock.tick(n % 4)  # many equal times
            key = _key(n * 7 % 25)
            heads[key] = (await journal.create(NewSession(key=key), batch("a"))).head
        for order in _ORDERS:
            for limit in (1, 2, 3, 7, 24, 25, 26, 100):
                listed = await every(journal, order=order, limit=limit)
                same(len(listed), 25, f"how many by {order}, {limit} a page")
                seen = {x.head.key: x.head for x in listed}
                same(seen, heads, f"heads by {order}, {limit} a page")
                same([x.state for x in listed], [None] * 25, "no state was asked for")


async def check_key_order_is_by_exact_bytes(make: JournalFactory) -> None:
    """Key order compares app, user, scope and session as UTF-8 bytes."""
    parts = ("", "A", "a", "a ", "a/", "a0", "b", "\u00e9", "e\u0301", "\uffee", "😀")
    keys = [SessionKey(p, q, "", "s") for p in parts for q in ("", "x", "\uffee", "😀")]
    keys += [SessionKey("a", "x", p, q) for p in parts for q in parts if q]
    async with make() as journal:
        for key in reversed(keys):
            await journal.create(NewSession(key=key))
        expected = sorted(keys, key=_exact)
        for limit in (7, 1000):
            seen = await _keys(journal, Query(), order="key", limit=limit)
            same(seen, expected, f"the order, {limit} a page")


async def check_activity_order_is_last_first(make: JournalFactory) -> None:
    """Activity order is last active first, equal times by key, across pages."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        for n in range(12):
            await journal.create(NewSession(key=_key(n)))
        clock.tick()
        for n in (7, 2, 9):
            await journal.append(_key(n), batch("a"))
        clock.tick()
        await journal.update(_key(4), Change(touch=clock()))
        await journal.load(_key(3), refresh=True)
        await journal.update(_key(5), Change(title="no activity"))
        rest = [_key(n) for n in (0, 1, 5, 6, 8, 10, 11)]
        expected = [
            *sorted([_key(3), _key(4)], key=_exact),
            *sorted([_key(2), _key(7), _key(9)], key=_exact),
            *sorted(rest, key=_exact),
        ]
        for limit in (1, 2, 5, 12, 100):
            seen = await _keys(journal, Query(), order="activity", limit=limit)
            same(seen, expected, f"the order, {limit} a page")


async def check_scan_pages_over_equal_times(make: JournalFactory) -> None:
    """200 sessions of one moment are each listed once, in both orders."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        keys = [SessionKey("app", "u", "", f"s{n:03}") for n in range(200)]
        for key in keys:
            await journal.create(NewSession(key=key))
        for order in _ORDERS:
            for limit in (7, 50, 200):
                seen = await _keys(
                    journal, Query(app="app", user="u"), order=order, limit=limit
                )
                same(seen, keys, f"by {order}, {limit} a page")


async def check_key_order_is_complete(make: JournalFactory) -> None:
    """What exists throughout comes once, while sessions come, go and move between."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        stay = [SessionKey("app", "u", "", f"m{n:02}") for n in range(20)]
        gone = [SessionKey("app", "u", "", f"m{n:02}x") for n in range(20)]
        for key in stay + gone:
            await journal.create(NewSession(key=key))
        seen: list[SessionKey] = []
        cursor: str | None = None
        for step in range(1000):
            page = await journal.scan(Query(app="app"), cursor, order="key", limit=3)
            seen += [x.head.key for x in page.sessions]
            cursor = page.cursor
            if cursor is None:
                break
            clock.tick()
            if step < len(gone):
                await journal.delete(gone[step])
                await journal.delete(gone[-1 - step])
            for prefix in ("a", "m10y", "z"):
                key = SessionKey("app", "u", "", f"{prefix}{step:03}")
                await journal.create(NewSession(key=key))
            for n in (step % 20, 19 - step % 20):
                await journal.append(stay[n], batch(f"e{step}-{n}"))
            if page.sessions:  # the key on which the cursor stands
                last = page.sessions[-1].head.key
                if last not in stay:
                    await journal.delete(last)
        else:
            raise AssertionError("the listing does not end")
        same(len(seen), len(set(seen)), "no session comes twice")
        same([key for key in seen if key in set(stay)], stay, "those that stayed")


async def check_scan_reads_state_on_request(make: JournalFactory) -> None:
    """With `state` each session comes with its own state, not its scopes'."""
    async with make() as journal:
        for n in range(5):
            change = Change(
                session=StateDelta({"n": n, "x": None} if n else {}),
                user=StateDelta({"u": 1}),
                app=StateDelta({"a": 1}),
            )
            await journal.create(NewSession(key=_key(n)), change=change)
        await journal.append(
            _key(1), batch("a"), change=Change(session=StateDelta({"m": 1}, ["x"]))
        )
        expected: dict[SessionKey, object] = {
            _key(n): {"n": n, "x": None} for n in range(5)
        }
        expected[_key(0)] = {}
        expected[_key(1)] = {"n": 1, "m": 1}
        for order in _ORDERS:
            listed = await every(journal, order=order, limit=2, state=True)
            same({x.head.key: x.state for x in listed}, expected, f"states by {order}")


async def check_scan_shows_the_head_of_now(make: JournalFactory) -> None:
    """A listing shows what appends, splices and updates have made of a head."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a", "b"))
        writes = (
            lambda: journal.append(KEY, batch("c"), trim=2),
            lambda: journal.splice(KEY, 2, 2, archive=True),
            lambda: journal.update(
                KEY, Change(title="t", labels=LabelDelta(("x",)), pin=True)
            ),
            lambda: journal.load(KEY, refresh=True),
        )
        for write in writes:
            clock.tick()
            await write()
            head = (await journal.load(KEY)).head
            for order in _ORDERS:
                same([x.head for x in await every(journal, order=order)], [head], "it")
        same(await _keys(journal, Query(labels=("x",))), [KEY], "by a new label")
        await journal.update(KEY, Change(labels=LabelDelta((), ("x",))))
        same(await _keys(journal, Query(labels=("x",))), [], "by a removed label")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_scan_of_nothing_is_empty,
    check_scan_lists_each_session_once,
    check_key_order_is_by_exact_bytes,
    check_activity_order_is_last_first,
    check_scan_pages_over_equal_times,
    check_key_order_is_complete,
    check_scan_reads_state_on_request,
    check_scan_shows_the_head_of_now,
)
