"""Implementations that pass, with a place in each at which a fault can be put."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import uuid4

from typing_extensions import override

from raf_session.base_session import BaseSession
from raf_session.changes import Change
from raf_session.clock import Clock, utc_now
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record
from raf_session.expiry import ExpiryRule
from raf_session.journal import Codec, Commit, Page
from raf_session.journals._rules import Rules
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import (
    WHOLE,
    Limits,
    NewSession,
    Query,
    SessionTTLOptions,
    Window,
)

__all__ = ("BareSession", "Bodied", "Colliding", "ListSession", "Ruled", "Skewed")


class Ruled(MemoryJournal):
    """Heads and expiry are the business of classes that can be replaced."""

    rules: ClassVar[type[Rules]] = Rules
    expiry: ClassVar[type[ExpiryRule]] = ExpiryRule

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._rules = self.rules("memory", self.limits, self.clock)
        self._rules.sessions = self.expiry(self.ttl(self.limits.sessions))

    def ttl(self, options: SessionTTLOptions) -> SessionTTLOptions:
        """Return what is enforced of what was asked for."""
        return options


class Bodied(MemoryJournal):
    """Bodies are the business of a class that can be replaced."""

    bodies: ClassVar[type[BodyFormat]] = BodyFormat

    def __init__(self, *, codec: Codec | None = None, **options: Any) -> None:
        super().__init__(codec=codec, **options)
        self._bodies = self.bodies("memory", codec, self.limits.max_entry_bytes)


class Skewed(MemoryJournal):
    """A clock that can be off in some calls."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
    ) -> None:
        self._off = timedelta()
        super().__init__(limits=limits, clock=self._tell, codec=codec)
        self._true = clock

    def _tell(self) -> datetime:
        return self._true() + self._off

    async def load_at(
        self, off: timedelta, key: SessionKey, *a: Any, **o: Any
    ) -> Record:
        """Load with the clock off by this much."""
        self._off = off
        try:
            return await super().load(key, *a, **o)
        finally:
            self._off = timedelta()

    async def scan_at(self, off: timedelta, query: Query, *a: Any, **o: Any) -> Page:
        """Scan with the clock off by this much."""
        self._off = off
        try:
            return await super().scan(query, *a, **o)
        finally:
            self._off = timedelta()


class Colliding(MemoryJournal):
    """A key stands for the first one that was seen with the same `folded` form."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._firsts: dict[Hashable, SessionKey] = {}

    def folded(self, key: SessionKey) -> Hashable:
        """Return what is compared of a key."""
        return key

    def _first(self, key: SessionKey) -> SessionKey:
        return self._firsts.setdefault(self.folded(key), key)

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        new = replace(new, key=self._first(new.key))
        return await super().create(new, *args, **options)

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        return await super().load(self._first(key), window, **o)

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        return await super().append(self._first(key), entries, **options)

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        return await super().splice(self._first(key), *args, **options)

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        return await super().update(self._first(key), change, **options)

    @override
    async def delete(self, key: SessionKey, **options: Any) -> bool:
        return await super().delete(self._first(key), **options)


class BareSession:
    """Four members that pass, and nothing inherited."""

    def __init__(self, session_id: str | None = None) -> None:
        self.session_id = session_id or str(uuid4())
        self.said: list[ChatMessage] = []

    async def add_message(self, message: ChatMessage, /) -> None:
        self.said.append(message)

    async def get_messages(self) -> list[ChatMessage]:
        return list(self.said)

    async def clear(self) -> None:
        self.said = []


class ListSession(BaseSession):
    """The three members that suffice, which pass."""

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
