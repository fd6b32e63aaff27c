"""The write-ahead log of one SQLite file under several processes."""

from __future__ import annotations

import os
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import anyio
import pytest
from writers import CONTEXT, WRITERS

from raf_session.conformance.journal_values import said
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts as POSIX does")


def keep_writing(process: int, path: Path, end: Event, barrier: Barrier) -> None:
    async def write() -> None:
        key = SessionKey("app", f"u{process}", "", "s")
        async with SqliteJournal(path) as journal:
            await journal.create(NewSession(key=key))
            barrier.wait()
            n = 0
            while not end.is_set():
                n += 1
                await journal.append(key, [said(f"{process}-{n}", "x" * 3000)])
                await journal.load(key)

    anyio.run(write)


@pytest.mark.slow
def test_the_log_stays_short(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    end = CONTEXT.Event()
    barrier = CONTEXT.Barrier(WRITERS)
    processes = [
        CONTEXT.Process(target=keep_writing, args=(n, path, end, barrier), daemon=True)
        for n in range(WRITERS)
    ]
    for process in processes:
        process.start()
    log = tmp_path / "sessions.db-wal"

    async def wait() -> int:
        largest = 0
        for _ in range(200):
            await anyio.sleep(0.1)
            largest = max(largest, log.stat().st_size if log.exists() else 0)
        return largest

    largest = anyio.run(wait)
    end.set()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    assert largest < 100 * 2**20
