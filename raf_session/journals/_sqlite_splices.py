"""What a splice does inside its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.journal import Commit
from raf_session.journals import _rows, _splices
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_changes import Alteration, change_alone, drop_digests
from raf_session.journals._sqlite_entries import (
    active_rows,
    archived_rows,
    clamp,
    insert_rows,
    neighbours,
    rows_by_id,
    take_out,
)
from raf_session.journals._sqlite_faults import TooLong
from raf_session.journals._sqlite_heads import find_live, update_head
from raf_session.keys import SessionKey

__all__ = ("Splice",)


class Splice(NamedTuple):
    """The arguments of `Journal.splice`, and how to do it."""

    rules: Rules
    body_format: BodyFormat
    key: SessionKey
    first: int
    last: int
    entries: Sequence[Entry]
    tail: Sequence[Entry]
    bodies: Sequence[str]
    """The encoded events, of the replacements first."""
    keep: frozenset[int]
    archive: bool
    purge: bool
    alteration: Alteration
    expected_revision: int | None
    incarnation: str | None

    def run(self, cursor: sqlite3.Cursor, patient: bool) -> Commit:
        """Replace a run of active entries."""
        if self.purge and not patient:
            raise TooLong  # the archive has no index over places alone
        rules, key, alteration = self.rules, self.key, self.alteration
        first, last = clamp(self.first), clamp(self.last)
        wanted = (*self.entries, *self.tail)
        now = rules.now()
        stored = find_live(cursor, rules, key, now, self.incarnation)
        head, number = stored.head, stored.number
        run = active_rows(cursor, number, first, last, bodies=False, patient=patient)
        kept = [row for row in run if row.seq in self.keep]
        leaving = [row for row in run if row.seq not in self.keep]
        if [row.id for row in leaving] == [entry.id for entry in wanted]:
            run = active_rows(cursor, number, first, last, bodies=True, patient=patient)
            leaving = [row for row in run if row.seq not in self.keep]
        purged, archived = (
            archived_rows(cursor, number, first, last) if self.purge else ([], 0)
        )
        plan = _splices.plan_splice(
            head,
            leaving=leaving,
            purged=purged,
            entries=self.entries,
            tail=self.tail,
            bodies=self.bodies,
            known=rows_by_id(cursor, number, [entry.id for entry in wanted]),
            archive=self.archive,
            expected_revision=self.expected_revision,
            body_format=self.body_format,
        )
        if plan.repeated:
            return Commit(head, _rows.stored(wanted, plan.leaving), repeated=True)
        front, behind = neighbours(cursor, number, first, last)
        afresh = (
            self.purge
            and not kept
            and front is None
            and behind is None
            and len(purged) == archived
        )
        if plan.empty and not (afresh and _splices.has_past(head)):
            return Commit(change_alone(cursor, rules, stored, alteration, now))
        rows = plan.replacements(
            now, front or 0, now if behind is None else behind, kept
        )
        tail_at = stored.tail_at
        if behind is None:
            tail_at = max((row.stored_at for row in (*kept, *rows)), default=front or 0)
        rows += plan.appended(head, now, tail_at)
        after = rules.spliced(
            head,
            _rows.total(plan.leaving),
            rows,
            alteration.change,
            now,
            tail=len(self.tail),
            afresh=afresh,
        )
        take_out(cursor, number, plan.leaving, after.revision if self.archive else 0)
        take_out(cursor, number, plan.purged, 0)
        insert_rows(cursor, key, number, rows)
        update_head(cursor, stored, after, rows[-1].stored_at if self.tail else tail_at)
        former_n = head.request_n
        if afresh:
            drop_digests(cursor, number)
            former_n = None
        alteration.apply(cursor, rules, key, number, former_n=former_n, now=now)
        return Commit(after, _rows.stored(wanted, rows))
