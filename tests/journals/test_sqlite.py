"""What is particular to the journal in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from raf_session.changes import (
    Change,
    LabelDelta,
    RequestDelta,
    RequestRecord,
    StateDelta,
)
from raf_session.clock import to_micros
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, said
from raf_session.errors import JournalClosedError, SchemaVersionError, StorageError
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

TABLES = (
    "heads",
    "labels",
    "entries",
    "session_state",
    "provider_states",
    "request_digests",
)
SCOPE_TABLES = ("scopes", "scoped_state")
FULL = Change(
    session=StateDelta({"a": 1}),
    user=StateDelta({"b": 2}),
    app=StateDelta({"c": 3}),
    providers=StateDelta({"p": {"id": 4}}),
    request=RequestDelta(0, b"digests!" * 100, 5),
    labels=LabelDelta(["l", "m"]),
)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@contextmanager
def connected(path: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def rows(path: Path, *tables: str) -> dict[str, int]:
    with connected(path) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in tables
        }


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def names(path: Path) -> list[str]:
    return sorted(child.name for child in path.parent.iterdir())


def run(path: Path, sql: str, *values: Any) -> Any:
    with connected(path) as connection:
        return connection.execute(sql, values).fetchall()


# Opening -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_refuses_what_is_no_file(name: str) -> None:
    with pytest.raises(ValueError, match="memory://"):
        SqliteJournal(name)


def test_refuses_bad_arguments(path: Path) -> None:
    with pytest.raises(ValueError, match="durability"):
        SqliteJournal(path, durability="perhaps")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="busy_timeout_secs"):
        SqliteJournal(path, busy_timeout_secs=-1)
    assert not path.exists()


async def test_names_the_directory_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="missing"):
        await SqliteJournal(tmp_path / "missing" / "sessions.db").__aenter__()
    assert not names(tmp_path / "any")


async def test_stores_versions_from_the_start(path: Path) -> None:
    async with SqliteJournal(path):
        pass
    assert run(path, "PRAGMA application_id") == [(0x72616673,)]
    assert run(path, "PRAGMA user_version") == [(1,)]
    assert dict(run(path, "SELECT * FROM meta")) == {"schema": 1, "body": 1}


async def test_takes_an_empty_file(path: Path) -> None:
    write(path, b"")
    async with SqliteJournal(path) as journal:
        await journal.create(NEW)
    assert rows(path, "heads") == {"heads": 1}


def foreign(path: Path) -> None:
    with connected(path) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("INSERT INTO notes VALUES ('mine')")


def claimed(path: Path) -> None:
    with connected(path) as connection:
        connection.execute("PRAGMA application_id = 17")
        connection.execute("CREATE TABLE notes (text)")


def text(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)


def malformed(path: Path) -> None:
    anyio.run(partial(fill, path))
    data = read(path)
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


async def fill(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1", "e2"))


@pytest.mark.parametrize("make", [foreign, claimed, text])
async def test_refuses_the_file_of_another(path: Path, make: Any) -> None:
    make(path)
    before = read(path)
    with pytest.raises(StorageError, match=r"another program|not a database"):
        await SqliteJournal(path).__aenter__()
    assert read(path) == before
    assert names(path) == [path.name]


def test_malformed_file_is_not_overwritten(path: Path) -> None:
    malformed(path)
    before = read(path)

    async def use() -> None:
        async with SqliteJournal(path) as journal:
            await journal.append(KEY, [said("e3")])

    with pytest.raises(StorageError, match="malformed"):
        anyio.run(use)
    assert read(path) == before


async def test_refuses_a_newer_schema(path: Path) -> None:
    await fill(path)
    run(path, "PRAGMA user_version = 2")
    before = read(path)
    with pytest.raises(SchemaVersionError) as caught:
        await SqliteJournal(path).__aenter__()
    assert (caught.value.found, caught.value.supported) == (2, 1)
    assert read(path) == before


async def test_a_failed_opening_can_be_repeated(path: Path) -> None:
    foreign(path)
    journal = SqliteJournal(path)
    with pytest.raises(StorageError):
        await journal.__aenter__()
    with pytest.raises(JournalClosedError):
        await journal.load(KEY)
    path.unlink()  # noqa: ASYNC240
    async with journal:
        await journal.create(NEW)


async def test_a_file_that_vanished_is_not_made_anew(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1"))
        os.rename(path, path.with_suffix(".moved"))  # noqa: PTH104
        with pytest.raises(StorageError, match="removed or replaced"):
            await journal.load(KEY)
        assert path.name not in names(path)
        os.rename(path.with_suffix(".moved"), path)  # noqa: PTH104
        assert len((await journal.load(KEY)).entries) == 1


@pytest.mark.parametrize("name", ["a b?c#d%e&mode=memory.db", "é文.db", "file:x.db"])
async def test_any_name_of_a_file(path: Path, name: str) -> None:
    async with SqliteJournal(path.with_name(name)) as journal:
        await journal.create(NEW, batch("e1"))
        await journal.load(KEY)
        assert name in names(path)


async def test_works_without_a_log_and_warns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Any = sqlite3.connect

    def without_shared_memory(name: str, **options: Any) -> Any:
        return connect(f"{name}&vfs=unix-dotfile", **options)

    monkeypatch.setattr(sqlite3, "connect", without_shared_memory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with SqliteJournal(path) as journal:
            await journal.create(NEW, batch("e1"))
            async with anyio.create_task_group() as tasks:
                for n in range(20):
                    tasks.start_soon(journal.append, KEY, [said(f"n{n}")])
                    tasks.start_soon(journal.load, KEY)
            assert len((await journal.load(KEY)).entries) == 21
    messages = [str(w.message) for w in caught if w.category is RuntimeWarning]
    assert len(messages) == 1
    assert "journal mode is delete" in messages[0]


@pytest.mark.parametrize(("durability", "level"), [("kill", 1), ("power", 2)])
async def test_durability_sets_what_a_commit_waits_for(
    path: Path, durability: Any, level: int
) -> None:
    async with SqliteJournal(path, durability=durability) as journal:
        assert journal.durability == durability
        await journal.create(NEW)
        await journal.append(KEY, [said("e1")])
        database = journal._opened().database
        assert database._writer is not None
        assert database._writer.execute("PRAGMA synchronous").fetchone() == (level,)
        assert database._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


# What is stored ------------------------------------------------------------------


async def test_nothing_is_left_of_a_session(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1", "e2"), archived=batch("e0"), change=FULL)
        await journal.append(KEY, batch("secret of e3"), trim=1)
        assert all(rows(path, *TABLES).values())
        assert await journal.delete(KEY)
        assert not any(rows(path, *TABLES).values())
        assert all(rows(path, *SCOPE_TABLES).values())
        await journal.create(NEW)
        record = await journal.load(KEY, archived=True)
        assert (record.entries, record.archived, record.request) == ((), (), None)
    assert b"secret of e3" not in read(path)


async def test_nothing_is_left_of_what_expired(path: Path) -> None:
    clock = TickingClock()
    idle = SessionTTLOptions(max_idle_secs=10)
    limits = Limits(sessions=idle, user_state=idle, app_state=idle)
    async with SqliteJournal(path, clock=clock, limits=limits) as journal:
        for n in range(120):
            key = SessionKey("app", f"u{n}", "", "s")
            await journal.create(NewSession(key=key), batch("e1"), change=FULL)
        clock.tick(11)
        dry = await journal.expire(dry_run=True)
        assert rows(path, "heads") == {"heads": 120}
        assert len(await journal.expire(70)) == 70
        gone = await journal.expire()
        assert len(dry) == 120 + 120 + 1
        assert len(gone) == len(dry) - 70
        assert not any(rows(path, *TABLES, *SCOPE_TABLES).values())


async def test_numbers_are_never_given_twice(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW)
        first = run(path, "SELECT number FROM heads")
        await journal.delete(KEY)
        await journal.create(NEW)
        assert run(path, "SELECT number FROM heads") != first


async def test_columns_can_be_read_by_people(path: Path) -> None:
    clock = TickingClock()
    async with SqliteJournal(path, clock=clock) as journal:
        await journal.create(NEW, batch("e1"), change=FULL)
        await journal.update(
            KEY, Change(request=RequestDelta(0, b"", 2**64 - 1, header=2**63))
        )
        assert (await journal.load(KEY)).request == RequestRecord(b"", 2**64 - 1, 2**63)
    micros = to_micros(clock())
    assert run(
        path,
        "SELECT created_at, updated_at, hex(request_hash), hex(request_header) "
        "FROM heads",
    ) == [(micros, micros, "F" * 16, "8" + "0" * 15)]
    assert run(path, "SELECT app_name, user_id, id, state FROM sessions") == [
        ("app", "user", "session", '{"a":1}')
    ]
    assert run(
        path, "SELECT id, app_name, json_extract(content, '$.content') FROM events"
    ) == [("e1", "app", "the text of e1")]


async def test_digests_are_written_in_part(path: Path) -> None:
    digests = b"".join(n.to_bytes(8, "little") for n in range(1000))
    expected = RequestRecord(digests, 1)
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, change=Change(request=expected.after(None)))
        for keep, more in ((999, 3), (512, 0), (64, 1), (63, 200), (0, 2), (2, 0)):
            after = RequestRecord(digests[: 8 * keep] + b"another!" * more, keep)
            delta = after.after((await journal.load(KEY)).request)
            await journal.update(KEY, Change(request=delta))
            assert (await journal.load(KEY)).request == after
            digests = after.digests
    assert rows(path, "request_digests") == {"request_digests": 1}


async def test_windows_past_what_sqlite_counts(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1", "e2"))
        for window in (
            Window(last=10**30),
            Window(after_seq=-(10**30)),
            Window(before_seq=10**30),
        ):
            assert len((await journal.load(KEY, window)).entries) == 2
        assert not (await journal.load(KEY, Window(after_seq=10**30))).entries
        commit = await journal.splice(KEY, -(10**30), 10**30, archive=True)
        assert commit.head.active.entries == 0


async def test_user_state_of_an_expired_scope_starts_anew(path: Path) -> None:
    clock = TickingClock()
    limits = Limits(user_state=SessionTTLOptions(max_idle_secs=10))
    async with SqliteJournal(path, clock=clock, limits=limits) as journal:
        scope = ScopeKey("app", "user")
        await journal.update_scoped_state(scope, StateDelta({"old": 1}))
        clock.tick(11)
        await journal.update_scoped_state(scope, StateDelta({"new": 2}))
        assert (await journal.scoped_state(scope)).state == {"new": 2}
    assert rows(path, *SCOPE_TABLES) == {"scopes": 1, "scoped_state": 1}
