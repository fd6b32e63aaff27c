"""`SessionService`: the sessions of tRPC-Agent over any journal."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Final, Self
from uuid import uuid4

from typing_extensions import override

from raf_session.compaction import CompactionOutcome
from raf_session.errors import SessionError, SessionNotFoundError
from raf_session.frozen import freeze_states
from raf_session.journal import Commit, Journal
from raf_session.keys import SessionKey, check_name
from raf_session.options import HEAD_ONLY, NewSession
from raf_session.service.config import SessionServiceConfig
from raf_session.service.contents import USER_AUTHOR
from raf_session.service.event_entries import entry_of, event_of
from raf_session.service.events import Event
from raf_session.service.listing import list_page
from raf_session.service.loading import Loader, session_of
from raf_session.service.scoped_states import ScopedStates
from raf_session.service.sessions import ListSessionsResponse, Session
from raf_session.service.summaries import Summaries
from raf_session.service.summary_manager import SummarizerSessionManager
from raf_session.service.trimming import Trimmer
from raf_session.state import StateStorageEntry, extract_state_delta
from raf_session.stores.keeper import JournalKeeper

__all__ = ("SessionService",)

SESSION_TYPE = "Session"
"""The type that sessions of this face are stored under."""

_STORED_OUTCOMES: Final = frozenset(
    (
        CompactionOutcome.COMPACTED,
        CompactionOutcome.CANNOT_SHRINK,
        CompactionOutcome.SUMMARIZER_FAILED,
    )
)
"""Those that move the revision: by the summary, or by the count of failures."""


class SessionService(ScopedStates):
    """Sessions with events and scoped state in a journal. tRPC-Agent's services.

    What a call stores is stored when it returns, all or none; the caller's session
    changes only then.  Appends and state changes of several callers commute: those of
    other keys and events are never lost.  Usable from any thread and event loop that
    the journal serves.  Inside ``async with`` expired sessions are swept at the
    configured interval.

    Args:
        journal: where sessions are kept, open; it stays open.
        summarizer_manager: when and how sessions are summarised; `None`: never.
        session_config: what sessions show; how long they live is up to the journal.

    Raises:
        ValueError: the configuration lets sessions expire otherwise than the journal.
    """

    _owns_journal: ClassVar[bool] = False

    def __init__(
        self,
        journal: Journal,
        *,
        summarizer_manager: SummarizerSessionManager | None = None,
        session_config: SessionServiceConfig | None = None,
    ) -> None:
        super().__init__(summarizer_manager, session_config)
        wanted, limits = self._config.limits, journal.limits
        if self._config.expires and (
            (wanted.sessions, wanted.user_state, wanted.app_state)
            != (limits.sessions, limits.user_state, limits.app_state)
        ):
            raise ValueError(
                "the ttl of session_config is not that of the journal, which decides: "
                "open it with limits=session_config.limits"
            )
        self._keeper = JournalKeeper(journal, owned=self._owns_journal)
        self._loader = Loader(self._config)
        self._trimmer = Trimmer(self._config)
        self._summaries = Summaries(self._keeper)

    @property
    def journal(self) -> Journal:
        """Where sessions are kept."""
        return self._keeper.journal

    # Sessions --------------------------------------------------------------------

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: Mapping[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session; see `BaseSessionService.create_session`."""
        name = session_id if session_id and session_id.strip() else str(uuid4())
        key = session_key(app_name, user_id, name)
        given = freeze_states(state or {})
        split = extract_state_delta(given)
        journal = await self._keeper.get()
        new = NewSession(key=key, session_type=SESSION_TYPE)
        commit = await journal.create(new, change=split.change)
        record = await journal.load(key, HEAD_ONLY, refresh=True)
        if record.head.incarnation != commit.head.incarnation:
            raise SessionNotFoundError(key, "replaced")
        session = session_of(record, (), journal.clock().timestamp())
        session.show_temporary(given)
        return session

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> Session | None:
        """Return a session; see `BaseSessionService.get_session`."""
        key = session_key(app_name, user_id, session_id)
        journal = await self._keeper.get()
        return await self._loader.load(journal, key, refresh=True)

    @override
    async def list_sessions(
        self,
        *,
        app_name: str,
        user_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListSessionsResponse:
        """Return sessions without events; see `BaseSessionService.list_sessions`."""
        check_name(app_name, "app_name")
        if user_id is not None:
            check_name(user_id, "user_id")
        journal = await self._keeper.get()
        return await list_page(journal, app_name, user_id, limit, cursor)

    @override
    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """Remove a session; see `BaseSessionService.delete_session`."""
        key = session_key(app_name, user_id, session_id)
        journal = await self._keeper.get()
        await journal.delete(key)

    # State -----------------------------------------------------------------------

    @override
    async def update_session(self, session: Session) -> None:
        """Store what changed; see `BaseSessionService.update_session`."""
        async with session.turn.taken():
            values, deleted = session.unsaved()
            if values or deleted:
                await self._write(session, extract_state_delta(values, deleted))
                session.confirm_state(values, deleted)

    async def update_session_state(
        self,
        session: Session,
        state_delta: Mapping[str, Any],
        *,
        deleted: Sequence[str] = (),
    ) -> None:
        """Set and delete keys of the state, and store them at once.

        Temporary keys are set in the caller's session alone.

        Raises:
            SessionNotFoundError: the session was deleted, or has expired.
            InvalidValueError: a key or value that cannot be stored; nothing changed.
        """
        given = freeze_states(state_delta)
        split = extract_state_delta(given, deleted)
        async with session.turn.taken():
            await self._write(session, split)
            session.apply_state(given, deleted)

    async def _write(self, session: Session, split: StateStorageEntry) -> None:
        """Store a change of the state, which is access to the session."""
        key, journal = key_of(session), await self._keeper.get()
        commit = await journal.update(
            key,
            replace(split.change, touch=journal.clock()),
            incarnation=_incarnation(session),
        )
        session.follow(commit.head, steps=bool(split.session))

    # Events ----------------------------------------------------------------------

    @override
    async def append_event(
        self, session: Session, event: Event, *, expected_revision: int | None = None
    ) -> Event:
        """Store an event with the state that it sets, and show it in the session.

        A piece of a stream is returned, and not stored.  An event whose id is stored
        already, with the same body, is stored once.

        Args:
            session: where to; it changes once the event is stored.
            event: the event; it stays as it is.
            expected_revision: store it only where nobody else has written since
                `Session.revision` was this; `None`: appends commute.

        Returns:
            The event that was given.

        Raises:
            SessionNotFoundError: the session was deleted, re-created or has expired.
            EntryConflictError: its id is stored with another body.
            StaleSessionError: the revision is another.
            InvalidValueError: a field that cannot be stored, with its path.
        """
        await self.append_events(session, (event,), expected_revision=expected_revision)
        return event

    @override
    async def append_events(
        self,
        session: Session,
        events: Sequence[Event],
        *,
        expected_revision: int | None = None,
    ) -> None:
        """Store events in one step, all or none; see `append_event`."""
        if not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a Session is wanted, not {session!r:.60}")
        for event in events:
            if not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"an Event is wanted, not {event!r:.60}")
        events = [event for event in events if not event.partial]
        if not events:
            return
        entries = [entry_of(event) for event in events]
        for event in events:
            freeze_states(event.actions.state_delta)
        split = reduce(
            StateStorageEntry.then,
            (
                extract_state_delta(e.actions.state_delta, e.actions.state_deleted)
                for e in events
            ),
        )
        key, journal = key_of(session), await self._keeper.get()
        async with session.turn.taken():
            commit = await journal.append(
                key,
                entries,
                change=split.change,
                expected_revision=expected_revision,
                incarnation=_incarnation(session),
            )
            self._show_all(session, events, commit, journal.clock().timestamp())
            await self._trim(journal, commit, session)
        manager = self._summarizer_manager
        if (
            manager is not None
            and manager.auto_summarize
            and any(map(_ends_a_turn, events))
        ):
            await self._summaries.start(manager, commit.head)

    def _show_all(
        self, session: Session, events: Sequence[Event], commit: Commit, now: float
    ) -> None:
        known = {e.id for e in session.events} if commit.repeated else frozenset[str]()
        for event, entry in zip(events, commit.entries, strict=True):
            if entry.id not in known:
                self._show(session, event, event_of(entry))
        self._filter(session, now)
        if not commit.repeated:
            session.count(commit.entries)
        session.follow(commit.head, steps=not commit.repeated)
        session.conversation_count = commit.head.total.conversations

    async def _trim(self, journal: Journal, commit: Commit, session: Session) -> None:
        """Trim a session, where it is time; its events are stored anyway."""
        if not self._trimmer.is_due(commit):
            return
        try:
            trimmed = await self._trimmer.trim(journal, commit)
        except SessionError as error:
            warnings.warn(
                f"session {session.id!r} was not trimmed: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
        else:
            if trimmed is not None:
                session.follow(trimmed.head, steps=1)

    # Summaries -------------------------------------------------------------------

    async def create_session_summary(self, session: Session) -> CompactionOutcome:
        """Summarise a session now, whatever the thresholds say.

        Afterwards the session shows the summary in place of what it stands for; what
        it stands for can be read from the archive.

        Returns:
            How it ended; unless it is ``compacted``, nothing changed.

        Raises:
            ValueError: the service has no summarizer manager.
            SessionNotFoundError: the session was deleted, re-created or has expired.
        """
        manager = self._summarizer_manager
        if manager is None:
            raise ValueError("there is no summarizer manager to summarise with")
        key = key_of(session)
        outcome = await self._summaries.summarize(
            manager, key, incarnation=_incarnation(session)
        )
        journal = await self._keeper.get()
        async with session.turn.taken():
            fresh = await self._loader.load(journal, key, refresh=True)
            if fresh is not None:
                session.take_events(fresh, steps=outcome in _STORED_OUTCOMES)
        return outcome

    async def get_session_summary(self, session: Session) -> str | None:
        """Return the summary that is stored, or `None` where there is none.

        Raises:
            SessionNotFoundError: the session was deleted, or has expired.
        """
        return await self._summaries.current(key_of(session))

    async def summaries_done(self) -> None:
        """Wait until no summary is being written."""
        await self._summaries.wait()

    # Life ------------------------------------------------------------------------

    @override
    async def close(self) -> None:
        """Wait for the summaries that are being written, and close what is owned.

        Idempotent; a service that opens its journal itself opens it again when it is
        used again.
        """
        await self._summaries.wait()
        await self._keeper.close()

    @override
    async def __aenter__(self) -> Self:
        """Open the journal, and start the sweep where anything can expire."""
        await self._keeper.start()
        return self


def session_key(app_name: str, user_id: str, session_id: str) -> SessionKey:
    """Return the key of a session.

    Raises:
        InvalidValueError: a name is empty, or cannot be one.
    """
    return SessionKey(
        app=check_name(app_name, "app_name"),
        user=check_name(user_id, "user_id"),
        session=check_name(session_id, "session_id"),
    )


def key_of(session: Session) -> SessionKey:
    """Return the key under which a session is stored."""
    return session_key(session.app_name, session.user_id, session.id)


def _ends_a_turn(event: Event) -> bool:
    """Tell whether the agent has answered with it: what the user says is no answer."""
    asked = event.is_user_turn or event.author == USER_AUTHOR
    return event.is_final_response() and not asked


def _incarnation(session: Session) -> str | None:
    return None if session.origin is None else session.origin.incarnation
