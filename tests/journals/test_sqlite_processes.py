"""Several processes over one SQLite file, one of them killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, said
from raf_session.entries import Entry
from raf_session.errors import SessionExistsError
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

PROCESSES: Final = 8
APPENDS: Final = 200
SERVER: Final = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["raf_session.journals.sqlite", "anyio._backends._asyncio"]
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")


def start(target: Callable[..., None], *args: Any) -> list[Any]:
    processes = [
        SERVER.Process(target=target, args=(n, *args), daemon=True)
        for n in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    return processes


def run_all(target: Callable[..., None], *args: Any) -> None:
    barrier = SERVER.Barrier(PROCESSES)
    processes = start(target, *args, barrier)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * PROCESSES


def name(process: int, n: int) -> str:
    return f"{process}-{n}"


def load(path: Path, key: SessionKey = KEY) -> tuple[Entry, ...]:
    async def read() -> tuple[Entry, ...]:
        async with SqliteJournal(path) as journal:
            return (await journal.load(key)).entries

    return anyio.run(read)


# One session ---------------------------------------------------------------------


def write_one(process: int, path: Path, folder: Path, barrier: Barrier) -> None:
    async def write() -> None:
        async with SqliteJournal(path) as journal:
            barrier.wait()
            with (folder / f"{process}.log").open("a", buffering=1) as log:
                for n in range(APPENDS):
                    await journal.append(
                        KEY,
                        [said(name(process, n))],
                        change=Change(session=StateDelta({f"last-{process}": n})),
                    )
                    print(n, file=log)

    anyio.run(write)


def test_one_session_one_killed(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"

    async def create() -> None:
        async with SqliteJournal(path) as journal:
            await journal.create(NEW)

    anyio.run(create)
    logs = [tmp_path / f"{n}.log" for n in range(PROCESSES)]
    barrier = SERVER.Barrier(PROCESSES)
    processes = start(write_one, path, tmp_path, barrier)
    victim = processes[0]
    while victim.is_alive() and (
        not logs[0].exists() or logs[0].read_text().count("\n") < APPENDS // 2
    ):
        time.sleep(0.001)
    victim.kill()
    for process in processes:
        process.join(60)
    assert [p.exitcode for p in processes] == [-signal.SIGKILL] + [0] * (PROCESSES - 1)

    entries = load(path)
    assert all(a.seq < b.seq for a, b in pairwise(entries))
    assert len({entry.id for entry in entries}) == len(entries)
    for n, log in enumerate(logs):
        mine = [entry.id for entry in entries if entry.id.startswith(f"{n}-")]
        assert mine == [name(n, i) for i in range(len(mine))]
        told = log.read_text().count("\n")
        # The one that was killed may have stored one more than it could tell.
        assert told <= len(mine) <= told + (n == 0)
        assert n == 0 or told == APPENDS
    assert len(logs[0].read_text().split()) < APPENDS


# Many sessions -------------------------------------------------------------------


def write_own(process: int, path: Path, barrier: Barrier) -> None:
    key = SessionKey("app", f"u{process}", "", "s")

    async def write() -> None:
        async with SqliteJournal(path) as journal:
            await journal.create(NewSession(key=key))
            barrier.wait()
            for n in range(APPENDS):
                await journal.append(
                    key,
                    [said(name(process, n))],
                    change=Change(app=StateDelta({f"p{process}": n})),
                )

    anyio.run(write)


def test_sessions_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    run_all(write_own, path)
    for n in range(PROCESSES):
        entries = load(path, SessionKey("app", f"u{n}", "", "s"))
        assert [entry.id for entry in entries] == [name(n, i) for i in range(APPENDS)]
        assert [entry.seq for entry in entries] == list(range(1, APPENDS + 1))

    async def check() -> None:
        async with SqliteJournal(path) as journal:
            record = await journal.load(SessionKey("app", "u0", "", "s"))
            assert record.app_state == {f"p{n}": APPENDS - 1 for n in range(PROCESSES)}

    anyio.run(check)


# Opening -------------------------------------------------------------------------


def open_all(process: int, folder: Path, files: int, barrier: Barrier) -> None:
    async def open_one(path: Path) -> None:
        barrier.wait()
        async with SqliteJournal(path) as journal:
            with suppress(SessionExistsError):
                await journal.create(NEW)
            await journal.append(KEY, [said(name(process, 0))])

    for n in range(files):
        anyio.run(open_one, folder / f"{n}.db")


def test_all_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    files = 20
    run_all(open_all, tmp_path, files)
    for n in range(files):
        ids = {entry.id for entry in load(tmp_path / f"{n}.db")}
        assert ids == {name(process, 0) for process in range(PROCESSES)}


# Sweeping ------------------------------------------------------------------------


def sweep(_: int, path: Path, out: Any, barrier: Barrier) -> None:
    async def run() -> None:
        limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
        async with SqliteJournal(path, limits=limits) as journal:
            barrier.wait()
            while gone := await journal.expire(30):
                out.put([str(key) for key in gone])
        out.put(None)

    anyio.run(run)


def test_each_session_is_swept_once(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    wanted = {SessionKey("app", "user", "", f"s{n}") for n in range(300)}

    async def create() -> None:
        async with SqliteJournal(path) as journal:
            for key in wanted:
                await journal.create(NewSession(key=key), [said("e")])

    anyio.run(create)
    out = SERVER.Queue()
    barrier = SERVER.Barrier(PROCESSES)
    processes = start(sweep, path, out, barrier)
    gone: list[str] = []
    for _ in processes:
        while (batch := out.get(timeout=60)) is not None:
            gone += batch
    for process in processes:
        process.join(60)
    assert sorted(gone) == sorted(map(str, wanted))

    async def left() -> int:
        async with SqliteJournal(path) as journal:
            return len((await journal.scan(Query())).sessions)

    assert anyio.run(left) == 0


# The log -------------------------------------------------------------------------


def keep_writing(process: int, path: Path, end: Event, barrier: Barrier) -> None:
    async def write() -> None:
        key = SessionKey("app", f"u{process}", "", "s")
        async with SqliteJournal(path) as journal:
            await journal.create(NewSession(key=key))
            barrier.wait()
            n = 0
            while not end.is_set():
                n += 1
                await journal.append(key, [said(name(process, n), "x" * 3000)])
                await journal.load(key)

    anyio.run(write)


@pytest.mark.slow
def test_the_log_stays_short(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    end = SERVER.Event()
    barrier = SERVER.Barrier(PROCESSES)
    processes = start(keep_writing, path, end, barrier)
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
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert largest < 100 * 2**20
