"""What the sessions that we ship show: one immutable view, swapped whole."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from typing_extensions import override

from raf_session.base_session import BaseSession
from raf_session.changes import RequestRecord
from raf_session.clock import Clock, utc_now
from raf_session.entries import Record
from raf_session.errors import EntryConflictError
from raf_session.frozen import EMPTY, STATE_DEPTH, FrozenDict, FrozenJson, freeze
from raf_session.keys import check_name
from raf_session.messages import ChatMessage
from raf_session.metadata import (
    ProviderStateStore,
    SessionMetadata,
    SessionSnapshot,
    provider_states,
)
from raf_session.parts import build

__all__ = ("MessageLog", "SessionView", "ViewSession", "log_of", "view_of")


class MessageLog:
    """Messages that are only ever added, shared by all views of a session.

    A view holds the log and a length, so adding costs the same at any size.
    """

    __slots__ = ("_by_id", "ids", "messages")

    def __init__(self) -> None:
        self.messages: list[ChatMessage] = []
        self.ids: list[str] = []
        self._by_id: dict[str, ChatMessage] | None = None

    @property
    def by_id(self) -> dict[str, ChatMessage]:
        """The messages by the ids of their entries; made when it is first asked for."""
        if self._by_id is None:
            self._by_id = dict(zip(self.ids, self.messages, strict=True))
        return self._by_id

    def add(self, message: ChatMessage, entry_id: str) -> None:
        """Add a message under the id of its entry."""
        self.messages.append(message)
        self.ids.append(entry_id)
        if self._by_id is not None:
            self._by_id[entry_id] = message

    def known(self, messages: Sequence[ChatMessage], session_id: str) -> bool:
        """Tell whether all of these are in the log already, by id.

        Raises:
            EntryConflictError: an id is there with another message, only some are
                there, or one stands twice.
        """
        ids = [message.id for message in messages if message.id is not None]
        if not ids:
            return False
        if len(set(ids)) < len(ids):
            twice = next(name for name in ids if ids.count(name) > 1)
            raise EntryConflictError(session_id, twice, "repeated")
        found = 0
        for message in messages:
            if message.id in self.by_id:
                if self.by_id[message.id] != message:
                    raise EntryConflictError(session_id, message.id, "another body")
                found += 1
        if found and found < len(messages):
            known = next(name for name in ids if name in self.by_id)
            raise EntryConflictError(session_id, known, "partly known")
        return found > 0


class SessionView(NamedTuple):
    """A session at one moment."""

    log: MessageLog
    length: int
    created_at: datetime
    updated_at: datetime
    last_active_at: datetime
    providers: FrozenDict[FrozenJson] = EMPTY
    state: Mapping[str, Any] = EMPTY

    def messages(self) -> list[ChatMessage]:
        """Return the messages, in a new list."""
        return self.log.messages[: self.length]

    def entry_ids(self) -> list[str | None]:
        """Return the entry ids of the messages, `None` where a message has that id."""
        log = self.log
        return [
            None if message.id == entry_id else entry_id
            for message, entry_id in zip(
                log.messages[: self.length], log.ids[: self.length], strict=True
            )
        ]


def log_of(record: Record, former: MessageLog) -> MessageLog:
    """Return the log of a whole record; unchanged messages stay the same objects."""
    log = MessageLog()
    if not former.messages:
        entries = record.entries
        log.ids += [entry.id for entry in entries if entry.message is not None]
        log.messages += [m for entry in entries if (m := entry.message) is not None]
        return log
    for entry in record.entries:
        if entry.message is not None:
            known = former.by_id.get(entry.id, entry.message)
            log.add(known if known == entry.message else entry.message, entry.id)
    return log


def view_of(record: Record) -> SessionView:
    """Return the view of a whole record."""
    head = record.head
    log = log_of(record, MessageLog())
    return SessionView(
        log,
        len(log.messages),
        head.created_at,
        head.updated_at,
        head.last_active_at,
        FrozenDict(record.provider_states),
        record.state,
    )


class ViewSession(BaseSession):
    """The sync half of a session: every getter reads the view that was published.

    A lock guards writers; it is never held across an await.
    """

    def __init__(
        self,
        session_id: str,
        view: SessionView,
        request: RequestRecord | None,
        *,
        clock: Clock = utc_now,
    ) -> None:
        super().__init__(session_id)
        self._view = view
        self.restore_request(request)
        self._lock = threading.Lock()
        self._clock = clock

    def use_clock(self, clock: Clock) -> None:
        """Let another clock tell the time from now on."""
        self._clock = clock

    @property
    @override
    def created_at(self) -> datetime:
        """When the session began, in UTC."""
        return self._view.created_at

    @property
    @override
    def last_active_at(self) -> datetime:
        """When there was last activity, in UTC."""
        return self._view.last_active_at

    @property
    def state(self) -> Mapping[str, Any]:
        """The session's own state, frozen."""
        return self._view.state

    @override
    def messages_now(self) -> Sequence[ChatMessage]:
        """Return the messages that the last awaited call left behind."""
        return self._view.messages()

    @override
    def get_message_count(self) -> int:
        """Return the number of messages, at once."""
        return self._view.length

    @override
    def metadata(self) -> SessionMetadata:
        """Return times, count and request hash."""
        return self._metadata(self._view)

    def _metadata(self, view: SessionView) -> SessionMetadata:
        return SessionMetadata(
            created_at=view.created_at,
            updated_at=view.updated_at,
            message_count=view.length,
            last_request_hash=self.get_last_request_hash(),
            extra=self._metadata_extra,
        )

    @override
    def snapshot(self) -> SessionSnapshot:
        """Return the whole session, all of one moment."""
        with self._lock:
            view = self._view
            metadata = self._metadata(view)
            request = self.request_record
        values: dict[str, Any] = {
            "session_id": self.session_id,
            "metadata": metadata,
            "messages": tuple(view.messages()),
            "provider_states": provider_states(view.providers),
            "last_active_at": view.last_active_at,
            "request": request,
            "entry_ids": tuple(view.entry_ids()),
            "state": view.state,
            "extra": self._extra,
        }
        snapshot: SessionSnapshot = build(SessionSnapshot, values, set(values))
        return snapshot

    @property
    @override
    def provider_states(self) -> ProviderStateStore:
        """Every provider's state, frozen."""
        return provider_states(self._view.providers)

    @override
    def get_provider_state(self, provider_name: str, /) -> FrozenJson:
        """Return the frozen state of a provider, `None` where there is none."""
        return self._view.providers.get(provider_name)

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        """Keep a frozen copy of a JSON value for a provider."""
        frozen = freeze(state, check_name(provider_name, "provider_name"), STATE_DEPTH)
        with self._lock:
            view = self._view
            states: FrozenDict[FrozenJson] = FrozenDict(
                {**view.providers, provider_name: frozen}
            )
            updated = max(view.updated_at, self._clock())
            self._view = view._replace(providers=states, updated_at=updated)

    @override
    def touch_request_hash(
        self,
        messages: Sequence[ChatMessage | Mapping[str, Any]],
        /,
        *,
        header: Any = None,
    ) -> None:
        """Record the messages of a request, and its header where one is given."""
        with self._lock:
            super().touch_request_hash(messages, header=header)

    _extra: Mapping[str, Any] = EMPTY
    _metadata_extra: Mapping[str, Any] = EMPTY
