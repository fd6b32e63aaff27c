"""What a splice does inside its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.journal import Commit
from raf_session.journals import _rows, _splices
from raf_session.journals._rules import Rules
from raf_session.journals._sql_changes import Changes
from raf_session.journals._sql_dialect import Transaction
from raf_session.journals._sql_entries import (
    active_rows,
    archived_rows,
    clamp,
    insert_rows,
    neighbours,
    rows_by_id,
    take_out,
)
from raf_session.journals._sql_heads import find_live, update_head
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey

__all__ = ("Splice",)


class Splice(NamedTuple):
    """The arguments of `Journal.splice`, and how to do it."""

    rules: Rules
    changes: Changes
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
    texts: ChangeTexts
    expected_revision: int | None
    incarnation: str | None

    async def run(self, tx: Transaction) -> Commit:
        """Replace a run of active entries."""
        rules, key, texts = self.rules, self.key, self.texts
        first, last = clamp(self.first), clamp(self.last)
        wanted = (*self.entries, *self.tail)
        ids = [entry.id for entry in wanted]
        now = rules.now()
        stored = await find_live(tx, rules, key, now, self.incarnation, lock=True)
        head, number = stored.head, stored.number
        run = await active_rows(tx, number, first, last, bodies=False)
        leaving = [row for row in run if row.seq not in self.keep]
        if wanted and [row.id for row in leaving] == ids:
            run = await active_rows(tx, number, first, last, bodies=True)
            leaving = [row for row in run if row.seq not in self.keep]
        kept = [row for row in run if row.seq in self.keep]
        purged, archived = (
            await archived_rows(tx, number, first, last) if self.purge else ([], 0)
        )
        plan = _splices.plan_splice(
            head,
            leaving=leaving,
            purged=purged,
            entries=self.entries,
            tail=self.tail,
            bodies=self.bodies,
            known=await rows_by_id(tx, number, ids),
            archive=self.archive,
            expected_revision=self.expected_revision,
            body_format=self.body_format,
        )
        if plan.repeated:
            return Commit(head, _rows.stored(wanted, plan.leaving), repeated=True)
        front, behind = await neighbours(tx, number, first, last)
        afresh = (
            self.purge
            and not kept
            and front is None
            and behind is None
            and len(purged) == archived
        )
        if plan.empty and not (afresh and _splices.has_past(head)):
            return Commit(await self.changes.alone(tx, stored, texts, now))
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
            texts.change,
            now,
            tail=len(self.tail),
            afresh=afresh,
        )
        await take_out(tx, number, plan.leaving, after.revision if self.archive else 0)
        await take_out(tx, number, plan.purged, 0)
        await insert_rows(tx, number, rows)
        await update_head(
            tx, stored, after, rows[-1].stored_at if self.tail else tail_at
        )
        former_n = head.request_n
        if afresh:
            await self.changes.digests.drop(tx, number)
            former_n = None
        await self.changes.apply(tx, key, number, texts, former_n=former_n, now=now)
        return Commit(after, _rows.stored(wanted, rows))
