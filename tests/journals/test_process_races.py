"""Processes that open, create and sweep the same storage at the same moment."""

from __future__ import annotations

import os
from multiprocessing.synchronize import Barrier
from typing import Any, Final

import anyio
import anyio.to_thread
import pytest
from journal_bindings import HARNESSES
from writers import CONTEXT, WRITERS

from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.conformance.journal_values import ids, said
from raf_session.errors import SessionExistsError
from raf_session.journal import Journal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="processes start as on POSIX"),
    pytest.mark.parametrize(
        "harness",
        [
            pytest.param(harness, id=harness.name)
            for harness in HARNESSES
            if {Capability.DURABLE, Capability.SHARED} <= harness.capabilities
        ],
    ),
]

ROUNDS: Final = 1
SESSIONS: Final = 200


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def race(target: Any, *arguments: Any) -> list[Any]:
    """Run it in each of the processes; return what they put into their queue."""
    barrier, out = CONTEXT.Barrier(WRITERS + 1), CONTEXT.Queue()
    processes = [
        CONTEXT.Process(target=target, args=(n, *arguments, barrier, out), daemon=True)
        for n in range(WRITERS)
    ]
    for process in processes:
        process.start()
    barrier.wait(60)
    told = [out.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    return told


def key(n: int) -> SessionKey:
    return SessionKey("app", f"u{n % 5}", "", f"s{n}")


# Opening and creating ------------------------------------------------------------


def open_and_create(
    process: int, opener: JournalOpener, barrier: Barrier, out: Any
) -> None:
    won: list[int] = []

    async def run() -> None:
        async with opener() as journal:
            for n in range(20):
                try:
                    await journal.create(NewSession(key=key(n)))
                    won.append(n)
                except SessionExistsError:
                    pass
                await journal.append(key(n), [said(f"{process}-{n}")])

    barrier.wait(60)
    anyio.run(run)
    out.put(won)


async def test_all_may_open_new_storage_and_one_creates(
    harness: JournalHarness,
) -> None:
    for _ in range(ROUNDS):
        async with harness.storage() as opener:
            won = await anyio.to_thread.run_sync(race, open_and_create, opener)
            assert sorted(n for mine in won for n in mine) == list(range(20))
            async with opener() as journal:
                for n in range(20):
                    found = ids((await journal.load(key(n))).entries)
                    assert sorted(found) == [f"{p}-{n}" for p in range(WRITERS)]


# Sweeping ------------------------------------------------------------------------


def sweep(_: int, opener: JournalOpener, barrier: Barrier, out: Any) -> None:
    gone: list[str] = []

    async def run() -> None:
        limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
        async with opener(limits=limits) as journal:
            barrier.wait(60)
            while batch := await journal.expire(30):
                gone.extend(map(str, batch))

    anyio.run(run)
    out.put(gone)


async def fill(journal: Journal) -> None:
    for n in range(SESSIONS):
        await journal.create(NewSession(key=key(n)), [said("e")])


async def test_each_session_is_swept_once(harness: JournalHarness) -> None:
    async with harness.storage() as opener:
        async with opener() as journal:
            await fill(journal)
        told = await anyio.to_thread.run_sync(race, sweep, opener)
        gone = [name for mine in told for name in mine]
        assert sorted(gone) == sorted(str(key(n)) for n in range(SESSIONS))
        async with opener() as journal:
            assert (await journal.scan(Query())).sessions == ()
