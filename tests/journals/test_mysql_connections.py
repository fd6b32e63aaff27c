"""Connections to MySQL: lost, given, exhausted, cancelled, and none left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import asyncmy
import pytest
from asyncmy.errors import OperationalError
from mysql_databases import ask, database, lock_waits
from waits import reached

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, ids, said
from raf_session.errors import StorageBusyError, StorageError
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_routine import ROUTINES
from raf_session.journals.mysql import MysqlJournal
from raf_session.keys import ScopeKey
from raf_session.options import NewSession, Query

pytestmark = pytest.mark.anyio

OTHER: Final = KEY._replace(session="other")
CALLS: Final[dict[str, Callable[[MysqlJournal], Awaitable[object]]]] = {
    "append": lambda journal: journal.append(KEY, [said("x")]),
    "append many": lambda journal: journal.append(KEY, [said("y"), said("z")]),
    "create": lambda journal: journal.create(NewSession(key=OTHER)),
    "load": lambda journal: journal.load(KEY),
    "refresh": lambda journal: journal.load(KEY, refresh=True),
    "splice": lambda journal: journal.splice(KEY, 1, 1, archive=True),
    "update": lambda journal: journal.update(KEY, Change(title="t")),
    "delete": lambda journal: journal.delete(KEY),
    "scan": lambda journal: journal.scan(Query()),
    "expire": lambda journal: journal.expire(),
    "scopes": lambda journal: journal.scopes("app"),
    "state": lambda journal: journal.update_scoped_state(
        ScopeKey("app"), StateDelta({"a": 1})
    ),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with database() as url:
        yield url


async def connections(url: str) -> list[int]:
    """Return the numbers of the connections to the database, but for this one."""
    found = await ask(
        url,
        "SELECT id FROM information_schema.processlist "
        "WHERE db = DATABASE() AND id <> CONNECTION_ID()",
    )
    return [int(number) for (number,) in found]


async def cut(url: str) -> None:
    await ask(url, *[f"KILL {number}" for number in await connections(url)])


async def crowd(journal: MysqlJournal, n: int = 5) -> None:
    """Have so many connections idle."""
    async with anyio.create_task_group() as group:
        for _ in range(n):
            group.start_soon(journal.scan, Query())


# Lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_idle_connections_that_were_killed_are_replaced(
    url: str, call: Callable[[MysqlJournal], Awaitable[object]]
) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW, [said("a")])
        await crowd(journal)
        await cut(url)
        await call(journal)


async def test_appends_under_fire_are_stored_once(url: str) -> None:
    async with MysqlJournal(url, pool_size=4) as journal:
        await journal.create(NEW)
        told: list[str] = []

        async def write(writer: str) -> None:
            for n in range(60):
                entry = said(f"{writer}{n}")
                while True:
                    try:
                        await journal.append(KEY, [entry])
                    except StorageError:
                        continue
                    told.append(entry.id)
                    break

        async def fire() -> None:
            while True:
                await anyio.sleep(0.01)
                with suppress(OperationalError):  # it was gone already
                    await cut(url)

        async with anyio.create_task_group() as group:
            group.start_soon(fire)
            async with anyio.create_task_group() as writers:
                for writer in "abcd":
                    writers.start_soon(write, writer)
            group.cancel_scope.cancel()
        found = ids((await journal.load(KEY)).entries)
        assert sorted(found) == sorted(told)
        for writer in "abcd":
            mine = [name for name in found if name.startswith(writer)]
            assert mine == [f"{writer}{n}" for n in range(60)]


def lose_the_answer(
    monkeypatch: pytest.MonkeyPatch, method: str, times: int = 1
) -> None:
    """Let a method do its work, and lose what the server answered."""
    real = getattr(MysqlConnection, method)
    left = [times]

    async def lossy(self: MysqlConnection, *arguments: Any) -> Any:
        result = await real(self, *arguments)
        ends = method != "run" or str(arguments[0]).startswith("CALL")
        if ends and left[0]:
            left[0] -= 1
            self.terminate()
            raise OperationalError(2013, "Lost connection")
        return result

    monkeypatch.setattr(MysqlConnection, method, lossy)


@pytest.mark.parametrize("method", ["run", "commit"])
async def test_an_append_whose_answer_was_lost_is_stored_once(
    url: str, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
        if method == "commit":
            journal._missing.update(ROUTINES)
        with monkeypatch.context() as patch:
            lose_the_answer(patch, method)
            commit = await journal.append(KEY, [said("a"), said("b")])
        assert commit.repeated
        assert ids(commit.entries) == ["a", "b"]
        record = await journal.load(KEY)
        assert (ids(record.entries), record.head.revision) == (["a", "b"], 2)


async def test_an_append_is_tried_twice_at_most(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
        with monkeypatch.context() as patch:
            lose_the_answer(patch, "run", times=3)
            lose_the_answer(patch, "commit", times=3)
            with pytest.raises(StorageError) as caught:
                await journal.append(KEY, [said("a")])
        assert caught.value.backend == "mysql"
        assert isinstance(caught.value.__cause__, OperationalError)
        assert ids((await journal.load(KEY)).entries) == ["a"]


async def test_a_splice_whose_answer_was_lost_says_so(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW, [said("a")])
        with monkeypatch.context() as patch:
            lose_the_answer(patch, "commit")
            with pytest.raises(StorageError, match="not known"):
                await journal.splice(KEY, 1, 1, archive=True)
        assert ids((await journal.load(KEY)).entries) == []


async def test_a_server_that_is_not_there_is_an_error_of_storage() -> None:
    journal = MysqlJournal("mysql://root@127.0.0.1:9/none", busy_timeout_secs=5)
    with pytest.raises(StorageError) as caught:
        await journal.__aenter__()
    assert isinstance(caught.value.__cause__, OperationalError)


# Waits ---------------------------------------------------------------------------


async def test_a_row_that_stays_locked_is_an_error_in_time(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raf_session.journals._sql_runner._CONFLICTS", 1)
    async with MysqlJournal(url, pool_size=2, busy_timeout_secs=0.5) as journal:
        await journal.create(NEW)
        async with heads_locked(url):
            for calls in (True, False):
                if not calls:
                    journal._missing.update(ROUTINES)
                with pytest.raises(StorageBusyError):
                    await journal.append(KEY, [said("a")])
            async with anyio.create_task_group() as group:
                for name in "bc":
                    group.start_soon(refused, journal, name)
                await anyio.sleep(0.3)
                with pytest.raises(StorageBusyError, match="no connection within"):
                    await journal.load(KEY)
        await journal.append(KEY, [said("a")])
        assert ids((await journal.load(KEY)).entries) == ["a"]


async def refused(journal: MysqlJournal, name: str) -> None:
    with pytest.raises(StorageBusyError):
        await journal.append(KEY, [said(name)])


@pytest.mark.parametrize("calls", [True, False])
async def test_nothing_is_stored_after_a_call_was_cancelled(
    url: str, *, calls: bool
) -> None:
    async with MysqlJournal(url, busy_timeout_secs=20) as journal:
        await journal.create(NEW)
        if not calls:
            journal._missing.update(ROUTINES)
        async with heads_locked(url):
            task = asyncio.ensure_future(journal.append(KEY, [said("late")]))
            assert await reached(lambda: lock_waits(url), bool)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
        await journal.append(KEY, [said("next")])
        assert ids((await journal.load(KEY)).entries) == ["next"]


@asynccontextmanager
async def heads_locked(url: str) -> AsyncGenerator[None]:
    parts = urlsplit(url)
    async with asyncmy.connect(
        host=parts.hostname, port=parts.port, user="root", database=parts.path[1:]
    ) as holder:
        await holder.cursor().execute("SELECT * FROM raf_heads FOR UPDATE")
        yield


async def test_calls_that_are_cancelled_keep_no_connection(url: str) -> None:
    async with MysqlJournal(url, pool_size=2, busy_timeout_secs=20) as journal:
        await journal.create(NEW, [said("a")])
        await crowd(journal, 2)
        for steps in range(12):
            for call in CALLS.values():
                task = asyncio.ensure_future(call(journal))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await crowd(journal, 8)
        await journal.create(NewSession(key=KEY._replace(session="new")))
    assert await reached(lambda: connections(url), lambda left: not left) == []


# Pools that are given --------------------------------------------------------------


@asynccontextmanager
async def pool_of(url: str, **options: Any) -> AsyncGenerator[Any]:
    parts = urlsplit(url)
    pool = await asyncmy.create_pool(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        database=parts.path[1:],
        maxsize=2,
        **options,
    )
    try:
        yield pool
        assert pool.size == pool.freesize
    finally:
        pool.terminate()
        await pool.wait_closed()


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("stmt_cache_size", [0, 10])
async def test_a_pool_that_is_given_is_used_and_stays(
    url: str, *, autocommit: bool, stmt_cache_size: int
) -> None:
    hostile = "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'"
    async with pool_of(
        url,
        autocommit=autocommit,
        stmt_cache_size=stmt_cache_size,
        init_command=hostile,
    ) as pool:
        async with MysqlJournal(pool) as journal:
            await journal.create(NEW, [said("a\\'\"")])
            for call in CALLS.values():
                if call is not CALLS["delete"]:
                    await call(journal)
            await crowd(journal, 8)
            await cut(url)
            await journal.append(KEY, [said("b")])
            task = asyncio.ensure_future(journal.load(KEY))
            for _ in range(3):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert ids((await journal.load(KEY)).entries) == ["x", "y", "z", "b"]
        async with pool.acquire() as connection:
            cursor = connection.cursor()
            await cursor.execute("SELECT count(*) FROM raf_entries WHERE left_at = 0")
            assert await cursor.fetchall() == ((4,),)
            await connection.rollback()


async def test_a_pool_that_cannot_hold_every_text_is_refused(url: str) -> None:
    async with pool_of(url, charset="latin1") as pool:
        with pytest.raises(StorageError, match="utf8mb4"):
            await MysqlJournal(pool).__aenter__()


async def test_a_pool_that_is_given_belongs_to_its_loop(url: str) -> None:
    async with pool_of(url) as pool, MysqlJournal(pool) as journal:
        await journal.create(NEW)
        caught: list[BaseException] = []

        def elsewhere() -> None:
            try:
                asyncio.run(journal.load(KEY))
            except RuntimeError as error:
                caught.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await anyio.to_thread.run_sync(partial(thread.join, 30))
        assert "another event loop" in str(caught[0])
        await journal.load(KEY)


# Ends ----------------------------------------------------------------------------


async def test_old_connections_are_replaced(url: str) -> None:
    async with MysqlJournal(url, pool_recycle_secs=0.000_001) as journal:
        await journal.create(NEW)
        before = await connections(url)
        await journal.load(KEY)
        after = await reached(lambda: connections(url), set(before).isdisjoint)
        assert set(before).isdisjoint(after)


async def test_what_was_begun_is_done_when_the_journal_is_closed(url: str) -> None:
    journal = MysqlJournal(url)
    await journal.__aenter__()
    await journal.create(NEW)
    tasks = [
        asyncio.ensure_future(journal.append(KEY, [said(str(n))])) for n in range(5)
    ]
    for _ in range(3):
        await asyncio.sleep(0)
    await journal.__aexit__(None, None, None)
    commits = await asyncio.gather(*tasks)
    assert await reached(lambda: connections(url), lambda left: not left) == []
    async with journal:
        found = ids((await journal.load(KEY)).entries)
    assert sorted(found) == sorted(commit.entries[0].id for commit in commits)


async def test_connections_are_bounded(url: str) -> None:
    async with MysqlJournal(url, pool_size=3) as journal:
        await journal.create(NEW)
        async with anyio.create_task_group() as group:
            for n in range(40):
                group.start_soon(journal.append, KEY, [said(str(n))])
        assert len(await connections(url)) <= 3
        assert len((await journal.load(KEY)).entries) == 40
    assert await reached(lambda: connections(url), lambda left: not left) == []
