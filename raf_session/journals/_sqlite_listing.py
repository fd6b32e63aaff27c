"""Listings: which sessions there are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from typing_extensions import override

from raf_session.clock import to_micros
from raf_session.journal import Listed, Order, Page
from raf_session.journals import _checks
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_heads import HEADS, read_head
from raf_session.journals._texts import Values
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Listing",)

_FEW: Final = 1000
"""So many sessions are read and sorted rather than looked for in order of activity."""
_KEY: Final = ("app", "user", "scope", "session")
_BY_ACTIVITY: Final = f"last_active_at DESC, {', '.join(_KEY)}"


class _Where:
    """Conditions, and what stands for their question marks."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self.values: list[Any] = []

    def add(self, term: str, *values: Any) -> None:
        self._terms.append(term)
        self.values += values

    def copy(self) -> _Where:
        other = _Where()
        other.add(str(self), *self.values)
        return other

    @override
    def __str__(self) -> str:
        return " AND ".join(self._terms) or "1"


class Listing:
    """The transactions that list sessions.

    Args:
        rules: limits and clock of the journal.
        values: how text becomes state.
    """

    def __init__(self, rules: Rules, values: Values) -> None:
        self._rules = rules
        self._values = values

    def scan(
        self,
        cursor: sqlite3.Cursor,
        query: Query,
        after: tuple[int, SessionKey] | None,
        order: Order,
        limit: int,
        *,
        state: bool,
    ) -> Page:
        """Read one page; see `Journal.scan`."""
        where = _Where()
        source = _few(cursor, query, where)
        walk = source is None and order == "activity"
        self._match(where, query, walk=walk)
        if order == "key":
            source = source or "heads INDEXED BY heads_by_key"
            found = _by_key(cursor, source, where, query, after=after, limit=limit + 1)
        else:
            found = _by_activity(cursor, source, where, after, limit + 1)
        page = [read_head(SessionKey(*row[-4:]), row) for row in found[:limit]]
        states = self._states(cursor, [item.number for item in page]) if state else {}
        return Page(
            tuple(
                Listed(
                    item.head,
                    self._values.decode(item.head.key, states.get(item.number, ()))
                    if state
                    else None,
                )
                for item in page
            ),
            _checks.write_cursor(order, page[-1].head) if len(found) > limit else None,
        )

    def _match(self, where: _Where, query: Query, *, walk: bool) -> None:
        for name in _KEY[:3]:
            value = getattr(query, name)
            if value is not None:
                # The sign keeps SQLite from taking a column out of the order, and from
                # sorting then what the index has in order.
                where.add(f"{'+' if walk else ''}{name} = ?", value)
        for label in sorted(query.labels):
            where.add(
                "EXISTS (SELECT 1 FROM labels WHERE session = number AND label = ?)",
                label,
            )
        if query.active_since is not None:
            where.add("last_active_at >= ?", to_micros(query.active_since))
        if query.active_before is not None:
            where.add("last_active_at < ?", to_micros(query.active_before))
        idle, lifetime = self._rules.sessions.cutoffs(self._rules.now())
        if idle is not None:
            where.add("(pinned OR last_active_at >= ? OR last_active_at = 0)", idle)
        if lifetime is not None:
            where.add("(pinned OR created_at >= ? OR created_at = 0)", lifetime)

    @staticmethod
    def _states(
        cursor: sqlite3.Cursor, numbers: list[int]
    ) -> dict[int, list[tuple[str, str]]]:
        rows = cursor.execute(
            """
            SELECT session, name, value FROM session_state
            WHERE session IN (SELECT value FROM json_each(?)) ORDER BY session, name
            """,
            (json.dumps(numbers),),
        ).fetchall()
        states: dict[int, list[tuple[str, str]]] = {}
        for number, name, value in rows:
            states.setdefault(number, []).append((name, value))
        return states


def _few(cursor: sqlite3.Cursor, query: Query, where: _Where) -> str | None:
    """Return from where few sessions can be read, `None` if there are many."""
    for label in sorted(query.labels):
        if _fewer(cursor, "labels INDEXED BY labels_by_label WHERE label = ?", label):
            where.add(
                "number IN (SELECT session FROM labels INDEXED BY labels_by_label "
                "WHERE label = ?)",
                label,
            )
            return "heads"
    prefix: list[str] = []
    for name in _KEY[:3]:
        value = getattr(query, name)
        if value is None:
            break
        prefix.append(value)
    if prefix:
        terms = " AND ".join(f"{name} = ?" for name in _KEY[: len(prefix)])
        if _fewer(cursor, f"heads INDEXED BY heads_by_key WHERE {terms}", *prefix):
            return "heads INDEXED BY heads_by_key"
    return None


def _fewer(cursor: sqlite3.Cursor, rest: str, *values: str) -> bool:
    (n,) = cursor.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {rest} LIMIT {_FEW})",  # noqa: S608
        values,
    ).fetchone()
    return bool(n < _FEW)


def _select(
    cursor: sqlite3.Cursor, source: str, where: _Where, order: str, limit: int
) -> list[Any]:
    return cursor.execute(
        f"SELECT {HEADS}, {', '.join(_KEY)} FROM {source} "  # noqa: S608
        f"WHERE {where} ORDER BY {order} LIMIT ?",
        (*where.values, limit),
    ).fetchall()


def _by_key(
    cursor: sqlite3.Cursor,
    source: str,
    where: _Where,
    query: Query,
    *,
    after: tuple[int, SessionKey] | None,
    limit: int,
) -> list[Any]:
    if after is not None:
        # What the query fixes is left out of the comparison, or the index would be
        # read from the beginning of it.
        fixed = 0
        while fixed < 3 and getattr(query, _KEY[fixed]) == after[1][fixed]:
            fixed += 1
        _behind(where, _KEY[fixed:], after[1][fixed:])
    return _select(cursor, source, where, ", ".join(_KEY), limit)


def _behind(where: _Where, columns: tuple[str, ...], values: Iterable[str]) -> None:
    marks = ", ".join("?" * len(columns))
    where.add(f"({', '.join(columns)}) > ({marks})", *values)


def _by_activity(
    cursor: sqlite3.Cursor,
    source: str | None,
    where: _Where,
    after: tuple[int, SessionKey] | None,
    limit: int,
) -> list[Any]:
    source = source or "heads INDEXED BY heads_by_activity"
    if after is None:
        return _select(cursor, source, where, _BY_ACTIVITY, limit)
    # First what was active at the same moment, then what was active before.
    active, key = after
    ties = where.copy()
    ties.add("last_active_at = ?", active)
    _behind(ties, _KEY, key)
    found = _select(cursor, source, ties, _BY_ACTIVITY, limit)
    if len(found) < limit:
        where.add("last_active_at < ?", active)
        found += _select(cursor, source, where, _BY_ACTIVITY, limit - len(found))
    return found
