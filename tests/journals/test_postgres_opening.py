"""How the journal in PostgreSQL is opened: URLs, given pools, durability, loops."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from uuid import uuid4

import anyio
import asyncpg
import pytest
from journal_bindings import postgres_storage
from servers import postgres
from servers.postgres import PostgresServer

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.errors import StorageBusyError, StorageError
from raf_session.journals._postgres_urls import SCHEMES, driver_url
from raf_session.journals.postgres import PostgresJournal

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def schema() -> AsyncGenerator[str]:
    name = f"test_{uuid4().hex}"
    yield name
    connection = await asyncpg.connect(postgres.url())
    await connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    await connection.close()


# URLs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgres://u:p%40@h:1/d", "postgresql://u:p%40@h:1/d"),
        ("postgresql+asyncpg://h/d?ssl=require", "postgresql://h/d?sslmode=require"),
        ("postgresql+psycopg://h/d?ssl=True", "postgresql://h/d?sslmode=require"),
        ("postgres+asyncpg://h/?ssl=0", "postgresql://h/?sslmode=disable"),
        ("postgresql://h/d?sslmode=allow", "postgresql://h/d?sslmode=allow"),
        ("postgresql://h/d?connect_timeout=7", "postgresql://h/d"),
        (
            "postgresql://h/d?keepalives=1&application_name=a%20b&prepare_threshold=0",
            "postgresql://h/d?application_name=a%20b",
        ),
        ("postgresql:///d?host=/run", "postgresql:///d?host=/run"),
    ],
)
def test_urls_of_other_drivers_are_mapped(url: str, driver: str) -> None:
    assert driver_url(url) == (driver, 7.0 if "=7" in url else None)


async def test_every_scheme_opens(schema: str) -> None:
    rest = postgres.url().split("://")[1]
    for scheme in SCHEMES:
        url = f"{scheme}://{rest}?ssl=prefer&application_name=raf"
        async with PostgresJournal(url, schema=schema) as journal:
            assert (journal.backend, journal.schema) == ("postgresql", schema)


@pytest.mark.parametrize(
    "url", ["mysql://h/d", "h/d", "", "postgresql://h/d?connect_timeout=soon"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"scheme|connect_timeout"):
        PostgresJournal(url)


@pytest.mark.parametrize("host", ["h:soon", "h:99999", "a:1,h:soon", "u:s/ecret@h"])
def test_a_port_that_is_none_is_refused_without_telling(host: str) -> None:
    with pytest.raises(ValueError, match="port") as caught:
        PostgresJournal(f"postgresql://me:secret@{host}/d")
    assert "ecret" not in str(caught.value)
    assert "soon" not in str(caught.value)


def test_hosts_and_ports_that_the_driver_takes() -> None:
    for host in ("h", "h:", "h:1", "a:1,b:2", "[::1]:5432", "[::1]", "u:p@a,b:3", ""):
        url = f"postgresql://{host}/d"
        assert driver_url(url) == (url, None)


def test_arguments_are_checked() -> None:
    for arguments in (
        {"durability": "none"},
        {"schema": ""},
        {"schema": "x" * 64},
        {"schema": "a\0b"},
        {"pool_size": 0},
        {"busy_timeout_secs": -1},
    ):
        with pytest.raises(ValueError, match=r"."):
            PostgresJournal("postgresql://h/d", **arguments)


async def test_a_server_that_is_not_there() -> None:
    journal = PostgresJournal("postgresql://nobody@127.0.0.1:1/none")
    for _ in range(2):
        with pytest.raises(StorageError) as caught:
            await journal.__aenter__()
        assert isinstance(caught.value.__cause__, OSError)


async def test_a_server_that_does_not_answer() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        journal = PostgresJournal(
            f"postgresql://u@127.0.0.1:{port}/d", busy_timeout_secs=0.2
        )
        with pytest.raises(StorageBusyError):
            await journal.__aenter__()


def test_trio_is_told_apart() -> None:
    async def use() -> None:
        await PostgresJournal(postgres.url()).__aenter__()

    with pytest.raises(RuntimeError, match="asyncio"):
        anyio.run(use, backend="trio")


# Given pools ---------------------------------------------------------------------


async def test_a_given_pool_is_used_and_stays_open(schema: str) -> None:
    async with asyncpg.create_pool(postgres.url(), min_size=1, max_size=2) as pool:
        journal = PostgresJournal(pool, schema=schema)
        for n in range(3):
            async with journal:
                if not n:
                    await journal.create(NEW)
                await asyncio.gather(
                    *(journal.append(KEY, batch(f"{n}-{i}")) for i in range(8))
                )
                await journal.append(
                    KEY, batch(f"{n}"), change=Change(session=StateDelta({"a": n}))
                )
                assert pool.get_idle_size() == pool.get_size() <= 2
            assert await pool.fetchval("SELECT 1") == 1
            assert not await pool.fetchval("SELECT pg_current_xact_id_if_assigned()")
        async with journal:
            assert len((await journal.load(KEY)).entries) == 27
            await pool.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND query LIKE '%' || $1 || '%'",
                schema,
            )
            assert len((await journal.load(KEY)).entries) == 27


async def test_a_given_pool_belongs_to_its_loop(schema: str) -> None:
    async with (
        asyncpg.create_pool(postgres.url(), min_size=0, max_size=2) as pool,
        PostgresJournal(pool, schema=schema) as journal,
    ):
        await journal.create(NEW)
        told: list[str] = []

        def elsewhere() -> None:
            try:
                asyncio.run(journal.load(KEY))
            except RuntimeError as error:
                told.append(str(error))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await anyio.to_thread.run_sync(thread.join)
        assert "another event loop" in told[0]
        assert ids((await journal.load(KEY)).entries) == []


# Durability ----------------------------------------------------------------------


async def test_a_commit_waits_for_the_log_whatever_the_default() -> None:
    lazy = ("synchronous_commit=off", "wal_writer_delay=10s")
    with PostgresServer(*lazy) as server:
        async with postgres_storage(server.url) as opener, opener() as journal:
            await journal.create(NEW)
            change = Change(session=StateDelta({"n": 1}))
            labels = Change(labels=LabelDelta(added=["l"]), title="title")
            for n, altered in enumerate((None, change, labels)):
                await journal.append(KEY, batch(f"e{n}"), change=altered)
                server.kill()
                server.start()
                record = await journal.load(KEY)
                assert ids(record.entries) == [f"e{i}" for i in range(n + 1)]
            assert record.state == {"n": 1}
            await journal.update(KEY, Change(title="other"))
            server.kill()
            server.start()
            assert (await journal.load(KEY)).head.title == "other"


async def test_power_needs_a_server_that_syncs(schema: str) -> None:
    with pytest.raises(StorageError, match="fsync = on"):
        await PostgresJournal(
            postgres.url(), schema=schema, durability="power"
        ).__aenter__()
    with PostgresServer("fsync=on") as server:
        journal = PostgresJournal(server.url, durability="power")
        with pytest.warns(RuntimeWarning, match="full_page_writes"):
            await journal.__aenter__()
        await journal.create(NEW)
        await journal.__aexit__(None, None, None)


async def test_a_database_of_another_encoding() -> None:
    connection = await asyncpg.connect(postgres.url())
    name = f"latin_{uuid4().hex}"
    await connection.execute(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    )
    url = postgres.url().rsplit("/", 1)[0]
    with pytest.raises(StorageError, match="LATIN1, UTF8 is needed"):
        await PostgresJournal(f"{url}/{name}").__aenter__()
    await connection.execute(f"DROP DATABASE {name}")
    await connection.close()


# Zones and ends ------------------------------------------------------------------


async def test_the_zone_of_the_process_alters_nothing(schema: str) -> None:
    code = """
import asyncio, sys
from raf_session.journals.postgres import PostgresJournal
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch
async def use():
    url, schema = sys.argv[1:]
    async with PostgresJournal(url, schema=schema, clock=TickingClock()) as journal:
        await journal.create(NEW, batch("e1"))
        record = await journal.load(KEY)
        assert record.head.created_at == record.entries[0].stored_at == START
asyncio.run(use())
"""
    connection = await asyncpg.connect(postgres.url())
    for zone in ("Asia/Shanghai", "America/New_York"):
        done = await anyio.run_process(
            [sys.executable, "-W", "error", "-c", code, postgres.url(), schema],
            env={**os.environ, "TZ": zone, "PGTZ": "Pacific/Auckland"},
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (done.returncode, done.stderr.decode()) == (0, "")
        await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    await connection.close()


@pytest.mark.parametrize(
    "setting", ["default_transaction_read_only=on", "standard_conforming_strings=off"]
)
async def test_settings_of_a_role_that_would_refuse_the_journal(
    schema: str, setting: str
) -> None:
    url = postgres.url()
    name, value = setting.split("=")
    url += f"{'&' if '?' in url else '?'}{name}={value}"
    async with PostgresJournal(url, schema=schema) as journal:
        await journal.create(NEW, batch("e1"))
        change = Change(app=StateDelta({"a": "\\"}), labels=LabelDelta(["l"]))
        await journal.append(KEY, batch("e2"))
        await journal.append(KEY, batch("e3"), change=change)
        record = await journal.load(KEY, refresh=True)
        assert (ids(record.entries), record.app_state) == (
            ["e1", "e2", "e3"],
            {"a": "\\"},
        )


async def test_a_schema_whose_name_ends_a_quotation() -> None:
    for name in ("$function$", f"x$function$y$function_$z{uuid4().hex}", "$function"):
        connection = await asyncpg.connect(postgres.url())
        try:
            async with PostgresJournal(postgres.url(), schema=name) as journal:
                await journal.create(NEW, batch("e1"))
                await journal.append(KEY, batch("e2"))
                assert ids((await journal.load(KEY)).entries) == ["e1", "e2"]
        finally:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
            await connection.close()
