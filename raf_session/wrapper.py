"""Sessions and stores around others: every member forwarded, to be overridden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Self

from typing_extensions import TypeVar, override

from raf_session.frozen import FrozenJson
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionMetadata, SessionSnapshot
from raf_session.session import ISession, SessionCore
from raf_session.store import ISessionStore

__all__ = ("SessionWrapper", "StoreWrapper")

_Session = TypeVar("_Session", bound=ISession, default=ISession)
_Store = TypeVar("_Store", bound=ISessionStore, default=ISessionStore)


class SessionWrapper(ISession, Generic[_Session]):
    """A session around another: override what should differ.

    Nothing is left to a default, so the inner session's better way is always taken.
    A batch does not pass through this `add_message`; override both.
    """

    def __init__(self, inner: _Session) -> None:
        self.inner = inner

    @property
    @override
    def session_id(self) -> str:
        return self.inner.session_id

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        await self.inner.add_message(message)

    @override
    async def get_messages(self) -> list[ChatMessage]:
        return await self.inner.get_messages()

    @override
    async def clear(self) -> None:
        await self.inner.clear()

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        await self.inner.add_messages_batch(messages)

    @override
    def get_message_count(self) -> int:
        return self.inner.get_message_count()

    @override
    def metadata(self) -> SessionMetadata:
        return self.inner.metadata()

    @override
    def snapshot(self) -> SessionSnapshot:
        return self.inner.snapshot()

    @override
    def serialize(self) -> str:
        return self.inner.serialize()

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        """Raise: only the inner session's class knows how.

        Raises:
            TypeError: always; wrap what that class's `deserialize` returns.
        """
        raise TypeError(
            f"{cls.__name__}.deserialize cannot know the inner class: use "
            f"{cls.__name__}(Inner.deserialize(data))"
        )

    @override
    def get_provider_state(self, provider_name: str, /) -> FrozenJson:
        return self.inner.get_provider_state(provider_name)

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        self.inner.set_provider_state(provider_name, state)

    @override
    def touch_request_hash(
        self, messages: Sequence[ChatMessage | Mapping[str, Any]], /, **header: Any
    ) -> None:
        self.inner.touch_request_hash(messages, **header)

    @override
    def get_last_request_hash(self) -> int | None:
        return self.inner.get_last_request_hash()

    @property
    @override
    def created_at(self) -> datetime:
        return self.inner.created_at

    @property
    @override
    def last_active_at(self) -> datetime:
        return self.inner.last_active_at

    @override
    async def touch_last_active(self) -> None:
        await self.inner.touch_last_active()


class StoreWrapper(ISessionStore, Generic[_Store]):
    """A store around another: override what should differ."""

    def __init__(self, inner: _Store) -> None:
        self.inner = inner

    @override
    async def save_session(self, session: SessionCore, /) -> None:
        await self.inner.save_session(session)

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        return await self.inner.get_session(session_id)

    @override
    async def delete_session(self, session_id: str, /) -> None:
        await self.inner.delete_session(session_id)

    @override
    async def cleanup_expired(self) -> int:
        return await self.inner.cleanup_expired()
