"""Sweeps: which sessions and scopes are to go."""

from __future__ import annotations

from typing import Final

from raf_session.journals._rules import Rules
from raf_session.journals._sql_activity import Activity, Term
from raf_session.journals._sql_dialect import Transaction
from raf_session.journals._sql_writes import remove_sessions
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("BATCH", "Sweep")

BATCH: Final = 50
"""How many sessions one transaction deletes."""

_SESSIONS: Final = """
    SELECT number, app, usr, scope, session FROM ~heads
    WHERE {before} AND {column} <> 0 AND pinned = 0 ORDER BY {order} LIMIT ?
"""
_SCOPES: Final = """
    SELECT number, app, usr FROM ~scopes
    WHERE of_user = ? AND {column} < ? AND {column} <> 0 ORDER BY {column} LIMIT ?
"""
_TIMES: Final = ("last_active_at", "created_at")


class Sweep:
    """The transactions that find and delete what has expired.

    Args:
        rules: limits and clock of the journal.
        activity: how heads are found by it.
    """

    def __init__(self, rules: Rules, activity: Activity) -> None:
        self._rules = rules
        self._activity = activity

    async def find(
        self, tx: Transaction, limit: int, *, lock: bool
    ) -> dict[SessionKey | ScopeKey, int]:
        """Return at most so many expired sessions and scopes, with their numbers.

        Args:
            tx: the transaction.
            limit: the most to return.
            lock: whether they are going to be deleted: what another holds is left to
                it, and what is locked was looked at again.
        """
        end = "FOR UPDATE SKIP LOCKED" if lock else ""
        now = self._rules.now()
        found: dict[SessionKey | ScopeKey, int] = {}
        idle, lifetime = self._rules.sessions.cutoffs(now)
        bounds: list[tuple[str, str, Term]] = []
        if idle is not None:
            order = self._activity.oldest_first
            bounds.append(("last_active_at", order, self._activity.before(idle)))
        if lifetime is not None:
            bounds.append(("created_at", "created_at", ("created_at < ?", lifetime)))
        for column, order, (before, *values) in bounds:
            if len(found) >= limit:
                break
            sql = _SESSIONS.format(before=before, column=column, order=order) + end
            for number, *parts in await tx.rows(sql, *values, limit):
                found[SessionKey(*parts)] = number
        for of_user, rule in enumerate((self._rules.apps, self._rules.users)):
            for column, cutoff in zip(_TIMES, rule.cutoffs(now), strict=True):
                if cutoff is None or len(found) >= limit:
                    continue
                sql = _SCOPES.format(column=column) + end
                for number, app, user in await tx.rows(sql, of_user, cutoff, limit):
                    found[ScopeKey(app, user if of_user else None)] = number
        return dict([*found.items()][:limit])

    async def remove(
        self, tx: Transaction, limit: int
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete at most so many; return what they were."""
        found = await self.find(tx, limit, lock=True)
        sessions = [n for key, n in found.items() if isinstance(key, SessionKey)]
        scopes = [n for key, n in found.items() if isinstance(key, ScopeKey)]
        if sessions:
            await remove_sessions(tx, sessions)
        if scopes:
            await tx.execute("DELETE FROM ~scopes WHERE number IN ??", scopes)
        return tuple(found)
