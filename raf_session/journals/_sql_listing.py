"""Listings: which sessions there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from raf_session.clock import to_micros
from raf_session.journal import Listed, Order, Page
from raf_session.journals import _checks
from raf_session.journals._rules import Rules
from raf_session.journals._sql_activity import Term
from raf_session.journals._sql_dialect import Dialect, Row, Transaction, Value, lists
from raf_session.journals._sql_heads import HEADS, read_head
from raf_session.journals._sql_tables import KEY
from raf_session.journals._texts import Values
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Listing",)

_BY_KEY: Final = ", ".join(KEY)
_FIELDS: Final = ("app", "user", "scope")


class _Where:
    """Conditions, and what stands for their marks."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self.values: list[Value] = []

    def add(self, term: str, *values: Value) -> None:
        self._terms.append(term)
        self.values += values

    def copy(self) -> _Where:
        other = _Where()
        other.add(str(self), *self.values)
        return other

    @override
    def __str__(self) -> str:
        return " AND ".join(self._terms) or "1 = 1"


class Listing:
    """The transactions that list sessions.

    Args:
        dialect: of the server.
        rules: limits and clock of the journal.
        values: how text becomes state.
    """

    def __init__(self, dialect: Dialect, rules: Rules, values: Values) -> None:
        self._rules = rules
        self._values = values
        self._compares_rows = dialect.compares_rows
        self._activity = dialect.activity
        self._activity_order = f"{dialect.activity.newest_first}, {_BY_KEY}"

    async def scan(
        self,
        tx: Transaction,
        query: Query,
        after: tuple[int, SessionKey] | None,
        order: Order,
        limit: int,
        *,
        state: bool,
    ) -> Page:
        """Read one page; see `Journal.scan`."""
        where = self._matching(query)
        if order == "key":
            found = await self._by_key(tx, where, query, after, limit + 1)
        else:
            found = await self._by_activity(tx, where, after, limit + 1)
        page = [
            read_head(self._rules, SessionKey(*row[-4:]), row) for row in found[:limit]
        ]
        states = await _states(tx, [s.number for s in page]) if state else {}
        return Page(
            tuple(
                Listed(
                    stored.head,
                    self._values.decode(stored.head.key, states.get(stored.number, ()))
                    if state
                    else None,
                )
                for stored in page
            ),
            _checks.write_cursor(order, page[-1].head) if len(found) > limit else None,
        )

    def _matching(self, query: Query) -> _Where:
        where = _Where()
        for column, name in zip(KEY, _FIELDS, strict=False):
            value = getattr(query, name)
            if value is not None:
                where.add(f"{column} = ?", value)
        for label in sorted(query.labels):
            where.add("number IN (SELECT session FROM ~labels WHERE label = ?)", label)
        if query.active_since is not None:
            where.add(*self._activity.since(to_micros(query.active_since)))
        if query.active_before is not None:
            where.add(*self._activity.before(to_micros(query.active_before)))
        idle, lifetime = self._rules.sessions.cutoffs(self._rules.now())
        if idle is not None:
            where.add("(last_active_at >= ? OR last_active_at = 0 OR pinned = 1)", idle)
        if lifetime is not None:
            where.add("(created_at >= ? OR created_at = 0 OR pinned = 1)", lifetime)
        return where

    async def _by_key(
        self,
        tx: Transaction,
        where: _Where,
        query: Query,
        after: tuple[int, SessionKey] | None,
        limit: int,
    ) -> Sequence[Row]:
        if after is not None:
            # What the query fixes is left out of the comparison, or the index would be
            # read from the beginning of it.
            fixed = 0
            while fixed < 3 and getattr(query, _FIELDS[fixed]) == after[1][fixed]:
                fixed += 1
            where.add(*self._behind(KEY[fixed:], after[1][fixed:]))
        return await _select(tx, where, _BY_KEY, limit)

    async def _by_activity(
        self,
        tx: Transaction,
        where: _Where,
        after: tuple[int, SessionKey] | None,
        limit: int,
    ) -> Sequence[Row]:
        order = self._activity_order
        if after is None:
            return await _select(tx, where, order, limit)
        active, key = after
        if self._activity.in_periods:
            where.add(*self._activity.until(active))
            where.add(*self._behind(("-last_active_at", *KEY), (-active, *key)))
            return await _select(tx, where, order, limit)
        # First what was active at the same moment, then what was active before.
        ties = where.copy()
        ties.add("last_active_at = ?", active)
        ties.add(*self._behind(KEY, key))
        found = list(await _select(tx, ties, order, limit))
        if len(found) < limit:
            where.add(*self._activity.before(active))
            found += await _select(tx, where, order, limit - len(found))
        return found

    def _behind(self, columns: Sequence[str], values: Sequence[Value]) -> Term:
        if self._compares_rows:
            marks = ", ".join("?" * len(columns))
            return f"({', '.join(columns)}) > ({marks})", *values
        term, given = f"{columns[-1]} > ?", [values[-1]]
        for column, value in zip(columns[-2::-1], values[-2::-1], strict=True):
            term = f"{column} > ? OR ({column} = ? AND ({term}))"
            given = [value, value, *given]
        # The first column bounds the rows that are looked at.
        return f"{columns[0]} >= ? AND ({term})", *(values[0], *given)


async def _select(
    tx: Transaction, where: _Where, order: str, limit: int
) -> Sequence[Row]:
    return await tx.rows(
        f"SELECT {HEADS}, {_BY_KEY} FROM ~heads "  # noqa: S608
        f"WHERE {where} ORDER BY {order} LIMIT ?",
        *where.values,
        limit,
    )


async def _states(
    tx: Transaction, numbers: Sequence[int]
) -> dict[int, list[tuple[str, str]]]:
    states: dict[int, list[tuple[str, str]]] = {}
    for some in lists(numbers):
        rows = await tx.rows(
            """
            SELECT session, name, value FROM ~session_state
            WHERE session IN ?? ORDER BY session, name
            """,
            some,
        )
        for number, name, value in rows:
            states.setdefault(number, []).append((name, value))
    return states
