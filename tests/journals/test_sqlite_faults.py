"""Failing, waiting and cancelled calls of the journal in a SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import anyio
import pytest

from raf_session.changes import Change, StateDelta
from raf_session.clock import utc_now
from raf_session.conformance.journal_values import KEY, NEW, batch, said
from raf_session.errors import (
    EntryConflictError,
    JournalClosedError,
    StorageBusyError,
    StorageError,
    StorageFullError,
)
from raf_session.journal import Journal
from raf_session.journals import _sqlite_database
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
async def journal(path: Path) -> AsyncGenerator[SqliteJournal]:
    async with SqliteJournal(path, busy_timeout_secs=0.4) as opened:
        await opened.create(NEW, batch("e1", "e2"))
        yield opened


@contextmanager
def connected(path: Path) -> Generator[sqlite3.Connection]:
    with closing(
        sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)
    ) as connection:
        yield connection


@contextmanager
def locked(path: Path) -> Generator[None]:
    with connected(path) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def ids(journal: Journal) -> list[str]:
    return [entry.id for entry in (await journal.load(KEY)).entries]


# Failing -------------------------------------------------------------------------

_CHANGE = Change(session=StateDelta({"a": 1}), app=StateDelta({"b": 2}))

WRITES: dict[str, tuple[str, Callable[[Journal], Awaitable[object]]]] = {
    "append": ("UPDATE ON heads", lambda j: j.append(KEY, batch("e3"))),
    "append a batch": (
        "INSERT ON entries WHEN new.id = 'e4'",
        lambda j: j.append(KEY, batch("e3", "e4", "e5")),
    ),
    "append state": (
        "INSERT ON scoped_state",
        lambda j: j.append(KEY, batch("e3"), change=_CHANGE),
    ),
    "trim": ("UPDATE ON heads", lambda j: j.append(KEY, batch("e3"), trim=1)),
    "splice": (
        "INSERT ON entries",
        lambda j: j.splice(KEY, 1, 2, batch("e3"), archive=True),
    ),
    "clear": (
        "UPDATE ON heads",
        lambda j: j.splice(KEY, 1, 2, archive=False, purge=True),
    ),
    "update": ("INSERT ON scopes", lambda j: j.update(KEY, _CHANGE)),
    "delete": ("DELETE ON heads", lambda j: j.delete(KEY)),
    "create": (
        "INSERT ON entries WHEN new.id = 'e4'",
        lambda j: j.create(
            NewSession(key=SessionKey("app", "user", "", "new")), batch("e3", "e4")
        ),
    ),
}


@pytest.mark.parametrize("case", WRITES)
async def test_a_failing_statement_undoes_the_call(
    path: Path, journal: SqliteJournal, case: str
) -> None:
    event, write = WRITES[case]
    before = await journal.load(KEY)
    with connected(path) as other:
        other.execute(
            f"CREATE TRIGGER fails BEFORE {event} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(StorageError, match="no") as caught:
            await write(journal)
        assert isinstance(caught.value.__cause__, sqlite3.Error)
        # The other writer goes on at once: no transaction was left open.
        other.execute("PRAGMA busy_timeout = 0")
        other.execute("DROP TRIGGER fails")
        assert await journal.load(KEY) == before
        assert len((await journal.scan(Query())).sessions) == 1
        await write(journal)


async def test_a_sweep_that_fails_reports_what_it_deleted(path: Path) -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
    async with SqliteJournal(path, limits=limits) as journal:
        for n in range(120):
            key = SessionKey("app", "user", "", f"s{n:03}")
            await journal.create(NewSession(key=key))
        with connected(path) as other:
            other.execute(
                "CREATE TRIGGER fails BEFORE DELETE ON heads "
                "WHEN (SELECT count(*) FROM heads) < 40 "
                "BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
            gone = await journal.expire()
            assert len(gone) == 50
            with pytest.raises(StorageError, match="no"):
                await journal.expire()
            other.execute("DROP TRIGGER fails")
        assert len({*gone, *await journal.expire()}) == 120


async def test_disk_full(journal: SqliteJournal) -> None:
    writer = journal._opened().database._writer
    assert writer is not None
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages + 2}")
    for _ in range(2):
        with pytest.raises(StorageFullError):
            await journal.append(KEY, [said("e3", "x" * 20_000)])
    assert await ids(journal) == ["e1", "e2"]
    writer.execute("PRAGMA max_page_count = 1000000")
    await journal.append(KEY, [said("e3", "x" * 20_000)])
    assert await ids(journal) == ["e1", "e2", "e3"]


async def test_a_clock_that_fails(path: Path) -> None:
    broken = False

    def clock() -> datetime:
        if broken:
            raise ZeroDivisionError
        return utc_now()

    async with SqliteJournal(path, clock=clock) as journal:
        await journal.create(NEW)
        broken = True
        with pytest.raises(ZeroDivisionError):
            await journal.append(KEY, batch("e1"))
        with pytest.raises(ZeroDivisionError):
            await journal.load(KEY)
        broken = False
        await journal.append(KEY, batch("e1"))
        with locked(path):
            pass
        assert await ids(journal) == ["e1"]


async def test_a_head_is_not_believed_after_a_failed_commit(
    journal: SqliteJournal,
) -> None:
    await journal.append(KEY, batch("e3"))
    writer = journal._opened().database._writer
    assert writer is not None
    writer.execute("PRAGMA foreign_keys = ON")
    # Deferred, so that it is the commit that fails.
    writer.execute(
        "CREATE TABLE nobody (number INTEGER "
        "REFERENCES heads (number) DEFERRABLE INITIALLY DEFERRED)"
    )
    writer.execute(
        "CREATE TRIGGER fails AFTER UPDATE ON heads "
        "BEGIN INSERT INTO nobody VALUES (-1); END"
    )
    for _ in range(2):
        with pytest.raises(StorageError):
            await journal.append(KEY, batch("e4"))
    writer.execute("DROP TRIGGER fails")
    await journal.update(KEY, Change(title="title"))
    commit = await journal.append(KEY, batch("e5"))
    assert (commit.head.revision, commit.entries[0].seq) == (4, 4)
    assert commit.head.title == "title"
    assert await ids(journal) == ["e1", "e2", "e3", "e5"]


async def test_heads_written_by_others_are_seen(
    path: Path, journal: SqliteJournal
) -> None:
    async with SqliteJournal(path) as second:
        for n in range(10):
            await journal.append(KEY, batch(f"a{n}"))
            await second.append(KEY, batch(f"b{n}"))
            await journal.update(KEY, Change(title=f"title {n}"))
            await journal.append(KEY, batch(f"c{n}"))
            await journal.update(KEY, Change(model=f"model {n}"))
            commit = await journal.append(KEY, batch(f"d{n}"))
            assert (commit.head.title, commit.head.model) == (
                f"title {n}",
                f"model {n}",
            )
            assert commit.head.revision == 1 + 6 * (n + 1)
    places = [entry.seq for entry in (await journal.load(KEY)).entries]
    assert places == list(range(1, 43))


async def test_conflicts_leave_the_file_free(
    path: Path, journal: SqliteJournal
) -> None:
    with pytest.raises(EntryConflictError):
        await journal.append(KEY, [said("e1", "another")])
    with pytest.raises(EntryConflictError):
        await journal.append(KEY, batch("e1", "e3"))
    with locked(path):
        pass
    assert (await journal.append(KEY, batch("e1", "e2"))).repeated


# Waiting -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 100_000])
async def test_a_locked_file_is_waited_for(
    path: Path, journal: SqliteJournal, size: int
) -> None:
    beats: list[float] = []

    async def beat() -> None:
        while True:
            beats.append(time.perf_counter())
            await anyio.sleep(0.005)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        with locked(path):
            started = time.monotonic()
            with pytest.raises(StorageBusyError, match=r"locked for 0\.4 s"):
                await journal.append(KEY, [said("e3", "x" * size)])
            assert 0.35 < time.monotonic() - started < 5
        tasks.cancel_scope.cancel()
    # The other task ran all the while: the thread of the loop never waits.
    assert len(beats) > 20
    writer = journal._opened().database._writer
    assert writer is not None
    assert writer.execute("PRAGMA busy_timeout").fetchone() == (0,)
    assert await ids(journal) == ["e1", "e2"]
    await journal.append(KEY, [said("e3", "x" * size)])
    assert await ids(journal) == ["e1", "e2", "e3"]


async def test_a_lock_that_is_released_in_time(
    path: Path, journal: SqliteJournal
) -> None:
    async with anyio.create_task_group() as tasks:
        with locked(path):
            tasks.start_soon(journal.append, KEY, batch("e3"))
            tasks.start_soon(journal.append, KEY, batch("e4"))
            await anyio.sleep(0.1)
    assert sorted(await ids(journal)) == ["e1", "e2", "e3", "e4"]


async def test_readers_do_not_wait(path: Path, journal: SqliteJournal) -> None:
    with locked(path):
        assert await ids(journal) == ["e1", "e2"]
        assert len((await journal.scan(Query())).sessions) == 1


async def test_opening_waits(path: Path) -> None:
    with connected(path) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageBusyError):
            await SqliteJournal(path, busy_timeout_secs=0.1).__aenter__()
        async with anyio.create_task_group() as tasks:
            second = SqliteJournal(path)
            tasks.start_soon(second.__aenter__)
            await anyio.sleep(0.1)
            other.execute("ROLLBACK")
            other.close()
    await second.create(NEW)
    await second.__aexit__(None, None, None)


# Cancelled -----------------------------------------------------------------------


async def test_waiting_can_be_cancelled(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW)
        with locked(path):
            started = time.monotonic()
            with anyio.move_on_after(0.1) as scope:
                await journal.append(KEY, batch("e1"))
            assert scope.cancelled_caught
            assert time.monotonic() - started < 5
        assert await ids(journal) == []
        await journal.append(KEY, batch("e2"))
        assert await ids(journal) == ["e2"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_cancelled_at_any_moment(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW)
        big = "x" * 70_000
        for n in range(50):
            task = asyncio.ensure_future(journal.append(KEY, [said(f"e{n}", big)]))
            for _ in range(n % 10):
                await asyncio.sleep(n * 0.00002)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                assert task.result().entries[0].id == f"e{n}"
        await journal.append(KEY, [said("last")])
        found = await ids(journal)
        assert found[-1] == "last"
        numbers = [int(one[1:]) for one in found[:-1]]
        assert numbers == sorted(set(numbers))


async def test_closing_in_a_cancelled_scope(path: Path) -> None:
    with anyio.move_on_after(0.05):
        async with SqliteJournal(path) as journal:
            await journal.create(NEW)
            await anyio.sleep(60)
    assert [child.name for child in path.parent.iterdir()] == [path.name]
    with pytest.raises(JournalClosedError):
        await journal.load(KEY)


async def test_closing_waits_for_a_write(path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def clock() -> datetime:
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            leave.wait(10)
        return utc_now()

    async def close() -> None:
        while not entered.is_set():  # noqa: ASYNC110
            await anyio.sleep(0.01)
        await own.__aexit__(None, None, None)

    own = SqliteJournal(path, clock=clock)
    await own.__aenter__()
    await own.create(NEW)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(own.append, KEY, [said("e1", "x" * 70_000)])
        tasks.start_soon(close)
        await anyio.sleep(0.1)
        leave.set()
    async with SqliteJournal(path) as opened:
        assert await ids(opened) == ["e1"]


# The log -------------------------------------------------------------------------


async def test_the_log_is_moved_into_the_file(path: Path) -> None:
    log = Path(f"{path}-wal")
    async with SqliteJournal(path) as journal:
        await journal.create(NEW)
        for n in range(3000):
            await journal.append(KEY, [said(f"e{n}", "x" * 1000)])
        assert size(log) < 10 * 2**20
        assert size(path) > 2 * 2**20
    assert not size(log)


async def test_a_checkpoint_that_fails_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def fail(*_: object) -> object:
        nonlocal calls
        calls += 1
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(_sqlite_database.Database, "_checkpoint", fail)
    async with SqliteJournal(path) as journal:
        await journal.create(NEW)
        for n in range(500):
            await journal.append(KEY, [said(f"e{n}")])
        assert calls > 1
    async with SqliteJournal(path) as journal:
        assert len((await journal.load(KEY, Window(after_seq=0))).entries) == 500
