"""`open_session(exclusive=True)`: two runs of a session cannot mix their messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from around_journals import AroundJournal, as_journal
from journal_bindings import HARNESSES, loops
from store_bindings import FailingJournal, WaitingJournal
from typing_extensions import override

from raf_session.calls import ToolCall
from raf_session.conformance import JournalHarness, TickingClock
from raf_session.errors import SessionNotFoundError, StaleSessionError, StorageError
from raf_session.journal import Journal
from raf_session.journaled_session import JournaledSession
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.stores import SessionStore
from raf_session.wrapper import SessionWrapper

pytestmark = pytest.mark.anyio

KEY = SessionKey.raf("s")
USER = ChatMessage.user

EVERYWHERE = [
    pytest.param(bound, loop, id=f"{bound.name}-{loop}")
    for bound in HARNESSES
    for loop in loops(bound)
]
on_every_journal = pytest.mark.parametrize(("harness", "anyio_backend"), EVERYWHERE)


def call(name: str) -> ChatMessage:
    calls = [ToolCall(id=name, name="look", arguments="{}")]
    return ChatMessage.assistant_with_tools(None, calls)


def result(name: str) -> ChatMessage:
    return ChatMessage.tool(f"result of {name}", name)


def pending(session: JournaledSession) -> bool:
    return session.dirty


async def said(journal: Journal) -> list[str]:
    entries = (await journal.load(KEY)).entries
    return [
        m.tool_call_id or (m.tool_calls[0].id or "" if m.tool_calls else m.text)
        for m in (entry.message for entry in entries)
        if m is not None
    ]


@on_every_journal
async def test_two_servers_cannot_interleave_calls_and_results(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        one, other = SessionStore(journal), SessionStore(journal)
        a = await one.open_session("s", exclusive=True)
        await a.add_message(USER("look"))
        b = await other.open_session("s", exclusive=True)
        await a.add_message(call("c1"))
        for write in (b.add_message(call("c2")), b.add_message(result("c2"))):
            with pytest.raises(StaleSessionError) as caught:
                await write
            assert (caught.value.expected, caught.value.actual) == (2, 3)
            assert await said(journal) == ["look", "c1"]
        await a.add_message(result("c1"))
        assert await said(journal) == ["look", "c1", "c1"]
        await b.refresh()
        await b.add_messages_batch([call("c2"), result("c2")])
        with pytest.raises(StaleSessionError):
            await a.add_message(USER("and?"))
        assert len(await a.get_messages()) == 5
        await a.add_message(USER("and?"))
        assert await said(journal) == ["look", "c1", "c1", "c2", "c2", "and?"]
        revision = (await journal.load(KEY)).head.revision
        assert revision == 6, "what was refused left no step"


@on_every_journal
@pytest.mark.parametrize("messages", [1, 2])
async def test_its_own_write_of_unknown_outcome_is_nobody_elses(
    harness: JournalHarness, messages: int
) -> None:
    lost = StorageError("x", "the answer is lost")
    async with harness() as inner:
        journal = FailingJournal(inner)
        session = await JournaledSession.open(as_journal(journal), KEY, exclusive=True)
        session.set_provider_state("p", 1)
        for failing, stored in ((journal.after, messages), (journal.before, 0)):
            before = await said(inner)
            failing["append"] = lost
            with pytest.raises(StorageError):
                await session.add_messages_batch([USER("doubtful")] * messages)
            del failing["append"]
            await session.add_message(USER("next"))
            assert await said(inner) == [*before, *["doubtful"] * stored, "next"]
            assert len(await session.get_messages()) == len(before) + stored + 1
        journal.after["append"] = lost
        with pytest.raises(StorageError):
            await session.add_message(USER("doubtful"))
        del journal.after["append"]
        other = await JournaledSession.open(inner, KEY)
        await other.add_message(USER("mine"))
        for _ in range(2):
            with pytest.raises(StaleSessionError):
                await session.add_message(USER("refused"))
        await session.refresh()
        await session.add_message(USER("last"))
        assert (await said(inner))[-3:] == ["doubtful", "mine", "last"]
        record = await inner.load(KEY)
        assert record.provider_states == {"p": 1}


WRITES: dict[str, Callable[[JournaledSession], Awaitable[None]]] = {
    "add_message": lambda session: session.add_message(USER("x")),
    "batch": lambda session: session.add_messages_batch([USER("x"), USER("y")]),
    "clear": lambda session: session.clear(),
    "touch": lambda session: session.touch_last_active(),
    "flush": lambda session: session.flush(),
}


@on_every_journal
@pytest.mark.parametrize("name", WRITES)
async def test_a_refused_write_changes_nothing_and_keeps_what_is_pending(
    harness: JournalHarness, name: str
) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        store = SessionStore(journal)
        mine = await store.open_session("s", exclusive=True)
        await mine.add_message(USER("a"))
        theirs = await store.open_session("s")
        await theirs.add_message(USER("b"))
        before = await journal.load(KEY)
        clock.tick()
        mine.set_provider_state("p", 1)
        mine.touch_request_hash([USER("a")])
        with pytest.raises(StaleSessionError):
            await WRITES[name](mine)
        assert await journal.load(KEY) == before
        assert pending(mine)
        assert mine.get_provider_state("p") == 1
        await mine.refresh()
        assert pending(mine)
        assert mine.get_provider_state("p") == 1
        await WRITES[name](mine)
        assert not pending(mine)
        record = await journal.load(KEY)
        assert record.provider_states == {"p": 1}
        assert (record.request is None) == (name == "clear")


@on_every_journal
async def test_reading_in_between_is_what_lets_it_go_on(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        store = SessionStore(journal)
        mine = await store.open_session("s", exclusive=True)
        theirs = await store.open_session("s")
        for read in (mine.get_messages, mine.refresh):
            await theirs.add_message(USER("b"))
            assert mine.get_message_count() < theirs.get_message_count()
            with pytest.raises(StaleSessionError):
                await mine.add_message(USER("a"))
            with pytest.raises(StaleSessionError):
                await mine.add_message(USER("a"))
            await read()
            await mine.add_message(USER("a"))
        assert await said(journal) == ["b", "a", "b", "a"]


@on_every_journal
async def test_a_repeated_message_is_no_licence_to_go_on(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        store = SessionStore(journal)
        mine = await store.open_session("s", exclusive=True)
        first = ChatMessage(role="user", content="a", id="1")  # type: ignore[arg-type]
        await mine.add_message(first)
        theirs = await store.open_session("s")
        await theirs.add_message(USER("b"))
        await mine.add_message(first)  # stored already: nothing to refuse
        assert mine.get_message_count() == 2
        with pytest.raises(StaleSessionError):
            await mine.add_message(USER("c"))
        await mine.refresh()
        await mine.add_message(USER("c"))
        assert await said(journal) == ["a", "b", "c"]


@on_every_journal
@pytest.mark.parametrize("others", [False, True])
async def test_a_write_whose_answer_was_lost_may_be_repeated(
    harness: JournalHarness, *, others: bool
) -> None:
    async with harness() as journal:
        mine = await JournaledSession.open(journal, KEY, exclusive=True)
        same = await JournaledSession.open(journal, KEY)
        one = ChatMessage(role="user", content="a", id="1")  # type: ignore[arg-type]
        await same.add_message(one)  # as if by the lost call
        if others:
            await same.add_message(USER("b"))
        mine.set_provider_state("p", 1)
        if others:
            with pytest.raises(StaleSessionError):
                await mine.add_message(one)
            assert mine.dirty
            await mine.refresh()
        else:
            await mine.add_message(one)
            assert not mine.dirty
        await mine.add_message(USER("c"))
        assert await said(journal) == (["a", "b", "c"] if others else ["a", "c"])
        assert (await journal.load(KEY)).provider_states == {"p": 1}


@on_every_journal
async def test_pending_notes_are_not_lost_with_a_repeated_message(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        session = await JournaledSession.open(journal, KEY)
        one = ChatMessage(role="user", content="a", id="1")  # type: ignore[arg-type]
        await session.add_message(one)
        session.set_provider_state("p", 1)
        session.touch_request_hash([one])
        await session.add_message(one)
        assert not session.dirty
        assert session.get_provider_state("p") == 1
        record = await journal.load(KEY)
        assert record.provider_states == {"p": 1}
        assert record.head.request_n == 1
        assert record.head.active.entries == 1


@on_every_journal
async def test_writes_through_one_session_take_their_turns(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        waiting = as_journal(WaitingJournal(journal))
        mine = await JournaledSession.open(waiting, KEY, exclusive=True)
        async with anyio.create_task_group() as group:
            for n in range(8):
                group.start_soon(mine.add_message, result(f"c{n}"))
        assert sorted(await said(journal)) == [f"c{n}" for n in range(8)]
        assert mine.get_message_count() == 8
        await mine.add_message(USER("next"))


class SlowAnswers(AroundJournal):
    """Lets something happen between an append and its answer, once."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    @override
    async def called(
        self, name: str, call: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any
    ) -> Any:
        answer = await call(*args, **kwargs)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return answer


@on_every_journal
async def test_a_late_answer_takes_nothing_back_that_was_read(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        slow = SlowAnswers(journal)
        mine = await JournaledSession.open(as_journal(slow), KEY, exclusive=True)
        theirs = await JournaledSession.open(journal, KEY)

        async def meanwhile() -> None:
            await theirs.add_message(USER("b"))
            await mine.refresh()

        slow.meanwhile = meanwhile
        await mine.add_message(USER("a"))
        assert mine.get_message_count() == 2
        await mine.add_message(USER("c"))
        assert await said(journal) == ["a", "b", "c"]


@on_every_journal
async def test_a_request_of_others_alone_refuses_nothing(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        mine = await JournaledSession.open(journal, KEY, exclusive=True)
        theirs = await JournaledSession.open(journal, KEY)
        theirs.touch_request_hash([USER("a")])
        await theirs.flush()
        await mine.add_message(USER("a"))
        assert mine.get_last_request_hash() == theirs.get_last_request_hash()


@on_every_journal
async def test_a_deleted_session_is_not_found(harness: JournalHarness) -> None:
    async with harness() as journal:
        mine = await JournaledSession.open(journal, KEY, exclusive=True)
        await journal.delete(KEY)
        with pytest.raises(SessionNotFoundError):
            await mine.add_message(USER("a"))
        await JournaledSession.open(journal, KEY)
        with pytest.raises(SessionNotFoundError):
            await mine.add_message(USER("a"))


# Leaving a store ----------------------------------------------------------------------


@on_every_journal
async def test_a_store_is_left_with_what_can_be_stored(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        store = await SessionStore(journal).__aenter__()
        stale = await store.open_session("s", exclusive=True)
        fresh = [await store.open_session(f"s{n}") for n in range(3)]
        await (await JournaledSession.open(journal, KEY)).add_message(USER("x"))
        for session in (stale, *fresh):
            session.set_provider_state("p", 1)
        with pytest.raises(StaleSessionError):
            await store.__aexit__(None, None, None)
        assert stale.dirty
        assert not any(session.dirty for session in fresh)
        assert (await journal.load(KEY)).provider_states == {}
        await stale.refresh()
        await stale.flush()


async def test_several_that_cannot_be_stored_come_as_a_group() -> None:
    async with HARNESSES[0]() as journal:
        store = await SessionStore(journal).__aenter__()
        live = [await store.open_session(f"s{n}", exclusive=True) for n in "ab"]
        for session in live:
            other = await JournaledSession.open(journal, session.key)
            await other.add_message(USER("x"))
            session.set_provider_state("p", 1)
        with pytest.raises(ExceptionGroup) as caught:
            await store.__aexit__(None, None, None)
        assert [type(e) for e in caught.value.exceptions] == [StaleSessionError] * 2
        for session in live:
            await session.refresh()
            await session.flush()


async def test_a_wrapped_exclusive_session_is_exclusive() -> None:
    async with HARNESSES[0]() as journal:
        inner = await JournaledSession.open(journal, KEY, exclusive=True)
        await (await JournaledSession.open(journal, KEY)).add_message(USER("a"))
        with pytest.raises(StaleSessionError):
            await SessionWrapper(inner).add_message(USER("b"))
