"""`BaseSessionService`: what every session service does, to subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from raf_session.service.config import SessionServiceConfig, config_of
from raf_session.service.event_entries import entry_of, event_of
from raf_session.service.events import Event
from raf_session.service.sessions import ListSessionsResponse, Session
from raf_session.service.summary_manager import SummarizerSessionManager

__all__ = ("BaseSessionService",)


class BaseSessionService(ABC):
    """Sessions with events and scoped state. tRPC-Agent: ``BaseSessionService``.

    Whoever subclasses it keeps the sessions; `append_event` of this class changes the
    caller's session alone, and is called once the event is stored.

    Args:
        summarizer_manager: when and how sessions are summarised; `None`: never.
        session_config: what sessions show and how long they live; `None`: everything,
            for ever.

    Raises:
        TypeError: one of them is of another type.
    """

    def __init__(
        self,
        summarizer_manager: SummarizerSessionManager | None = None,
        session_config: SessionServiceConfig | None = None,
    ) -> None:
        manager: object = summarizer_manager
        if manager is not None and not isinstance(manager, SummarizerSessionManager):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                "summarizer_manager is a SummarizerSessionManager, not "
                f"{summarizer_manager!r:.60}"
            )
        self._summarizer_manager = summarizer_manager
        self._config = config_of(session_config)

    @property
    def session_config(self) -> SessionServiceConfig:
        """What sessions show and how long they live."""
        return self._config

    @property
    def summarizer_manager(self) -> SummarizerSessionManager | None:
        """When and how sessions are summarised."""
        return self._summarizer_manager

    def set_summarizer_manager(
        self, summarizer_manager: SummarizerSessionManager, *, force: bool = False
    ) -> None:
        """Summarise by this manager from now on.

        Args:
            summarizer_manager: the manager.
            force: replace one that is there.

        Raises:
            ValueError: there is one already.
        """
        if self._summarizer_manager is not None and not force:
            raise ValueError("there is a summarizer manager: force=True replaces it")
        self._summarizer_manager = summarizer_manager

    # Sessions --------------------------------------------------------------------

    @abstractmethod
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: Mapping[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session.

        Args:
            app_name: the app, not empty.
            user_id: the user, not empty.
            state: the state to begin with; each key goes to the scope of its prefix.
            session_id: the id; `None` or blank: a UUID.

        Raises:
            SessionExistsError: the id is taken; nothing changed.
            InvalidValueError: a name or a value that cannot be stored.
        """
        ...

    @abstractmethod
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> Session | None:
        """Return the session with the state of all its scopes; it counts as access.

        `None` where there is none, or it has expired.
        """
        ...

    @abstractmethod
    async def list_sessions(
        self,
        *,
        app_name: str,
        user_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ListSessionsResponse:
        """Return the sessions of a user, without events; no access.

        Args:
            app_name: the app.
            user_id: the user; `None`: all users of the app.
            limit: the most to return; `None`: all.
            cursor: where the page before ended.

        Raises:
            ValueError: `user_id` is empty, or `limit` under 1.
        """
        ...

    @abstractmethod
    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """Remove a session and all that is of it; a missing one is fine.

        The state of app and user stays.
        """
        ...

    @abstractmethod
    async def update_session(self, session: Session) -> None:
        """Store the keys of `Session.state` that changed since it was read.

        Each goes to its scope; keys that are gone from the dict are deleted, events are
        not touched, and what others stored under other keys stays.

        Raises:
            SessionNotFoundError: it was deleted, or has expired.
            InvalidValueError: a value that cannot be stored, with its path.
        """
        ...

    # Events ----------------------------------------------------------------------

    async def append_event(self, session: Session, event: Event) -> Event:
        """Show an event that was stored in the caller's session, and return it.

        A piece of a stream is returned as it is.

        Raises:
            InvalidValueError: a field that cannot be stored.
        """
        if not event.partial:
            self._show(session, event, event_of(entry_of(event)))
            self._filter(session)
        return event

    async def append_events(self, session: Session, events: Sequence[Event]) -> None:
        """Append events one by one; a service may do so in one step."""
        for event in events:
            await self.append_event(session, event)

    def _show(self, session: Session, given: Event, stored: Event) -> None:
        """Add an event, as it is stored, to the session of the caller who gave it."""
        actions = given.actions
        session.apply_state(actions.state_delta, actions.state_deleted)
        session.add_event(stored)
        session.conversation_count += stored.is_user_turn

    def _filter(self, session: Session, now: float | None = None) -> None:
        """Drop what the configuration says from the session of the caller."""
        config = self._config
        session.apply_event_filtering(
            config.event_ttl_seconds, config.max_events, now=now
        )

    # Life ------------------------------------------------------------------------

    @abstractmethod
    async def close(self) -> None:
        """Let go of what the service holds; idempotent."""
        ...

    async def __aenter__(self) -> Self:
        """Return the service; it is closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it."""
        await self.close()
