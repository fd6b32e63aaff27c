"""`SessionStore`: what a save costs, which types it knows, what live sessions do."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from pathlib import Path
from typing import Any, ClassVar, Self

import anyio
import anyio.lowlevel
import pytest
from around_journals import as_journal
from store_bindings import CountingJournal, FailingJournal, WaitingJournal
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.changes import RequestRecord
from raf_session.clock import UNIX_EPOCH
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.store_values import (
    DerivedSession,
    ForeignSession,
    OtherSession,
    named,
    read,
    same_session,
    texts,
)
from raf_session.errors import (
    SessionNotFoundError,
    SnapshotUnavailableError,
    StaleSessionError,
    StorageError,
    UnknownSessionTypeError,
)
from raf_session.journaled_session import JournaledSession
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionSnapshot
from raf_session.session import ISession
from raf_session.stores import (
    InMemorySessionStore,
    SessionStore,
    SqliteSessionStore,
    open_store,
)
from raf_session.wrapper import SessionWrapper

pytestmark = pytest.mark.anyio

USER = ChatMessage.user


# What a save costs ---------------------------------------------------------------


async def test_a_save_of_one_new_message_is_one_append_of_one_entry() -> None:
    clock = TickingClock()
    journal = CountingJournal(MemoryJournal.opened(clock=clock))
    store = SessionStore(as_journal(journal))
    session = await named("s", clock, *(f"{n}" for n in range(10_000)))
    await store.save_session(session)
    assert journal.calls == [("load", 0), ("create", 10_000)]
    for handle in (session, await read(store, "s")):
        journal.calls.clear()
        clock.tick()
        handle.set_provider_state("p", handle.get_message_count())
        await handle.add_message(USER("new"))
        await store.save_session(handle)
        assert journal.calls == [("append", 1)]
        journal.calls.clear()
        await store.save_session(handle)
        assert [name for name, _ in journal.calls] in ([], ["update"])


async def test_a_rebuilt_session_is_compared_and_not_read() -> None:
    journal = CountingJournal(MemoryJournal.opened(clock=TickingClock()))
    store = SessionStore(as_journal(journal), types=(ForeignSession,))
    session = ForeignSession("s")
    session.said = [USER(f"{n}") for n in range(100)]
    await store.save_session(session)
    journal.calls.clear()
    session.said = [ChatMessage.from_openai(m.to_openai()) for m in session.said]
    await session.add_message(USER("new"))
    await store.save_session(session)
    assert journal.calls == [("append", 1)]


async def test_an_edit_costs_what_follows_it() -> None:
    journal = CountingJournal(MemoryJournal.opened(clock=TickingClock()))
    store = SessionStore(as_journal(journal), types=(ForeignSession,))
    session = ForeignSession("s")
    session.said = [USER(f"{n}") for n in range(100)]
    await store.save_session(session)
    journal.calls.clear()
    session.said[98] = USER("edited")
    await store.save_session(session)
    assert journal.calls == [("splice", 2)]


async def test_a_save_to_sqlite_writes_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **kwargs)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    clock = TickingClock()
    counts: list[int] = []
    for size in (10, 10_000):
        path = tmp_path / f"{size}.db"
        async with SqliteSessionStore(path, clock=clock) as store:
            session = await named("s", clock, *(f"{n}" * 100 for n in range(size)))
            await store.save_session(session)
            for text in ("warm", "warmer"):
                await session.add_message(USER(text))
                await store.save_session(session)
            wal = path.with_name(f"{size}.db-wal")
            before = wal.stat().st_size if wal.exists() else 0
            statements.clear()
            await session.add_message(USER("new"))
            await store.save_session(session)
            counts.append(len(statements))
            grown = (wal.stat().st_size if wal.exists() else 0) - before
            assert grown <= 64 * 1024, f"a save of one message wrote {grown} bytes"
            assert (await texts(store, "s") or [])[-1] == "new"
    assert 0 < counts[0] == counts[1] <= 20, statements


# A failure changes nothing -------------------------------------------------------


@pytest.mark.parametrize("name", ["append", "splice", "update", "create"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_save_that_failed_can_be_repeated(name: str, when: str) -> None:
    clock = TickingClock()
    journal = FailingJournal(MemoryJournal.opened(clock=clock))
    store = SessionStore(as_journal(journal))
    session = await named("s", clock, "one")
    if name != "create":
        await store.save_session(session)
    clock.tick()
    if name == "append":
        await session.add_message(USER("two"))
    elif name == "splice":
        await session.clear()
        await session.add_message(USER("anew"))
    elif name == "update":
        session.set_provider_state("p", 1)
    faults = getattr(journal, when)
    faults[name] = StorageError("test", "gone")
    with pytest.raises(StorageError):
        await store.save_session(session)
    faults.clear()
    await store.save_session(session)
    await same_session(await read(store, "s"), session, "after the repetition")


async def test_a_cancelled_save_can_be_repeated() -> None:
    for at in range(1, 20):
        clock = TickingClock()
        inner = MemoryJournal.opened(clock=clock)
        journal = WaitingJournal(inner)
        store = SessionStore(as_journal(journal))
        session = await named("s", clock, "one")
        await store.save_session(session)
        await session.add_message(USER("two"))
        session.set_provider_state("p", 1)
        finished = False
        with anyio.CancelScope() as scope:

            async def cancel_at(scope: anyio.CancelScope = scope, at: int = at) -> None:
                for _ in range(at):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(cancel_at)
                await store.save_session(session)
                finished = True
                group.cancel_scope.cancel()
        await store.save_session(session)
        await same_session(await read(store, "s"), session, f"cancelled at {at}")
        if finished:
            return
    raise AssertionError("the save does not end")


# Types ---------------------------------------------------------------------------


class NamedSession(DerivedSession):
    session_type: ClassVar[str] = "another name"


class MadeSession(AgentSession):
    session_type: ClassVar[str] = "made"
    made_by: str = "init"

    @classmethod
    @override
    def from_snapshot(cls, snapshot: SessionSnapshot, **options: Any) -> Self:
        session = super().from_snapshot(snapshot, **options)
        session.made_by = "from_snapshot"
        return session


class Heir(AgentSession):
    """Says no name of its own."""


async def test_a_type_is_stored_under_its_name() -> None:
    clock = TickingClock()
    journal = MemoryJournal.opened(clock=clock)
    types = (NamedSession, ForeignSession, MadeSession, AgentSession)
    store = SessionStore(journal, types=types)
    named_session = NamedSession("n")
    foreign = ForeignSession("f")
    made = MadeSession("m", clock=clock)
    agent = AgentSession("a", clock=clock)
    for session in (named_session, foreign, made, agent):
        await session.add_message(USER("x"))
        await store.save_session(session)
    expected = {"n": "another name", "f": "ForeignSession", "m": "made"}
    for name, kind in (expected | {"a": "AgentSession"}).items():
        assert (await journal.load(SessionKey.raf(name))).head.session_type == kind
    assert (await read(store, "m", MadeSession)).made_by == "from_snapshot"
    assert type(await store.get_session("n")) is NamedSession
    assert type(await store.get_session("f")) is ForeignSession
    page = await store.list_sessions()
    assert {item.head.key.session for item in page.sessions} == {"n", "f", "m", "a"}


async def test_a_type_that_was_saved_must_be_known_to_be_read() -> None:
    journal = MemoryJournal.opened()
    store = SessionStore(journal, types=(ForeignSession,))
    await store.save_session(ForeignSession("f"))
    with pytest.raises(UnknownSessionTypeError) as caught:
        await SessionStore(journal).get_session("f")
    assert caught.value.session_type == "ForeignSession"
    assert caught.value.known == ("AgentSession",)


async def test_a_subclass_is_not_taken_for_its_base() -> None:
    store = InMemorySessionStore()
    with pytest.raises(UnknownSessionTypeError):
        await store.save_session(Heir("h"))
    assert await store.get_session("h") is None
    with pytest.raises(ValueError, match="same name"):
        SessionStore(MemoryJournal.opened(), types=(AgentSession, Heir))


async def test_a_wrapper_is_a_type_of_its_own() -> None:
    class Kept(SessionWrapper[ISession]):
        @classmethod
        def from_snapshot(cls, snapshot: SessionSnapshot) -> Self:
            return cls(AgentSession.from_snapshot(snapshot))

    store = InMemorySessionStore(types=(Kept,))
    session = Kept(AgentSession("k"))
    await session.add_message(USER("x"))
    session.set_provider_state("p", 1)
    await store.save_session(session)
    again = await read(store, "k", Kept)
    await same_session(again, session, "a wrapper")
    plain = InMemorySessionStore()
    with pytest.raises(UnknownSessionTypeError):
        await plain.save_session(SessionWrapper(AgentSession("w")))
    assert await plain.get_session("w") is None


class SlottedSession:
    """Cannot be referenced weakly."""

    __slots__ = ("said", "session_id")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.said: list[ChatMessage] = []

    async def add_message(self, message: ChatMessage, /) -> None:
        self.said.append(message)

    async def get_messages(self) -> list[ChatMessage]:
        return list(self.said)

    async def clear(self) -> None:
        self.said.clear()


async def test_a_session_without_weak_references_can_be_saved_again() -> None:
    store = InMemorySessionStore(types=(SlottedSession,))
    session = SlottedSession("s")
    for n in range(3):
        await session.add_message(USER(str(n)))
        await store.save_session(session)
    assert await texts(store, "s") == ["0", "1", "2"]


class WaitingBase(DerivedSession):
    """Inherits our defaults, and waits as one does that reads a database."""

    @override
    async def get_messages(self) -> list[ChatMessage]:
        await anyio.lowlevel.checkpoint()
        return await super().get_messages()


async def test_a_base_session_that_waits_says_what_to_override() -> None:
    session = WaitingBase("w")
    await session.add_message(USER("x"))
    for member in ("get_message_count", "metadata", "snapshot", "serialize"):
        way = r"WaitingBase\.messages_now"
        with pytest.raises(SnapshotUnavailableError, match=way):
            getattr(session, member)()
    store = InMemorySessionStore(types=(WaitingBase,))
    await store.save_session(session)
    assert await texts(store, "w") == ["x"]
    again = await read(store, "w", WaitingBase)
    await again.add_message(USER("y"))
    await store.save_session(again)
    assert await texts(store, "w") == ["x", "y"]


async def test_a_foreign_hash_is_kept() -> None:
    class Hashed(ForeignSession):
        last: int | None = None

        def get_last_request_hash(self) -> int | None:
            return self.last

    journal = MemoryJournal.opened()
    store = SessionStore(journal, types=(Hashed,))
    session = Hashed("s")
    session.last = 2**64 - 1
    await session.add_message(USER("x"))
    await store.save_session(session)
    record = await journal.load(SessionKey.raf("s"))
    assert record.request == RequestRecord(b"", 2**64 - 1)
    await store.save_session(session)
    await store.save_session(await read(store, "s", Hashed))


async def test_nothing_of_a_session_is_held_alive() -> None:
    store = InMemorySessionStore(types=(AgentSession, ForeignSession))
    for session in (AgentSession("a"), ForeignSession("f")):
        await store.save_session(session)
    gone = [weakref.ref(session) for session in (await read(store, "a"),)]
    del session
    gc.collect()
    assert [ref() for ref in gone] == [None]
    assert len(store._origins) == 0


# Live sessions -------------------------------------------------------------------


async def test_a_live_session_is_saved_by_flushing() -> None:
    journal = MemoryJournal.opened()
    store = SessionStore(journal)
    live = await store.open_session("s")
    await live.add_message(USER("a"))
    live.set_provider_state("p", 1)
    await store.save_session(live)
    assert not live.dirty
    stored = await read(store, "s")
    assert stored.get_provider_state("p") == 1
    assert await texts(store, "s") == ["a"]


async def test_a_live_session_of_another_key_is_stored_under_this_one() -> None:
    journal = MemoryJournal.opened()
    store = SessionStore(journal)
    live = await JournaledSession.open(journal, SessionKey("app", "u", "", "s"))
    await live.add_message(USER("a"))
    await store.save_session(live)
    assert await texts(store, "s") == ["a"]


async def test_a_live_session_of_another_journal_is_copied() -> None:
    store = InMemorySessionStore()
    other = MemoryJournal.opened()
    live = await JournaledSession.open(other, SessionKey.raf("s"))
    await live.add_message(USER("a"))
    live.set_provider_state("p", 1)
    await store.save_session(live)
    assert await texts(store, "s") == ["a"]
    assert (await read(store, "s")).get_provider_state("p") == 1
    await live.add_message(USER("b"))
    await store.save_session(live)
    assert await texts(store, "s") == ["a", "b"]
    await live.flush()


async def test_a_live_session_that_is_gone_is_not_saved() -> None:
    store = InMemorySessionStore()
    live = await store.open_session("s")
    await live.add_message(USER("a"))
    await store.delete_session("s")
    with pytest.raises(SessionNotFoundError):
        await store.save_session(live)


async def test_a_live_session_and_a_copy_lose_nothing() -> None:
    store = InMemorySessionStore()
    live = await store.open_session("s")
    await live.add_message(USER("a"))
    handle = await read(store, "s")
    await live.add_message(USER("ok"))
    await handle.add_message(USER("ok"))
    await store.save_session(handle)
    assert [m.text for m in await live.get_messages()] == ["a", "ok", "ok"]
    exclusive = await store.open_session("s", exclusive=True)
    await live.add_message(USER("b"))
    with pytest.raises(StaleSessionError):
        await exclusive.add_message(USER("c"))


async def test_listing_goes_page_by_page_and_moves_no_time() -> None:
    clock = TickingClock()
    store = InMemorySessionStore(clock=clock)
    for n in range(7):
        clock.tick()
        await store.save_session(await named(f"s{n}", clock, "x"))
    for order, expected in (
        ("activity", [f"s{n}" for n in range(6, -1, -1)]),
        ("key", [f"s{n}" for n in range(7)]),
    ):
        found: list[str] = []
        cursor: str | None = None
        while True:
            clock.tick(60)
            page = await store.list_sessions(cursor=cursor, limit=3, order=order)  # type: ignore[arg-type]
            found += [item.head.key.session for item in page.sessions]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == expected
    with pytest.raises(ValueError, match=r"limit|cursor"):
        await store.list_sessions(limit=0)
    with pytest.raises(ValueError, match=r"limit|cursor"):
        await store.list_sessions(cursor="not a cursor")


# URLs ----------------------------------------------------------------------------


async def test_a_store_is_opened_by_url(tmp_path: Path) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path}/s.db"):
        async with open_store(url, clock=TickingClock()) as store:
            session = AgentSession("s")
            await session.add_message(USER("x"))
            await store.save_session(session)
            assert await texts(store, "s") == ["x"]
            assert session.created_at != UNIX_EPOCH


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "ftp://h/p", "sqlite://", "sqlite:///", "sqlite://h/p"),
        "sqlite:///p?q=1",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite"):
        open_store(url)


async def test_unknown_types_are_refused_over_what_is_stored() -> None:
    store = InMemorySessionStore(types=(ForeignSession, AgentSession))
    await store.save_session(ForeignSession("s"))
    with pytest.raises(UnknownSessionTypeError):
        await store.save_session(OtherSession("s"))
    assert type(await store.get_session("s")) is ForeignSession
