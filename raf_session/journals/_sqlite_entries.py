"""Entries as rows of the SQLite tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from raf_session.encoding import Row
from raf_session.entries import Counts
from raf_session.errors import SessionDamagedError
from raf_session.journals._sqlite_faults import BACKEND, KnownId, TooLong
from raf_session.keys import SessionKey

__all__ = (
    "active_rows",
    "archive_oldest",
    "archived_rows",
    "check_size",
    "clamp",
    "insert_rows",
    "neighbours",
    "rows_by_id",
    "take_out",
)

_MANY: Final = 256
"""So many entries may be touched where an event loop waits."""
_LARGEST: Final = (1 << 62) - 1

_INSERT: Final = """
    INSERT INTO entries (session, left_at, seq, id, kind, stored_at, messages,
        conversations, tokens, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_FULL: Final = """
    SELECT seq, left_at, id, kind, stored_at, body, messages, conversations, tokens
    FROM entries
"""
_BODILESS: Final = _FULL.replace("body", "''")
_BY_ID: Final = f"{_FULL} WHERE session = ? AND id = ?"
_ACTIVE: Final = "WHERE session = ? AND left_at = 0 AND seq BETWEEN ? AND ?"


def check_size(size: int, *, patient: bool) -> None:
    """Raise `TooLong` where so many entries may not be touched."""
    if size > _MANY and not patient:
        raise TooLong


def clamp(number: int) -> int:
    """Return a place or a limit that SQLite can compare, as far as it can tell it."""
    return max(-1, min(number, _LARGEST))


# Writing -------------------------------------------------------------------------


def insert_rows(
    cursor: sqlite3.Cursor,
    key: SessionKey,
    number: int,
    rows: Sequence[Row],
    *,
    careful: bool = True,
) -> None:
    """Store entries.

    Args:
        cursor: in a transaction.
        key: the session.
        number: its number.
        rows: the entries.
        careful: whether the caller knows that their ids are new.

    Raises:
        KnownId: an id is stored already.
        SessionDamagedError: a place is taken that should be free.
    """
    values = [
        (number, left_at, seq, entry_id, kind, stored_at, *counts[1:], body)
        for seq, left_at, entry_id, kind, stored_at, body, counts in rows
    ]
    try:
        if len(values) == 1:
            cursor.execute(_INSERT, values[0])
        else:
            cursor.executemany(_INSERT, values)
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_UNIQUE:
            raise
        if not careful:
            raise KnownId from None
        detail = f"a place is taken: {error}"
        raise SessionDamagedError(key, BACKEND, detail) from error


def archive_oldest(
    cursor: sqlite3.Cursor, number: int, limit: int, revision: int
) -> Counts:
    """Archive so many active entries, if there are; return what they count."""
    found = cursor.execute(
        """
        SELECT seq, messages, conversations, tokens FROM entries
        WHERE session = ? AND left_at = 0 ORDER BY seq LIMIT ?
        """,
        (number, limit),
    ).fetchall()
    cursor.executemany(_ARCHIVE, [(revision, number, row[0]) for row in found])
    return Counts(len(found), *(sum(row[i] for row in found) for i in (1, 2, 3)))


_ARCHIVE: Final = (
    "UPDATE entries SET left_at = ? WHERE session = ? AND left_at = 0 AND seq = ?"
)
_DELETE: Final = "DELETE FROM entries WHERE session = ? AND left_at = ? AND seq = ?"


def take_out(
    cursor: sqlite3.Cursor, number: int, rows: Iterable[Row], revision: int
) -> None:
    """Archive active entries under this revision; 0: delete them, active or not."""
    if revision:
        cursor.executemany(_ARCHIVE, [(revision, number, row.seq) for row in rows])
    else:
        cursor.executemany(_DELETE, [(number, row.left_at, row.seq) for row in rows])


# Reading -------------------------------------------------------------------------


def rows_by_id(
    cursor: sqlite3.Cursor, number: int, ids: Iterable[str]
) -> dict[str, Row]:
    """Return the stored rows that carry one of these ids."""
    found = [cursor.execute(_BY_ID, (number, name)).fetchone() for name in ids]
    return {row.id: row for row in _rows(row for row in found if row is not None)}


def active_rows(
    cursor: sqlite3.Cursor,
    number: int,
    first: int,
    last: int,
    *,
    bodies: bool,
    patient: bool,
) -> list[Row]:
    """Return the active entries of a run; without `bodies` these are empty.

    Raises:
        TooLong: there are too many for a thread with an event loop.
    """
    columns = _FULL if bodies else _BODILESS
    found = cursor.execute(
        f"{columns} {_ACTIVE} ORDER BY seq LIMIT ?",
        (number, first, last, -1 if patient else _MANY + 1),
    ).fetchall()
    check_size(len(found), patient=patient)
    return _rows(found)


def archived_rows(
    cursor: sqlite3.Cursor, number: int, first: int, last: int
) -> tuple[list[Row], int]:
    """Return the archived entries of a run, without bodies, and how many there are."""
    found = cursor.execute(
        f"{_BODILESS} WHERE session = ? AND left_at > 0 AND seq BETWEEN ? AND ?",
        (number, first, last),
    ).fetchall()
    (n,) = cursor.execute(
        "SELECT count(*) FROM entries WHERE session = ? AND left_at > 0", (number,)
    ).fetchone()
    return _rows(found), int(n)


def _rows(found: Iterable[Any]) -> list[Row]:
    return [
        Row(seq, left_at, name, kind, stored_at, body, Counts(1, *counts))
        for seq, left_at, name, kind, stored_at, body, *counts in found
    ]


def neighbours(
    cursor: sqlite3.Cursor, number: int, first: int, last: int
) -> tuple[int | None, int | None]:
    """Return when the active entries in front of and behind a run were stored."""
    front = cursor.execute(
        """
        SELECT stored_at FROM entries WHERE session = ? AND left_at = 0 AND seq < ?
        ORDER BY seq DESC LIMIT 1
        """,
        (number, first),
    ).fetchone()
    behind = cursor.execute(
        """
        SELECT stored_at FROM entries WHERE session = ? AND left_at = 0 AND seq > ?
        ORDER BY seq LIMIT 1
        """,
        (number, last),
    ).fetchone()
    return front and front[0], behind and behind[0]
