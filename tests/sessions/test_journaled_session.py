"""`JournaledSession`: a replica that is never behind, and notes that are never lost."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.errors import (
    InvalidValueError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Journal
from raf_session.journaled_session import JournaledSession
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio

KEY = SessionKey("app", "user", "", "s")
USER = ChatMessage.user


class Hooked:
    """A journal whose calls can be counted, broken, delayed and cancelled."""

    def __init__(self, inner: Journal) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.fault: Callable[[str], None] = lambda _: None
        self.pause: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if name not in {"create", "load", "append", "splice", "update", "delete"}:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if self.pause is not None:
                await self.pause()
            self.fault(name)
            answer = await value(*args, **kwargs)
            if self.pause is not None:
                await self.pause()
            return answer

        return call


def hooked() -> tuple[Hooked, Journal]:
    clock = TickingClock()
    journal = Hooked(MemoryJournal.opened(clock=clock))
    return journal, cast("Journal", journal)


def broken(_: str) -> None:
    raise OSError("the backend failed")


async def texts(session: JournaledSession) -> list[str]:
    return [message.text for message in await session.get_messages()]


def seen(session: JournaledSession) -> list[str]:
    return [message.text for message in session.snapshot().messages]


async def test_two_handles_see_each_others_writes() -> None:
    _, journal = hooked()
    one = await JournaledSession.open(journal, KEY)
    other = await JournaledSession.open(journal, KEY)
    await one.add_message(USER("a"))
    assert await texts(other) == ["a"]
    await other.add_messages_batch([USER("b"), USER("c")])
    assert seen(one) == ["a"]
    await one.add_message(USER("d"))
    assert seen(one) == ["a", "b", "c", "d"]
    assert one.get_message_count() == 4
    await other.clear()
    await one.add_message(USER("e"))
    assert seen(one) == ["e"]
    assert await texts(other) == ["e"]
    assert one.metadata() == other.metadata()


async def test_each_write_leaves_nothing_unseen() -> None:
    """After each await, all that was committed before it is seen."""
    writes: dict[str, Callable[[JournaledSession], Awaitable[Any]]] = {
        "add_message": lambda s: s.add_message(USER("mine")),
        "touch": lambda s: s.touch_last_active(),
        "clear": lambda s: s.clear(),
        "flush": lambda s: s.flush(),
        "get_messages": lambda s: s.get_messages(),
        "refresh": lambda s: s.refresh(),
    }
    missed: list[str] = []
    for name, write in writes.items():
        for note in ("provider", "message", "request", "two"):
            _, journal = hooked()
            one = await JournaledSession.open(journal, KEY)
            await one.add_message(USER("a"))
            other = await JournaledSession.open(journal, KEY)
            if note == "message":
                await other.add_message(USER("theirs"))
            if note in {"provider", "two"}:
                other.set_provider_state("p", 1)
                await other.flush()
            if note == "two":
                other.set_provider_state("q", 1)
                await other.flush()
            if note == "request":
                other.touch_request_hash([USER("r")])
                await other.flush()
            if name == "flush":
                one.set_provider_state("mine", 1)
            await write(one)
            fresh = await JournaledSession.open(journal, KEY)
            if one.get_provider_state("p") != fresh.get_provider_state("p"):
                missed.append(f"{name}: {note}: provider state")
            if one.get_last_request_hash() != fresh.get_last_request_hash():
                missed.append(f"{name}: {note}: request hash")
            if one.snapshot().messages != fresh.snapshot().messages:
                missed.append(f"{name}: {note}: messages")
            if one.head != fresh.head:
                missed.append(f"{name}: {note}: head")
    assert not missed


async def test_an_unbroken_run_of_writes_reads_nothing() -> None:
    hook, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    hook.calls.clear()
    for n in range(5):
        session.set_provider_state("p", n)
        session.touch_request_hash([USER("r")])
        await session.add_message(USER(str(n)))
    await session.touch_last_active()
    assert hook.calls == ["append"] * 5 + ["update"]


async def test_notes_are_pending_until_the_next_write() -> None:
    hook, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    hook.calls.clear()
    assert [session.dirty] == [False]
    session.set_provider_state("p", {"n": 1})
    session.touch_request_hash([USER("r")])
    assert [session.dirty] == [True]
    assert session.get_provider_state("p") == {"n": 1}
    last = session.get_last_request_hash()
    assert session.snapshot().provider_states.get("p") == {"n": 1}
    await session.get_messages()
    session.serialize()
    assert [session.dirty] == [True]
    assert session.get_provider_state("p") == {"n": 1}
    assert session.get_last_request_hash() == last
    record = await hook.inner.load(KEY)
    assert record.provider_states == {}
    assert record.request is None
    hook.calls.clear()
    await session.add_message(USER("a"))
    assert hook.calls == ["append"]
    assert [session.dirty] == [False]
    record = await hook.inner.load(KEY)
    assert record.provider_states == {"p": {"n": 1}}
    assert record.request is not None
    assert record.request.hash == last


WRITES: dict[str, Callable[[JournaledSession], Awaitable[Any]]] = {
    "add_message": lambda s: s.add_message(USER("x")),
    "add_messages_batch": lambda s: s.add_messages_batch([USER("x"), USER("y")]),
    "touch_last_active": lambda s: s.touch_last_active(),
    "clear": lambda s: s.clear(),
    "flush": lambda s: s.flush(),
    "leaving": lambda s: s.__aexit__(None, None, None),
}


@pytest.mark.parametrize("name", WRITES)
async def test_each_write_stores_the_notes_in_one_step(name: str) -> None:
    hook, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    await session.add_message(USER("a"))
    session.set_provider_state("p", 1)
    session.touch_request_hash([USER("r")])
    last = session.get_last_request_hash()
    hook.calls.clear()
    await WRITES[name](session)
    assert len(hook.calls) == 1
    assert not session.dirty
    record = await hook.inner.load(KEY)
    assert record.provider_states == {"p": 1}
    assert record.head.request_hash == (None if name == "clear" else last)
    assert session.get_last_request_hash() == record.head.request_hash


@pytest.mark.parametrize("name", WRITES)
async def test_a_failed_write_leaves_the_notes_pending(name: str) -> None:
    hook, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    await session.add_message(USER("a"))
    session.set_provider_state("p", 1)
    session.set_provider_state("q", 1)
    session.touch_request_hash([USER("r")])
    last = session.get_last_request_hash()
    before = await hook.inner.load(KEY)
    hook.fault = broken
    with pytest.raises(OSError, match="failed"):
        await WRITES[name](session)
    assert session.dirty
    assert session.get_provider_state("p") == 1
    assert session.get_last_request_hash() == last
    assert seen(session) == ["a"]
    session.set_provider_state("q", 2)
    hook.fault = lambda _: None
    assert await hook.inner.load(KEY) == before
    assert await texts(session) == ["a"]
    await session.flush()
    record = await hook.inner.load(KEY)
    assert record.provider_states == {"p": 1, "q": 2}
    assert record.head.request_hash == last


async def test_leaving_the_block_stores_the_notes() -> None:
    hook, journal = hooked()
    async with await JournaledSession.open(journal, KEY) as session:
        session.set_provider_state("p", 1)
    assert (await hook.inner.load(KEY)).provider_states == {"p": 1}
    with pytest.raises(KeyError, match="mine"):  # noqa: PT012
        async with session:
            session.set_provider_state("p", 2)
            raise KeyError("mine")
    assert (await hook.inner.load(KEY)).provider_states == {"p": 2}


async def test_a_cancelled_block_stores_the_notes() -> None:
    hook, journal = hooked()
    hook.pause = anyio.lowlevel.checkpoint
    session = await JournaledSession.open(journal, KEY)
    with anyio.CancelScope() as scope:
        async with session:
            session.set_provider_state("p", 1)
            scope.cancel()
            await anyio.sleep(1)
    stored = (await hook.inner.load(KEY)).provider_states == {"p": 1}
    assert stored or session.dirty
    hook.pause = None
    await session.flush()
    assert (await hook.inner.load(KEY)).provider_states == {"p": 1}


async def test_a_dropped_note_warns() -> None:
    _, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    session.set_provider_state("p", 1)
    with pytest.warns(  # noqa: PT031
        ResourceWarning, match=r"'s' was dropped.*flush"
    ):
        del session
        gc.collect()
    session = await JournaledSession.open(journal, KEY)
    session.touch_request_hash([])
    with pytest.warns(ResourceWarning, match="request record"):  # noqa: PT031
        del session
        gc.collect()
    session = await JournaledSession.open(journal, KEY)
    session.set_provider_state("p", 1)
    await session.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del session
        gc.collect()


async def test_an_invalid_note_is_refused_at_once() -> None:
    _, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    with pytest.raises(InvalidValueError, match=r"p\.a\[1\]"):
        session.set_provider_state("p", {"a": [0, float("nan")]})
    with pytest.raises(InvalidValueError):
        session.touch_request_hash([{"content": "no role"}])
    assert not session.dirty


async def test_clear_erases_history_and_request_alone() -> None:
    hook, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    await session.add_messages_batch([USER("a"), USER("b")])
    session.set_provider_state("p", 1)
    session.touch_request_hash([USER("r")])
    await session.flush()
    await hook.inner.update(KEY, Change(session=StateDelta({"k": 1}), title="t"))
    session.set_provider_state("q", 2)
    session.touch_request_hash([USER("r2")])
    await session.clear()
    assert seen(session) == []
    assert session.get_last_request_hash() is None
    assert session.prefix_match is None
    assert not session.dirty
    record = await hook.inner.load(KEY, archived=True)
    assert (record.entries, record.archived, record.request) == ((), (), None)
    assert record.provider_states == {"p": 1, "q": 2}
    assert record.state == {"k": 1}
    assert record.head.title == "t"
    assert record.head.total.entries == 0


async def test_exclusive_writes_only_on_what_it_saw() -> None:
    _, journal = hooked()
    one = await JournaledSession.open(journal, KEY, exclusive=True)
    other = await JournaledSession.open(journal, KEY)
    await one.add_message(USER("a"))
    await one.add_message(USER("b"))
    await other.add_message(USER("c"))
    for write in ("add_message", "add_messages_batch", "clear"):
        with pytest.raises(StaleSessionError):
            await WRITES[write](one)
    one.set_provider_state("p", 1)
    with pytest.raises(StaleSessionError):
        await one.flush()
    assert one.dirty
    assert await texts(one) == ["a", "b", "c"]
    await one.add_message(USER("d"))
    assert await texts(other) == ["a", "b", "c", "d"]
    assert other.get_provider_state("p") == 1


async def test_requests_of_two_handles_are_stored_whole() -> None:
    _, journal = hooked()
    one = await JournaledSession.open(journal, KEY)
    begun = [USER("system"), USER("1")]
    one.touch_request_hash(begun)
    await one.flush()
    other = await JournaledSession.open(journal, KEY)
    one.touch_request_hash([*begun, USER("one")])
    other.touch_request_hash([*begun, USER("other"), USER("more")])
    await one.flush()
    await other.add_message(USER("a"))
    one.touch_request_hash([*begun, USER("one"), USER("two")])
    await one.flush()
    record = (await journal.load(KEY)).request
    assert record is not None
    assert record == one.request_record
    fresh = await JournaledSession.open(journal, KEY)
    fresh.touch_request_hash([*begun, USER("one"), USER("two"), USER("three")])
    match = fresh.prefix_match
    assert match is not None
    assert (match.shared_messages, match.append_only) == (4, True)
    await fresh.flush()


async def test_a_deleted_session_answers_to_nothing() -> None:
    _, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    await session.add_message(USER("a"))
    await journal.delete(KEY)
    for name, write in WRITES.items():
        if name in {"flush", "leaving"}:
            session.set_provider_state("p", 1)
        with pytest.raises(SessionNotFoundError):
            await write(session)
    with pytest.raises(SessionNotFoundError):
        await session.get_messages()
    again = await JournaledSession.open(journal, KEY)
    for name, write in WRITES.items():
        if name not in {"flush", "leaving"}:
            with pytest.raises(SessionNotFoundError):
                await write(session)
    with pytest.raises(SessionNotFoundError):
        await session.get_messages()
    assert await texts(again) == []
    assert seen(session) == ["a"]
    with pytest.warns(ResourceWarning):  # noqa: PT031
        del session
        gc.collect()


async def test_it_is_opened_not_deserialised() -> None:
    _, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    way = r"store\.save_session\(AgentSession\.deserialize\(data\)\)"
    with pytest.raises(TypeError, match=way):
        JournaledSession.deserialize(session.serialize())


@pytest.mark.parametrize("name", WRITES)
async def test_cancellation_at_every_await(name: str) -> None:
    for at in range(1, 12):
        hook, journal = hooked()
        session = await JournaledSession.open(journal, KEY)
        await session.add_message(USER("a"))
        session.set_provider_state("p", 1)
        session.touch_request_hash([USER("r")])
        last = session.get_last_request_hash()
        steps = 0

        with anyio.CancelScope() as scope:

            async def pause(scope: anyio.CancelScope = scope, at: int = at) -> None:
                nonlocal steps
                steps += 1
                if steps == at:
                    scope.cancel()
                await anyio.lowlevel.checkpoint()

            hook.pause = pause
            await WRITES[name](session)
        hook.pause = None
        record = await hook.inner.load(KEY)
        stored = [entry.message.text for entry in record.entries if entry.message]
        whole = {
            "add_message": ["a", "x"],
            "add_messages_batch": ["a", "x", "y"],
            "clear": [],
        }.get(name, ["a"])
        assert stored in (["a"], whole)
        assert (record.provider_states == {"p": 1}) == (
            stored == whole if whole != ["a"] else bool(record.provider_states)
        )
        assert session.dirty or record.provider_states == {"p": 1}
        assert await texts(session) == stored
        await session.flush()
        record = await hook.inner.load(KEY)
        assert record.provider_states == {"p": 1}
        assert record.head.request_hash in ({None, last} if name == "clear" else {last})
        assert session.get_last_request_hash() == record.head.request_hash
        await session.add_message(USER("z"))
        assert await texts(session) == [*stored, "z"]
        if steps < at:
            break
    else:
        raise AssertionError("the call does not end")


async def test_repeating_a_call_of_unknown_outcome_stores_once() -> None:
    hook, journal = hooked()
    session = await JournaledSession.open(journal, KEY)
    message = USER("a").model_copy(update={"id": "m-1"})
    with anyio.CancelScope() as scope:

        async def pause() -> None:
            if hook.calls[-1] == "append" and len(await stored()) == 1:
                scope.cancel()
            await anyio.lowlevel.checkpoint()

        async def stored() -> tuple[Any, ...]:
            return (await hook.inner.load(KEY)).entries

        hook.pause = pause
        await session.add_message(message)
    assert scope.cancelled_caught
    hook.pause = None
    await session.add_message(message)
    assert await texts(session) == ["a"]


async def test_parallel_handles_of_one_session() -> None:
    hook, journal = hooked()
    hook.pause = anyio.lowlevel.checkpoint
    handles: list[JournaledSession] = []

    async def work(n: int) -> None:
        handle = await JournaledSession.open(journal, KEY)
        handles.append(handle)
        for part in range(5):
            handle.set_provider_state(f"p{n}", part)
            handle.touch_request_hash([USER(f"{n}:{part}")])
            await handle.add_message(USER(f"{n}:{part}"))
            snapshot = handle.snapshot()
            assert snapshot.metadata.message_count == len(snapshot.messages)
            assert f"{n}:{part}" in seen(handle)
            await handle.touch_last_active()

    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(work, n)
    final = await texts(handles[0])
    assert len(final) == 50
    for handle in handles:
        assert await texts(handle) == final
        assert all(handle.get_provider_state(f"p{n}") == 4 for n in range(10))


async def test_one_handle_used_by_many_tasks() -> None:
    hook, journal = hooked()
    hook.pause = anyio.lowlevel.checkpoint
    session = await JournaledSession.open(journal, KEY)

    async def work(n: int) -> None:
        for part in range(5):
            session.set_provider_state(f"p{n}", part)
            await session.add_message(USER(f"{n}:{part}"))
            assert f"{n}:{part}" in seen(session)

    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(work, n)
    assert session.get_message_count() == 50
    assert seen(session) == await texts(session)
    record = await hook.inner.load(KEY)
    assert record.provider_states == {f"p{n}": 4 for n in range(10)}
    assert not session.dirty


def test_sync_reads_are_consistent_while_threads_write() -> None:
    journal = MemoryJournal.opened()
    handles: list[JournaledSession] = []

    async def make() -> None:
        handles.append(await JournaledSession.open(journal, KEY))

    anyio.run(make)
    session = handles[0]
    failures: list[str] = []
    done = threading.Event()

    def write(n: int) -> None:
        async def run() -> None:
            for part in range(25):
                await session.add_message(USER(f"{n}:{part}"))
                session.set_provider_state(f"p{n}", part)

        try:
            anyio.run(run)
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    def watch() -> None:
        length = 0
        while not done.is_set():
            snapshot = session.snapshot()
            if snapshot.metadata.message_count != len(snapshot.messages):
                failures.append("the count is not the number of messages")
            if len(snapshot.messages) < length:
                failures.append("messages went away")
            length = len(snapshot.messages)

    watcher = threading.Thread(target=watch)
    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    watcher.start()
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    watcher.join()
    assert not failures
    assert session.get_message_count() == 100
    before = seen(session)
    final: list[str] = []

    async def finish() -> None:
        await session.flush()
        final.extend(await texts(session))

    anyio.run(finish)
    assert before == final
    assert all(session.get_provider_state(f"p{n}") == 24 for n in range(4))
