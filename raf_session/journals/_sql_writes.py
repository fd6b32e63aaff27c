"""What create, append, update and delete do inside their transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from raf_session.changes import NO_CHANGE
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, SessionHead
from raf_session.errors import SessionDamagedError, SessionExistsError
from raf_session.journal import Commit
from raf_session.journals import _checks, _rows
from raf_session.journals._rules import Rules
from raf_session.journals._sql_changes import Changes
from raf_session.journals._sql_dialect import Transaction
from raf_session.journals._sql_entries import (
    archive_oldest,
    clamp,
    insert_rows,
    rows_by_id,
)
from raf_session.journals._sql_heads import (
    find_head,
    find_live,
    insert_head,
    read_head,
    update_counts,
    update_head,
)
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey
from raf_session.options import NewSession

__all__ = ("Append", "Create", "Delete", "Update")

_WITH_KEY: Final = "FROM ~heads WHERE app = ? AND usr = ? AND scope = ? AND session = ?"
_INCARNATION_SIZE: Final = 64
_INCARNATION: Final = f"SELECT incarnation {_WITH_KEY}"
_DAMAGED: Final = f"""
    SELECT number, EXISTS (SELECT 1 FROM ~entries WHERE session = number) {_WITH_KEY}
"""  # noqa: S608  (columns of our own)
_TO_DELETE: Final = f"""
    SELECT number, incarnation, pinned, created_at, last_active_at {_WITH_KEY}
    FOR UPDATE
"""


class Create:
    """The arguments of `Journal.create`, and how to do it.

    It may be run again where nobody knows whether its commit was done: a session of
    the incarnation that it drew is its own.
    """

    def __init__(
        self,
        rules: Rules,
        changes: Changes,
        new: NewSession,
        *,
        entries: Sequence[Entry],
        archived: Sequence[Entry],
        bodies: Sequence[str],
        texts: ChangeTexts,
    ) -> None:
        self._rules = rules
        self._changes = changes
        self._new = new
        self._entries = entries
        self._archived = archived
        self._bodies = bodies
        self._texts = texts
        self._made: Commit | None = None

    async def run(self, tx: Transaction) -> Commit:
        """Create a session."""
        rules, new, change = self._rules, self._new, self._texts.change
        key = new.key
        while True:
            now = rules.now()
            if self._made is not None and await self._is_made(tx, self._made):
                return self._made
            await self._make_room(tx, now)
            old, young = _rows.first_rows(
                self._bodies, self._archived, self._entries, now
            )
            head = rules.new_head(new, young, old, change, now)
            number = await insert_head(tx, head, young[-1].stored_at if young else 0)
            if number is not None:
                break
            # Another has created it meanwhile: it is found now.
        await insert_rows(tx, number, [*old, *young])
        await self._changes.apply(tx, key, number, self._texts, former_n=None, now=now)
        self._made = Commit(head, _rows.stored(self._entries, young))
        return self._made

    async def _is_made(self, tx: Transaction, made: Commit) -> bool:
        found = await tx.rows(_INCARNATION, *self._new.key)
        return bool(found) and found[0][0] == made.head.incarnation

    async def _make_room(self, tx: Transaction, now: int) -> None:
        key = self._new.key
        try:
            existing = await find_head(tx, self._rules, key, lock=True)
        except SessionDamagedError:
            ((number, entries),) = await tx.rows(_DAMAGED, *key)
            if entries:
                raise
            await remove_sessions(tx, [number])
            return
        if existing is None:
            return
        if not self._rules.sessions.head_expired(existing.head, now):
            raise SessionExistsError(key)
        await remove_sessions(tx, [existing.number])


class Append(NamedTuple):
    """The arguments of `Journal.append`, and how to do it."""

    rules: Rules
    changes: Changes
    body_format: BodyFormat
    key: SessionKey
    entries: Sequence[Entry]
    bodies: Sequence[str]
    texts: ChangeTexts
    trim: int | None
    expected_revision: int | None
    incarnation: str | None

    @property
    def storable(self) -> bool:
        """Whether a server can be asked for its revision, limit and incarnation."""
        revision, trim, incarnation = (
            self.expected_revision,
            self.trim,
            self.incarnation,
        )
        return (
            (revision is None or clamp(revision) == revision)
            and (trim is None or clamp(trim) == trim)
            and (
                incarnation is None
                or (
                    len(incarnation) <= _INCARNATION_SIZE
                    and incarnation.isascii()
                    and incarnation.isalnum()
                )
            )
        )

    def done(self, row: Sequence[Any]) -> Commit:
        """Return what one call to the server has done, by the row of `HEADS` it gave.

        Nothing left the window: all entries were stored at the moment of its last.

        Raises:
            SessionDamagedError: the row cannot be read.
        """
        head, _, tail_at = read_head(self.rules, self.key, row)
        return self.stored(head, tail_at)

    def stored(self, head: SessionHead, tail_at: int) -> Commit:
        """Return the same by the head, and the moment when its last was stored."""
        entries, last = self.entries, head.last_seq
        if len(entries) == 1:
            return Commit(head, (entries[0].stored(last, tail_at),))
        first = last - len(entries) + 1
        return Commit(
            head,
            tuple([one.stored(seq, tail_at) for seq, one in enumerate(entries, first)]),
        )

    async def run(self, tx: Transaction) -> Commit:
        """Add entries at the end."""
        rules, key, entries = self.rules, self.key, self.entries
        now = rules.now()
        stored = await find_live(tx, rules, key, now, self.incarnation, lock=True)
        head, number, tail_at = stored
        known = await rows_by_id(tx, number, [entry.id for entry in entries])
        if known and _checks.check_ids(key, entries, known, self.body_format):
            rows = [known[entry.id] for entry in entries]
            return Commit(head, _rows.stored(entries, rows), repeated=True)
        _checks.check_revision(head, self.expected_revision)
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
                revision = head.revision + 1
                trimmed = await archive_oldest(tx, number, excess, revision)
                fresh = excess - trimmed.entries
                trimmed = trimmed.plus(_rows.total(rows[:fresh]))
                rows[:fresh] = [row._replace(left_at=revision) for row in rows[:fresh]]
                if fresh == len(rows):
                    tail_at = 0
        change = self.texts.change
        after = rules.appended(head, rows, trimmed, change, now)
        await insert_rows(tx, number, rows)
        if change is NO_CHANGE:
            await update_counts(tx, number, after, tail_at)
        else:
            await update_head(tx, stored, after, tail_at)
            await self.changes.apply(
                tx, key, number, self.texts, former_n=head.request_n, now=now
            )
        return Commit(after, _rows.stored(entries, rows))


class Update(NamedTuple):
    """The arguments of `Journal.update`, and how to do it."""

    rules: Rules
    changes: Changes
    key: SessionKey
    texts: ChangeTexts
    expected_revision: int | None
    incarnation: str | None

    async def run(self, tx: Transaction) -> Commit:
        """Alter what the change names."""
        rules = self.rules
        now = rules.now()
        stored = await find_live(tx, rules, self.key, now, self.incarnation, lock=True)
        _checks.check_revision(stored.head, self.expected_revision)
        return Commit(await self.changes.alone(tx, stored, self.texts, now))


class Delete(NamedTuple):
    """The arguments of `Journal.delete`, and how to do it."""

    rules: Rules
    key: SessionKey
    incarnation: str | None

    async def run(self, tx: Transaction) -> bool:
        """Remove a session, one whose head is damaged too."""
        found = await tx.rows(_TO_DELETE, *self.key)
        if not found:
            return False
        number, incarnation, pinned, created_at, last_active_at = found[0]
        rules = self.rules
        expired = rules.sessions.expired(created_at, last_active_at, rules.now())
        if (expired and not pinned) or self.incarnation not in {None, incarnation}:
            return False
        await remove_sessions(tx, [number])
        return True


async def remove_sessions(tx: Transaction, numbers: Sequence[int]) -> None:
    """Delete sessions, and by their foreign keys all rows of theirs."""
    await tx.execute("DELETE FROM ~heads WHERE number IN ??", numbers)
