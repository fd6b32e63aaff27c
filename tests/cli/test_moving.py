"""`copy`, `dump`, `restore`, `erase`, `sweep` and `migrate`."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from raf_session.changes import Change, StateDelta
from raf_session.clock import utc_now
from raf_session.conformance.journal_values import batch, said, varied
from raf_session.errors import SessionDamagedError, StorageFullError
from raf_session.journal import Journal
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import NewSession
from raf_session.stores import open_store

T = TypeVar("T")
ANN = SessionKey("shop", "ann", "", "s/1")
RAF = SessionKey.raf("one")
ONE, OTHER = "sqlite:///one.db", "sqlite:///other.db"


def within(url: str, work: Callable[[Journal], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_store(url) as store:
            return await work(store.journal)

    return anyio.run(run)


@pytest.fixture
def filled(run: Any) -> Any:
    """Make a store with two sessions; the commands run beside it."""

    async def fill(journal: Journal) -> None:
        await journal.create(NewSession(key=RAF), batch("a", "b"))
        await journal.create(
            NewSession(key=ANN),
            [varied(said("x"))],
            archived=batch("old1", "old2"),
            change=Change(title="é", user=StateDelta({"lang": "de"})),
        )

    within(ONE, fill)
    return run


def records(url: str) -> dict[SessionKey, Any]:
    async def read(journal: Journal) -> dict[SessionKey, Any]:
        found = {}
        for key in (ANN, RAF):
            record = await journal.load(key, archived=True)
            head = record.head
            found[key] = (
                *(head.created_at, head.updated_at, head.title, record.user_state),
                [(e.plain, e.stored_at) for e in (*record.archived, *record.entries)],
            )
        return found

    return within(url, read)


# Copy ---------------------------------------------------------------------------------


def test_copy(filled: Any) -> None:
    ran = filled("copy", ONE, OTHER)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "2 copied, with 5 entries\n1 keys of app and user states\n"
    assert records(OTHER) == records(ONE)
    assert filled("copy", ONE, OTHER).out == (
        "0 copied, with 0 entries\n2 there already\n"
    )
    within(ONE, lambda journal: journal.append(RAF, batch("c")))
    found = filled("copy", ONE, OTHER, "--json").json
    assert found == {
        "copied": 0,
        "completed": 1,
        "unchanged": 1,
        "skipped": 0,
        "expired": 0,
        "entries": 3,
        "state_keys": 0,
        "conflicts": [],
        "failures": [],
    }
    assert records(OTHER) == records(ONE)


def test_copy_into_files_and_back(filled: Any, tmp_path: Path) -> None:
    files = f"file://{tmp_path}/files"
    assert filled("copy", files, OTHER).fault == f"{tmp_path}/files: no such folder"
    assert filled("copy", ONE, files, "--json").json["copied"] == 2
    assert filled("copy", files, OTHER, "--json").json["copied"] == 2
    assert records(OTHER) == records(ONE)


def test_copy_of_one_app_and_user(filled: Any) -> None:
    assert filled("copy", ONE, OTHER, "--app", "shop", "--json").json["copied"] == 1
    assert filled("copy", ONE, OTHER, "--user", "bob", "--json").json["copied"] == 0
    assert filled("copy", ONE, OTHER, "--user", "", "--json").json["copied"] == 1


def test_copy_tells_what_stands_against_it(filled: Any) -> None:
    filled("copy", ONE, OTHER)
    within(OTHER, lambda journal: journal.append(RAF, batch("theirs")))
    ran = filled("copy", ONE, OTHER)
    assert ran.status == 1
    assert "conflict one: it was changed since it came there\n" in ran.out
    ran = filled("copy", ONE, OTHER, "--json")
    assert ran.status == 1
    assert [c["key"] for c in json.loads(ran.out)["conflicts"]] == ["one"]


def test_copy_tells_what_cannot_be_copied(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = SqliteJournal.load

    async def damaged(
        self: SqliteJournal, key: SessionKey, *args: Any, **more: Any
    ) -> Any:
        if key == RAF:
            raise SessionDamagedError(key, "sqlite", "torn\x1b[2J")
        return await load(self, key, *args, **more)

    monkeypatch.setattr(SqliteJournal, "load", damaged)
    ran = filled("copy", ONE, OTHER)
    assert ran.status == 1
    assert "failed one: session 'one' in sqlite is damaged: torn\\x1b[2J\n" in ran.out
    assert "1 copied, with 3 entries\n" in ran.out


def test_faults_of_copy(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled("copy", "sqlite:///no.db", OTHER).fault == "no.db: no such database"
    assert filled("copy", "nothing://x", OTHER).fault.startswith("SRC: no store for")
    assert filled("copy", ONE, "nothing://x").fault.startswith("DST: no store for")
    assert not Path("other.db").exists()

    async def full(*_: Any, **__: Any) -> Any:
        raise StorageFullError("sqlite", "disk full")

    monkeypatch.setattr(SqliteJournal, "create", full)
    assert filled("copy", ONE, OTHER).fault == "one.db to other.db: sqlite: disk full"


# Dump and restore ---------------------------------------------------------------------


def test_dump_and_restore(filled: Any) -> None:
    ran = filled("dump", ONE, "shop/ann//s%2f1")
    assert (ran.status, ran.err) == (0, "")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines[0]["raf_session_dump"] == 1
    assert lines[0]["session"]["title"] == "é"
    assert lines[-1] == {"end": {"archived": 2, "active": 1}}
    assert filled("dump", ONE, "shop/ann//s%2f1", "-o", "s.jsonl").out == ""
    assert Path("s.jsonl").read_text(encoding="utf-8") == ran.out
    for name in ("one", "shop/ann//s%2f1"):
        assert filled("dump", ONE, name, "-o", "s.jsonl").status == 0
        ran = filled("restore", OTHER, "s.jsonl")
        assert ran.status == 0, ran.err
    assert ran.out == "restored shop/ann//s%2f1: 1 entries, 2 archived\n"
    within(
        OTHER,
        lambda journal: journal.update_scoped_state(
            ScopeKey("shop", "ann"), StateDelta({"lang": "de"})
        ),
    )
    assert records(OTHER) == records(ONE)
    assert list(Path().glob(".*")) == []


def test_restore_from_stdin_under_another_key(filled: Any) -> None:
    text = filled("dump", ONE, "one").out
    ran = filled("restore", ONE, "-", "--key", "a/b//c", stdin=text.encode())
    assert ran.out == "restored a/b//c: 2 entries, 0 archived\n"


def test_a_failed_dump_leaves_the_file_as_it_was(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.jsonl").write_text("former")

    async def torn(*_: Any, **__: Any) -> Any:
        yield "{}\n"
        raise StorageFullError("sqlite", "broken")

    monkeypatch.setattr("raf_session.cli.dumping.dump", torn)
    assert filled("dump", ONE, "one", "-o", "s.jsonl").fault == "one.db: broken"
    assert Path("s.jsonl").read_text() == "former"
    assert list(Path().glob(".*")) == []


def test_faults_of_dump_and_restore(filled: Any) -> None:
    assert filled("dump", ONE, "no").fault == "one.db: no session 'no'"
    assert filled("dump", OTHER, "one").fault == "other.db: no such database"
    fault = filled("dump", ONE, "one", "-o", "no/s.jsonl").fault
    assert fault == "no/s.jsonl: No such file or directory"
    assert filled("dump", ONE, "one", "-o", "s.jsonl").status == 0
    fault = filled("restore", ONE, "s.jsonl").fault
    assert fault == "one.db: session 'one' already exists"
    assert filled("restore", ONE, "no").fault == "no: No such file or directory"
    assert filled("restore", "x", "s.jsonl").fault.startswith("URL: no store for 'x'")
    fault = filled("restore", "memory://", "s.jsonl").fault
    assert fault == "URL: memory:// keeps nothing when the command ends"
    fault = filled("restore", ONE, "s.jsonl", "--key", "a/b/c/d/e").fault
    assert fault == "--key: key: has too many parts"
    lines = Path("s.jsonl").read_bytes().splitlines(keepends=True)
    Path("s.jsonl").write_bytes(b"".join(lines[:-1]))
    fault = filled("restore", OTHER, "s.jsonl").fault
    assert fault == "s.jsonl:4: the dump ends before its end"
    Path("s.jsonl").write_bytes(lines[0].replace(b'dump":1', b'dump":9'))
    assert "version 9" in filled("restore", OTHER, "s.jsonl").fault
    assert filled("list", "--store", OTHER, "--json").json["sessions"] == []


# Erase --------------------------------------------------------------------------------

ERASE = ("erase", ONE, "--app", "shop", "--user", "ann", "--receipt", "r.json")


def test_erase(filled: Any) -> None:
    ran = filled(*ERASE, "--yes")
    assert ran.out == "erased 1 sessions and 1 keys of state\n"
    receipt = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert [s["key"] for s in receipt["sessions"]] == [str(ANN)]
    assert receipt["state_keys"] == 1
    sessions = filled("list", "--store", ONE, "--json").json["sessions"]
    assert [head["key"] for head in sessions] == ["one"]
    assert filled(*ERASE, "--yes").fault == "r.json: File exists"
    Path("r.json").unlink()
    assert filled(*ERASE, "--yes").out == "erased 0 sessions and 0 keys of state\n"


@pytest.mark.parametrize("answer", [b"n\n", b""])
def test_erase_asks_first(filled: Any, answer: bytes) -> None:
    ran = filled(*ERASE, stdin=answer)
    assert ran.status == 1
    assert "erase 1 sessions and the state of user 'ann' in app 'shop'?" in ran.err
    assert not Path("r.json").exists()
    assert len(records(ONE)) == 2
    assert filled(*ERASE, stdin=b"y\n").status == 0
    assert len(filled("list", "--store", ONE, "--json").json["sessions"]) == 1


def test_faults_of_erase(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = filled("erase", ONE, "--app", "shop", "--user", "ann", "--yes")
    assert ran.status == 2
    assert "--receipt" in ran.err
    command = ("erase", ONE, "--app", "shop", "--yes", "--receipt")
    assert filled(*command, "r.json", "--user", "").fault == "--user: user: is empty"
    assert not Path("r.json").exists()
    fault = filled(*command, "no/r.json", "--user", "ann").fault
    assert fault == "no/r.json: No such file or directory"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    assert len(records(ONE)) == 2
    monkeypatch.setattr(os, "fsync", full)
    ran = filled(*command, "r.json", "--user", "ann")
    assert ran.status == 2
    assert "No space left" in ran.err
    assert json.loads(ran.out)["sessions"][0]["key"] == str(ANN)
    assert not Path("r.json").exists()


def test_an_erasure_that_fails_leaves_its_receipt(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any) -> Any:
        raise StorageFullError("sqlite", "disk full")

    with monkeypatch.context() as broken:
        broken.setattr(SqliteJournal, "update_scoped_state", full)
        assert filled(*ERASE, "--yes").fault == "one.db: disk full"
    receipt = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert [s["key"] for s in receipt["sessions"]] == [str(ANN)]
    assert (receipt["complete"], receipt["state_keys"]) == (False, 0)
    assert filled(*ERASE[:-1], "r2.json", "--yes").status == 0
    receipt = json.loads(Path("r2.json").read_text(encoding="utf-8"))
    assert (receipt["complete"], receipt["state_keys"]) == (True, 1)


def tear(sql: str) -> None:
    with closing(sqlite3.connect("one.db")) as database, database:
        assert database.execute(sql).rowcount > 0


def test_erase_of_what_cannot_be_read(filled: Any) -> None:
    tear("UPDATE heads SET status = 'none' WHERE user = 'ann'")
    tear("UPDATE scoped_state SET value = '{torn'")
    ran = filled(*ERASE, stdin=b"y\n")
    assert "erase 1 sessions" in ran.err
    assert ran.out.endswith("erased 1 sessions and 1 keys of state\n")
    receipt = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert (receipt["damaged"], receipt["complete"]) == ([str(ANN)], True)


def test_faults_name_the_option(filled: Any) -> None:
    long = "x" * 600
    erase = ("erase", ONE, "--receipt", "r.json")
    for app, user, option in ((long, "ann", "app"), ("shop", long, "user")):
        wanted = f"--{option}: {option}: is longer than 512 bytes"
        for end in ((), ("--yes",)):
            ran = filled(*erase, "--app", app, "--user", user, *end)
            assert ran.fault == wanted
        ran = filled("copy", ONE, OTHER, "--app", app, "--user", user)
        assert ran.fault == wanted
    assert not Path("r.json").exists()
    assert not Path("other.db").exists()


# Sweep --------------------------------------------------------------------------------


def test_sweep(run: Any) -> None:
    now = utc_now()

    async def fill(journal: Journal) -> None:
        for name, days, pinned in (
            ("young", 0, False),
            ("old", 3, False),
            ("older", 9, False),
            ("pinned", 9, True),
        ):
            moment = now - timedelta(days=days)
            new = NewSession(
                key=SessionKey.raf(name),
                created_at=moment,
                last_active_at=moment,
                pinned=pinned,
            )
            await journal.create(new, batch("a"))

    within(ONE, fill)
    ran = run("sweep", ONE, "--max-idle", "2d", "--dry-run")
    assert (ran.status, ran.err) == (0, "2 sessions would be removed\n")
    assert sorted(ran.out.splitlines()) == ["old", "older"]
    found = run("sweep", ONE, "--max-lifetime", "100h", "--dry-run", "--json").json
    assert found == {"dry_run": True, "sessions": ["older"]}
    assert len(run("list", "--store", ONE, "--json").json["sessions"]) == 4
    ran = run("sweep", ONE, "--max-lifetime", "604800")
    assert (ran.out, ran.err) == ("older\n", "1 sessions removed\n")
    ran = run("sweep", ONE, "--max-idle", "36.5h", "--max-lifetime", "9d")
    assert (ran.out, ran.err) == ("old\n", "1 sessions removed\n")
    ran = run("sweep", ONE, "--max-idle", "1440m")
    assert (ran.out, ran.err) == ("", "0 sessions removed\n")
    left = run("list", "--store", ONE, "--json").json["sessions"]
    assert {head["id"] for head in left} == {"young", "pinned"}


def test_faults_of_sweep(filled: Any) -> None:
    assert filled("sweep", ONE).fault == (
        "sweep: without --max-idle and --max-lifetime nothing is old"
    )
    for time in ("soon", "-1", "1w", "", "inf", "1e3", "٣"):
        fault = filled("sweep", ONE, "--max-idle", time).fault
        assert fault.startswith(f"--max-idle: {time!r} is no time"), fault
    for time in ("99999999999d", "9" * 400, "365001d"):
        for option in ("--max-idle", "--max-lifetime"):
            fault = filled("sweep", ONE, option, time).fault
            assert fault.startswith(f"{option}: '9" if time[0] == "9" else option)
            assert fault.endswith("is over 365000d")
            assert len(fault) < 100
    assert filled("sweep", ONE, "--max-idle", "365000d").status == 0
    fault = filled("sweep", OTHER, "--max-idle", "1d").fault
    assert fault == "other.db: no such database"
    assert len(records(ONE)) == 2


# Migrate ------------------------------------------------------------------------------


def test_migrate(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled("migrate", ONE).out == "one.db: nothing to do\n"
    assert filled("migrate", OTHER).fault == "other.db: no such database"
    assert filled("migrate", "x://y").fault.startswith("URL: no store for 'x://y'")
    called: list[SqliteJournal] = []

    async def migrate(self: SqliteJournal) -> None:
        called.append(self)
        if len(called) > 1:
            raise StorageFullError("sqlite", "may not")

    monkeypatch.setattr(SqliteJournal, "migrate", migrate, raising=False)
    assert filled("migrate", ONE).out == "one.db is of this version\n"
    assert len(called) == 1
    assert filled("migrate", ONE).fault == "one.db: sqlite: may not"
