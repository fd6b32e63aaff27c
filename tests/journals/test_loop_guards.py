"""What belongs to an event loop is closed on it, whenever that is asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from raf_session.journals._loop_guards import LoopGuard, close_all

Phase: TypeAlias = Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, None]]


class Thing:
    """Takes some turns of its event loop to close."""

    def __init__(self, turns: int = 3) -> None:
        self.begun = 0
        self.closed = 0
        self._turns = turns

    async def close(self) -> None:
        self.begun += 1
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self.closed += 1


async def a_turn(_loop: asyncio.AbstractEventLoop) -> None:
    await asyncio.sleep(0)


async def cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def finish_generators(loop: asyncio.AbstractEventLoop) -> None:
    await loop.shutdown_asyncgens()


async def end_threads(loop: asyncio.AbstractEventLoop) -> None:
    await loop.shutdown_default_executor()


ENDING: list[Phase] = [a_turn, cancel_tasks, finish_generators, end_threads]
"""How `asyncio.run` ends an event loop."""


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("phase", range(len(ENDING) + 1))
def test_it_is_closed_once_in_whatever_phase_of_the_end_that_is_asked_for(
    phase: int, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    thing = Thing(turns)
    guard = LoopGuard(thing.close)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(guard.begin())
    for number, step in enumerate(ENDING):
        if number == phase:
            asyncio.run(guard.close())
        loop.run_until_complete(step(loop))
    loop.close()
    asyncio.run(guard.close())
    assert thing.closed == 1
    assert not caplog.records


def test_a_running_event_loop_closes_it_and_goes_on() -> None:
    thing = Thing()
    guard = LoopGuard(thing.close)
    begun, closed = threading.Event(), threading.Event()

    async def live() -> None:
        await guard.begin()
        begun.set()
        await asyncio.to_thread(closed.wait)
        assert not asyncio.all_tasks() - {asyncio.current_task()}

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    begun.wait()
    asyncio.run(guard.close())
    assert thing.closed == 1
    closed.set()
    thread.join()
    assert thing.begun == 1


async def _guard(close: Callable[[], Coroutine[Any, Any, None]]) -> LoopGuard:
    guard = LoopGuard(close)
    await guard.begin()
    return guard


def test_on_its_own_event_loop_it_is_closed_at_once_and_once() -> None:
    thing = Thing()

    async def live() -> None:
        guard = await _guard(thing.close)
        await guard.close()
        assert thing.closed == 1
        await guard.close()

    asyncio.run(live())
    assert thing.begun == 1


def test_what_was_never_guarded_is_not_closed() -> None:
    thing = Thing()
    asyncio.run(LoopGuard(thing.close).close())
    assert not thing.begun


def test_a_fault_is_raised_where_it_is_waited_for() -> None:
    async def fail() -> None:
        raise OSError("no")

    async def here() -> None:
        guard = await _guard(fail)
        with pytest.raises(OSError, match="no"):
            await guard.close()

    asyncio.run(here())
    begun, end = threading.Event(), threading.Event()
    guards: list[LoopGuard] = []

    async def live() -> None:
        guards.append(await _guard(fail))
        begun.set()
        await asyncio.to_thread(end.wait)

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    begun.wait()
    with pytest.raises(OSError, match="no"):
        asyncio.run(guards[0].close())
    end.set()
    thread.join()


def test_where_one_of_several_raises_the_others_are_closed() -> None:
    thing = Thing()

    async def fail() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        asyncio.run(close_all([thing.close(), fail(), thing.close()]))
    assert thing.closed == 2


def test_closing_while_event_loops_end_leaves_no_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(200):
        guards: list[LoopGuard] = []
        begun = threading.Event()

        async def live(guards: list[LoopGuard], begun: threading.Event) -> None:
            guards.append(await _guard(Thing().close))
            begun.set()

        thread = threading.Thread(
            target=lambda g, b: asyncio.run(live(g, b)), args=(guards, begun)
        )
        thread.start()
        begun.wait()
        asyncio.run(guards[0].close())
        thread.join()
    assert not caplog.records
