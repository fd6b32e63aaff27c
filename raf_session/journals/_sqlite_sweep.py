"""Sweeps: which sessions and scopes are to go."""

from __future__ import annotations

import sqlite3
import time
from typing import Final

from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_database import Database, Write
from raf_session.journals._sqlite_scopes import delete_scope
from raf_session.journals._sqlite_writes import remove_session
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Sweep",)

_BATCH: Final = 50
"""How many sessions one transaction deletes."""


class Sweep:
    """The transactions that find and delete what has expired.

    Args:
        rules: limits and clock of the journal.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def find(
        self, cursor: sqlite3.Cursor, limit: int
    ) -> dict[SessionKey | ScopeKey, int]:
        """Return at most so many expired sessions and scopes, with their numbers."""
        now = self._rules.now()
        found: dict[SessionKey | ScopeKey, int] = {}
        for column, cutoff in zip(
            ("last_active_at", "created_at"),
            self._rules.sessions.cutoffs(now),
            strict=True,
        ):
            if cutoff is None or len(found) >= limit:
                continue
            for number, *parts in cursor.execute(
                f"""
                SELECT number, {", ".join(SessionKey._fields)}
                FROM heads INDEXED BY {_SESSION_INDEX[column]}
                WHERE {column} < ? AND {column} <> 0 AND NOT pinned LIMIT ?
                """,  # noqa: S608
                (cutoff, limit),
            ).fetchall():
                found[SessionKey(*parts)] = number
        for of_user, rule in enumerate((self._rules.apps, self._rules.users)):
            for column, cutoff in zip(
                ("last_active_at", "created_at"), rule.cutoffs(now), strict=True
            ):
                if cutoff is None or len(found) >= limit:
                    continue
                for number, app, user in cursor.execute(
                    f"""
                    SELECT number, app, user
                    FROM scopes INDEXED BY {_SCOPE_INDEX[column]}
                    WHERE of_user = ? AND {column} < ? AND {column} <> 0 LIMIT ?
                    """,  # noqa: S608
                    (of_user, cutoff, limit),
                ).fetchall():
                    found[ScopeKey(app, user if of_user else None)] = number
        return dict([*found.items()][:limit])

    def remove(
        self, database: Database, limit: int, gone: list[SessionKey | ScopeKey]
    ) -> None:
        """Delete until there are so many in the list, or nothing is left to delete.

        Raises:
            Busy: another is writing; it may be gone on with.
        """
        while len(gone) < limit:
            batch = min(_BATCH, limit - len(gone))
            removed = database.write(self._removing(batch))
            gone.extend(removed)
            if len(removed) < batch:
                return
            time.sleep(0.001)  # so that others get in between

    def _removing(self, limit: int) -> Write[tuple[SessionKey | ScopeKey, ...]]:
        def work(cursor: sqlite3.Cursor, _: bool) -> tuple[SessionKey | ScopeKey, ...]:
            found = self.find(cursor, limit)
            for key, number in found.items():
                if isinstance(key, SessionKey):
                    remove_session(cursor, number)
                else:
                    delete_scope(cursor, number)
            return tuple(found)

        return work


_SESSION_INDEX: Final = {
    "last_active_at": "heads_by_activity",
    "created_at": "heads_by_age",
}
_SCOPE_INDEX: Final = {
    "last_active_at": "scopes_by_activity",
    "created_at": "scopes_by_age",
}
