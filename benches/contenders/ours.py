"""This library: the session, the journal under it, and the session service."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar, cast

from typing_extensions import override

from benches.contenders.contender import Contender
from benches.places import BACKENDS
from raf_session import (
    ChatMessage,
    Entry,
    JournaledSession,
    Limits,
    NewSession,
    Query,
    SessionKey,
    SessionTTLOptions,
    Window,
    open_journal,
)
from raf_session.journal import Durability, Journal

__all__ = ("OURS", "Expiring", "OurJournal", "OurService", "OurSession")

_DURABILITY = {
    "memory": "nothing survives",
    "Redis": "kill: append-only file, never synced",
    "PostgreSQL": "kill: synchronous_commit=on; the server without fsync",
    "MariaDB": "kill: log written at each commit",
}


class OurStore(Contender):
    """What is on a journal opened by URL."""

    label = distribution = "raf-session"
    imports = "import raf_session"
    used: ClassVar[str]
    durability: ClassVar[Durability] = "kill"

    def journal(self) -> Journal:
        return open_journal(self.place.url, durability=self.durability)

    @override
    async def open(self) -> None:
        self._stack = AsyncExitStack()
        self.store = await self._stack.enter_async_context(self.journal())

    @override
    async def close(self) -> None:
        await self._stack.aclose()

    def key(self, name: str) -> SessionKey:
        return SessionKey("a", "u", "", name)

    @override
    async def listed(self, count: int) -> Sequence[str]:
        page = await self.store.scan(Query(app="a"), limit=count)
        return [listed.head.key.session for listed in page.sessions]


class OurSession(OurStore):
    """`JournaledSession`."""

    used = "JournaledSession"

    @override
    def message(self, message: dict[str, Any]) -> ChatMessage:
        return ChatMessage.from_openai(message)

    @override
    def text(self, message: ChatMessage) -> str:
        return message.text

    @override
    async def create(self, name: str) -> JournaledSession:
        return await JournaledSession.open(self.store, self.key(name))

    @override
    async def append(self, session: JournaledSession, message: ChatMessage) -> None:
        await session.add_message(message)

    @override
    async def batch(
        self, session: JournaledSession, messages: Sequence[ChatMessage]
    ) -> None:
        await session.add_messages_batch(messages)

    @override
    async def load(self, name: str) -> Sequence[ChatMessage]:
        session = await JournaledSession.open(self.store, self.key(name))
        return session.messages_now()

    @override
    async def last(self, name: str, count: int) -> Sequence[ChatMessage]:
        record = await self.store.load(self.key(name), Window(last=count))
        return [entry.message for entry in record.entries if entry.message]


class OurSessionPower(OurSession):
    """The same, synced before it is acknowledged."""

    label = "raf-session (power)"
    durability = "power"


class OurJournal(OurStore):
    """The journal itself: no live view of the session is kept."""

    label = "raf-session journal"
    used = "Journal.append and load"

    @override
    def message(self, message: dict[str, Any]) -> Entry:
        return Entry(f"e{next(self._ids)}", message=ChatMessage.from_openai(message))

    _ids = count()

    @override
    def text(self, message: Entry) -> str:
        assert message.message is not None
        return message.message.text

    @override
    async def create(self, name: str) -> SessionKey:
        await self.store.create(NewSession(key=self.key(name)))
        return self.key(name)

    @override
    async def make(self, name: str, messages: Sequence[Entry]) -> None:
        await self.store.create(NewSession(key=self.key(name)), messages)

    @override
    async def append(self, session: SessionKey, message: Entry) -> None:
        await self.store.append(session, [message])

    @override
    async def batch(self, session: SessionKey, messages: Sequence[Entry]) -> None:
        await self.store.append(session, messages)

    @override
    async def load(self, name: str) -> Sequence[Entry]:
        return (await self.store.load(self.key(name))).entries

    @override
    async def last(self, name: str, count: int) -> Sequence[Entry]:
        return (await self.store.load(self.key(name), Window(last=count))).entries


class Expiring(OurJournal):
    """Sessions that expire after an hour by a clock that `later` moves."""

    label = "raf-session"

    @override
    def journal(self) -> Journal:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        hour = Limits(sessions=SessionTTLOptions(max_idle_secs=3600))
        return open_journal(self.place.url, limits=hour, clock=lambda: self._now)

    def later(self) -> None:
        """Move the clock by two hours."""
        self._now += timedelta(hours=2)


class OurService(Contender):
    """The session service of the tRPC-Agent document."""

    label = "raf-session service"
    distribution = "raf-session"
    imports = "from raf_session.service import SqlSessionService"
    used: ClassVar[str] = "SessionService"
    lacks: ClassVar = {"load last 20": "a limit of the service"}

    @override
    async def open(self) -> None:
        from raf_session.service import open_service

        self.service = open_service(self.place.url)

    @override
    async def close(self) -> None:
        await self.service.close()

    @override
    def message(self, message: dict[str, Any]) -> Any:
        from raf_session.service import Event

        return Event(author=message["role"], invocation_id="i", content=message)

    @override
    def text(self, message: Any) -> str:
        return str(message.text)

    @override
    async def create(self, name: str) -> Any:
        return await self.service.create_session(
            app_name="a", user_id="u", session_id=name
        )

    @override
    async def append(self, session: Any, message: Any) -> None:
        await self.service.append_event(session, message)

    @override
    async def batch(self, session: Any, messages: Sequence[Any]) -> None:
        await self.service.append_events(session, list(messages))

    @override
    async def load(self, name: str) -> Sequence[Any]:
        session = await self.service.get_session(
            app_name="a", user_id="u", session_id=name
        )
        assert session is not None
        return session.events

    @override
    async def listed(self, count: int) -> Sequence[str]:
        found = await self.service.list_sessions(app_name="a", limit=count)
        return [session.id for session in found.sessions]


def _on(cls: type[OurStore | OurService], backend: str) -> type[Contender]:
    power = getattr(cls, "durability", "kill") == "power"
    kept = "power: synced before it is acknowledged" if power else "kill: not synced"
    how = f"{cls.used}; {_DURABILITY.get(backend, kept)}"
    made = type(cls.__name__, (cls,), {"backend": backend, "how": how})
    return cast("type[Contender]", made)


_FACES: tuple[type[OurStore | OurService], ...] = (
    OurSession,
    OurJournal,
    OurService,
    OurSessionPower,
)

OURS: tuple[type[Contender], ...] = tuple(
    _on(cls, backend)
    for backend in BACKENDS
    for cls in _FACES
    if cls is not OurSessionPower or backend in {"SQLite", "JSONL"}
)
