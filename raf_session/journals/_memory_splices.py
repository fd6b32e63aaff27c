"""`Splice`: a run of entries that is replaced, in memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple

from raf_session.changes import Change
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.journal import Commit
from raf_session.journals import _rows, _splices
from raf_session.journals._memory_records import MemorySession
from raf_session.journals._rules import Rules

__all__ = ("Splice",)


class Splice(NamedTuple):
    """What a splice is asked to do; see `Journal.splice`."""

    first: int
    last: int
    entries: Sequence[Entry]
    tail: Sequence[Entry]
    bodies: Sequence[str]
    """The encoded events, of the replacements first."""
    keep: Collection[int]
    archive: bool
    purge: bool
    expected_revision: int | None

    def run(
        self,
        session: MemorySession,
        change: Change,
        now: int,
        rules: Rules,
        body_format: BodyFormat,
    ) -> Commit | None:
        """Replace the rows; the head, and what else changes, is left to the caller.

        Returns:
            What was done, `None` where no entry comes or goes: what is left is an
            update.
        """
        active = session.active
        wanted = (*self.entries, *self.tail)
        low = bisect_left(active, self.first, key=lambda row: row.seq)
        high = bisect_right(active, self.last, key=lambda row: row.seq)
        run = active[low:high]
        kept = [row for row in run if row.seq in self.keep]
        plan = _splices.plan_splice(
            session.head,
            leaving=[row for row in run if row.seq not in self.keep],
            purged=[
                row
                for row in session.archive
                if self.purge and self.first <= row.seq <= self.last
            ],
            entries=self.entries,
            tail=self.tail,
            bodies=self.bodies,
            known=session.known(wanted),
            archive=self.archive,
            expected_revision=self.expected_revision,
            body_format=body_format,
        )
        if plan.repeated:
            stored = _rows.stored(wanted, plan.leaving)
            return Commit(session.head, stored, repeated=True)
        afresh = (
            self.purge
            and not kept
            and len(run) == len(active)
            and len(plan.purged) == len(session.archive)
        )
        if plan.empty and not (afresh and _splices.has_past(session.head)):
            return None
        front = active[low - 1].stored_at if low else 0
        behind = active[high].stored_at if high < len(active) else now
        rows = plan.replacements(now, front, behind, kept)
        middle = sorted((*kept, *rows))
        latest = (active[:low] + middle + active[high:])[-1:]
        rows += plan.appended(session.head, now, latest[0].stored_at if latest else 0)
        head = rules.spliced(
            session.head,
            _rows.total(plan.leaving),
            rows,
            change,
            now,
            tail=len(self.tail),
            afresh=afresh,
        )
        active[low:high] = middle
        active.extend(rows[len(self.entries) :])
        purged = set(plan.purged)
        session.archive = [row for row in session.archive if row not in purged]
        if self.archive:
            left_at = head.revision
            session.archive += [row._replace(left_at=left_at) for row in plan.leaving]
        if afresh:
            session.digests = b""
        session.index()
        return Commit(head, _rows.stored(wanted, rows))
