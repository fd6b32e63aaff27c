"""The tables in PostgreSQL: who makes them, which version they are of, and for whom."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from multiprocessing.synchronize import Barrier
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import asyncpg
import pytest
from servers import postgres

from raf_session.changes import Change
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.errors import SchemaVersionError, SessionExistsError, StorageError
from raf_session.journals import _postgres_schema
from raf_session.journals.postgres import PostgresJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession, Query

pytestmark = pytest.mark.anyio

PROCESSES = 8
SERVER = multiprocessing.get_context("forkserver")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def admin() -> AsyncGenerator[Any]:
    connection = await asyncpg.connect(postgres.url())
    yield connection
    await connection.close()


@pytest.fixture
async def schema(admin: Any) -> AsyncGenerator[str]:
    name = f"test {uuid4().hex}"  # a name that needs its quotation marks
    yield name
    await admin.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@pytest.fixture
async def clerk(admin: Any, schema: str) -> AsyncGenerator[str]:
    """The URL of a role that may not make anything."""
    role = f"clerk_{uuid4().hex}"
    await admin.execute(f"CREATE ROLE {role} LOGIN")
    yield postgres.url().replace("postgres@", f"{role}@")
    await admin.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    await admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def use(journal: PostgresJournal) -> list[str]:
    async with journal:
        await journal.create(NEW)
        await journal.append(KEY, batch("e1", "e2"))
        return ids((await journal.load(KEY)).entries)


async def versions(admin: Any, schema: str) -> str:
    row = await admin.fetchrow(
        f"SELECT value FROM \"{schema}\".meta WHERE name = 'schema'"  # noqa: S608
    )
    return str(row[0])


# Roles ---------------------------------------------------------------------------


async def test_a_role_that_may_not_make_tables_is_told_what_to_do(
    clerk: str, schema: str
) -> None:
    for migrate in (True, False):
        journal = PostgresJournal(clerk, schema=schema, migrate=migrate)
        with pytest.raises(StorageError, match="raf-session migrate URL"):
            await journal.__aenter__()
    with pytest.raises(StorageError, match="raf-session migrate URL"):
        await journal.migrate()


async def test_a_role_without_rights_works_after_a_migration(
    admin: Any, clerk: str, schema: str
) -> None:
    await PostgresJournal(postgres.url(), schema=schema).migrate()
    role = clerk.split("//")[1].split("@", maxsplit=1)[0]
    await admin.execute(
        f'GRANT USAGE ON SCHEMA "{schema}" TO {role};'
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}"'
        f" TO {role}"
    )
    assert await use(PostgresJournal(clerk, schema=schema)) == ["e1", "e2"]
    # Nothing of its own is in the schema, and nothing was tried there.
    owners = await admin.fetch(
        "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = $1", schema
    )
    assert [tuple(row) for row in owners] == [("postgres",)]


async def test_tables_are_not_made_where_that_is_not_wanted(
    admin: Any, schema: str
) -> None:
    journal = PostgresJournal(postgres.url(), schema=schema, migrate=False)
    with pytest.raises(StorageError, match="missing or of an older version"):
        await journal.__aenter__()
    found = await admin.fetch("SELECT 1 FROM pg_namespace WHERE nspname = $1", schema)
    assert not found
    await journal.migrate()
    await journal.migrate()
    assert await use(journal) == ["e1", "e2"]


# Versions ------------------------------------------------------------------------


async def test_a_newer_version_is_left_as_it_is(admin: Any, schema: str) -> None:
    journal = PostgresJournal(postgres.url(), schema=schema)
    await use(journal)
    await admin.execute(
        f"UPDATE \"{schema}\".meta SET value = '99' WHERE name = 'schema'"  # noqa: S608
    )
    for call in (journal.__aenter__, journal.migrate):
        with pytest.raises(SchemaVersionError, match="99") as caught:
            await call()
        supported = len(_postgres_schema.STEPS)
        assert (caught.value.found, caught.value.supported) == (99, supported)
    assert await versions(admin, schema) == "99"


async def test_another_programs_tables_are_left_as_they_are(
    admin: Any, schema: str
) -> None:
    await admin.execute(
        f'CREATE SCHEMA "{schema}"; CREATE TABLE "{schema}".meta (name text, value int)'
    )
    journal = PostgresJournal(postgres.url(), schema=schema)
    with pytest.raises(StorageError, match="another program"):
        await journal.__aenter__()
    found = await admin.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema
    )
    assert [tuple(row) for row in found] == [("meta",)]


async def test_an_older_version_is_brought_forward_step_by_step(
    admin: Any, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = PostgresJournal(postgres.url(), schema=schema)
    assert await use(journal) == ["e1", "e2"]
    now = len(_postgres_schema.STEPS)
    steps = (
        *_postgres_schema.STEPS,
        "ALTER TABLE ~heads ADD COLUMN hue text; UPDATE ~heads SET hue = 'red'",
        "ALTER TABLE ~heads ADD COLUMN tone text; SELECT 1 / (SELECT 0)",
    )
    monkeypatch.setattr(_postgres_schema, "STEPS", steps)
    with pytest.raises(StorageError, match="division by zero"):
        await journal.__aenter__()
    # The first step stays, the second has left nothing.
    assert await versions(admin, schema) == f"{now + 1}"
    rows = await admin.fetch(f'SELECT hue FROM "{schema}".heads')  # noqa: S608
    assert [tuple(row) for row in rows] == [("red",)]
    monkeypatch.setattr(_postgres_schema, "STEPS", (*steps[:-1], "SELECT 1"))
    async with journal:
        assert ids((await journal.load(KEY)).entries) == ["e1", "e2"]
    assert await versions(admin, schema) == f"{now + 2}"


@pytest.mark.parametrize("version", range(1, len(_postgres_schema.STEPS)))
async def test_what_each_former_version_stored_is_there(
    admin: Any, schema: str, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    journal = PostgresJournal(postgres.url(), schema=schema)
    monkeypatch.setattr(_postgres_schema, "STEPS", _postgres_schema.STEPS[:version])
    assert await use(journal) == ["e1", "e2"]
    assert await versions(admin, schema) == f"{version}"
    monkeypatch.undo()
    async with journal:
        record = await journal.load(KEY)
        assert ids(record.entries) == ["e1", "e2"]
        (listed,) = (await journal.scan(Query())).sessions
        assert listed.head == record.head
        commit = await journal.append(KEY, batch("e3"))
        assert commit.head.revision == record.head.revision + 1
        commit = await journal.append(KEY, batch("e4", "e5"))  # by a function
        assert commit.head == (await journal.load(KEY)).head
    assert await versions(admin, schema) == f"{len(_postgres_schema.STEPS)}"


async def test_statements_that_the_tables_have_outgrown(
    admin: Any, schema: str
) -> None:
    async with PostgresJournal(postgres.url(), schema=schema, pool_size=2) as journal:
        await journal.create(NEW)
        for n in range(3):
            await journal.append(KEY, batch(f"a{n}"))
            await journal.append(KEY, batch(f"b{n}"), change=Change(title="t"))
            await journal.update(KEY, Change(title=f"{n}"))
            await journal.load(KEY)
            await journal.scan(Query())
            await admin.execute(f'ALTER TABLE "{schema}".heads ADD COLUMN c{n} text')
        assert (await journal.scan(Query())).sessions[0].head.title == "2"
        await journal.update(KEY, Change(title="new"))
        await journal.append(KEY, batch("c"))
        record = await journal.load(KEY)
        assert record.head.title == "new"
        assert record.head.total.entries == 7


async def test_prepared_statements_whose_columns_are_of_another_type(
    admin: Any, schema: str
) -> None:
    async with PostgresJournal(postgres.url(), schema=schema, pool_size=1) as journal:
        await journal.create(NEW)
        for n, kind in enumerate(("varchar", "text", "varchar")):
            await journal.append(KEY, batch(f"a{n}"))
            await journal.load(KEY)
            await admin.execute(
                f'ALTER TABLE "{schema}".heads ALTER COLUMN title TYPE {kind}'
            )
        await journal.append(KEY, batch("b"))
        assert ids((await journal.load(KEY)).entries) == ["a0", "a1", "a2", "b"]


async def test_heads_that_are_deleted_by_hand_take_their_own_rows_along(
    admin: Any, schema: str
) -> None:
    async with PostgresJournal(postgres.url(), schema=schema) as journal:
        other = SessionKey("app", "user", "", "other")
        for key in (KEY, other):
            await journal.create(NewSession(key=key))
            await journal.append(key, batch("e1"))
            await journal.append(key, batch("e2", "e3"), trim=1)
        await admin.execute(f"DELETE FROM \"{schema}\".heads WHERE session <> 'other'")  # noqa: S608
        rows = await admin.fetch(
            f'SELECT h.session FROM "{schema}".entries AS e '  # noqa: S608
            f'LEFT JOIN "{schema}".heads AS h ON h.number = e.session'
        )
        assert [tuple(row) for row in rows] == [("other",)] * 3
        await admin.execute(f'TRUNCATE "{schema}".heads RESTART IDENTITY CASCADE')
        assert not await admin.fetch(f'SELECT FROM "{schema}".entries')


def open_new(schema: str, url: str, barrier: Barrier) -> None:
    async def work() -> None:
        journal = PostgresJournal(url, schema=schema)
        barrier.wait()
        async with journal:
            with suppress(SessionExistsError):
                await journal.create(NEW)
            await journal.append(KEY, batch(f"{os.getpid()}"))

    anyio.run(work)


async def test_eight_processes_open_a_new_database_at_once(schema: str) -> None:
    def run() -> list[int | None]:
        barrier = SERVER.Barrier(PROCESSES)
        processes = [
            SERVER.Process(target=open_new, args=(schema, postgres.url(), barrier))
            for _ in range(PROCESSES)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(120)
        return [process.exitcode for process in processes]

    assert await anyio.to_thread.run_sync(run) == [0] * PROCESSES
    async with PostgresJournal(postgres.url(), schema=schema) as journal:
        assert len((await journal.load(KEY)).entries) == PROCESSES
