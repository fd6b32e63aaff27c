"""Databases and users of a test's own on the MariaDB of the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import anyio
import asyncmy
from servers import mariadb

__all__ = ("ask", "database", "lock_waits", "user_of")


async def ask(url: str, *statements: str) -> Sequence[Sequence[Any]]:
    """Run statements as a plain client does; return the rows of the last."""
    parts = urlsplit(url)
    connection = await asyncmy.connect(
        host=parts.hostname,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path[1:] or None,
        autocommit=True,
    )
    try:
        cursor = connection.cursor()
        for statement in statements:
            await cursor.execute(statement)
        rows: Sequence[Sequence[Any]] = await cursor.fetchall()
        return rows
    finally:
        await connection.ensure_closed()


async def lock_waits(url: str) -> list[object]:
    """Return who waits for a lock.

    The server shows what it saw before to whom asks within a tenth of a second.
    """
    await anyio.sleep(0.15)
    return [*await ask(url, "SELECT 1 FROM information_schema.innodb_lock_waits")]


@asynccontextmanager
async def database(
    server: str | None = None, *, charset: str = "utf8mb4"
) -> AsyncGenerator[str]:
    """Make a database of its own; give its URL."""
    server = urlsplit(server or mariadb.url())._replace(path="").geturl()
    name = f"test_{uuid4().hex}"
    await ask(server, f"CREATE DATABASE {name} CHARACTER SET {charset}")
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        await ask(server, f"DROP DATABASE {name}")


@asynccontextmanager
async def user_of(url: str, *rights: str) -> AsyncGenerator[str]:
    """Make a user with these rights in the database; give the URL in its name."""
    parts = urlsplit(url)
    name, secret = f"u{uuid4().hex[:12]}", "pä ss/w@rd"
    await ask(url, f"CREATE USER {name}@'%' IDENTIFIED BY '{secret}'")
    for right in rights:
        await ask(url, f"GRANT {right} TO {name}@'%'")
    netloc = f"{name}:p%C3%A4%20ss%2Fw%40rd@{parts.hostname}:{parts.port}"
    try:
        yield parts._replace(netloc=netloc).geturl()
    finally:
        await ask(url, f"DROP USER {name}@'%'")
