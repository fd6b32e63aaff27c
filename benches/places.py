"""Where sessions may be kept: an empty place for one contender, and its raw write."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit
from uuid import uuid4

__all__ = ("BACKENDS", "SERVERS", "Place", "open_place", "server_process")

RawWrite: TypeAlias = Callable[[str], Awaitable[object]]
"""Stores one body durably, as this driver's user would by hand."""
KeyedWrite: TypeAlias = Callable[[str, str], Awaitable[object]]
"""The same under an id that no other row may have, in the order of a session."""

SERVERS = {"Redis": "redis", "PostgreSQL": "postgres", "MariaDB": "mariadb"}
"""The backends that are servers, and their modules in `tests/servers`."""

_DATABASES = 16  # of a Redis as it comes
_next = count()


@dataclass(frozen=True)
class Place:
    """Empty storage for one contender."""

    backend: str
    url: str
    folder: Path
    raw: RawWrite | None = None
    raw_power: RawWrite | None = None
    """The same, on the disk before it is acknowledged; where that is another one."""
    keyed: KeyedWrite | None = None
    """On servers: what a message takes to be found again, and not twice."""
    stored: Callable[[], Awaitable[int]] | None = None
    """The bytes that everything but the raw writes takes, indexes included."""

    @property
    def path(self) -> Path:
        """A file in the folder, for those who take a path."""
        return self.folder / "sessions.db"

    def sqlalchemy(self, driver: str) -> str:
        """Return the URL with a driver of SQLAlchemy in its scheme."""
        return self.url.replace("://", f"+{driver}://", 1)


def _server(backend: str) -> Any:
    """Return the private server that `tests/servers` gives for the run."""
    tests = str(Path(__file__).parents[1] / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    return import_module(f"servers.{SERVERS[backend]}").server()


def _url(backend: str) -> str:
    return str(_server(backend).url)


def server_process(backend: str) -> int | None:
    """Return the process that serves a backend, `None` for one without a server."""
    return int(_server(backend).pid) if backend in SERVERS else None


@asynccontextmanager
async def _memory(folder: Path) -> AsyncGenerator[Place]:
    bodies: list[str] = []

    async def write(body: str) -> None:
        bodies.append(body)

    yield Place("memory", "memory://", folder, write)


def _size(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files if path.name != "raw")


@asynccontextmanager
async def _jsonl(folder: Path) -> AsyncGenerator[Place]:
    raw = os.open(folder / "raw", os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    async def write(body: str) -> None:
        os.write(raw, body.encode() + b"\n")

    async def write_synced(body: str) -> None:
        os.write(raw, body.encode() + b"\n")
        os.fdatasync(raw) if hasattr(os, "fdatasync") else os.fsync(raw)

    async def stored() -> int:
        return await asyncio.to_thread(_size, folder)

    yield Place(
        "JSONL", f"file://{folder}/s", folder, write, write_synced, None, stored
    )
    os.close(raw)


def _raw_sqlite(path: Path, synchronous: str) -> tuple[sqlite3.Connection, RawWrite]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT)")

    async def write(body: str) -> None:
        connection.execute("INSERT INTO raw (body) VALUES (?)", (body,))

    return connection, write


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncGenerator[Place]:
    normal, write = _raw_sqlite(folder / "raw.db", "NORMAL")
    full, write_synced = _raw_sqlite(folder / "raw-power.db", "FULL")
    path = folder / "sessions.db"

    async def stored() -> int:
        other = sqlite3.connect(path)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        return path.stat().st_size

    yield Place(
        "SQLite", f"sqlite:///{path}", folder, write, write_synced, None, stored
    )
    normal.close()
    full.close()


@asynccontextmanager
async def _redis(folder: Path) -> AsyncGenerator[Place]:
    from redis.asyncio import Redis

    url = _url("Redis").rpartition("/")[0] + f"/{next(_next) % _DATABASES}"
    async with Redis.from_url(url) as client:
        await client.flushdb()

        async def write(body: str) -> object:
            return await client.rpush("raw", body)

        async def keyed(name: str, body: str) -> object:
            return await client.hsetnx("raw_keyed", name, body)

        async def stored() -> int:
            size = 0
            async for key in client.scan_iter("*", count=10_000):
                if not key.startswith(b"raw"):
                    size += await client.memory_usage(key, samples=0) or 0
            return size

        yield Place("Redis", url, folder, write, None, keyed, stored)
        await client.flushdb()


_POSTGRES_BYTES = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class AS c "
    "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND "
    "n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'raw')"
)


@asynccontextmanager
async def _postgres(folder: Path) -> AsyncGenerator[Place]:
    import asyncpg

    server, name = _url("PostgreSQL"), f"bench_{uuid4().hex}"
    admin = await asyncpg.connect(server)
    await admin.execute(f"CREATE DATABASE {name}")
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE SCHEMA raw")
    await connection.execute(
        "CREATE TABLE raw.raw (id bigserial PRIMARY KEY, body json); "
        "CREATE TABLE raw.keyed (session bigint, place bigint, "
        "id text NOT NULL UNIQUE, body json, PRIMARY KEY (session, place))"
    )
    insert = await connection.prepare("INSERT INTO raw.raw (body) VALUES ($1)")
    insert_keyed = await connection.prepare(
        "INSERT INTO raw.keyed (session, place, id, body) VALUES (1, $1, $2, $3)"
    )
    places = count(1)

    async def write(body: str) -> object:
        return await insert.fetch(body)

    async def keyed(name: str, body: str) -> object:
        return await insert_keyed.fetch(next(places), name, body)

    async def stored() -> int:
        await connection.execute("VACUUM FULL")
        return int(await connection.fetchval(_POSTGRES_BYTES))

    try:
        yield Place("PostgreSQL", url, folder, write, None, keyed, stored)
    finally:
        await connection.close()
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()


@asynccontextmanager
async def _mariadb(folder: Path) -> AsyncGenerator[Place]:
    import asyncmy

    server, name = urlsplit(_url("MariaDB")), f"bench_{uuid4().hex}"
    connection = await asyncmy.connect(
        host=server.hostname,
        port=server.port or 3306,
        user=unquote(server.username or ""),
        password=unquote(server.password or ""),
        autocommit=True,
    )
    cursor = connection.cursor()
    await cursor.execute(f"CREATE DATABASE {name}")
    await cursor.execute(f"CREATE DATABASE raw_{name}")
    await cursor.execute(
        f"CREATE TABLE raw_{name}.raw (id bigint AUTO_INCREMENT PRIMARY KEY, "
        "body longblob)"
    )
    await cursor.execute(
        f"CREATE TABLE raw_{name}.keyed (session bigint, place bigint, "
        "id varbinary(64) NOT NULL UNIQUE, body longblob, PRIMARY KEY (session, place))"
    )
    places = count(1)

    async def write(body: str) -> object:
        return await cursor.execute(
            f"INSERT INTO raw_{name}.raw (body) VALUES (%s)", (body.encode(),)
        )

    async def keyed(row: str, body: str) -> object:
        return await cursor.execute(
            f"INSERT INTO raw_{name}.keyed (session, place, id, body) "
            "VALUES (1, %s, %s, %s)",
            (next(places), row, body.encode()),
        )

    async def stored() -> int:
        await cursor.execute(
            "SELECT table_name FROM information_schema.tables "
            f"WHERE table_schema = '{name}' AND table_type = 'BASE TABLE'"
        )
        for (table,) in await cursor.fetchall():
            await cursor.execute(f"ANALYZE TABLE {name}.`{table}`")
            await cursor.fetchall()
        await cursor.execute(
            "SELECT coalesce(sum(data_length + index_length), 0) "
            f"FROM information_schema.tables WHERE table_schema = '{name}'"
        )
        ((size,),) = await cursor.fetchall()
        return int(size)

    try:
        url = server._replace(path=f"/{name}").geturl()
        yield Place("MariaDB", url, folder, write, None, keyed, stored)
    finally:
        await cursor.execute(f"DROP DATABASE {name}")
        await cursor.execute(f"DROP DATABASE raw_{name}")
        await cursor.close()
        await connection.ensure_closed()


_OPEN: dict[str, Callable[[Path], AbstractAsyncContextManager[Place]]] = {
    "memory": _memory,
    "SQLite": _sqlite,
    "JSONL": _jsonl,
    "Redis": _redis,
    "PostgreSQL": _postgres,
    "MariaDB": _mariadb,
}
BACKENDS = tuple(_OPEN)


def open_place(backend: str, folder: Path) -> AbstractAsyncContextManager[Place]:
    """Return an empty place on that backend, gone with its ``async with``.

    Args:
        backend: one of `BACKENDS`; a server's is a private one of this run.
        folder: an empty folder that is there.
    """
    return _OPEN[backend](folder)
