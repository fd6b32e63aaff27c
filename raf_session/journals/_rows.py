"""Rows of entries: their places, their times and their counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from raf_session.encoding import Row, row_of, rows_of
from raf_session.encoding import stored_entries as stored
from raf_session.entries import Counts, Entry

__all__ = ("first_rows", "new_rows", "stored", "total")

NO_COUNTS: Final = Counts()


def total(rows: Iterable[Row]) -> Counts:
    """Return the sum of the counts of these rows."""
    counts = NO_COUNTS
    for row in rows:
        counts = row.counts if counts is NO_COUNTS else counts.plus(row.counts)
    return counts


def new_rows(
    bodies: Sequence[str],
    entries: Sequence[Entry],
    places: Iterable[int],
    now: int,
    *,
    not_before: int = 0,
) -> list[Row]:
    """Return the rows of entries that take these places now.

    Args:
        bodies: their encoded events.
        entries: the entries.
        places: as many as there are entries.
        now: the journal's time.
        not_before: when the entry in front was stored.
    """
    return rows_of(bodies, entries, places, max(now, not_before))


def first_rows(
    bodies: Sequence[str],
    archived: Sequence[Entry],
    entries: Sequence[Entry],
    now: int,
) -> tuple[list[Row], list[Row]]:
    """Return the rows of a new session: those archived before, and the active ones.

    What brings a time keeps it: among the active entries none is before the one in
    front, but the archive is in order of place, where a summary stands in front of
    what it replaced, and an entry that was kept in the window is older than what left.

    Args:
        bodies: the encoded events, of the archived entries first.
        archived: entries that left the window before.
        entries: the active window.
        now: the journal's time, for entries that bring none.
    """
    latest = now
    old: list[Row] = []
    for seq, (body, entry) in enumerate(zip(bodies, archived, strict=False), 1):
        moment = latest if entry.stored_us is None else entry.stored_us
        latest = max(latest, moment)
        old.append(row_of(body, entry, seq, moment, left_at=1))
    n = len(archived)
    front = 0
    young: list[Row] = []
    for seq, (body, entry) in enumerate(zip(bodies[n:], entries, strict=True), n + 1):
        moment = latest if entry.stored_us is None else max(entry.stored_us, front)
        front = moment
        latest = max(latest, moment)
        young.append(row_of(body, entry, seq, moment))
    return old, young
