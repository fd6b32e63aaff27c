"""How tests get at each journal: one entry of `HARNESSES` each."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import asyncmy
from postgres_schemas import new_schema, used_schema
from redis.asyncio import Redis
from servers import mariadb, postgres, redis

from raf_session.conformance import Capability, JournalHarness, JournalOpener
from raf_session.journals.jsonl import JsonlJournal
from raf_session.journals.memory import MemoryJournal
from raf_session.journals.mysql import MysqlJournal
from raf_session.journals.postgres import PostgresJournal
from raf_session.journals.redis import RedisJournal
from raf_session.journals.sqlite import SqliteJournal

EVERYTHING = frozenset(Capability)
ON_ASYNCIO = EVERYTHING - {Capability.TRIO}


@asynccontextmanager
async def jsonl_storage() -> AsyncGenerator[JournalOpener]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield partial(JsonlJournal, Path(folder))


@asynccontextmanager
async def sqlite_storage() -> AsyncGenerator[JournalOpener]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield partial(SqliteJournal, Path(folder) / "sessions.db")


@asynccontextmanager
async def redis_storage(url: str | None = None) -> AsyncGenerator[JournalOpener]:
    """Storage under a key prefix of its own."""
    url, prefix = url or redis.url(), f"test-{uuid4().hex}"
    try:
        yield partial(RedisJournal, url, prefix=prefix)
    finally:
        async with Redis.from_url(url) as client:
            keys = [key async for key in client.scan_iter(f"{prefix}*", count=10_000)]
            if keys:
                await client.unlink(*keys)


@asynccontextmanager
async def postgres_storage(url: str | None = None) -> AsyncGenerator[JournalOpener]:
    """Storage in a schema of its own."""
    url = url or postgres.url()
    async with new_schema(url) as schema:
        yield partial(PostgresJournal, url, schema=schema)


@asynccontextmanager
async def kept_postgres_storage() -> AsyncGenerator[JournalOpener]:
    """Storage in a schema that is as new."""
    if "RAF_TEST_POSTGRES_URL" in os.environ:
        async with postgres_storage() as opener:
            yield opener
    else:
        async with used_schema() as schema:
            yield partial(PostgresJournal, postgres.url(), schema=schema)


IDLE_DATABASES: dict[str, list[str]] = {}
"""Databases of the private servers that were used and emptied: making one is slow."""


@asynccontextmanager
async def mysql_storage(url: str | None = None) -> AsyncGenerator[JournalOpener]:
    """Storage in a database of its own."""
    server = urlsplit(url or mariadb.url())

    async def run(*statements: str) -> None:
        connection = await asyncmy.connect(
            host=server.hostname,
            port=server.port or 3306,
            user=unquote(server.username or ""),
            password=unquote(server.password or ""),
            autocommit=True,
        )
        async with connection.cursor() as cursor:
            for statement in statements:
                await cursor.execute(statement)
        await connection.ensure_closed()

    idle = IDLE_DATABASES.setdefault(server.netloc, [])
    if idle:
        database = idle.pop()
    else:
        database = f"test_{uuid4().hex}"
        await run(f"CREATE DATABASE {database}")
    try:
        yield partial(MysqlJournal, server._replace(path=f"/{database}").geturl())
        if url is None and "RAF_TEST_MARIADB_URL" not in os.environ:
            with suppress(asyncmy.errors.ProgrammingError):  # never opened: no tables
                await run(
                    *(
                        f"DELETE FROM {database}.raf_{table}"  # noqa: S608  (our own)
                        for table in ("heads", "scopes")
                    )
                )
                idle.append(database)
    finally:
        if database not in idle:
            await run(f"DROP DATABASE {database}")


HARNESSES = [
    JournalHarness.transient(
        "memory",
        MemoryJournal,
        *(Capability.ATOMIC_SCOPES, Capability.CODEC),
        *(Capability.THREADS, Capability.TRIO),
    ),
    JournalHarness("jsonl", jsonl_storage, EVERYTHING - {Capability.ATOMIC_SCOPES}),
    JournalHarness("sqlite", sqlite_storage, EVERYTHING),
    JournalHarness("redis", redis_storage, ON_ASYNCIO - {Capability.ATOMIC_SCOPES}),
    JournalHarness("postgresql", kept_postgres_storage, ON_ASYNCIO),
    JournalHarness("mariadb", mysql_storage, ON_ASYNCIO),
]
if mysql_url := mariadb.mysql_url():
    HARNESSES.append(
        JournalHarness("mysql", partial(mysql_storage, mysql_url), ON_ASYNCIO)
    )

BY_NAME = {harness.name: harness for harness in HARNESSES}


def loops(harness: JournalHarness) -> tuple[str, ...]:
    """Return the event loops that a journal claims to run on."""
    return (
        ("asyncio", "trio") if Capability.TRIO in harness.capabilities else ("asyncio",)
    )
