"""A store of dicts, as simple as can be, for the machine to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from raf_session.agent_session import AgentSession
from raf_session.errors import SessionNotFoundError, StaleSessionError

__all__ = ("IDLE", "LIFETIME", "ModelHandle", "ModelStored", "StoreModel")

IDLE: Final = timedelta(seconds=100)
LIFETIME: Final = timedelta(seconds=1000)
"""The limits of the stores."""


@dataclass(eq=False)
class ModelHandle:
    """A session object in somebody's hands, and what it knows of what is stored."""

    session: AgentSession
    said: list[str]
    """The texts that it holds."""
    seen: int
    """How many of them were there when it was last read or saved."""
    on: int = 0
    """The store that it is saved to: only that one knows where it comes from."""
    incarnation: int | None = None
    """Of the session that it was read from or saved as; `None`: of none yet."""
    fresh: bool = True
    """Whether nobody else has changed what is stored since it was read."""
    cleared: bool = False
    """Whether it lost what it had seen since it was last saved."""
    states: dict[str, Any] = field(default_factory=dict[str, Any])
    """Provider states that were set since."""

    def as_seen(self) -> None:
        """Note that it is stored as it is."""
        self.seen, self.cleared = len(self.said), False
        self.states.clear()


@dataclass
class ModelStored:
    """What is stored of one session."""

    incarnation: int
    texts: list[str]
    created_at: datetime
    active_at: datetime
    states: dict[str, Any]


class StoreModel:
    """Does what a store has to do, and raises what it has to raise."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._now = clock
        self._drawn = 0
        self.stored: dict[str, ModelStored] = {}
        self.handles: list[ModelHandle] = []
        self.doubtful: set[str] = set()
        """What a sweep may count or not: expired and deleted."""

    def alive(self, session_id: str) -> ModelStored | None:
        """Return what is stored and has not expired."""
        kept = self.stored.get(session_id)
        return None if kept is None or self._expired(kept) else kept

    def _expired(self, kept: ModelStored) -> bool:
        now = self._now()
        return now - kept.active_at > IDLE or now - kept.created_at > LIFETIME

    def may_go_either_way(self, handle: ModelHandle) -> bool:
        """Say whether a new session meets an empty one, which it may extend."""
        kept = self.alive(handle.session.session_id)
        return handle.incarnation is None and kept is not None and not kept.texts

    def save(self, handle: ModelHandle) -> None:
        """Store a session, or raise what forbids it."""
        session_id, active = handle.session.session_id, handle.session.last_active_at
        kept = self.alive(session_id)
        if handle.incarnation is None:
            if kept is not None:
                raise StaleSessionError(session_id, None, None)
            self._create(session_id, handle)
            return
        if kept is None or kept.incarnation != handle.incarnation:
            raise SessionNotFoundError(session_id)
        if handle.cleared and not handle.fresh:
            raise StaleSessionError(session_id, None, None)
        new = handle.said if handle.cleared else handle.said[handle.seen :]
        if handle.cleared:
            kept.texts = []
        kept.texts = kept.texts + new
        kept.states = {**kept.states, **handle.states}
        kept.active_at = max(kept.active_at, active)
        if new or handle.cleared or handle.states:
            for other in self.handles:
                if other is not handle and other.incarnation == handle.incarnation:
                    other.fresh = False
        handle.as_seen()

    def _create(self, session_id: str, handle: ModelHandle) -> None:
        self._drawn += 1
        self.stored[session_id] = ModelStored(
            self._drawn,
            list(handle.said),
            handle.session.created_at,
            handle.session.last_active_at,
            dict(handle.states),
        )
        self.doubtful.discard(session_id)
        handle.incarnation = self._drawn
        handle.as_seen()

    def delete(self, session_id: str) -> None:
        """Remove a session."""
        kept = self.stored.get(session_id)
        if kept is not None and self._expired(kept):
            self.doubtful.add(session_id)
        elif kept is not None:
            del self.stored[session_id]

    def sweep(self) -> tuple[int, int]:
        """Remove what has expired; return the least and the most that may count."""
        gone = [name for name, kept in self.stored.items() if self._expired(kept)]
        doubtful = len(self.doubtful.intersection(gone))
        for name in gone:
            del self.stored[name]
        self.doubtful.clear()
        return len(gone) - doubtful, len(gone)
