"""Heads as rows of the SQLite tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals._heads import COLUMNS, Stored, head_of, head_values
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_faults import BACKEND
from raf_session.keys import SessionKey

__all__ = (
    "HEADS",
    "HeadCache",
    "Stored",
    "find_head",
    "find_live",
    "insert_head",
    "read_head",
    "update_counts",
    "update_head",
)

_LABELS: Final = (
    "(SELECT group_concat(label, char(0)) FROM labels WHERE session = heads.number)"
)

HEADS: Final = f"number, tail_at, {', '.join(COLUMNS)}, {_LABELS}"
"""What `read_head` reads."""

_FIND: Final = f"""
    SELECT {HEADS} FROM heads
    WHERE app = ? AND user = ? AND scope = ? AND session = ?
"""  # noqa: S608  (columns of our own)
_INSERT: Final = f"""
    INSERT INTO heads (tail_at, {", ".join(COLUMNS)}, app, user, scope, session)
    VALUES (?{", ?" * (len(COLUMNS) + 4)})
"""  # noqa: S608
_UPDATE: Final = f"""
    UPDATE heads SET tail_at = ?, {", ".join(f"{name} = ?" for name in COLUMNS)}
    WHERE number = ?
"""  # noqa: S608
_UPDATE_COUNTS: Final = """
    UPDATE heads SET tail_at = ?, revision = ?, updated_at = ?, last_active_at = ?,
        last_seq = ?, spliced_at = ?, active_entries = ?, active_messages = ?,
        active_conversations = ?, active_tokens = ?, total_entries = ?,
        total_messages = ?, total_conversations = ?, total_tokens = ?
    WHERE number = ?
"""


_CACHED: Final = 256


# Heads ---------------------------------------------------------------------------


def find_head(cursor: sqlite3.Cursor, key: SessionKey) -> Stored | None:
    """Return what is stored under this key, live or expired.

    Raises:
        SessionDamagedError: the row cannot be read.
    """
    row = cursor.execute(_FIND, key).fetchone()
    return None if row is None else read_head(key, row)


def find_live(
    cursor: sqlite3.Cursor,
    rules: Rules,
    key: SessionKey,
    now: int,
    incarnation: str | None,
    *,
    find: Callable[[sqlite3.Cursor, SessionKey], Stored | None] | None = None,
) -> Stored:
    """Return the live session of this key.

    Raises:
        SessionNotFoundError: missing, expired or another incarnation.
        SessionDamagedError: its head cannot be read.
        SchemaVersionError: a newer library wrote it.
    """
    stored = (find or find_head)(cursor, key)
    rules.live(key, None if stored is None else stored.head, now, incarnation)
    assert stored is not None  # noqa: S101  (`live` raised otherwise)
    return stored


class HeadCache:
    """The heads of the last appends, for the connection that alone writes them.

    ``PRAGMA data_version`` tells of writes by other connections, `total_changes` of
    those by this one that were no appends; after either nothing here is believed.
    """

    def __init__(self) -> None:
        self._heads: dict[SessionKey, Stored] = {}
        self._pending: tuple[SessionKey, Stored] | None = None
        self._version = -1
        self._changes = -1

    def find(self, cursor: sqlite3.Cursor, key: SessionKey) -> Stored | None:
        """Return what is stored under this key, as `find_head` does."""
        (version,) = cursor.execute("PRAGMA data_version").fetchone()
        changes = cursor.connection.total_changes
        if version == self._version and changes == self._changes:
            return self._heads.get(key) or find_head(cursor, key)
        self._heads.clear()
        self._version = version
        self._changes = changes
        return find_head(cursor, key)

    def put(self, key: SessionKey, stored: Stored) -> None:
        """Take note of a head that was written; it counts from the commit on."""
        self._pending = key, stored

    def committed(self, cursor: sqlite3.Cursor) -> None:
        """Believe what was noted, if anything was."""
        if self._pending is None:
            return
        if len(self._heads) >= _CACHED:
            self._heads.clear()
        key, stored = self._pending
        self._heads[key] = stored
        self._changes = cursor.connection.total_changes
        self._pending = None

    def forget(self) -> None:
        """Believe nothing: the transaction was undone."""
        self._pending = None
        self._version = -1


def read_head(key: SessionKey, row: Sequence[Any]) -> Stored:
    """Return the head of a row of `HEADS`.

    Raises:
        SessionDamagedError: it cannot be read.
    """
    try:
        labels = row[28]
        return head_of(
            key, row, frozenset(labels.split("\0")) if labels else _NO_LABELS
        )
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        detail = f"its head cannot be read: {error}"
        raise SessionDamagedError(key, BACKEND, detail) from error


_NO_LABELS: Final[frozenset[str]] = frozenset()


def insert_head(cursor: sqlite3.Cursor, head: SessionHead, tail_at: int) -> int:
    """Store a new head; return its number."""
    cursor.execute(_INSERT, (tail_at, *head_values(head), *head.key))
    number = cast("int", cursor.lastrowid)
    _write_labels(cursor, number, _NO_LABELS, head.labels)
    return number


def update_head(
    cursor: sqlite3.Cursor, stored: Stored, head: SessionHead, tail_at: int
) -> None:
    """Store all of a head that was read before."""
    if head is stored.head and tail_at == stored.tail_at:
        return
    cursor.execute(_UPDATE, (tail_at, *head_values(head), stored.number))
    _write_labels(cursor, stored.number, stored.head.labels, head.labels)


def update_counts(
    cursor: sqlite3.Cursor, number: int, head: SessionHead, tail_at: int
) -> None:
    """Store what an append alters."""
    cursor.execute(
        _UPDATE_COUNTS,
        (
            tail_at,
            head.revision,
            to_micros(head.updated_at),
            to_micros(head.last_active_at),
            head.last_seq,
            head.spliced_at,
            *head.active,
            *head.total,
            number,
        ),
    )


def _write_labels(
    cursor: sqlite3.Cursor, number: int, old: frozenset[str], new: frozenset[str]
) -> None:
    for label in sorted(old - new):
        cursor.execute(
            "DELETE FROM labels WHERE session = ? AND label = ?", (number, label)
        )
    for label in sorted(new - old):
        cursor.execute(
            "INSERT INTO labels (session, label) VALUES (?, ?)", (number, label)
        )
