"""Checks of the filters of `Journal.scan`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from raf_session.changes import Change, LabelDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import every, raises, same
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


async def check_scan_filters(make: JournalFactory) -> None:
    """App, user, scope, labels and time filter alone and together."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        facts: dict[SessionKey, tuple[frozenset[str], int]] = {}
        for n in range(24):
            key = SessionKey(
                "ab"[n % 2], ("", "u", "v")[n % 3], "st"[n % 4 // 2], f"{n}"
            )
            labels = frozenset(x for i, x in enumerate("xyz") if n >> i & 1)
            clock.set(START + timedelta(seconds=n // 4))
            await journal.create(
                NewSession(key=key), change=Change(labels=LabelDelta(added=labels))
            )
            facts[key] = (labels, n // 4)
        seconds = (None, 0, 2, 3, 99)
        times = [None if s is None else START + timedelta(seconds=s) for s in seconds]
        for app in (None, "a", "c", ""):
            for user in (None, "", "u", "w"):
                for scope in (None, "s", ""):
                    await _filter(journal, facts, app=app, user=user, scope=scope)
        for asked in ((), ("x",), ("x", "y"), ("x", "y", "z"), ("X",), ("no",)):
            for since in times:
                for before in times:
                    await _filter(
                        journal, facts, labels=asked, since=since, before=before
                    )
            await _filter(journal, facts, app="a", user="u", labels=asked)


async def _filter(
    journal: Journal,
    facts: dict[SessionKey, tuple[frozenset[str], int]],
    *,
    app: str | None = None,
    user: str | None = None,
    scope: str | None = None,
    labels: tuple[str, ...] = (),
    since: Any = None,
    before: Any = None,
) -> None:
    query = Query(
        app=app,
        user=user,
        scope=scope,
        labels=labels,
        active_since=since,
        active_before=before,
    )
    expected = [
        key
        for key, (own, second) in facts.items()
        if app in {None, key.app}
        and user in {None, key.user}
        and scope in {None, key.scope}
        and own >= set(labels)
        and (since is None or START + timedelta(seconds=second) >= since)
        and (before is None or START + timedelta(seconds=second) < before)
    ]
    seen = await _keys(journal, query, order="key", limit=5)
    same(seen, sorted(expected, key=_exact), f"{query} by key")
    seen = await _keys(journal, query, order="activity", limit=5)
    same(set(seen), set(expected), f"{query} by activity")
    same(len(seen), len(expected), f"how many of {query} by activity")


async def check_filters_are_literal(make: JournalFactory) -> None:
    """Wildcards, quotes and separators in a filter stand for themselves."""
    names = [
        "a", "A", "ab", "b", "%", "_", "*", "?", "[ab]", "[a-z]", "a%", "a_", "a*",
        "\\", "\\%", "'", '"', "a'b", "a/b", "a:b", "{a}", "a ", " a", "a\n", "-", "^a",
        "é", "e\u0301", "%25", "%2f", ".", "..",
    ]  # fmt: skip
    async with make() as journal:
        for name in names:
            for key in (
                SessionKey(name, "u", "", "s"),
                SessionKey("app", name, "", "s"),
                SessionKey("app", "u", name, "s"),
            ):
                await journal.create(
                    NewSession(key=key),
                    change=Change(labels=LabelDelta(added=(name,))),
                )
        for name in names:
            for query, expected in (
                (Query(app=name), [SessionKey(name, "u", "", "s")]),
                (Query(user=name), [SessionKey("app", name, "", "s")]),
                (Query(scope=name), [SessionKey("app", "u", name, "s")]),
            ):
                same(await _keys(journal, query), expected, f"{query}")
            labelled = await _keys(journal, Query(labels=(name,)))
            same(len(labelled), 3, f"sessions labelled {name!r}")


async def check_scan_refuses_bad_arguments(make: JournalFactory) -> None:
    """A limit under 1 and a cursor of another order are `ValueError`."""
    async with make() as journal:
        for n in range(5):
            await journal.create(NewSession(key=_key(n)))
        for limit in (0, -1):
            with raises(ValueError, f"limit={limit}"):
                await journal.scan(Query(), limit=limit)
        cursors: dict[Order, str] = {}
        for order in _ORDERS:
            cursor = (await journal.scan(Query(), order=order, limit=2)).cursor
            assert cursor is not None, "there is another page"
            cursors[order] = cursor
        with raises(ValueError, "a cursor of key order"):
            await journal.scan(Query(), cursors["key"], order="activity")
        with raises(ValueError, "a cursor of activity order"):
            await journal.scan(Query(), cursors["activity"], order="key")
        for order in _ORDERS:
            with raises(ValueError, "no cursor at all"):
                await journal.scan(Query(), "\x00 nonsense", order=order)


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_scan_filters,
    check_filters_are_literal,
    check_scan_refuses_bad_arguments,
)
