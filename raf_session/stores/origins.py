"""What a store remembers of a session: where it came from, and what was stored."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from raf_session.changes import RequestRecord
from raf_session.entries import Entry, Record
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.session import SessionCore
from raf_session.turns import Turn

__all__ = ("Attempt", "Known", "Origin", "Origins")


class Origin(NamedTuple):
    """A session as it was last loaded or saved through this store."""

    key: SessionKey
    incarnation: str
    revision: int
    """What the session has seen; behind the stored one where others wrote since."""
    messages: Sequence[ChatMessage]
    """The messages of the session, the very objects."""
    seqs: Sequence[int]
    """The place of each of them."""
    ids: Sequence[str]
    """The entry id of each of them."""
    provider_states: Mapping[str, Any]
    state: Mapping[str, Any]
    request: RequestRecord | None

    @classmethod
    def of(cls, record: Record) -> Origin:
        """Return the origin of a session that was just read."""
        spoken = [entry for entry in record.entries if entry.message is not None]
        head = record.head
        return cls(
            head.key,
            head.incarnation,
            head.revision,
            [entry.message for entry in spoken if entry.message is not None],
            [entry.seq for entry in spoken],
            [entry.id for entry in spoken],
            record.provider_states,
            record.state,
            record.request,
        )


class Attempt(NamedTuple):
    """A save whose end is not known: it was cancelled, or its answer was lost."""

    origin: Origin
    """What it went on from."""
    first: int
    """The first message that it replaced or added."""
    entries: Sequence[Entry]
    """What stands from there on, if it was stored."""
    messages: Sequence[ChatMessage]
    """All messages of the session, if it was stored."""

    @property
    def key(self) -> SessionKey:
        """The key of the session."""
        return self.origin.key


Known: TypeAlias = Origin | Attempt

HELD: Final = 256
"""How many sessions without weak references are remembered."""


class Origins:
    """The origins of live sessions; forgotten with them.

    Sessions that cannot be referenced weakly are held, the latest `HELD` of them; one
    that has no origin any more costs one read of what is stored.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[SessionCore], Known]] = {}
        self._held: OrderedDict[int, tuple[SessionCore, Known]] = OrderedDict()
        self._turns: WeakValueDictionary[int, Turn] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, session: SessionCore) -> AsyncGenerator[None]:
        """Wait until no other save of this object is under way, on any event loop."""
        turn = self._turns.setdefault(id(session), Turn())
        async with turn.taken():
            yield

    def get(self, session: SessionCore, key: SessionKey) -> Known | None:
        """Return what is known of this very object under a key, `None`: nothing."""
        kept = self._kept.get(id(session))
        known: Known | None = None
        if kept is not None and kept[0]() is session:
            known = kept[1]
        elif id(session) in self._held:
            known = self._held[id(session)][1]
        return known if known is not None and known.key == key else None

    def remember(self, session: SessionCore, origin: Known) -> None:
        """Keep the origin, or an attempt, for as long as the object lives."""
        name = id(session)
        kept = self._kept

        def forget(reference: weakref.ref[SessionCore]) -> None:
            if kept.get(name, (None,))[0] is reference:
                del kept[name]

        try:
            kept[name] = (weakref.ref(session, forget), origin)
        except TypeError:  # no weak references to objects of this class
            self._held.pop(name, None)
            self._held[name] = (session, origin)
            if len(self._held) > HELD:
                self._held.popitem(last=False)

    def __len__(self) -> int:
        """How many sessions are remembered."""
        return len(self._kept) + len(self._held)
