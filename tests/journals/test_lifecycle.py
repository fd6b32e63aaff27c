"""Every durable journal over event loops, threads, forks and unclean ends."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from journal_bindings import HARNESSES

from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.conformance.journal_values import KEY, NEW, ids, said
from raf_session.errors import JournalClosedError
from raf_session.journal import Journal
from raf_session.stores import SessionStore

pytestmark = pytest.mark.anyio

DURABLE = [
    pytest.param(harness, id=harness.name)
    for harness in HARNESSES
    if Capability.DURABLE in harness.capabilities
]
on_durable_journals = pytest.mark.parametrize("harness", DURABLE)
FILES = Path("/proc/self/fd")
NEEDS_FORK = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the system has no fork"
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def open_files() -> int:
    return sum(1 for _ in FILES.iterdir())


async def stored(opener: JournalOpener) -> list[str]:
    async with opener() as journal:
        return ids((await journal.load(KEY)).entries)


async def begin(journal: Journal) -> None:
    await journal.__aenter__()
    await journal.create(NEW)


async def end(journal: Journal) -> None:
    await journal.__aexit__(None, None, None)
    await journal.__aexit__(None, None, None)


async def off_loop(
    harness: JournalHarness, work: Callable[[JournalOpener], None]
) -> None:
    """Run plain code over new storage, in a thread where no event loop runs."""
    async with harness.storage() as opener:
        await anyio.to_thread.run_sync(work, opener)


@on_durable_journals
async def test_serves_one_loop_after_another(harness: JournalHarness) -> None:
    def work(opener: JournalOpener) -> None:
        journal = opener()

        async def go_on(name: str) -> list[str]:
            await journal.append(KEY, [said(name)])
            return ids((await journal.load(KEY)).entries)

        anyio.run(begin, journal)
        assert anyio.run(go_on, "e1") == ["e1"]
        assert anyio.run(go_on, "e2") == ["e1", "e2"]
        anyio.run(end, journal)

    await off_loop(harness, work)


@on_durable_journals
async def test_opens_again_after_it_was_closed(harness: JournalHarness) -> None:
    def work(opener: JournalOpener) -> None:
        journal = opener()

        async def use(name: str) -> None:
            async with journal:
                if name == "e0":
                    await journal.create(NEW)
                await journal.append(KEY, [said(name)])
            with pytest.raises(JournalClosedError):
                await journal.load(KEY)

        for n in range(3):
            anyio.run(use, f"e{n}")
        assert anyio.run(stored, opener) == ["e0", "e1", "e2"]

    await off_loop(harness, work)


@on_durable_journals
async def test_serves_threads_with_loops_of_their_own(harness: JournalHarness) -> None:
    def work(opener: JournalOpener) -> None:
        journal = opener()
        failures: list[BaseException] = []

        async def write(name: str) -> None:
            for n in range(40):
                await journal.append(KEY, [said(f"{name}-{n}")])

        def thread(name: str) -> None:
            try:
                anyio.run(write, name)
            except BaseException as error:  # noqa: BLE001  (told below)
                failures.append(error)

        anyio.run(begin, journal)
        threads = [threading.Thread(target=thread, args=(name,)) for name in "abcd"]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert not failures
        anyio.run(end, journal)
        found = anyio.run(stored, opener)
        assert len(found) == 160
        for name in "abcd":
            mine = [one for one in found if one.startswith(name)]
            assert mine == [f"{name}-{n}" for n in range(40)]

    await off_loop(harness, work)


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@on_durable_journals
async def test_a_forked_child_connects_anew(harness: JournalHarness) -> None:
    def work(opener: JournalOpener) -> None:
        journal = opener()

        async def add(name: str) -> None:
            for n in range(20):
                await journal.append(KEY, [said(f"{name}{n}")])
            await journal.load(KEY)

        anyio.run(begin, journal)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                anyio.run(add, "child")
                status = 0
            finally:
                os._exit(status)  # it dies without closing
        anyio.run(add, "parent")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        anyio.run(add, "later")
        anyio.run(end, journal)
        assert len(anyio.run(stored, opener)) == 60

    await off_loop(harness, work)


@on_durable_journals
async def test_leaving_it_open_is_quiet(harness: JournalHarness) -> None:
    code = """
import asyncio, base64, pickle
opener = pickle.loads(base64.b64decode({opener!r}))
from raf_session.conformance.journal_values import KEY, NEW
journal = opener()
async def use():
    await journal.__aenter__()
    await journal.create(NEW)
    await journal.load(KEY)
asyncio.run(use())
asyncio.run(journal.load(KEY))
"""
    async with harness.storage() as opener:
        packed = b64encode(pickle.dumps(opener)).decode()
        done = await anyio.run_process(
            [
                *(sys.executable, "-W", "default"),
                *("-c", code.replace("{opener!r}", repr(packed))),
            ],
            check=False,
            stderr=subprocess.PIPE,
        )
        assert (done.returncode, done.stderr.decode()) == (0, "")
        assert await stored(opener) == []


@on_durable_journals
@pytest.mark.skipif(not FILES.is_dir(), reason="open files are counted in /proc")
async def test_closing_leaves_no_file_or_connection(harness: JournalHarness) -> None:
    async with harness.storage() as opener:
        async with opener() as journal:
            await journal.create(NEW)

        async def use() -> int:
            async with opener() as journal, anyio.create_task_group() as group:
                for n in range(8):
                    group.start_soon(journal.load, KEY)
                    group.start_soon(journal.append, KEY, [said(f"{id(journal)}-{n}")])
            return open_files()

        first = await use()
        assert [await use() for _ in range(5)] == [first] * 5


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
async def test_it_is_neither_copied_nor_pickled(harness: JournalHarness) -> None:
    async with harness() as journal:
        await journal.create(NEW)
        for copied in (journal, SessionStore(journal)):
            for way in (copy.copy, copy.deepcopy, pickle.dumps):
                if way is copy.copy and copied is not journal:
                    continue  # both stand on the one journal
                with pytest.raises(TypeError, match="open another one"):
                    way(copied)
        assert ids((await journal.load(KEY)).entries) == []
