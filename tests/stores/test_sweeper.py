"""The sweep: it runs while a store is open, survives, and leaves nothing behind."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from around_journals import as_journal
from store_bindings import FailingJournal
from typing_extensions import override

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.store_values import DerivedSession, named
from raf_session.errors import StorageError
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits, NewSession, SessionTTLOptions
from raf_session.stores import InMemorySessionStore, SessionStore
from raf_session.stores.sweeper import BATCH, Sweeper

pytestmark = pytest.mark.anyio

LIMITS = Limits(sessions=SessionTTLOptions(max_idle_secs=60, cleanup_interval_secs=7))


class Alarm:
    """A sleep that ends when the test says so."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._waiting = anyio.Event()
        self._send, self._receive = anyio.create_memory_object_stream[None](100)

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._waiting.set()
        await self._receive.receive()

    async def ring(self) -> None:
        self._waiting = anyio.Event()
        self._send.send_nowait(None)
        await self.started()

    async def started(self) -> None:
        with anyio.fail_after(10):
            await self._waiting.wait()

    def close(self) -> None:
        self._send.close()
        self._receive.close()


def journal_of(clock: TickingClock, limits: Limits = LIMITS) -> MemoryJournal:
    return MemoryJournal.opened(clock=clock, limits=limits)


async def fill(journal: MemoryJournal, count: int) -> None:
    for n in range(count):
        await journal.create(NewSession(key=SessionKey.raf(f"s{n}")))


async def alive(journal: MemoryJournal) -> int:
    return len(journal._sessions)


async def test_it_sweeps_at_the_interval() -> None:
    clock, alarm = TickingClock(), Alarm()
    journal = journal_of(clock)
    async with Sweeper(journal, alarm):
        await alarm.started()
        assert alarm.waits == [7]
        await fill(journal, 3)
        await alarm.ring()
        assert await alive(journal) == 3
        clock.tick(61)
        await alarm.ring()
        assert await alive(journal) == 0
        assert alarm.waits == [7, 7, 7]
    alarm.close()


async def test_it_survives_errors_and_tells(caplog: pytest.LogCaptureFixture) -> None:
    clock, alarm = TickingClock(), Alarm()
    memory = journal_of(clock)
    journal = FailingJournal(memory)
    async with Sweeper(as_journal(journal), alarm):
        await alarm.started()
        await fill(memory, 1)
        clock.tick(61)
        journal.before["expire"] = StorageError("test", "gone")
        with caplog.at_level(logging.ERROR, "raf_session.sweep"):
            await alarm.ring()
            await alarm.ring()
        assert len(caplog.records) == 2
        assert "memory" in caplog.text
        assert await alive(memory) == 1
        journal.before.clear()
        await alarm.ring()
        assert await alive(memory) == 0
    alarm.close()


async def test_without_limits_it_is_not_started() -> None:
    alarm = Alarm()
    async with Sweeper(journal_of(TickingClock(), Limits()), alarm):
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        assert alarm.waits == []
    alarm.close()


@pytest.mark.parametrize("name", ["user_state", "app_state"])
async def test_limits_of_scopes_start_it(name: str) -> None:
    alarm = Alarm()
    options: Any = {name: SessionTTLOptions(max_idle_secs=60)}
    async with Sweeper(journal_of(TickingClock(), Limits(**options)), alarm):
        await alarm.started()
        assert alarm.waits == [3600]
    alarm.close()


async def test_a_sweep_takes_more_than_one_batch() -> None:
    clock = TickingClock()
    journal = journal_of(clock)
    await fill(journal, BATCH + 1)
    clock.tick(61)
    assert len(await Sweeper(journal).sweep()) == BATCH + 1
    assert await alive(journal) == 0


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    "error", [OwnError("mine"), KeyboardInterrupt(), SystemExit(3)], ids=repr
)
async def test_what_the_block_raises_is_not_wrapped(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        async with InMemorySessionStore(ttl=LIMITS.sessions):
            raise error
    assert caught.value is error


async def test_it_ends_when_the_block_is_cancelled() -> None:
    clock = TickingClock()
    with anyio.move_on_after(0.05) as scope:
        async with InMemorySessionStore(ttl=LIMITS.sessions, clock=clock):
            await anyio.sleep(60)
    assert scope.cancelled_caught
    with anyio.move_on_after(0.05) as scope:
        async with (
            InMemorySessionStore(ttl=LIMITS.sessions, clock=clock),
            anyio.create_task_group() as group,
        ):
            group.start_soon(anyio.sleep, 60)
    assert scope.cancelled_caught


async def test_it_ends_during_a_sweep() -> None:
    clock, alarm = TickingClock(), Alarm()
    memory = journal_of(clock)
    entered = anyio.Event()

    class Slow(FailingJournal):
        @override
        async def called(
            self,
            name: str,
            call: Callable[..., Awaitable[Any]],
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            if name == "expire":
                entered.set()
                await anyio.sleep(60)
            return await super().called(name, call, *args, **kwargs)

    with anyio.fail_after(10):
        async with Sweeper(as_journal(Slow(memory)), alarm):
            await alarm.started()
            alarm._send.send_nowait(None)
            await entered.wait()
    alarm.close()


async def test_a_store_can_be_entered_again() -> None:
    store = InMemorySessionStore(ttl=LIMITS.sessions, clock=TickingClock())
    for _ in range(3):
        async with store as entered:
            assert entered is store


async def test_nothing_is_held_alive() -> None:
    clock = TickingClock()
    store = InMemorySessionStore(ttl=LIMITS.sessions, clock=clock)
    async with store:
        await store.save_session(await named("s", clock, "x"))
    gone = weakref.ref(store), weakref.ref(store.journal)
    del store
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


async def test_two_stores_sweep_each_session_once() -> None:
    clock = TickingClock()
    journal = journal_of(clock)
    await fill(journal, 50)
    clock.tick(61)
    counts: list[int] = []

    async def sweep() -> None:
        counts.append(await SessionStore(journal).cleanup_expired())

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(sweep)
    assert sum(counts) == 50


async def test_sentinels_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = TickingClock()
    store = InMemorySessionStore(
        ttl=LIMITS.sessions, clock=clock, types=(DerivedSession,)
    )
    session = DerivedSession("s")
    await session.add_message(ChatMessage.user("x"))
    await store.save_session(session)
    with caplog.at_level(logging.WARNING, "raf_session.sweep"):
        for _ in range(3):
            assert await store.cleanup_expired() == 0
    told = [r for r in caplog.records if "DerivedSession" in r.getMessage()]
    assert len(told) == 1
    assert "UNIX_EPOCH" in told[0].getMessage()


async def test_sentinels_without_limits_are_nobodys_business(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = InMemorySessionStore(types=(DerivedSession,))
    await store.save_session(DerivedSession("s"))
    await store.cleanup_expired()
    assert not caplog.records
