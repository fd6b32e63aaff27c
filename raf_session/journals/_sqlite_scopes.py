"""The state of apps and users in the SQLite tables."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from raf_session.journals._records import Scoped
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_texts import SCOPED_STATE
from raf_session.journals._texts import Texts
from raf_session.keys import ScopeKey

__all__ = (
    "delete_scope",
    "live_scopes",
    "read_scope",
    "refresh_scope",
    "write_scope",
)


class _Found(NamedTuple):
    number: int
    expired: bool
    created_at: int
    last_active_at: int


def _find(
    cursor: sqlite3.Cursor, rules: Rules, scope: ScopeKey, now: int
) -> _Found | None:
    row = cursor.execute(
        """
        SELECT number, created_at, last_active_at FROM scopes
        WHERE app = ? AND of_user = ? AND user = ?
        """,
        _columns(scope),
    ).fetchone()
    if row is None:
        return None
    number, created_at, last_active_at = row
    expired = rules.scope_rule(scope).expired(created_at, last_active_at, now)
    return _Found(number, expired, created_at, last_active_at)


def _columns(scope: ScopeKey) -> tuple[str, int, str]:
    return scope.app, int(scope.user is not None), scope.user or ""


def read_scope(
    cursor: sqlite3.Cursor, rules: Rules, scope: ScopeKey, now: int
) -> Scoped | None:
    """Return the live state of a scope, `None` where there is none."""
    found = _find(cursor, rules, scope, now)
    if found is None or found.expired:
        return None
    pairs = SCOPED_STATE.read(cursor, found.number)
    return Scoped(pairs, found.created_at, found.last_active_at)


def refresh_scope(
    cursor: sqlite3.Cursor, rules: Rules, scope: ScopeKey, now: int
) -> None:
    """Move the activity of a live scope to now."""
    found = _find(cursor, rules, scope, now)
    if found is not None and not found.expired:
        _touch(cursor, found.number, now)


def write_scope(
    cursor: sqlite3.Cursor, rules: Rules, scope: ScopeKey, texts: Texts, now: int
) -> None:
    """Set and delete keys of a scope, and touch it; an empty one goes."""
    found = _find(cursor, rules, scope, now)
    if found is not None and found.expired:
        delete_scope(cursor, found.number)
        found = None
    if found is None:
        if texts.set:
            SCOPED_STATE.write(cursor, _insert(cursor, scope, now), texts)
        return
    SCOPED_STATE.write(cursor, found.number, texts)
    if not texts.set and not SCOPED_STATE.read(cursor, found.number, limit=1):
        delete_scope(cursor, found.number)
    else:
        _touch(cursor, found.number, now)


def _insert(cursor: sqlite3.Cursor, scope: ScopeKey, now: int) -> int:
    cursor.execute(
        """
        INSERT INTO scopes (app, of_user, user, created_at, last_active_at)
        VALUES (?, ?, ?, ?, ?)
        """,
        (*_columns(scope), now, now),
    )
    number = cursor.lastrowid
    assert number is not None  # noqa: S101  (a row was inserted)
    return number


def _touch(cursor: sqlite3.Cursor, number: int, now: int) -> None:
    cursor.execute(
        "UPDATE scopes SET last_active_at = ? WHERE number = ? AND last_active_at < ?",
        (now, number, now),
    )


def delete_scope(cursor: sqlite3.Cursor, number: int) -> None:
    """Delete a scope and its state."""
    cursor.execute("DELETE FROM scoped_state WHERE scope = ?", (number,))
    cursor.execute("DELETE FROM scopes WHERE number = ?", (number,))


def live_scopes(
    cursor: sqlite3.Cursor, rules: Rules, app: str, now: int
) -> tuple[ScopeKey, ...]:
    """Return the scopes of an app that hold live state, in order."""
    rows = cursor.execute(
        """
        SELECT of_user, user, created_at, last_active_at FROM scopes
        WHERE app = ? ORDER BY of_user, user
        """,
        (app,),
    ).fetchall()
    scopes: list[ScopeKey] = []
    for of_user, user, created_at, last_active_at in rows:
        scope = ScopeKey(app, user if of_user else None)
        if not rules.scope_rule(scope).expired(created_at, last_active_at, now):
            scopes.append(scope)
    return tuple(scopes)
