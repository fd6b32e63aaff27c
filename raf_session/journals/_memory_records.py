"""What the journal in memory keeps of a session and of a scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from raf_session.encoding import Row
from raf_session.entries import Entry, SessionHead
from raf_session.frozen import FrozenDict

__all__ = ("MemoryScope", "MemorySession", "by_name")


@dataclass(slots=True)
class MemorySession:
    """A session in memory."""

    head: SessionHead
    active: list[Row]
    archive: list[Row]
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    providers: dict[str, Any] = field(default_factory=dict[str, Any])
    digests: bytes = b""
    by_id: dict[str, Row] = field(default_factory=dict[str, Row])

    def index(self) -> None:
        self.by_id = {row.id: row for row in (*self.archive, *self.active)}

    def known(self, entries: Iterable[Entry]) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for entry in entries:
            row = self.by_id.get(entry.id)
            if row is not None:
                found[row.id] = row
        return found


@dataclass(slots=True)
class MemoryScope:
    """An app's or user's state in memory; times in microseconds since the epoch."""

    state: dict[str, Any]
    created_at: int
    last_active_at: int


def by_name(state: dict[str, Any]) -> FrozenDict[Any]:
    """Return a state as every backend does: by name."""
    return FrozenDict(sorted(state.items()))
