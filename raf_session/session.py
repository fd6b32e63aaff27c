"""`ISession`, the trait, and `SessionCore`, the part that no default can supply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from typing_extensions import Protocol, runtime_checkable

from raf_session.frozen import FrozenJson
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionMetadata, SessionSnapshot

__all__ = ("ISession", "SessionCore")


@runtime_checkable
class SessionCore(Protocol):
    """The four members that no default can supply.

    A store, a wrapper and the conformance kit take any object that has them,
    inheriting or not.
    """

    @property
    @abstractmethod
    def session_id(self) -> str:
        """What identifies the session, usually a UUID v4. RAF: ``session_id``."""
        ...

    @abstractmethod
    async def add_message(self, message: ChatMessage, /) -> None:
        """Append one message to the end of the history. RAF: ``add_message``.

        When the call returns, `get_messages` ends with ``message``.  When it raises,
        the history is as it was.
        """
        ...

    @abstractmethod
    async def get_messages(self) -> list[ChatMessage]:
        """Return the history, oldest first. RAF: ``get_messages``.

        The list is new and the caller's own; the messages cannot be changed.
        Reading moves no time.
        """
        ...

    @abstractmethod
    async def clear(self) -> None:
        """Erase the history. RAF: ``clear``.

        History, archive, counts, summary and request record are gone; the id,
        `created_at`, session and provider state and labels stay.  It is activity.
        When it raises, the history is as it was.
        """
        ...


@runtime_checkable
class ISession(SessionCore, Protocol):
    """The state of a conversation of many turns. RAF: ``ISession``.

    **No sync member waits or does I/O**: it tells what the last awaited call left
    behind, consistently and never as "empty" because somebody is busy.
    **Reads move no time**; `add_message`, a batch and `clear` are activity: they move
    `updated_at` and `last_active_at`.

    `BaseSession` supplies everything beyond `SessionCore`; whoever implements the
    trait otherwise keeps the same promises, which `raf_session.conformance` checks.
    """

    @abstractmethod
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        """Append messages in order. RAF: ``add_messages_batch``.

        All or none in every session that this library ships; the default is one by
        one.  No messages are no activity.
        """
        ...

    @abstractmethod
    def get_message_count(self) -> int:
        """Return the number of messages. RAF: ``get_message_count``.

        Equals ``len(await get_messages())``.
        """
        ...

    @abstractmethod
    def metadata(self) -> SessionMetadata:
        """Return times, count and request hash. RAF: ``metadata``."""
        ...

    @abstractmethod
    def snapshot(self) -> SessionSnapshot:
        """Return the whole session at one moment, read-only. RAF: ``snapshot``."""
        ...

    @abstractmethod
    def serialize(self) -> str:
        """Return the JSON of `snapshot`, which RAF reads. RAF: ``serialize``."""
        ...

    @classmethod
    @abstractmethod
    def deserialize(cls, data: str, /) -> Self:
        """Return a session of the JSON that `serialize` or RAF wrote.

        RAF: ``deserialize``.

        Raises:
            InvalidValueError: the text is no session, with the path to the fault.
            SchemaVersionError: a newer library wrote it.
        """
        ...

    @abstractmethod
    def get_provider_state(self, provider_name: str, /) -> FrozenJson:
        """Return the state that a provider keeps here. RAF: ``get_provider_state``.

        `None` where there is none; otherwise frozen JSON, which `frozen.thaw` copies
        into plain lists and dicts.
        """
        ...

    @abstractmethod
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        """Keep a JSON value for a provider. RAF: ``set_provider_state``.

        The value is copied, never dropped, and bound to nothing but its name.

        Raises:
            InvalidValueError: it is no JSON value, with the path; nothing changed.
        """
        ...

    @abstractmethod
    def touch_request_hash(
        self, messages: Sequence[ChatMessage | Mapping[str, Any]], /
    ) -> None:
        """Record the messages of a request. RAF: ``touch_request_hash``.

        They are the whole list that is sent, in order.  Moves no time.

        Raises:
            InvalidValueError: a dict is no message, with the path; nothing changed.
        """
        ...

    @abstractmethod
    def get_last_request_hash(self) -> int | None:
        """Return the prefix hash of the last request, in [0, 2⁶⁴).

        `None` before the first.  RAF: ``get_last_request_hash``.
        """
        ...

    @property
    @abstractmethod
    def created_at(self) -> datetime:
        """When the session began, in UTC; `UNIX_EPOCH`: never told.

        RAF: ``created_at``.
        """
        ...

    @property
    @abstractmethod
    def last_active_at(self) -> datetime:
        """When there was last activity, in UTC; `UNIX_EPOCH`: never told.

        RAF: ``last_active_at``.
        """
        ...

    @abstractmethod
    async def touch_last_active(self) -> None:
        """Move `last_active_at` to now, never back. RAF: ``touch_last_active``."""
        ...
