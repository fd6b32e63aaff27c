"""A journal of lists and dicts, as simple as can be, for the machine to compare."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import body
from raf_session.entries import Entry
from raf_session.errors import (
    EntryConflictError,
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("IDLE", "LIFETIME", "STATE_IDLE", "JournalModel", "Kept", "ModelSession")

IDLE: Final = timedelta(seconds=100)
LIFETIME: Final = timedelta(seconds=1000)
STATE_IDLE: Final = timedelta(seconds=150)
"""The limits of sessions and of users' state; those of apps are off."""


@dataclass(frozen=True)
class Kept:
    """An entry on its place; `left_at` 0 while it is active."""

    seq: int
    entry: Entry
    left_at: int = 0

    @property
    def text(self) -> tuple[int, int, str]:
        """What has to be equal."""
        return self.seq, self.left_at, body(self.entry)


@dataclass
class ModelSession:
    """What has to be known of a session to predict every answer."""

    created: datetime
    active_at: datetime
    incarnation: str = ""
    revision: int = 1
    last_seq: int = 0
    spliced_at: int = 0
    active: list[Kept] = field(default_factory=list[Kept])
    archived: list[Kept] = field(default_factory=list[Kept])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    providers: dict[str, Any] = field(default_factory=dict[str, Any])
    title: str = ""
    model: str = ""
    labels: frozenset[str] = frozenset()
    pinned: bool = False

    def place(self, entries: Iterable[Entry]) -> list[Kept]:
        """Draw the next places for entries and make them active."""
        placed: list[Kept] = []
        for entry in entries:
            self.last_seq += 1
            placed.append(Kept(self.last_seq, entry))
        self.active += placed
        return placed

    def known(self) -> dict[str, Kept]:
        """Return what is stored, by id."""
        return {kept.entry.id: kept for kept in (*self.archived, *self.active)}


@dataclass
class ModelState:
    """The state of a user or an app."""

    active_at: datetime
    state: dict[str, Any] = field(default_factory=dict[str, Any])


def _merge(state: dict[str, Any], delta: StateDelta | None) -> None:
    if delta is not None:
        for name in delta.names:
            state.pop(name, None)
        state.update(delta.set)


class JournalModel:
    """Does what a journal has to do, and raises what it has to raise."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._now = clock
        self.sessions: dict[SessionKey, ModelSession] = {}
        self.scopes: dict[ScopeKey, ModelState] = {}
        self.doubtful: set[SessionKey | ScopeKey] = set()
        """What a sweep may report or not: expired and deleted, or empty."""

    def alive(self, session: ModelSession) -> bool:
        """Say whether it may be seen."""
        now = self._now()
        return session.pinned or not (
            now - session.active_at > IDLE or now - session.created > LIFETIME
        )

    def state(self, scope: ScopeKey) -> dict[str, Any]:
        """Return the live state of a scope."""
        kept = self.scopes.get(scope)
        if kept is None or self._state_expired(scope, kept):
            return {}
        return kept.state

    def _state_expired(self, scope: ScopeKey, kept: ModelState) -> bool:
        return scope.user is not None and self._now() - kept.active_at > STATE_IDLE

    def find(self, key: SessionKey, incarnation: str | None = None) -> ModelSession:
        """Return a live session."""
        session = self.sessions.get(key)
        if session is None or not self.alive(session):
            raise SessionNotFoundError(key)
        if incarnation not in {None, session.incarnation}:
            raise SessionNotFoundError(key, "replaced")
        return session

    def create(
        self,
        key: SessionKey,
        entries: Sequence[Entry],
        archived: Sequence[Entry],
        change: Change,
    ) -> ModelSession:
        """Begin a session."""
        former = self.sessions.get(key)
        if former is not None and self.alive(former):
            raise SessionExistsError(key)
        every = [entry.id for entry in (*archived, *entries)]
        if len(set(every)) != len(every):
            raise EntryConflictError(key, "?", "repeated")
        session = ModelSession(self._now(), self._now())
        left = session.place(archived)
        session.active.clear()
        session.archived = [replace(kept, left_at=1) for kept in left]
        session.place(entries)
        self._apply(key, session, change)
        session.revision = 1
        self.sessions[key] = session
        self.doubtful.discard(key)
        return session

    def append(
        self,
        key: SessionKey,
        entries: Sequence[Entry],
        change: Change,
        *,
        trim: int | None = None,
        revision: int | None = None,
        incarnation: str | None = None,
    ) -> list[Kept] | None:
        """Add entries and return them; `None` where all are known."""
        if len({entry.id for entry in entries}) != len(entries):
            raise EntryConflictError(key, "?", "repeated")
        session = self.find(key, incarnation)
        known = session.known()
        found = [known.get(entry.id) for entry in entries]
        for entry, kept in zip(entries, found, strict=True):
            if kept is not None and body(kept.entry) != body(entry):
                raise EntryConflictError(key, entry.id, "another body")
        if all(found):
            return None
        if any(found):
            raise EntryConflictError(key, "?", "partly known")
        self._check(key, session, revision)
        placed = session.place(entries)
        session.active_at = max(session.active_at, self._now())
        session.revision += 1
        excess = 0 if trim is None else max(0, len(session.active) - trim)
        if excess:
            self._archive(session, session.active[:excess])
            session.active = session.active[excess:]
            session.spliced_at = session.revision
        self._apply(key, session, change)
        return placed

    def splice(
        self,
        key: SessionKey,
        first: int,
        last: int,
        entries: Sequence[Entry],
        *,
        tail: Sequence[Entry] = (),
        keep: Collection[int] = (),
        archive: bool,
        purge: bool = False,
        revision: int | None = None,
    ) -> None:
        """Replace a run; ids of the entries are new."""
        session = self.find(key)
        self._check(key, session, revision)
        run = [k for k in session.active if first <= k.seq <= last]
        leaving = [kept for kept in run if kept.seq not in keep]
        purged = [k for k in session.archived if purge and first <= k.seq <= last]
        if len(entries) > len(leaving):
            raise ValueError("more replacements than places")
        if not (leaving or purged or tail):
            return
        session.revision += 1
        session.spliced_at = session.revision
        session.archived = [kept for kept in session.archived if kept not in purged]
        if archive:
            self._archive(session, leaving)
        placed = [
            Kept(kept.seq, entry) for kept, entry in zip(leaving, entries, strict=False)
        ]
        rest = [kept for kept in session.active if kept not in leaving]
        session.active = sorted(rest + placed, key=lambda kept: kept.seq)
        session.place(tail)

    def update(
        self, key: SessionKey, change: Change, *, revision: int | None = None
    ) -> None:
        """Alter what the change names."""
        session = self.find(key)
        self._check(key, session, revision)
        if change.counts:
            session.revision += 1
        self._apply(key, session, change)

    def delete(self, key: SessionKey, incarnation: str | None) -> bool:
        """Remove a session."""
        session = self.sessions.get(key)
        if session is None:
            return False
        if not self.alive(session):
            self.doubtful.add(key)
            return False
        if incarnation not in {None, session.incarnation}:
            return False
        del self.sessions[key]
        return True

    def expired(self) -> set[SessionKey | ScopeKey]:
        """Return what a sweep has to remove."""
        gone: set[SessionKey | ScopeKey] = {
            key for key, session in self.sessions.items() if not self.alive(session)
        }
        return gone | {
            scope
            for scope, kept in self.scopes.items()
            if self._state_expired(scope, kept)
        }

    def forget(self, gone: Iterable[SessionKey | ScopeKey]) -> None:
        """Remove what a sweep has removed."""
        for key in gone:
            self.doubtful.discard(key)
            if isinstance(key, SessionKey):
                self.sessions.pop(key, None)
            else:
                self.scopes.pop(key, None)

    def write_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys of a scope."""
        kept = self.scopes.get(scope)
        if kept is None or self._state_expired(scope, kept):
            kept = ModelState(self._now())
        _merge(kept.state, delta)
        kept.active_at = max(kept.active_at, self._now())
        if kept.state:
            self.scopes[scope] = kept
            self.doubtful.discard(scope)
        else:
            self.scopes.pop(scope, None)
            self.doubtful.add(scope)

    def refresh(self, key: SessionKey) -> None:
        """Read a session with a refresh."""
        session = self.find(key)
        session.active_at = max(session.active_at, self._now())
        for scope in (ScopeKey(key.app, key.user), ScopeKey(key.app)):
            if self.state(scope):
                kept = self.scopes[scope]
                kept.active_at = max(kept.active_at, self._now())

    def _check(
        self, key: SessionKey, session: ModelSession, revision: int | None
    ) -> None:
        if revision not in {None, session.revision}:
            raise StaleSessionError(key, revision, session.revision)

    def _archive(self, session: ModelSession, leaving: Iterable[Kept]) -> None:
        session.archived += [
            replace(kept, left_at=session.revision) for kept in leaving
        ]
        session.archived.sort(key=lambda kept: (kept.seq, kept.left_at))

    def _apply(self, key: SessionKey, session: ModelSession, change: Change) -> None:
        _merge(session.state, change.session)
        _merge(session.providers, change.providers)
        if change.user:
            self.write_state(ScopeKey(key.app, key.user), change.user)
        if change.app:
            self.write_state(ScopeKey(key.app), change.app)
        if change.title is not None:
            session.title = change.title
        if change.model is not None:
            session.model = change.model
        if change.labels is not None:
            session.labels = change.labels.apply(session.labels)
        if change.pin is not None:
            session.pinned = change.pin
