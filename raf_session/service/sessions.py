"""`Session`: a conversation as its caller holds it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Self

from pydantic import Field, PrivateAttr
from typing_extensions import override

from raf_session.entries import Counts, Entry, SessionHead
from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, FrozenDict, FrozenJson, freeze_states, thaw
from raf_session.service.events import Event, EventModel
from raf_session.service.views import Filter, view_of
from raf_session.state import is_temporary, state_changes, without_temporary
from raf_session.toolcalls import is_preamble
from raf_session.turns import Turn

__all__ = ("ListSessionsResponse", "Origin", "Session")


class Origin(NamedTuple):
    """What a handle knows of the stored session that it was read from."""

    incarnation: str
    revision: int
    last_seq: int

    @classmethod
    def of(cls, head: SessionHead) -> Origin:
        """Return the origin of a session that was just read or written."""
        return cls(head.incarnation, head.revision, head.last_seq)


class _HandleTurn(Turn):
    """Of one handle alone: a copy of the handle gets its own."""

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ()


class Session(EventModel):
    """A conversation of a user with an app. tRPC-Agent: ``Session``.

    A plain object of its caller's: copies share nothing, and nothing changes it but
    the calls that it is passed to.  Keys that are set on `state` are stored by
    `update_session`, or at the end of a run; one that is dropped with unsaved keys
    warns with their names.
    """

    id: str
    """The id, unique among the user's sessions."""

    app_name: str
    """The app that it belongs to."""

    user_id: str
    """The user that it belongs to."""

    save_key: str = ""
    """``app_name/user_id``; for display: names may hold slashes."""

    state: dict[str, Any] = Field(default_factory=dict)
    """The state of session, app (``app:``), user (``user:``) and run (``temp:``)."""

    events: list[Event] = Field(default_factory=list[Event])
    """The events, in the order in which they were stored."""

    last_update_time: float = 0.0
    """When it was last written, in seconds since the epoch."""

    conversation_count: int = 0
    """How many messages of the user's were ever stored in it."""

    _origin: Origin | None = PrivateAttr(default=None)
    _stored_state: FrozenDict[FrozenJson] = PrivateAttr(default=EMPTY)
    _first_user: Event | None = PrivateAttr(default=None)
    _since_summary: Counts | None = PrivateAttr(default=None)
    _read_at: float | None = PrivateAttr(default=None)
    _turn: _HandleTurn = PrivateAttr(default_factory=_HandleTurn)

    @override
    def model_post_init(self, context: Any, /) -> None:
        if not self.save_key:
            self.save_key = f"{self.app_name}/{self.user_id}"

    @property
    def revision(self) -> int | None:
        """The revision that it was read at; `None` where it was not read."""
        return None if self._origin is None else self._origin.revision

    @property
    def origin(self) -> Origin | None:
        """The stored session that it was read from; `None`: made by hand."""
        return self._origin

    @property
    def since_summary(self) -> Counts | None:
        """What was stored since its last summary; `None` where it was not read."""
        return self._since_summary

    @property
    def read_at(self) -> float | None:
        """When a service last read or wrote it, in seconds since the epoch."""
        return self._read_at

    @property
    def turn(self) -> Turn:
        """Held by a call that writes, so that it shows writes in their order."""
        return self._turn

    @property
    def summary(self) -> Event | None:
        """The summary that its events begin with, if there is one."""
        return next((event for event in self.events if event.is_summary), None)

    # State -----------------------------------------------------------------------

    def unsaved(self) -> tuple[FrozenDict[FrozenJson], frozenset[str]]:
        """Return what was set and deleted in `state` since it was read or saved.

        Temporary keys count in neither.

        Raises:
            InvalidValueError: a value is no JSON value, with its path.
        """
        return state_changes(self._stored_state, self.state)

    def confirm_state(
        self, values: FrozenDict[FrozenJson], deleted: Iterable[str]
    ) -> None:
        """Count these keys as saved."""
        stored = dict(self._stored_state) | values
        for key in deleted:
            stored.pop(key, None)
        self._stored_state = FrozenDict(stored)

    def drop_temporary(self) -> None:
        """Forget the state of the run."""
        self.state = without_temporary(self.state)

    def apply_state(self, values: Mapping[str, Any], deleted: Collection[str]) -> None:
        """Set and delete keys of `state` that are stored now, and temporary ones."""
        if not values and not deleted:
            return
        frozen = freeze_states(values)
        names = frozenset(deleted)
        for key in names:
            self.state.pop(key, None)
        self.state.update(thaw(frozen))
        self.confirm_state(FrozenDict(without_temporary(frozen)), names)

    def show_temporary(self, values: Mapping[str, Any]) -> None:
        """Set the temporary keys among these in `state`."""
        own = {key: value for key, value in values.items() if is_temporary(key)}
        self.state.update(thaw(freeze_states(own)))

    def remember(
        self,
        origin: Origin,
        state: FrozenDict[FrozenJson],
        since_summary: Counts | None,
        read_at: float | None = None,
    ) -> None:
        """Hold what was just read, with a state of the caller's own.

        Args:
            origin: the stored session.
            state: what is stored of all scopes.
            since_summary: what was stored since the last summary, where that is known.
            read_at: when it was read, in seconds since the epoch.
        """
        self._read_at = read_at
        self._origin = origin
        self._stored_state = state
        self.state = thaw(state)
        self._since_summary = since_summary
        self._first_user = next(filter(_is_user, self.events), None)

    def follow(self, head: SessionHead, *, steps: int) -> None:
        """Know that a call of its caller's was stored.

        `revision` moves where nobody else had written in between: what others wrote is
        not in it.

        Args:
            head: the stored session right after the call.
            steps: by how much the call moved its revision.
        """
        origin = self._origin
        if origin is not None and head.revision == origin.revision + steps:
            self._origin = Origin.of(head)
        self.last_update_time = head.updated_at.timestamp()
        self._read_at = max(self._read_at or 0.0, self.last_update_time)

    # Events ----------------------------------------------------------------------

    def add_event(
        self,
        event: Event,
        event_ttl_seconds: float = 0.0,
        max_events: int = 0,
        *,
        now: float | None = None,
    ) -> None:
        """Add an event at the end, and filter; in this object alone.

        Args:
            event: the event.
            event_ttl_seconds: see `apply_event_filtering`.
            max_events: see `apply_event_filtering`.
            now: see `apply_event_filtering`.
        """
        self.events.append(event)
        self.last_update_time = max(self.last_update_time, event.timestamp)
        self.apply_event_filtering(event_ttl_seconds, max_events, now=now)

    def apply_event_filtering(
        self,
        event_ttl_seconds: float = 0.0,
        max_events: int = 0,
        *,
        now: float | None = None,
    ) -> None:
        """Drop events that are too old or too many, in this object alone.

        A leading system message and the summary stay, calls and results stay or go
        together, and where no message of the user's would be left, the session's first
        one is put in front.  The list is replaced, so whoever iterates sees all of the
        former one.

        Args:
            event_ttl_seconds: seconds after which an event goes; 0: no limit.
            max_events: how many events stay; 0: no limit.
            now: seconds since the epoch; `None`: this machine's time.
        """
        limits = Filter(max_events, event_ttl_seconds)
        if not limits:
            return
        if self._first_user is None:
            self._first_user = next(filter(_is_user, self.events), None)
        first = self._first_user
        moment = round((time.time() if now is None else now) * 1_000_000)
        events = self._with(first)
        shown = _shown(events, limits, moment)
        turns = [event for event in shown if event.is_user_turn]
        if events is not self.events and first in turns and len(turns) > 1:
            # It left before, and another turn of the user's is within the limits.
            shown = _shown(self.events, limits, moment)
        self.events = shown

    def _with(self, first: Event | None) -> list[Event]:
        """Return the events with the first one of the user's at its place."""
        if first is None or any(event.id == first.id for event in self.events):
            return self.events
        place = next(
            (i for i, event in enumerate(self.events) if not _leads(event)),
            len(self.events),
        )
        return [*self.events[:place], first, *self.events[place:]]

    def count(self, entries: Iterable[Entry]) -> None:
        """Count entries that were stored as new since the last summary."""
        if self._since_summary is not None:
            self._since_summary = self._since_summary.plus(Counts.of(entries))

    def take_events(self, fresh: Session, *, steps: int) -> None:
        """Show the events of a session that was read anew; the state stays.

        Args:
            fresh: the session.
            steps: by how much the caller's own call moved its revision.
        """
        self.events = fresh.events
        self.conversation_count = fresh.conversation_count
        self._since_summary = fresh._since_summary
        self._first_user = fresh._first_user
        self.last_update_time = fresh.last_update_time
        self._read_at = fresh._read_at
        known, new = self._origin, fresh._origin
        if known and new and new.revision == known.revision + steps:
            self._origin = new

    @override
    def __copy__(self) -> Self:
        """Return a copy that shares nothing with it."""
        return self.__deepcopy__()

    def __del__(self) -> None:
        """Warn where a change of the state is lost."""
        private = getattr(self, "__pydantic_private__", None)
        if not private or private["_origin"] is None:
            return
        try:
            values, deleted = self.unsaved()
        except InvalidValueError as error:
            names = [error.path]
        else:
            names = sorted({*values, *deleted})
        if names:
            warnings.warn(
                f"session {self.id!r} was dropped with state that nothing had stored: "
                f"{', '.join(names)}; call update_session()",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )


def _shown(events: list[Event], limits: Filter, now_us: int) -> list[Event]:
    return [events[index] for index in view_of(events, limits, now_us).kept]


def _leads(event: Event) -> bool:
    """Tell whether an event stands in front of what the user says first."""
    return event.is_summary or (
        event.content is not None and is_preamble(event.content)
    )


def _is_user(event: Event) -> bool:
    return event.is_user_turn and not event.is_summary


class ListSessionsResponse(EventModel):
    """Sessions without their events. tRPC-Agent: ``ListSessionsResponse``."""

    sessions: list[Session] = Field(default_factory=list[Session])
    """The sessions, last active first, each with the state of all scopes."""

    cursor: str | None = None
    """Where the next page begins; `None`: this was the last."""
