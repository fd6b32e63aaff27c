"""`Journal.splice`: two round trips where nobody writes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from raf_session.encoding import Row
from raf_session.entries import Entry
from raf_session.journal import Commit
from raf_session.journals import _rows, _splices
from raf_session.journals._redis_core import protected
from raf_session.journals._redis_creates import add_digests, add_rows, change_alone
from raf_session.journals._redis_debts import Debt
from raf_session.journals._redis_heads import Stored
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations, chunks
from raf_session.journals._redis_writes import Look, Plan, Writes, look
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey

__all__ = ("Splice",)


class Splice(NamedTuple):
    """The arguments of `Journal.splice`, and how to do it."""

    writes: Writes
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

    async def run(self, link: Link) -> Commit:
        """Replace a run of active entries."""
        return await protected(self._run(link))

    async def _run(self, link: Link) -> Commit:
        writes, key = self.writes, self.key
        core = writes.core
        wanted = (*self.entries, *self.tail)
        debts: list[Debt] | None = None
        finished = False

        async def step(by: str) -> tuple[bool, Commit | None]:
            nonlocal debts, finished
            now = core.rules.now()
            seen = await look(
                link,
                core,
                key,
                run=(self.first, self.last),
                bodies=len(wanted) + len(self.keep) if wanted else 0,
                purge=self.purge,
                ids=[entry.id for entry in wanted],
            )
            stored = seen.live(core, key, now, self.incarnation)
            if stored.owed and not finished:
                # Once: others may owe something at every moment.
                await writes.debts.finish(link, key)
                finished = True
                return False, None
            planned = self._plan(seen, stored, now)
            if isinstance(planned, Commit):
                return True, planned
            plan, rows = planned
            if debts is None:
                debts = await writes.debts.draw(link, key, self.texts, now)
            plan = plan._replace(debts=debts)
            if plan.after.head is stored.head and not self.texts.change:
                return True, Commit(stored.head)
            if await writes.commit(link, plan, self.texts, by, now):
                return True, Commit(plan.after.head, _rows.stored(wanted, rows))
            return False, None

        try:
            result: Commit = await writes.until_done(step)
        except (LookupError, ValueError, RuntimeError):
            await writes.debts.settle(link, debts or ())
            raise
        return result

    def _plan(
        self, seen: Look, stored: Stored, now: int
    ) -> tuple[Plan, Sequence[Row]] | Commit:
        writes, head = self.writes, stored.head
        core = writes.core
        wanted = (*self.entries, *self.tail)
        kept = [row for row in seen.run if row.seq in self.keep]
        leaving = [row for row in seen.run if row.seq not in self.keep]
        plan = _splices.plan_splice(
            head,
            leaving=leaving,
            purged=seen.purged,
            entries=self.entries,
            tail=self.tail,
            bodies=self.bodies,
            known=dict.fromkeys(seen.known, _KNOWN),
            archive=self.archive,
            expected_revision=self.expected_revision,
            body_format=core.bodies,
        )
        if plan.repeated:
            return Commit(head, _rows.stored(wanted, plan.leaving), repeated=True)
        afresh = (
            self.purge
            and not kept
            and seen.front is None
            and seen.behind is None
            and len(seen.purged) == stored.archived
        )
        if plan.empty and not (afresh and _splices.has_past(head)):
            return change_alone(writes, stored, self.texts, now), ()
        behind = now if seen.behind is None else seen.behind
        rows = plan.replacements(now, seen.front or 0, behind, kept)
        tail_at = stored.tail_at
        if seen.behind is None:
            tail_at = max(
                (row.stored_at for row in (*kept, *rows)), default=seen.front or 0
            )
        rows += plan.appended(head, now, tail_at)
        after = core.rules.spliced(
            head,
            _rows.total(leaving),
            rows,
            self.texts.change,
            now,
            tail=len(self.tail),
            afresh=afresh,
        )
        ops = writes.operations(self.key)
        self._take_out(ops, leaving, kept, seen.purged, after.revision)
        add_rows(ops, rows)
        former_n = head.request_n
        if afresh:
            ops.add("DEL", ops.keys[4])
            former_n = None
        add_digests(ops, self.texts, former_n)
        archived = stored.archived - len(seen.purged)
        new = Stored(
            after,
            stored.version + 1,
            rows[-1].stored_at if self.tail else tail_at,
            archived + (len(leaving) if self.archive else 0),
            stored.owed,
        )
        return Plan(stored.seen, head, new, ops), rows

    def _take_out(
        self,
        ops: Operations,
        leaving: Sequence[Row],
        kept: Sequence[Row],
        purged: Sequence[Row],
        revision: int,
    ) -> None:
        _, entries, archive, ids, _ = ops.keys[:5]
        for first, last in _ranges(leaving, kept):
            if self.archive:
                ops.special("@archive", revision, first, last)
            else:
                ops.add("ZREMRANGEBYSCORE", entries, first, last)
        gone = [row.id.encode() for row in purged]
        if not self.archive:
            gone += [row.id.encode() for row in leaving]
        if purged:
            first, last = purged[0].seq, purged[-1].seq
            ops.add("ZREMRANGEBYSCORE", archive, first, last)
        for words in chunks(gone):
            ops.add("HDEL", ids, *words)


def _ranges(leaving: Sequence[Row], kept: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the ranges of places that leave, around those that stay."""
    if not leaving:
        return []
    first, last = leaving[0].seq, leaving[-1].seq
    stays = [row.seq for row in kept if first < row.seq < last]
    return [
        (low + 1, high - 1)
        for low, high in pairwise((first - 1, *stays, last + 1))
        if high - low > 1
    ]


_KNOWN = Row(0, 0, "", "", 0, "", _rows.NO_COUNTS)
"""Stands for a stored row: only that its id is known matters."""
