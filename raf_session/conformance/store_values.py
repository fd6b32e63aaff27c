"""What the checks of stores share: session types of others, and comparisons."""

from __future__ import annotations

from typing import Any, TypeVar, overload
from uuid import uuid4

import anyio.lowlevel
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.base_session import BaseSession, take_snapshot
from raf_session.clock import Clock
from raf_session.conformance.journal_values import same
from raf_session.conformance.session_values import same_messages
from raf_session.messages import ChatMessage
from raf_session.raf_json import snapshot_to_raf
from raf_session.session import SessionCore
from raf_session.store import ISessionStore

__all__ = (
    "DerivedSession",
    "ForeignSession",
    "OtherSession",
    "WaitingSession",
    "named",
    "read",
    "same_session",
    "texts",
)

_S = TypeVar("_S")


class ForeignSession:
    """The four members of `SessionCore`, inheriting nothing."""

    def __init__(self, session_id: str | None = None) -> None:
        self.session_id: str = session_id or str(uuid4())
        self.said: list[ChatMessage] = []

    async def add_message(self, message: ChatMessage, /) -> None:
        """Append one message."""
        self.said.append(message)

    async def get_messages(self) -> list[ChatMessage]:
        """Return the history, made anew as a session does that keeps text."""
        return [message.model_copy() for message in self.said]

    async def clear(self) -> None:
        """Erase the history."""
        self.said.clear()


class OtherSession(ForeignSession):
    """Another type, which a store may not have been given."""


class WaitingSession(ForeignSession):
    """A session whose `get_messages` waits, as one does that reads a database."""

    @override
    async def get_messages(self) -> list[ChatMessage]:
        await anyio.lowlevel.checkpoint()
        return await super().get_messages()


class DerivedSession(BaseSession):
    """What inherits our defaults and tells no times."""

    def __init__(self, session_id: str | None = None) -> None:
        super().__init__(session_id)
        self.said: list[ChatMessage] = []

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        self.said.append(message)

    @override
    async def get_messages(self) -> list[ChatMessage]:
        return list(self.said)

    @override
    async def clear(self) -> None:
        self.said = []


async def named(
    session_id: str, clock: Clock, *messages: ChatMessage | str
) -> AgentSession:
    """Return a session in memory that holds these messages, text being a user's."""
    session = AgentSession(session_id, clock=clock)
    await session.add_messages_batch(
        [ChatMessage.user(m) if isinstance(m, str) else m for m in messages]
    )
    return session


@overload
async def read(store: ISessionStore, session_id: str) -> AgentSession: ...
@overload
async def read(store: ISessionStore, session_id: str, cls: type[_S]) -> _S: ...
async def read(
    store: ISessionStore, session_id: str, cls: type[Any] = AgentSession
) -> Any:
    """Return the stored session, which must be there and of that type."""
    session = await store.get_session(session_id)
    assert session is not None, f"there is no session {session_id!r}"
    same(type(session), cls, "the type of the session that was read")
    same(session.session_id, session_id, "its id")
    assert isinstance(session, cls)
    return session


async def texts(store: ISessionStore, session_id: str) -> list[str] | None:
    """Return the texts of the stored messages, `None` where there is no session."""
    session = await store.get_session(session_id)
    if session is None:
        return None
    return [message.text for message in await session.get_messages()]


async def same_session(seen: SessionCore, expected: SessionCore, what: str) -> None:
    """Raise where two sessions differ in anything that a snapshot tells."""
    found, wanted = await take_snapshot(seen), await take_snapshot(expected)
    same_messages(found.messages, wanted.messages, what)
    left, right = _told(snapshot_to_raf(found)), _told(snapshot_to_raf(wanted))
    for name in left.keys() | right.keys():
        same(repr(left.get(name)), repr(right.get(name)), f"{what}: {name}")


def _told(raf: dict[str, Any]) -> dict[str, Any]:
    ours = raf.pop("raf_session", {})
    ours.pop("entry_ids", None)  # a store's own
    told = {**raf, **ours}
    # Names of states have no order of their own.
    states = sorted(told["provider_states"]["states"].items())
    own = sorted(told.get("state", {}).items())
    return {**told, "provider_states": states, "state": own}
