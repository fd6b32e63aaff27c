"""The journal in a SQLite file, used from threads, loops and forked processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from raf_session.conformance.journal_values import KEY, NEW, batch, said
from raf_session.errors import JournalClosedError
from raf_session.journals.sqlite import SqliteJournal
from raf_session.options import Window

pytestmark = pytest.mark.anyio


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


def names(path: Path) -> list[str]:
    return sorted(child.name for child in path.parent.iterdir())


def run(path: Path, sql: str, *values: Any) -> Any:
    with connected(path) as connection:
        return connection.execute(sql, values).fetchall()


def test_serves_one_loop_after_another(path: Path) -> None:
    journal = SqliteJournal(path)

    async def begin() -> None:
        await journal.__aenter__()
        await journal.create(NEW)

    async def go_on(name: str) -> int:
        await journal.append(KEY, [said(name)])
        return len((await journal.load(KEY)).entries)

    async def end() -> None:
        await journal.__aexit__(None, None, None)
        await journal.__aexit__(None, None, None)

    anyio.run(begin)
    assert anyio.run(go_on, "e1") == 1
    assert anyio.run(go_on, "e2", backend="trio") == 2
    anyio.run(end)


def test_serves_threads_with_loops_of_their_own(path: Path) -> None:
    journal = SqliteJournal(path)
    failures: list[BaseException] = []

    async def begin() -> None:
        await journal.__aenter__()
        await journal.create(NEW)

    async def work(name: str) -> None:
        for n in range(100):
            await journal.append(KEY, [said(f"{name}-{n}")])
            if n % 20 == 0:
                await journal.load(KEY, Window(last=5))

    def thread(name: str, backend: str) -> None:
        try:
            anyio.run(work, name, backend=backend)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    anyio.run(begin)
    threads = [
        threading.Thread(target=thread, args=(name, backend))
        for name, backend in (("a", "asyncio"), ("b", "trio"), ("c", "asyncio"))
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures

    async def check() -> None:
        record = await journal.load(KEY)
        found = [entry.id for entry in record.entries]
        for name in "abc":
            mine = [one for one in found if one.startswith(name)]
            assert mine == [f"{name}-{n}" for n in range(100)]
        assert len(found) == 300
        await journal.__aexit__(None, None, None)

    anyio.run(check)


async def test_is_open_once(path: Path) -> None:
    journal = SqliteJournal(path)
    async with journal:
        with pytest.raises(RuntimeError, match="open already"):
            await journal.__aenter__()
        await journal.create(NEW)
    with pytest.raises(JournalClosedError):
        await journal.append(KEY, [said("e1")])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_the_file_anew(path: Path) -> None:
    journal = SqliteJournal(path)

    async def begin() -> None:
        await journal.__aenter__()
        await journal.create(NEW, batch("e0"))
        await journal.load(KEY)

    async def add(name: str) -> None:
        for n in range(50):
            await journal.append(KEY, [said(f"{name}{n}")])
        await journal.load(KEY)

    async def end() -> None:
        await journal.__aexit__(None, None, None)

    anyio.run(begin)
    go, ready = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(add, "child")
            os.read(go, 1)  # the parent has closed its journal by now
            anyio.run(add, "later")
            status = 0  # and the child dies without closing
        finally:
            os._exit(status)
    anyio.run(add, "parent")
    anyio.run(end)
    os.write(ready, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    async def check() -> None:
        async with SqliteJournal(path) as opened:
            assert len((await opened.load(KEY)).entries) == 151

    anyio.run(check)
    assert run(path, "PRAGMA integrity_check") == [("ok",)]


def test_leaving_it_open_is_quiet(path: Path) -> None:
    code = f"""
import anyio
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession

journal = SqliteJournal({str(path)!r})
async def use():
    await journal.__aenter__()
    await journal.create(NewSession(key=SessionKey("a", "u", "", "s")))
    await journal.load(SessionKey("a", "u", "", "s"))
anyio.run(use)
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "default", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert names(path) == [path.name]


AFTER_THE_END: Final = """
import asyncio, sys, threading
from concurrent.futures import thread
from raf_session import JournaledSession, ChatMessage, SessionKey, open_journal

async def use():
    async with open_journal(f"sqlite:///{sys.argv[1]}", durability="power") as journal:
        session = await JournaledSession.open(journal, SessionKey("a", "u", "", "s"))
        threading.main_thread().join()
        while not thread._shutdown:
            await asyncio.sleep(0)
        await session.add_message(ChatMessage.user("late"))
        print(len(await session.get_messages()))

threading.Thread(target=lambda: asyncio.run(use())).start()
"""


def test_goes_on_when_the_main_thread_has_ended(path: Path) -> None:
    script = [sys.executable, "-c", AFTER_THE_END, str(path)]
    found = subprocess.run(
        script, capture_output=True, check=False, text=True, timeout=60
    )
    assert (found.returncode, found.stdout) == (0, "1\n"), found.stderr
