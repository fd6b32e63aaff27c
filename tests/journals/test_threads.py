"""The threads in which files are worked on."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from contextvars import ContextVar

import anyio
import anyio.to_thread
import pytest

from raf_session.journals._sqlite_faults import Busy
from raf_session.journals._threads import in_thread

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Work:
    """Work that ends when it may."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.go_on = threading.Event()
        self.ended = False

    def __call__(self) -> None:
        self.running.set()
        assert self.go_on.wait(10)
        self.ended = True


async def test_work_sees_the_context_of_its_caller() -> None:
    told: ContextVar[str] = ContextVar("told")
    told.set("by the caller")
    caller = threading.get_ident()
    assert await in_thread(lambda: (told.get(), threading.get_ident() != caller)) == (
        "by the caller",
        True,
    )


async def test_what_was_cancelled_before_is_not_begun() -> None:
    begun: list[None] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await in_thread(lambda: begun.append(None))
    assert scope.cancelled_caught
    assert not begun


async def test_what_is_cancelled_meanwhile_is_waited_for() -> None:
    work = Work()

    async with anyio.create_task_group() as group:
        group.start_soon(in_thread, work)
        assert await anyio.to_thread.run_sync(work.running.wait, 10)
        group.cancel_scope.cancel()
        threading.Timer(0.05, work.go_on.set).start()
    assert work.ended


@pytest.mark.parametrize("error", [StopIteration, KeyError, Busy])
async def test_errors_of_the_work_are_raised(error: type[Exception]) -> None:
    def work() -> None:
        raise error("told")

    raised = RuntimeError if error is StopIteration else error
    with pytest.raises(raised) as found:
        await in_thread(work)
    fault = found.value.__cause__ if error is StopIteration else found.value
    assert type(fault) is error
    assert fault.args == ("told",)


def test_what_is_cancelled_by_asyncio_again_and_again_is_waited_for() -> None:
    work = Work()

    async def main() -> None:
        task = asyncio.ensure_future(in_thread(work))
        assert await asyncio.to_thread(work.running.wait, 10)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        work.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.ended

    asyncio.run(main())


def test_an_error_is_not_kept() -> None:
    class ToldError(Exception):
        pass

    def work() -> None:
        raise ToldError

    async def main() -> weakref.ref[ToldError]:
        try:
            await in_thread(work)
        except ToldError as error:
            return weakref.ref(error)
        raise AssertionError

    gc.disable()
    try:
        assert asyncio.run(main())() is None
    finally:
        gc.enable()


def test_what_comes_one_after_the_other_is_done_in_one_thread() -> None:
    async def main() -> set[int]:
        both = threading.Barrier(2)
        await asyncio.gather(*(in_thread(lambda: both.wait(10)) for _ in range(2)))
        return {await in_thread(threading.get_ident) for _ in range(50)}

    assert len(asyncio.run(main())) == 1


async def forty_at_once() -> None:
    full = threading.Barrier(40)  # so many are there together, or it breaks
    await asyncio.gather(*(in_thread(lambda: full.wait(10)) for _ in range(120)))


def test_forty_at_once_and_what_waits_is_done_after() -> None:
    asyncio.run(forty_at_once())
    named = [one.name for one in threading.enumerate()]
    assert named.count("raf_session") == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    async def main() -> int:
        return await in_thread(os.getpid)

    assert asyncio.run(main()) == os.getpid()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if asyncio.run(main()) == os.getpid() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_thread_outlives_a_loop_that_it_cannot_tell() -> None:
    work = Work()

    loop = asyncio.new_event_loop()
    task: asyncio.Task[None] = loop.create_task(in_thread(work))
    loop.run_until_complete(asyncio.to_thread(work.running.wait, 10))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    # It can never end, and asyncio would say so.
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    work.go_on.set()
    asyncio.run(forty_at_once())
