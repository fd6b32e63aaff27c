"""What a load reads in its one transaction, and how a record is made of it."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from raf_session.clock import from_micros, to_micros
from raf_session.encoding import BodyFormat, RawRow
from raf_session.entries import Record, SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals import _rules
from raf_session.journals._records import Found, record_of
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_changes import read_digests
from raf_session.journals._sqlite_entries import clamp
from raf_session.journals._sqlite_faults import BACKEND
from raf_session.journals._sqlite_heads import find_live
from raf_session.journals._sqlite_scopes import read_scope, refresh_scope
from raf_session.journals._sqlite_texts import PROVIDER_STATES, SESSION_STATE
from raf_session.journals._texts import Values
from raf_session.keys import SessionKey
from raf_session.options import WHOLE, Window

__all__ = ("Reads",)

_END: Final = clamp(1 << 64)
"""Behind every place."""

_WHOLE: Final = "SELECT seq, left_at, id, kind, stored_at, body, 0 FROM entries "
_SHORT: Final = """
    SELECT seq, id, CASE kind WHEN 'message' THEN NULL ELSE coalesce(kind, '') END,
        stored_at, body
    FROM entries
"""
"""What an active entry needs: each further column costs as much as its decoding."""
_ACTIVE: Final = "WHERE session = ? AND left_at = 0 AND seq > ? AND seq < ?"
_IN_ORDER: Final = f"{_ACTIVE} ORDER BY seq"
_LAST: Final = f"{_ACTIVE} ORDER BY seq DESC LIMIT ?"
_ARCHIVED: Final = "WHERE session = ? AND left_at > 0 ORDER BY seq, left_at"
_NOT_LATER: Final = """
    SELECT seq FROM entries
    WHERE session = ? AND left_at = 0 AND seq > ? AND seq < ? AND stored_at <= ?
    ORDER BY seq DESC LIMIT 1
"""


class Reads:
    """The transactions that read a session.

    Args:
        rules: limits and clock of the journal.
        bodies: how text becomes entries.
        values: how text becomes state.
    """

    def __init__(self, rules: Rules, bodies: BodyFormat, values: Values) -> None:
        self._rules = rules
        self._bodies = bodies
        self._values = values

    def load(
        self,
        cursor: sqlite3.Cursor,
        key: SessionKey,
        window: Window,
        *,
        archived: bool,
    ) -> Found:
        """Read the rows of a session."""
        now = self._rules.now()
        stored = find_live(cursor, self._rules, key, now, None)
        head, number = stored.head, stored.number
        active = _window(cursor, key, number, window)
        if window == WHOLE and len(active) != head.active.entries:
            detail = f"{len(active)} active entries, not {head.active.entries}"
            raise SessionDamagedError(key, BACKEND, detail)
        return Found(
            head,
            active,
            _fetch(cursor, key, _WHOLE, _ARCHIVED, (number,)) if archived else (),
            SESSION_STATE.read(cursor, number),
            PROVIDER_STATES.read(cursor, number),
            read_digests(cursor, key, number, head.request_n),
            read_scope(cursor, self._rules, _rules.user_scope(key), now),
            read_scope(cursor, self._rules, _rules.app_scope(key), now),
        )

    def record(self, found: Found) -> Record:
        """Decode what was read.

        Raises:
            SessionDamagedError: a part of it cannot be decoded; it names the part.
        """
        return record_of(found, self._bodies, self._values)

    def refresh(self, cursor: sqlite3.Cursor, found: Found) -> SessionHead:
        """Move the activity of what was read to now; return the head.

        Raises:
            SessionNotFoundError: it has gone meanwhile.
        """
        rules, head = self._rules, found.head
        now = rules.now()
        stored = find_live(cursor, rules, head.key, now, head.incarnation)
        cursor.execute(
            """
            UPDATE heads SET last_active_at = ? WHERE number = ? AND last_active_at < ?
            """,
            (now, stored.number, now),
        )
        if found.user is not None:
            refresh_scope(cursor, rules, _rules.user_scope(head.key), now)
        if found.app is not None:
            refresh_scope(cursor, rules, _rules.app_scope(head.key), now)
        return _rules.touched(head, from_micros(now))


def _window(
    cursor: sqlite3.Cursor, key: SessionKey, number: int, window: Window
) -> list[RawRow]:
    low = -1 if window.after_seq is None else clamp(window.after_seq)
    high = _END if window.before_seq is None else clamp(window.before_seq)
    if window.after_time is not None:
        # Times grow with the places, so that this reads no more than the window.
        moment = to_micros(window.after_time)
        found = cursor.execute(_NOT_LATER, (number, low, high, moment)).fetchone()
        low = low if found is None else found[0]
    if window.last is None:
        return _fetch(cursor, key, _SHORT, _IN_ORDER, (number, low, high))
    if window.last == 0:
        return []
    last = clamp(window.last)
    rows = _fetch(cursor, key, _SHORT, _LAST, (number, low, high, last))
    rows.reverse()
    return rows


def _fetch(
    cursor: sqlite3.Cursor,
    key: SessionKey,
    columns: str,
    which: str,
    values: tuple[Any, ...],
) -> list[RawRow]:
    try:
        return cursor.execute(columns + which, values).fetchall()
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        raise _not_utf8(cursor, key, which, values, error) from error


def _not_utf8(
    cursor: sqlite3.Cursor,
    key: SessionKey,
    which: str,
    values: tuple[Any, ...],
    error: Exception,
) -> SessionDamagedError:
    """Find the entry that made `sqlite3` say that a text is not UTF-8."""
    connection = cursor.connection
    connection.text_factory = bytes
    try:
        for seq, _, entry_id, kind, _, body, _ in cursor.execute(
            _WHOLE + which, values
        ):
            try:
                for text in (entry_id, kind, body):
                    text.decode()
            except (UnicodeDecodeError, AttributeError) as fault:
                name = entry_id.decode(errors="replace")
                return SessionDamagedError(
                    key, BACKEND, f"entry {name!r} at {seq}: {fault}"
                )
    finally:
        connection.text_factory = str
    return SessionDamagedError(key, BACKEND, str(error))
