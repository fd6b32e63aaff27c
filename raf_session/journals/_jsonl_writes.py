"""What create, append, update and delete do while a session's lock is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from raf_session.entries import Entry, SessionHead
from raf_session.errors import SessionDamagedError, SessionExistsError
from raf_session.journal import Commit
from raf_session.journals import _checks, _rows
from raf_session.journals._jsonl_changes import Alteration, head_fields
from raf_session.journals._jsonl_files import TooLong
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_lines import bare, entry_fields, splice_fields
from raf_session.journals._jsonl_logs import Log
from raf_session.journals._jsonl_slots import Slot, hold
from raf_session.journals._jsonl_views import meta_fields
from raf_session.keys import SessionKey
from raf_session.options import NewSession

__all__ = ("Append", "Create", "Delete", "Update", "change_alone")

_QUICK_TRIM: Final = 1000
"""So many entries may be archived on the thread of an event loop."""


class Create(NamedTuple):
    """The arguments of `Journal.create`, and how to do it."""

    folder: Folder
    new: NewSession
    entries: Sequence[Entry]
    archived: Sequence[Entry]
    bodies: Sequence[str]
    """The encoded events, of the archived entries first."""
    alteration: Alteration

    def run(self, patient: bool) -> Commit:
        """Create a session."""
        rules, alteration = self.folder.rules, self.alteration
        key = self.new.key
        with hold(self.folder, key, patient=patient) as slot:
            now = rules.now()
            existing = slot.find()
            head = None if existing is None else existing.view.head
            if head is not None and not rules.sessions.head_expired(head, now):
                raise SessionExistsError(key)
            old, young = _rows.first_rows(self.bodies, self.archived, self.entries, now)
            head = rules.new_head(self.new, young, old, alteration.change, now)
            tickets = alteration.draw(slot)
            fields = [
                meta_fields(head),
                *map(entry_fields, (*old, *young)),
                *alteration.lines(None, head, tickets, now),
            ]
            slot.replace(existing, fields, head, young[-1].stored_at if young else 0)
            slot.finish(None, alteration.pending(tickets, now))
        return Commit(head, _rows.stored(self.entries, young))


class Append(NamedTuple):
    """The arguments of `Journal.append`, and how to do it."""

    folder: Folder
    key: SessionKey
    entries: Sequence[Entry]
    bodies: Sequence[str]
    alteration: Alteration
    trim: int | None
    expected_revision: int | None
    incarnation: str | None

    def run(self, patient: bool) -> Commit:
        """Add entries at the end."""
        rules, key, entries = self.folder.rules, self.key, self.entries
        alteration = self.alteration
        with hold(self.folder, key, patient=patient) as slot:
            now = rules.now()
            log, head = slot.live(now, self.incarnation, index=True)
            index = log.index
            assert index is not None  # noqa: S101  (it was asked for)
            places = index.known(entries)
            if places:
                if not patient:
                    raise TooLong
                known = {row.id: row for row in slot.rows(places)}
                if _checks.check_ids(key, entries, known, self.folder.bodies):
                    rows = [known[entry.id] for entry in entries]
                    return Commit(head, _rows.stored(entries, rows), repeated=True)
            _checks.check_revision(head, self.expected_revision)
            rows = _rows.new_rows(
                self.bodies,
                entries,
                range(head.last_seq + 1, head.last_seq + 1 + len(entries)),
                now,
                not_before=log.view.tail_at,
            )
            active = index.active
            excess = 0 if self.trim is None else len(active) + len(rows) - self.trim
            if excess > _QUICK_TRIM and not patient:
                raise TooLong
            oldest = active[: max(0, excess)]
            fresh = rows[: max(0, excess - len(active))]
            trimmed = None
            if excess > 0:
                trimmed = _rows.total((*map(bare, oldest), *fresh))
            after = rules.appended(head, rows, trimmed, alteration.change, now)
            tickets = alteration.draw(slot)
            fields = list(map(entry_fields, rows))
            if excess > 0:
                ends = [(oldest or fresh)[0].seq, (fresh or oldest)[-1].seq]
                fields.append(splice_fields([ends], after.revision))
            fields += alteration.lines(head, after, tickets, now)
            tail_at = 0 if len(fresh) == len(rows) else rows[-1].stored_at
            slot.append(log, fields, after, tail_at)
            slot.finish(log, alteration.pending(tickets, now))
        if fresh:
            left = [row._replace(left_at=after.revision) for row in fresh]
            rows = left + rows[len(fresh) :]
        return Commit(after, _rows.stored(entries, rows))


class Update(NamedTuple):
    """The arguments of `Journal.update`, and how to do it."""

    folder: Folder
    key: SessionKey
    alteration: Alteration
    expected_revision: int | None
    incarnation: str | None

    def run(self, patient: bool) -> Commit:
        """Alter what the change names."""
        with hold(self.folder, self.key, patient=patient) as slot:
            now = self.folder.rules.now()
            log, head = slot.live(now, self.incarnation)
            _checks.check_revision(head, self.expected_revision)
            return Commit(change_alone(slot, log, head, self.alteration, now))


class Delete(NamedTuple):
    """The arguments of `Journal.delete`, and how to do it."""

    folder: Folder
    key: SessionKey
    incarnation: str | None

    def run(self, patient: bool) -> bool:
        """Remove a session, one that cannot be read too."""
        rules = self.folder.rules
        with hold(self.folder, self.key, patient=patient) as slot:
            try:
                log = slot.find()
            except SessionDamagedError:
                if self.incarnation is not None:
                    raise
                slot.remove(None)
                return True
            head = None if log is None else log.view.head
            if head is None:
                slot.remove(None)  # what is left of one that was never made
                return False
            if rules.sessions.head_expired(
                head, rules.now()
            ) or self.incarnation not in {None, head.incarnation}:
                return False
            slot.remove(log)
            return True


def change_alone(
    slot: Slot, log: Log, head: SessionHead, alteration: Alteration, now: int
) -> SessionHead:
    """Store a change without entries; return the head after it."""
    after = slot.folder.rules.updated(head, alteration.change, now)
    tickets = alteration.draw(slot)
    fields = alteration.lines(head, after, tickets, now)
    if fields or after != head:
        slot.append(log, fields or [head_fields()], after, log.view.tail_at)
        slot.finish(log, alteration.pending(tickets, now))
    return after
