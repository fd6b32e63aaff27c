"""Where sessions may be kept, each beside the raw write of its own driver."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from raf_session import open_journal
from raf_session.journal import Journal

__all__ = ("BACKENDS", "Backend", "servers")

RawWrite: TypeAlias = Callable[[str], Awaitable[object]]
"""Stores one body durably, as this driver's user would by hand."""

StoredBytes: TypeAlias = Callable[[], Awaitable[int]]


@dataclass(frozen=True)
class Opened:
    """Storage of a backend's own, empty."""

    journal: Journal
    raw: RawWrite
    stored: StoredBytes
    """The bytes that all sessions take, indexes included."""


@dataclass(frozen=True)
class Backend:
    """A name and a way to open storage in this folder or on a server."""

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Opened]]


def servers(name: str) -> Any:
    """Return the module of `tests/servers` that gives such a server."""
    from importlib import import_module

    tests = str(Path(__file__).parents[1] / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    return import_module(f"servers.{name}")


@asynccontextmanager
async def _jsonl(folder: Path) -> AsyncGenerator[Opened]:
    raw = os.open(folder / "raw.jsonl", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    async def write(body: str) -> None:
        os.write(raw, body.encode() + b"\n")

    async def stored() -> int:
        files = (folder / "sessions").rglob("*")
        return sum(path.stat().st_size for path in files if path.is_file())

    async with open_journal(f"file://{folder}/sessions") as journal:
        yield Opened(journal, write, stored)
    os.close(raw)


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncGenerator[Opened]:
    connection = sqlite3.connect(folder / "raw.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT)")

    async def write(body: str) -> None:
        connection.execute("INSERT INTO raw (body) VALUES (?)", (body,))

    path = folder / "sessions.db"

    async def stored() -> int:
        other = sqlite3.connect(path)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        return path.stat().st_size

    async with open_journal(f"sqlite:///{path}") as journal:
        yield Opened(journal, write, stored)
    connection.close()


@asynccontextmanager
async def _redis(_: Path) -> AsyncGenerator[Opened]:
    from redis.asyncio import Redis

    from raf_session.journals.redis import RedisJournal

    url, prefix = servers("redis").url(), f"bench-{uuid4().hex}"
    async with Redis.from_url(url) as client:

        async def write(body: str) -> object:
            return await client.rpush(f"{prefix}:raw", body)

        async def stored() -> int:
            size = 0
            async for key in client.scan_iter(f"{prefix}*", count=10_000):
                size += await client.memory_usage(key, samples=0) or 0
            return size - (await client.memory_usage(f"{prefix}:raw", samples=0) or 0)

        try:
            async with RedisJournal(url, prefix=prefix) as journal:
                yield Opened(journal, write, stored)
        finally:
            async for key in client.scan_iter(f"{prefix}*", count=10_000):
                await client.delete(key)


@asynccontextmanager
async def _postgres(_: Path) -> AsyncGenerator[Opened]:
    import asyncpg

    from raf_session.journals.postgres import PostgresJournal

    url, schema = servers("postgres").url(), f"bench_{uuid4().hex}"
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE TABLE {schema} (id bigserial, body json)")
    insert = await connection.prepare(f"INSERT INTO {schema} (body) VALUES ($1)")

    async def write(body: str) -> object:
        return await insert.fetch(body)

    async def stored() -> int:
        await connection.execute("VACUUM FULL")
        size = await connection.fetchval(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c "
            "JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relkind = 'r'",
            schema,
        )
        return int(size)

    try:
        async with PostgresJournal(url, schema=schema) as journal:
            yield Opened(journal, write, stored)
    finally:
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await connection.execute(f"DROP TABLE {schema}")
        await connection.close()


@asynccontextmanager
async def _mariadb(_: Path) -> AsyncGenerator[Opened]:
    import asyncmy

    server = urlsplit(servers("mariadb").url())
    database = f"bench_{uuid4().hex}"
    connection = await asyncmy.connect(
        host=server.hostname,
        port=server.port or 3306,
        user=unquote(server.username or ""),
        password=unquote(server.password or ""),
        autocommit=True,
    )
    cursor = connection.cursor()
    await cursor.execute(f"CREATE DATABASE {database}")
    await cursor.execute(
        f"CREATE TABLE {database}.raw (id bigint AUTO_INCREMENT PRIMARY KEY, "
        "body longblob)"
    )

    async def write(body: str) -> object:
        return await cursor.execute(
            f"INSERT INTO {database}.raw (body) VALUES (%s)", (body.encode(),)
        )

    async def stored() -> int:
        await cursor.execute(
            "SELECT table_name FROM information_schema.tables "
            f"WHERE table_schema = '{database}' AND table_type = 'BASE TABLE'"
        )
        for (table,) in await cursor.fetchall():
            await cursor.execute(f"ANALYZE TABLE {database}.`{table}`")
            await cursor.fetchall()
        await cursor.execute(
            "SELECT sum(data_length + index_length) FROM information_schema.tables "
            f"WHERE table_schema = '{database}' AND table_name <> 'raw'"
        )
        ((size,),) = await cursor.fetchall()
        return int(size)

    try:
        url = server._replace(path=f"/{database}").geturl()
        async with open_journal(url) as journal:
            yield Opened(journal, write, stored)
    finally:
        await cursor.execute(f"DROP DATABASE {database}")
        await cursor.close()
        await connection.ensure_closed()


BACKENDS: Sequence[Backend] = (
    Backend("SQLite", _sqlite),
    Backend("JSONL", _jsonl),
    Backend("Redis", _redis),
    Backend("PostgreSQL", _postgres),
    Backend("MariaDB", _mariadb),
)


async def timed(work: Awaitable[object]) -> float:
    """Return the seconds that this takes."""
    started = time.perf_counter()
    await work
    return time.perf_counter() - started
