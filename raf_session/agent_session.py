"""`AgentSession`, the session in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Self
from uuid import uuid4

from typing_extensions import override

from raf_session.base_session import read_snapshot
from raf_session.clock import Clock, utc, utc_now
from raf_session.entries import new_id
from raf_session.frozen import FrozenDict
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionSnapshot
from raf_session.session_view import MessageLog, SessionView, ViewSession

__all__ = ("AgentSession",)


class AgentSession(ViewSession):
    """A conversation in memory, usable from any thread. RAF: ``AgentSession``.

    A message that carries an `id` is kept once: the same again changes nothing,
    another under that id raises `EntryConflictError`.

    Args:
        session_id: `None`: a UUID v4.
        clock: whose time is recorded.
    """

    session_type: ClassVar[str] = "AgentSession"

    def __init__(
        self, session_id: str | None = None, *, clock: Clock = utc_now
    ) -> None:
        now = utc(clock())
        super().__init__(
            str(uuid4()) if session_id is None else session_id,
            SessionView(MessageLog(), 0, now, now, now),
            None,
            clock=clock,
        )

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        """Append one message; activity.

        Raises:
            EntryConflictError: its id is known with another message.
        """
        self._add((message,))

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        """Append messages in order, all or none; activity, unless there are none.

        Raises:
            EntryConflictError: an id is known with another message, or only some are.
        """
        if messages:
            self._add(tuple(messages))

    def _add(self, messages: Sequence[ChatMessage]) -> None:
        for message in messages:
            if not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{type(message).__name__} is not a ChatMessage")
        now = utc(self._clock())
        with self._lock:
            view = self._view
            if view.log.known(messages, self.session_id):
                return
            for message in messages:
                view.log.add(message, message.id or new_id())
            self._view = self._active(view, now, view.log, view.length + len(messages))

    @override
    async def get_messages(self) -> list[ChatMessage]:
        """Return the history in a new list."""
        return self._view.messages()

    @override
    async def clear(self) -> None:
        """Erase history and request record; activity."""
        now = utc(self._clock())
        with self._lock:
            self.restore_request(None)
            self._view = self._active(self._view, now, MessageLog(), 0)

    @override
    async def touch_last_active(self) -> None:
        """Move `last_active_at` to now, never back."""
        now = utc(self._clock())
        with self._lock:
            view = self._view
            latest = max(view.last_active_at, now)
            self._view = view._replace(last_active_at=latest)

    @staticmethod
    def _active(
        view: SessionView, now: datetime, log: MessageLog, length: int
    ) -> SessionView:
        return SessionView(
            log,
            length,
            view.created_at,
            max(view.updated_at, now),
            max(view.last_active_at, now),
            view.providers,
            view.state,
        )

    @override
    def __reduce__(self) -> tuple[object, ...]:
        # Copies and pickles are sessions of their own, with a lock of their own.
        return type(self).from_snapshot, (self.snapshot(),)

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        """Return a session of the JSON that `serialize` or RAF wrote.

        Raises:
            InvalidValueError: the text is no session, with the path to the fault.
            SchemaVersionError: a newer library wrote it.
        """
        return cls.from_snapshot(read_snapshot(data))

    @classmethod
    def from_snapshot(
        cls, snapshot: SessionSnapshot, *, clock: Clock = utc_now
    ) -> Self:
        """Return an independent session of what the snapshot tells."""
        session = cls(snapshot.session_id, clock=clock)
        metadata = snapshot.metadata
        ids: Sequence[str | None] = snapshot.entry_ids
        if len(ids) != len(snapshot.messages):
            ids = (None,) * len(snapshot.messages)
        log = MessageLog()
        for message, entry_id in zip(snapshot.messages, ids, strict=True):
            log.add(message, entry_id or message.id or new_id())
        session._view = SessionView(
            log,
            len(log.messages),
            metadata.created_at,
            metadata.updated_at,
            # As RAF does where an old writer kept none.
            snapshot.last_active_at or metadata.created_at,
            FrozenDict(snapshot.provider_states.states),
            snapshot.state,
        )
        session.restore_request(snapshot.last_request())
        session._extra = snapshot.extra
        session._metadata_extra = metadata.extra
        return session
