"""Lost connections and crowded pools under the journal in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Any

import asyncpg
import pytest
from journal_bindings import postgres_storage
from postgres_stage import CHANGE, SMALL, cut, found, pool_of, small_journal, stranger
from servers import postgres
from servers.postgres import PostgresServer
from waits import reached

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.errors import (
    JournalClosedError,
    SessionExistsError,
    StorageBusyError,
    StorageError,
)
from raf_session.journals._postgres_connections import PostgresConnection
from raf_session.journals.postgres import PostgresJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def journal() -> AsyncGenerator[PostgresJournal]:
    async with small_journal() as own:
        yield own


@pytest.fixture
async def other() -> AsyncGenerator[Any]:
    async with stranger() as connection:
        yield connection


# Lost connections ----------------------------------------------------------------

CALLS: dict[str, Callable[[PostgresJournal], Awaitable[object]]] = {
    "append": lambda j: j.append(KEY, batch("e2")),
    "append with a change": lambda j: j.append(KEY, batch("e2"), change=CHANGE),
    "load": lambda j: j.load(KEY),
    "refresh": lambda j: j.load(KEY, refresh=True),
    "scan": lambda j: j.scan(Query()),
    "create": lambda j: j.create(NewSession(key=SessionKey.raf("new"))),
    "splice": lambda j: j.splice(KEY, 1, 1, archive=True),
    "update": lambda j: j.update(KEY, CHANGE),
    "delete": lambda j: j.delete(KEY),
    "expire": lambda j: j.expire(),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_connection_that_died_in_the_pool_is_replaced(
    journal: PostgresJournal, other: Any, call: str
) -> None:
    await asyncio.gather(*(journal.load(KEY) for _ in range(5)))
    assert await cut(other, journal) >= SMALL
    await CALLS[call](journal)
    assert (await pool_of(journal)).used == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("committed", [False, True])
async def test_a_connection_that_is_lost_at_the_end(
    journal: PostgresJournal,
    other: Any,
    call: str,
    committed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit of which nobody knows: done again where that is safe, else told."""
    before = await journal.load(KEY)
    plain_commit, plain_rows = PostgresConnection.commit, PostgresConnection.rows
    struck: list[str] = []

    async def lose(own: PostgresConnection, what: str, step: Awaitable[Any]) -> Any:
        if struck:
            return await step
        struck.append(what)
        if committed:
            await step
            await cut(other, journal)
            return await own.lent.fetch("SELECT 1")
        await cut(other, journal)
        return await step

    async def commit(own: PostgresConnection) -> None:
        await lose(own, "commit", plain_commit(own))

    async def rows(own: PostgresConnection, sql: str, /, *values: Any) -> Any:
        step = plain_rows(own, sql, *values)
        if "~append_" in sql or "INSERT INTO ~entries" in sql:
            return await lose(own, "call", step)
        return await step

    monkeypatch.setattr(PostgresConnection, "commit", commit)
    monkeypatch.setattr(PostgresConnection, "rows", rows)
    unsafe = call in {"splice", "update", "delete", "expire"}
    if unsafe:
        with pytest.raises(StorageError, match="stored is not known") as caught:
            await CALLS[call](journal)
        assert caught.value.__cause__ is not None
    else:
        answer = await CALLS[call](journal)
    assert struck or call == "load"
    monkeypatch.undo()
    assert (await pool_of(journal)).used == 0
    if call == "create":
        with pytest.raises(SessionExistsError):
            await CALLS[call](journal)
    elif call.startswith("append"):
        record = await journal.load(KEY)
        assert ids(record.entries) == ["e1", "e2"]
        assert record.head.revision == before.head.revision + 1
        assert answer.repeated == committed  # type: ignore[attr-defined]
    elif call == "delete" and committed:
        assert not await journal.delete(KEY)
    elif unsafe and not committed:
        assert await journal.load(KEY) == before


async def test_a_server_that_is_killed_and_comes_back() -> None:
    with PostgresServer() as server:
        async with postgres_storage(server.url) as opener, opener() as journal:
            await journal.create(NEW)
            for n in range(12):
                if n % 4 == 3:
                    (server.kill if n % 8 == 3 else server.stop)()
                    with pytest.raises(StorageError):
                        await journal.append(KEY, batch("lost"))
                    with pytest.raises(StorageError):
                        await journal.load(KEY)
                    server.start()
                commit = await journal.append(KEY, batch(f"e{n}"))
                assert commit.head.total.entries == n + 1
            entries = (await journal.load(KEY)).entries
            assert ids(entries) == [f"e{n}" for n in range(12)]


async def test_a_session_of_the_server_that_crashes_ends_all() -> None:
    with PostgresServer() as server:
        async with postgres_storage(server.url) as opener, opener() as journal:
            assert isinstance(journal, PostgresJournal)
            await journal.create(NEW, batch("e1"))
            (idle,) = (await pool_of(journal))._idle
            os.kill(idle.lent.get_server_pid(), signal.SIGQUIT)
            for _ in range(500):
                try:
                    await journal.append(KEY, batch("e2"))
                    break
                except StorageError:
                    await asyncio.sleep(0.02)
            assert ids((await journal.load(KEY)).entries) == ["e1", "e2"]


# Crowds and limits ---------------------------------------------------------------


async def test_a_crowded_pool(journal: PostgresJournal) -> None:
    pool = await pool_of(journal)
    assert journal._runner is not None
    journal._runner._busy_timeout_secs = 0.05
    lent = [await pool.acquire() for _ in range(SMALL)]
    for call in (partial(journal.load, KEY), partial(journal.append, KEY, batch("e2"))):
        with pytest.raises(StorageBusyError, match="no connection within"):
            await call()
    for connection in lent:
        await pool.release(connection)
    await journal.append(KEY, batch("e2"))
    journal._runner._busy_timeout_secs = 30
    many = [journal.append(KEY, batch(f"m{n}")) for n in range(40)]
    await asyncio.gather(*many)
    assert (pool.used, len(await found(journal))) == (0, 42)


async def test_waiters_that_are_cancelled_keep_no_connection(
    journal: PostgresJournal,
) -> None:
    for turns in range(60):
        calls = [
            asyncio.ensure_future(journal.append(KEY, batch(f"{turns}-{n}")))
            for n in range(6)
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        await asyncio.wait(calls)
        for call in calls[1::2]:
            assert call.result().entries
    pool = await pool_of(journal)
    assert (pool.used, pool._slots.free) == (0, SMALL)
    stored = await found(journal)
    assert len(stored) == len(set(stored)) >= 181


async def test_a_call_that_was_cancelled_does_nothing_later(
    journal: PostgresJournal, other: Any
) -> None:
    name = journal.schema
    for change in (None, CHANGE):
        async with other.transaction():
            await other.execute(f'SELECT 1 FROM "{name}".heads FOR UPDATE')  # noqa: S608
            task = asyncio.ensure_future(
                journal.append(KEY, batch("late"), change=change)
            )
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        waiting = await other.fetch(
            "SELECT 1 FROM pg_stat_activity "
            "WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'",
            name,
        )
        assert not waiting
        assert await found(journal) == ["e1"]


async def test_only_those_who_alter_the_apps_state_wait_for_it(
    journal: PostgresJournal, other: Any
) -> None:
    await journal.append(KEY, batch("e2"), change=Change(app=StateDelta({"a": 1})))
    async with other.transaction():
        await other.execute(f'SELECT 1 FROM "{journal.schema}".scopes FOR UPDATE')  # noqa: S608
        await journal.append(KEY, batch("e3"), change=Change(session=CHANGE.session))
        await journal.splice(KEY, 1, 1, archive=True)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await journal.update(KEY, Change(app=StateDelta({"a": 2})))
    assert (await journal.load(KEY)).app_state == {"a": 1}


async def test_a_sweep_leaves_what_another_holds(
    journal: PostgresJournal, other: Any
) -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
    async with PostgresJournal(
        postgres.url(), schema=journal.schema, limits=limits
    ) as sweeper:
        await journal.create(NewSession(key=SessionKey.raf("other")))
        async with other.transaction():
            await other.execute(
                f"""
                SELECT 1 FROM "{journal.schema}".heads WHERE app = 'app' FOR UPDATE
                """  # noqa: S608
            )
            assert await sweeper.expire() == (SessionKey.raf("other"),)
        assert await sweeper.expire() == (KEY,)


async def test_a_farewell_of_the_server_before_its_end(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver takes no statement then, and does not know yet that all is over."""
    plain, struck = PostgresConnection.rows, 0

    async def rows(own: PostgresConnection, sql: str, /, *values: Any) -> Any:
        nonlocal struck
        if struck:
            struck -= 1
            raise asyncpg.InternalClientError(
                "cannot switch to state 12; another operation (2) is in progress"
            )
        return await plain(own, sql, *values)

    monkeypatch.setattr(PostgresConnection, "rows", rows)
    for change in (None, CHANGE):
        struck = 1
        await journal.append(KEY, batch(f"e{change is None}"), change=change)
    struck = 1
    await journal.splice(KEY, 1, 1, archive=True)
    struck = 2
    with pytest.raises(StorageError, match="stored is not known"):
        await journal.append(KEY, batch("late"))
    assert await found(journal) == ["eTrue", "eFalse"]


async def test_a_sweep_that_is_overtaken_by_the_end_of_the_journal() -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
    name = f"closing-{os.getpid()}"
    url = postgres.url()
    url += f"{'&' if '?' in url else '?'}application_name={name}"
    async with postgres_storage(url) as opener:
        async with opener(limits=limits) as journal:
            assert isinstance(journal, PostgresJournal)
            pool = await pool_of(journal)
            for n in range(120):
                await journal.create(NewSession(key=SessionKey.raf(f"{n}")))
            sweep = asyncio.ensure_future(journal.expire())
            while not pool.used:  # noqa: ASYNC110  (at the first moment)
                await asyncio.sleep(0)
            runner = journal._runner
            assert runner is not None
        gone = await sweep
        assert 0 < len(gone) < 120
        with pytest.raises(JournalClosedError):
            await runner.write(lambda tx: tx.rows("SELECT 1"))
        connection = await asyncpg.connect(postgres.url())
        left = await reached(
            lambda: connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
                name,
            ),
            lambda left: left == 0,
        )
        await connection.close()
        assert left == 0
