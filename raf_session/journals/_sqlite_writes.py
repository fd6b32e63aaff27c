"""What create, append, update and delete do inside their transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from raf_session.changes import NO_CHANGE
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.errors import SessionDamagedError, SessionExistsError
from raf_session.journal import Commit
from raf_session.journals import _checks, _rows
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_changes import Alteration, change_alone
from raf_session.journals._sqlite_entries import (
    archive_oldest,
    check_size,
    insert_rows,
    rows_by_id,
)
from raf_session.journals._sqlite_heads import (
    HeadCache,
    Stored,
    find_head,
    find_live,
    insert_head,
    update_counts,
    update_head,
)
from raf_session.keys import SessionKey
from raf_session.options import NewSession

__all__ = ("Append", "Create", "Delete", "Update", "remove_session")


class Create(NamedTuple):
    """The arguments of `Journal.create`, and how to do it."""

    rules: Rules
    new: NewSession
    entries: Sequence[Entry]
    archived: Sequence[Entry]
    bodies: Sequence[str]
    """The encoded events, of the archived entries first."""
    alteration: Alteration

    def run(self, cursor: sqlite3.Cursor, patient: bool) -> Commit:
        """Create a session."""
        rules, key = self.rules, self.new.key
        now = rules.now()
        self._make_room(cursor, now, patient=patient)
        old, young = _rows.first_rows(self.bodies, self.archived, self.entries, now)
        head = rules.new_head(self.new, young, old, self.alteration.change, now)
        number = insert_head(cursor, head, young[-1].stored_at if young else 0)
        insert_rows(cursor, key, number, [*old, *young])
        self.alteration.apply(cursor, rules, key, number, former_n=None, now=now)
        return Commit(head, _rows.stored(self.entries, young))

    def _make_room(self, cursor: sqlite3.Cursor, now: int, *, patient: bool) -> None:
        key = self.new.key
        try:
            existing = find_head(cursor, key)
        except SessionDamagedError:
            number, entries = cursor.execute(
                """
                SELECT number, EXISTS (SELECT 1 FROM entries WHERE session = number)
                FROM heads WHERE app = ? AND user = ? AND scope = ? AND session = ?
                """,
                key,
            ).fetchone()
            if entries:
                raise
            remove_session(cursor, number)
            return
        if existing is None:
            return
        if not self.rules.sessions.head_expired(existing.head, now):
            raise SessionExistsError(key)
        check_size(existing.head.total.entries, patient=patient)
        remove_session(cursor, existing.number)


class Append(NamedTuple):
    """The arguments of `Journal.append`, and how to do it."""

    rules: Rules
    heads: HeadCache
    body_format: BodyFormat
    key: SessionKey
    entries: Sequence[Entry]
    bodies: Sequence[str]
    alteration: Alteration
    trim: int | None
    expected_revision: int | None
    incarnation: str | None
    careful: bool = False
    """Whether to look for ids that are known; else one of them raises `KnownId`."""

    def run(self, cursor: sqlite3.Cursor, patient: bool) -> Commit:
        """Add entries at the end."""
        rules, key, entries = self.rules, self.key, self.entries
        now = rules.now()
        heads = self.heads
        stored = find_live(cursor, rules, key, now, self.incarnation, find=heads.find)
        head, number, tail_at = stored
        expected = self.expected_revision
        careful = self.careful or (expected is not None and expected != head.revision)
        if careful:
            known = rows_by_id(cursor, number, [entry.id for entry in entries])
            if known and _checks.check_ids(key, entries, known, self.body_format):
                rows = [known[entry.id] for entry in entries]
                return Commit(head, _rows.stored(entries, rows), repeated=True)
            _checks.check_revision(head, expected)
        rows = _rows.new_rows(
            self.bodies,
            entries,
            range(head.last_seq + 1, head.last_seq + 1 + len(entries)),
            now,
            not_before=tail_at,
        )
        tail_at = rows[-1].stored_at
        trimmed = None
        if self.trim is not None:
            excess = head.active.entries + len(rows) - self.trim
            if excess > 0:
                check_size(excess, patient=patient)
                revision = head.revision + 1
                trimmed = archive_oldest(cursor, number, excess, revision)
                fresh = excess - trimmed.entries
                trimmed = trimmed.plus(_rows.total(rows[:fresh]))
                rows[:fresh] = [row._replace(left_at=revision) for row in rows[:fresh]]
                if fresh == len(rows):
                    tail_at = 0
        change = self.alteration.change
        after = rules.appended(head, rows, trimmed, change, now)
        insert_rows(cursor, key, number, rows, careful=careful)
        if change is NO_CHANGE:
            update_counts(cursor, number, after, tail_at)
        else:
            update_head(cursor, stored, after, tail_at)
            self.alteration.apply(
                cursor, rules, key, number, former_n=head.request_n, now=now
            )
        heads.put(key, Stored(after, number, tail_at))
        return Commit(after, _rows.stored(entries, rows))


class Update(NamedTuple):
    """The arguments of `Journal.update`, and how to do it."""

    rules: Rules
    key: SessionKey
    alteration: Alteration
    expected_revision: int | None
    incarnation: str | None

    def run(self, cursor: sqlite3.Cursor, _: bool) -> Commit:
        """Alter what the change names."""
        now = self.rules.now()
        stored = find_live(cursor, self.rules, self.key, now, self.incarnation)
        _checks.check_revision(stored.head, self.expected_revision)
        return Commit(change_alone(cursor, self.rules, stored, self.alteration, now))


class Delete(NamedTuple):
    """The arguments of `Journal.delete`, and how to do it."""

    rules: Rules
    key: SessionKey
    incarnation: str | None

    def run(self, cursor: sqlite3.Cursor, patient: bool) -> bool:
        """Remove a session, one whose head is damaged too."""
        row = cursor.execute(
            """
            SELECT number, incarnation, pinned, created_at, last_active_at,
                total_entries
            FROM heads WHERE app = ? AND user = ? AND scope = ? AND session = ?
            """,
            self.key,
        ).fetchone()
        if row is None:
            return False
        number, found, pinned, created_at, last_active_at, size = row
        expired = self.rules.sessions.expired(
            created_at, last_active_at, self.rules.now()
        )
        if (expired and not pinned) or self.incarnation not in {None, found}:
            return False
        check_size(size, patient=patient)
        remove_session(cursor, number)
        return True


def remove_session(cursor: sqlite3.Cursor, number: int) -> None:
    """Delete all rows of a session."""
    for sql in _REMOVE:
        cursor.execute(sql, (number,))


_REMOVE: Final = (
    "DELETE FROM entries WHERE session = ?",
    "DELETE FROM session_state WHERE session = ?",
    "DELETE FROM provider_states WHERE session = ?",
    "DELETE FROM request_digests WHERE session = ?",
    "DELETE FROM labels WHERE session = ?",
    "DELETE FROM heads WHERE number = ?",
)
