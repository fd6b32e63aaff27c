"""All bytes that a service's journal keeps, past the journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import asyncmy
import asyncpg
from redis.asyncio import Redis

from raf_session.journals.jsonl import JsonlJournal
from raf_session.journals.memory import MemoryJournal
from raf_session.journals.mysql import MysqlJournal
from raf_session.journals.postgres import PostgresJournal
from raf_session.journals.redis import RedisJournal
from raf_session.journals.sqlite import SqliteJournal
from raf_session.service import SessionService

__all__ = ("stored_bytes",)


async def stored_bytes(service: SessionService, opener: Any) -> bytes:
    """Return everything that is stored, in no order.

    Args:
        service: open, for what is in memory.
        opener: of its storage.
    """
    journals = cast("partial[Any]", opener.args[0])
    if journals is MemoryJournal:
        return repr(list(_walk(service.journal, set()))).encode()
    kind = journals.func
    if kind in {JsonlJournal, SqliteJournal}:
        path = Path(journals.args[0])
        folder = path if kind is JsonlJournal else path.parent
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        return b"\n".join(
            b"%s %s" % (str(file.relative_to(folder)).encode(), file.read_bytes())
            for file in files
        )
    url: str = journals.args[0]
    if kind is RedisJournal:
        rows = [row async for row in _redis(url, journals.keywords["prefix"])]
    elif kind is PostgresJournal:
        rows = [row async for row in _postgres(url, journals.keywords["schema"])]
    else:
        assert kind is MysqlJournal
        rows = [row async for row in _mysql(url)]
    return b"\n".join(rows)


def _walk(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every text and number that an object holds."""
    if isinstance(value, str | bytes | int | float):
        yield value
        return
    if id(value) in seen or callable(value):
        return
    seen.add(id(value))
    if isinstance(value, dict):
        inner: Any = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    else:
        slots = [
            getattr(value, name)
            for kind in type(value).__mro__
            for name in getattr(kind, "__slots__", ())
            if hasattr(value, name)
        ]
        inner = [*vars(value).values()] if hasattr(value, "__dict__") else []
        inner += slots
    for item in inner:
        yield from _walk(item, seen)


async def _redis(url: str, prefix: str) -> AsyncGenerator[bytes]:
    async with Redis.from_url(url) as client:
        reads: dict[Any, Any] = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"zset": partial(client.zrange, start=0, end=-1, withscores=True),
            b"set": client.smembers,
            b"list": partial(client.lrange, start=0, end=-1),
        }
        async for key in client.scan_iter(f"{prefix}*", count=10_000):
            value: Any = await reads[await client.type(key)](key)
            yield b"%s %s" % (key, repr(value).encode())


async def _postgres(url: str, schema: str) -> AsyncGenerator[bytes]:
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = $1",
            schema,
        )
        for (table,) in tables:
            query = f'SELECT * FROM {schema}."{table}"'  # noqa: S608
            for row in await connection.fetch(query):
                yield repr(tuple(row)).encode()
    finally:
        await connection.close()


async def _mysql(url: str) -> AsyncGenerator[bytes]:
    server = urlsplit(url)
    connection = await asyncmy.connect(
        host=server.hostname,
        port=server.port or 3306,
        user=unquote(server.username or ""),
        password=unquote(server.password or ""),
        database=server.path[1:],
    )
    try:
        async with connection.cursor() as cursor:
            await cursor.execute("SHOW TABLES")
            for (table,) in await cursor.fetchall():
                await cursor.execute(f"SELECT * FROM `{table}`")  # noqa: S608
                for row in await cursor.fetchall():
                    yield repr(row).encode()
    finally:
        await connection.ensure_closed()
