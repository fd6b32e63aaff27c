"""Where the entries of a file are: by place, and by id."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from operator import attrgetter

from raf_session.entries import Entry
from raf_session.journals._jsonl_lines import Place

__all__ = ("Index",)

_seq = attrgetter("seq")


class Index:
    """All entries of a session, without their bodies.

    Attributes:
        active: those in the window, by place.
        archived: those that left it.
        by_id: all of them.
    """

    __slots__ = ("active", "archived", "by_id")

    def __init__(self) -> None:
        self.active: list[Place] = []
        self.archived: list[Place] = []
        self.by_id: dict[str, Place] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, place: Place) -> None:
        """Take an entry in."""
        self.by_id[place.id] = place
        active = self.active
        if place.left_at:
            self.archived.append(place)
        elif not active or active[-1].seq < place.seq:
            active.append(place)
        else:
            insort(active, place, key=_seq)

    def archive(self, runs: Iterable[Sequence[int]], left_at: int) -> None:
        """Move the active entries of these runs of places into the archive."""
        for first, last in runs:
            low, high = self.bounds(first, last)
            left = [place._replace(left_at=left_at) for place in self.active[low:high]]
            del self.active[low:high]
            self.archived += left
            self.by_id.update((place.id, place) for place in left)

    def bounds(self, first: int, last: int) -> tuple[int, int]:
        """Return where in `active` the places from first to last begin and end."""
        return (
            bisect_left(self.active, first, key=_seq),
            bisect_right(self.active, last, key=_seq),
        )

    def known(self, entries: Iterable[Entry]) -> list[Place]:
        """Return the places of these entries' ids, of those that are known."""
        by_id = self.by_id
        return [by_id[entry.id] for entry in entries if entry.id in by_id]
