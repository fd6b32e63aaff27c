"""A small model of the service: sessions, three scopes of state, and handles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from raf_session.errors import (
    EntryConflictError,
    SessionError,
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
)

__all__ = ("Given", "Model", "ModelHandle", "ModelSession", "Refused")

State = dict[str, Any]


class Refused(Exception):  # noqa: N818  (the model's own)
    """What the service has to raise."""

    def __init__(self, kind: type[SessionError]) -> None:
        self.kind = kind
        super().__init__(kind.__name__)


class Given(NamedTuple):
    """An event as the caller gives it."""

    id: str
    author: str
    state: tuple[tuple[str, Any], ...] = ()
    deleted: frozenset[str] = frozenset()

    def apply(self, state: State) -> None:
        """Change a state by it."""
        for name in self.deleted:
            state.pop(name, None)
        state.update(self.state)


@dataclass(eq=False)
class ModelSession:
    """What is stored of one session; two of one name are two."""

    revision: int = 1
    events: list[Given] = field(default_factory=list[Given])


@dataclass
class ModelHandle:
    """A session as one caller holds it."""

    name: str
    origin: ModelSession
    revision: int
    saved: State
    state: State
    events: list[str]

    @property
    def unsaved(self) -> tuple[State, set[str]]:
        """What was set and deleted since it was read or saved."""
        kept = {k: v for k, v in self.state.items() if not k.startswith("temp:")}
        sets = {
            k: v
            for k, v in kept.items()
            if k not in self.saved or repr(self.saved[k]) != repr(v)
        }
        return sets, self.saved.keys() - kept.keys()


class Model:
    """The sessions of one user of one app."""

    def __init__(self) -> None:
        self.sessions: dict[str, ModelSession] = {}
        self.states: dict[str, State] = {}
        """The own state of each session; that of user and app by their prefixes."""

    def merged(self, name: str) -> State:
        """Return the state that a read of a session shows."""
        merged = dict(self.states[name])
        for prefix in ("user:", "app:"):
            scope = self.states.get(prefix, {})
            merged |= {prefix + key: value for key, value in scope.items()}
        return merged

    def create(self, name: str, state: State) -> ModelHandle:
        """Create a session."""
        if name in self.sessions:
            raise Refused(SessionExistsError)
        self.sessions[name], self.states[name] = ModelSession(), {}
        self._store(name, state, ())
        handle = self.get(name)
        assert handle is not None
        handle.state |= {k: v for k, v in state.items() if k.startswith("temp:")}
        return handle

    def get(self, name: str) -> ModelHandle | None:
        """Read a session."""
        stored = self.sessions.get(name)
        if stored is None:
            return None
        state = self.merged(name)
        events = [event.id for event in stored.events]
        return ModelHandle(name, stored, stored.revision, state, dict(state), events)

    def delete(self, name: str) -> None:
        """Remove a session; the state of user and app stays."""
        self.sessions.pop(name, None)
        self.states.pop(name, None)

    def append(
        self, handle: ModelHandle, events: list[Given], expected: int | None
    ) -> None:
        """Append events, all or none."""
        if len({event.id for event in events}) < len(events):
            raise Refused(EntryConflictError)
        stored = self._live(handle)
        known = {event.id: event for event in stored.events}
        repeated = [known.get(event.id) for event in events]
        if not any(old is None for old in repeated):
            if repeated != events:
                raise Refused(EntryConflictError)
            fresh = [event for event in events if event.id not in handle.events]
        elif any(repeated):
            raise Refused(EntryConflictError)
        else:
            if expected is not None and expected != stored.revision:
                raise Refused(StaleSessionError)
            fresh = events
            stored.events += events
            for event in events:
                self._store(handle.name, dict(event.state), event.deleted)
            self._grow(handle, stored)
        for event in fresh:
            handle.events.append(event.id)
            self._apply(handle, dict(event.state), event.deleted)

    def update(self, handle: ModelHandle) -> None:
        """Store what changed in the handle's state."""
        sets, deleted = handle.unsaved
        if sets or deleted:
            self.set_state(handle, sets, deleted)

    def set_state(self, handle: ModelHandle, sets: State, deleted: set[str]) -> None:
        """Set and delete keys at once."""
        stored = self._live(handle)
        self._store(handle.name, sets, deleted)
        if any(_scope(k) == "" for k in (*sets, *deleted)):
            self._grow(handle, stored)
        self._apply(handle, sets, deleted)

    def _live(self, handle: ModelHandle) -> ModelSession:
        if self.sessions.get(handle.name) is not handle.origin:
            raise Refused(SessionNotFoundError)
        return handle.origin

    def _store(self, name: str, sets: State, deleted: Any) -> None:
        for key in (*sets, *deleted):
            prefix = _scope(key)
            if prefix == "temp:":
                continue
            scope = self.states.setdefault(prefix or name, {})
            own = key.removeprefix(prefix)
            if key in sets:
                scope[own] = sets[key]
            else:
                scope.pop(own, None)

    @staticmethod
    def _grow(handle: ModelHandle, stored: ModelSession) -> None:
        stored.revision += 1
        if handle.revision == stored.revision - 1:
            handle.revision = stored.revision

    @staticmethod
    def _apply(handle: ModelHandle, sets: State, deleted: Any) -> None:
        for key in deleted:
            handle.state.pop(key, None)
            handle.saved.pop(key, None)
        handle.state |= sets
        handle.saved |= {k: v for k, v in sets.items() if _scope(k) != "temp:"}


def _scope(key: str) -> str:
    for prefix in ("user:", "app:", "temp:"):
        if key.startswith(prefix):
            return prefix
    return ""
