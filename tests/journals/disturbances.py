"""Servers of a test's own, and ways to cut the connections of their clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import asyncmy
import asyncpg
from journal_bindings import mysql_storage, postgres_storage, redis_storage
from redis.asyncio import Redis
from servers.mariadb import MariadbServer
from servers.postgres import PostgresServer
from servers.private import PrivateServer
from servers.redis import RedisServer

from raf_session.conformance import JournalOpener

__all__ = ("SERVERS", "Disturbed")


class Disturbed(NamedTuple):
    """A kind of server that may be disturbed.

    Attributes:
        server: gives one that is not started yet.
        storage: storage on the server of a URL.
        sever: cuts every other client's connection.
    """

    server: Callable[[], PrivateServer]
    storage: Callable[[str], AbstractAsyncContextManager[JournalOpener]]
    sever: Callable[[str], Awaitable[None]]


async def _sever_redis(url: str) -> None:
    async with Redis.from_url(url) as client:
        await client.client_kill_filter(_type="normal", skipme=True)


async def _sever_postgres(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def _sever_mysql(url: str) -> None:
    parts = urlsplit(url)
    connection = await asyncmy.connect(
        host=parts.hostname, port=parts.port, user=parts.username
    )
    async with connection.cursor() as cursor:
        await cursor.execute(
            "SELECT id FROM information_schema.processlist "
            "WHERE id <> connection_id() AND command <> 'Daemon'"
        )
        for (number,) in await cursor.fetchall():
            await cursor.execute(f"KILL SOFT CONNECTION {number}")
    await connection.ensure_closed()


SERVERS: Final = {
    "redis": Disturbed(RedisServer, redis_storage, _sever_redis),
    "postgresql": Disturbed(PostgresServer, postgres_storage, _sever_postgres),
    "mariadb": Disturbed(MariadbServer, mysql_storage, _sever_mysql),
}
