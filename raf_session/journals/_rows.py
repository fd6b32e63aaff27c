"""Rows of entries: their places, their times and their counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from raf_session.encoding import Row
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
    left_at: int = 0,
    keep_times: bool = False,
) -> list[Row]:
    """Return the rows of entries that take these places now.

    Args:
        bodies: their encoded events.
        entries: the entries.
        places: as many as there are entries.
        now: the journal's time.
        not_before: when the entry in front was stored.
        left_at: the revision that archives them; 0: active.
        keep_times: whether an entry's own `stored_at` stays.
    """
    rows: list[Row] = []
    for body, entry, seq in zip(bodies, entries, places, strict=False):
        stored_at = now
        if keep_times and entry.stored_us is not None:
            stored_at = entry.stored_us
        not_before = max(not_before, stored_at)
        rows.append(
            Row(
                seq,
                left_at,
                entry.id,
                entry.kind.value,
                not_before,
                body,
                Counts.of((entry,)),
            )
        )
    return rows


def stored(entries: Sequence[Entry], rows: Sequence[Row]) -> tuple[Entry, ...]:
    """Return the entries with the places and times of their rows."""
    return tuple(
        [
            entry.stored(row.seq, row.stored_at, row.left_at)
            for entry, row in zip(entries, rows, strict=True)
        ]
    )


def first_rows(
    bodies: Sequence[str],
    archived: Sequence[Entry],
    entries: Sequence[Entry],
    now: int,
) -> tuple[list[Row], list[Row]]:
    """Return the rows of a new session: those archived before, and the active ones.

    Args:
        bodies: the encoded events, of the archived entries first.
        archived: entries that left the window before.
        entries: the active window.
        now: the journal's time, for entries that bring none.
    """
    n = len(archived)
    old = new_rows(
        bodies[:n], archived, range(1, n + 1), now, left_at=1, keep_times=True
    )
    young = new_rows(
        bodies[n:],
        entries,
        range(n + 1, n + 1 + len(entries)),
        now,
        keep_times=True,
        not_before=old[-1].stored_at if old else 0,
    )
    return old, young
