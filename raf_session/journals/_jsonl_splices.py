"""What a splice does while a session's lock is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from raf_session.changes import RequestDelta
from raf_session.encoding import Row
from raf_session.entries import Entry, SessionHead
from raf_session.journal import Commit
from raf_session.journals import _rows, _splices
from raf_session.journals._jsonl_changes import Alteration
from raf_session.journals._jsonl_folder import Folder
from raf_session.journals._jsonl_lines import Place, bare, entry_fields, splice_fields
from raf_session.journals._jsonl_slots import hold
from raf_session.journals._jsonl_views import View, meta_fields, request_fields
from raf_session.journals._jsonl_writes import change_alone
from raf_session.json_text import load_written
from raf_session.keys import SessionKey

__all__ = ("Splice",)


class Splice(NamedTuple):
    """The arguments of `Journal.splice`, and how to do it."""

    folder: Folder
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

    def run(self, patient: bool) -> Commit:
        """Replace a run of active entries."""
        rules, alteration = self.folder.rules, self.alteration
        first, last = self.first, self.last
        wanted = (*self.entries, *self.tail)
        with hold(self.folder, self.key, patient=patient) as slot:
            now = rules.now()
            log, head = slot.live(now, self.incarnation, index=True)
            index = log.index
            assert index is not None  # noqa: S101  (it was asked for)
            active = index.active
            low, high = index.bounds(first, last)
            run = active[low:high]
            kept = [bare(place) for place in run if place.seq in self.keep]
            gone = [place for place in run if place.seq not in self.keep]
            leaving = [bare(place) for place in gone]
            if [row.id for row in leaving] == [entry.id for entry in wanted]:
                leaving = slot.rows(gone)
            purged = [
                bare(place)
                for place in index.archived
                if self.purge and first <= place.seq <= last
            ]
            plan = _splices.plan_splice(
                head,
                leaving=leaving,
                purged=purged,
                entries=self.entries,
                tail=self.tail,
                bodies=self.bodies,
                known={place.id: bare(place) for place in index.known(wanted)},
                archive=self.archive,
                expected_revision=self.expected_revision,
                body_format=self.folder.bodies,
            )
            if plan.repeated:
                return Commit(head, _rows.stored(wanted, leaving), repeated=True)
            afresh = (
                self.purge
                and len(leaving) == len(active)
                and len(purged) == len(index.archived)
            )
            if plan.empty and not (afresh and _splices.has_past(head)):
                return Commit(change_alone(slot, log, head, alteration, now))
            front = active[low - 1].stored_at if low else 0
            behind = active[high].stored_at if high < len(active) else now
            rows = plan.replacements(now, front, behind, kept)
            tail_at = log.view.tail_at
            if high == len(active):
                tail_at = max((row.stored_at for row in (*kept, *rows)), default=front)
            rows += plan.appended(head, now, tail_at)
            after = rules.spliced(
                head,
                _rows.total(leaving),
                rows,
                alteration.change,
                now,
                tail=len(self.tail),
                afresh=afresh,
            )
            tail_at = rows[-1].stored_at if self.tail else tail_at
            tickets = alteration.draw(slot)
            if purged or afresh or (leaving and not self.archive):
                stay = [
                    slot.rows(_without(places, (*leaving, *purged)))
                    for places in (index.archived, active)
                ]
                fields = _anew(log.view, after, stay[0], [*stay[1], *rows])
                fields += alteration.lines(None, after, tickets, now)
                slot.replace(log, fields, after, tail_at)
                slot.finish(None, alteration.pending(tickets, now))
            else:
                fields = self._lines(run, rows, after)
                fields += alteration.lines(head, after, tickets, now)
                slot.append(log, fields, after, tail_at)
                slot.finish(log, alteration.pending(tickets, now))
        return Commit(after, _rows.stored(wanted, rows))

    def _lines(
        self, run: Sequence[Place], rows: Sequence[Row], after: SessionHead
    ) -> list[dict[str, Any]]:
        runs: list[list[int]] = []
        broken = True
        for place in run:
            if place.seq in self.keep:
                broken = True
            elif broken:
                runs.append([place.seq, place.seq])
                broken = False
            else:
                runs[-1][1] = place.seq
        lines = [splice_fields(runs, after.revision)] if runs else []
        n = len(self.entries)
        lines += [entry_fields(row, replaces=True) for row in rows[:n]]
        return lines + [entry_fields(row) for row in rows[n:]]


def _without(places: Iterable[Place], rows: Iterable[Row]) -> list[Place]:
    gone = {(row.seq, row.left_at) for row in rows}
    return [place for place in places if place[:2] not in gone]


def _anew(
    view: View, head: SessionHead, archived: Iterable[Row], active: Iterable[Row]
) -> list[dict[str, Any]]:
    """Return the lines of a session that are written again as a whole."""
    fields = [meta_fields(head)]
    fields += [entry_fields(row) for row in archived]
    fields += [entry_fields(row) for row in sorted(active)]
    state: dict[str, Any] = {
        name: {
            "set": {key: load_written(text) for key, text in texts.items()},
            "deleted": [],
        }
        for name, texts in (("session", view.session), ("providers", view.providers))
        if texts
    }
    if state:
        fields.append({"raf": {"kind": "state"} | state})
    before = view.head
    if before is not None and before.request_hash is not None and head.request_n:
        fields.append(
            {
                "raf": request_fields(
                    RequestDelta(
                        0,
                        view.digests,
                        before.request_hash,
                        before.request_header,
                        before.request_format or 1,
                    )
                )
            }
        )
    return fields
