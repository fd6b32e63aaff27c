"""What a splice does, decided before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from raf_session.encoding import BodyFormat, Row
from raf_session.entries import Counts, Entry, SessionHead
from raf_session.errors import EntryConflictError
from raf_session.journals._checks import check_revision, check_unique
from raf_session.journals._rows import new_rows
from raf_session.keys import SessionKey

__all__ = ("SplicePlan", "check_splice", "has_past", "plan_splice")


def check_splice(
    key: SessionKey,
    first: int,
    last: int,
    entries: Iterable[Entry],
    *,
    archive: bool,
    purge: bool,
) -> None:
    """Check the arguments of a splice that need no look at what is stored."""
    if first > last:
        raise ValueError(f"no places between {first} and {last}")
    if archive and purge:
        raise ValueError("what is purged cannot be archived")
    check_unique(key, entries)


class SplicePlan(NamedTuple):
    """What a splice is going to do."""

    leaving: Sequence[Row]
    purged: Sequence[Row]
    entries: Sequence[Entry]
    """The replacements."""
    tail: Sequence[Entry]
    """What is appended behind."""
    bodies: Sequence[str]
    """The encoded events, of the replacements first."""
    repeated: bool
    """Whether the run is already what it would become."""

    @property
    def empty(self) -> bool:
        """Whether no entry comes or goes."""
        return not (self.leaving or self.purged or self.tail)

    def replacements(
        self, now: int, front: int, behind: int, kept: Sequence[Row]
    ) -> list[Row]:
        """Return the replacements on the lowest freed places.

        Their times fit between those of the entries around them: `front` and `behind`
        are those of the neighbours of the whole run, `kept` stays inside it.
        """
        rows: list[Row] = []
        for row in new_rows(
            self.bodies, self.entries, (gone.seq for gone in self.leaving), now
        ):
            before = [other.stored_at for other in kept if other.seq < row.seq]
            after = [other.stored_at for other in kept if other.seq > row.seq]
            earliest = max((front, *before))
            latest = min((behind, *after))
            time = max(earliest, min(row.stored_at, latest))
            rows.append(row._replace(stored_at=time))
        return rows

    def appended(self, head: SessionHead, now: int, not_before: int) -> list[Row]:
        """Return the rows of the tail, on new places."""
        return new_rows(
            self.bodies[len(self.entries) :],
            self.tail,
            range(head.last_seq + 1, head.last_seq + 1 + len(self.tail)),
            now,
            not_before=not_before,
        )


def plan_splice(
    head: SessionHead,
    *,
    leaving: Sequence[Row],
    purged: Sequence[Row],
    entries: Sequence[Entry],
    tail: Sequence[Entry],
    bodies: Sequence[str],
    known: Mapping[str, Row],
    archive: bool,
    expected_revision: int | None,
    body_format: BodyFormat,
) -> SplicePlan:
    """Decide what a splice does.

    Args:
        head: the session.
        leaving: the active rows of the run that are not kept, in order.
        purged: the archived rows that are to be deleted.
        entries: the replacements.
        tail: what is appended behind.
        bodies: their encoded events, of the replacements first.
        known: the stored rows that carry one of their ids.
        archive: whether the leaving rows stay in the archive.
        expected_revision: what the caller expects.
        body_format: how to compare.

    Raises:
        StaleSessionError: the revision is not the expected one.
        EntryConflictError: an id stays known elsewhere in the session.
        ValueError: more replacements than places.
    """
    wanted = (*entries, *tail)
    repeated = (
        bool(wanted)
        and not purged
        and len(leaving) == len(wanted)
        and all(
            row.id == entry.id and body_format.same(head.key, row, entry)
            for row, entry in zip(leaving, wanted, strict=True)
        )
    )
    plan = SplicePlan(leaving, purged, entries, tail, bodies, repeated)
    if repeated:
        return plan
    check_revision(head, expected_revision)
    if len(entries) > len(leaving):
        raise ValueError(f"{len(entries)} replacements for {len(leaving)} freed places")
    freed = {row.id for row in (purged if archive else (*leaving, *purged))}
    for entry in wanted:
        if entry.id in known and entry.id not in freed:
            raise EntryConflictError(head.key, entry.id, "known elsewhere")
    return plan


def has_past(head: SessionHead) -> bool:
    """Tell whether a purge of the whole session has anything to set back."""
    return head.total != Counts() or head.request_n is not None
