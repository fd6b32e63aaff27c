"""Writers of one session, in processes and in threads with loops of their own."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from typing import Final

import anyio
from service_bindings import ServiceOpener
from service_values import APP, USER, got, said

from raf_session.service import Session, SessionService

__all__ = ("APPENDS", "expected_state", "in_processes", "in_threads", "judge")

APPENDS: Final = 4
"""Of each writer; it changes the state as often by each of the ways."""
_PATIENCE_SECS: Final = 60.0

CONTEXT: Final = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["raf_session.service", "anyio._backends._asyncio"])


def _values(writer: int, n: int) -> dict[str, int]:
    return {f"{scope}by{writer}": n for scope in ("", "user:", "app:")}


async def write(service: SessionService, writer: int) -> None:
    """Append, and change keys of the writer's own at all scopes, in every way."""
    session = await got(service)
    for n in range(APPENDS):
        event = said(f"{writer}-{n}", state=_values(writer, n))
        await service.append_event(session, event)
        session.state.update({f"{key}-kept": n for key in _values(writer, n)})
        await service.update_session(session)
        given = {f"{key}-set": n for key in _values(writer, n)}
        await service.update_session_state(session, given)
        await service.update_user_state(APP, USER, {f"by{writer}-apart": n})
        await service.update_app_state(APP, {f"by{writer}-apart": n})


def expected_state(writers: Sequence[int]) -> dict[str, int]:
    """Return the state after the work of these writers."""
    last = APPENDS - 1
    own = {
        f"{key}{way}": last
        for writer in writers
        for key in _values(writer, last)
        for way in ("", "-kept", "-set")
    }
    apart = {
        f"{scope}by{writer}-apart": last
        for writer in writers
        for scope in ("user:", "app:")
    }
    return own | apart


def judge(session: Session, writers: Sequence[int]) -> None:
    """Decide whether nothing was lost, in the order of each writer."""
    ids = [event.id for event in session.events]
    assert len(ids) == len(set(ids)) == len(writers) * APPENDS
    for writer in writers:
        mine = [name for name in ids if name.startswith(f"{writer}-")]
        assert mine == [f"{writer}-{n}" for n in range(APPENDS)]
    assert session.state == expected_state(writers)
    assert session.conversation_count == len(ids)


def _work(opener: ServiceOpener, writer: int, barrier: threading.Barrier) -> None:
    async def run() -> None:
        async with opener() as service:
            await got(service)
            barrier.wait(_PATIENCE_SECS)
            await write(service, writer)

    anyio.run(run)


def in_processes(opener: ServiceOpener, writers: Sequence[int]) -> None:
    """Let processes write at the same time, each with a service of its own."""
    barrier = CONTEXT.Barrier(len(writers))
    processes = [
        CONTEXT.Process(target=_work, args=(opener, n, barrier), daemon=True)
        for n in writers
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(_PATIENCE_SECS)
    assert [process.exitcode for process in processes] == [0] * len(writers)


def in_threads(service: SessionService, writers: Sequence[int]) -> None:
    """Let threads write at the same time with one service, each on its own loop."""
    barrier = threading.Barrier(len(writers))
    failures: list[BaseException] = []

    def work(writer: int) -> None:
        async def run() -> None:
            barrier.wait(_PATIENCE_SECS)
            await write(service, writer)

        try:
            anyio.run(run)
        except BaseException as error:  # noqa: BLE001  (told to the test)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE_SECS)
    assert not failures, failures
