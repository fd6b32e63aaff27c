"""Schemas of the run's PostgreSQL that are emptied and used again.

To make one takes the server twenty times as long as to empty it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import asyncpg
from asides import aside
from servers import postgres

from raf_session.journals.postgres import PostgresJournal

__all__ = ("new_schema", "used_schema")

USES: Final = 50
"""How often one is used: what was deleted stays in its files for a while."""

_IDLE: Final[list[tuple[str, int]]] = []
_MADE: Final[list[str]] = []
"""The shape of the tables as the journal makes them, once it is asked for."""
_HELD: Final[list[Any]] = []
"""The connection that looks after them, while there is one."""
_LOCK: Final = asyncio.Lock()
"""Of the connection, which does one thing at a time."""
_TABLES: Final = (
    *("entries", "labels", "session_state", "provider_states", "request_digests"),
    *("heads", "scoped_state", "scopes"),
)
_EMPTY: Final = f"""
    SET session_replication_role = replica;
    LOCK TABLE {", ".join(_TABLES)} IN ACCESS EXCLUSIVE MODE;
    {"".join(f"DELETE FROM {table};" for table in _TABLES)}
"""  # noqa: S608  (tables of our own)
_SHAPE: Final = """
    SELECT md5(string_agg(line, ',' ORDER BY line COLLATE "C")) FROM (
        SELECT concat_ws(' ', c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull)
        FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace
        UNION ALL
        SELECT concat_ws(' ', t.tgname, t.tgenabled)
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
        UNION ALL
        SELECT concat_ws(' ', conname, contype, conrelid::regclass)
        FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
        UNION ALL
        SELECT concat_ws(' ', proname, md5(replace(prosrc, current_schema(), '')))
        FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
        UNION ALL
        SELECT concat_ws(' ', name, value) FROM meta
    ) AS lines (line)
"""


@asynccontextmanager
async def new_schema(url: str) -> AsyncGenerator[str]:
    """Hold the name of a schema that is not there yet; drop what it has become."""
    schema = f"test_{uuid4().hex}"
    try:
        yield schema
    finally:
        connection = await asyncpg.connect(url)
        await _drop(connection, schema)
        await connection.close()


@asynccontextmanager
async def used_schema() -> AsyncGenerator[str]:
    """Hold the name of a schema that is not there yet, or is as new.

    Whoever has altered its tables is its last user.
    """
    url = postgres.url()
    schema, uses = _IDLE.pop() if _IDLE else (f"test_{uuid4().hex}", 0)
    empty = False
    try:
        yield schema
        empty = uses + 1 < USES and await aside(_returned(url, schema))
    finally:
        if empty:
            _IDLE.append((schema, uses + 1))
        else:
            await aside(_dropped(url, schema))


async def _drop(connection: Any, schema: str) -> None:
    await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


# Aside -------------------------------------------------------------------------------


async def _connected(url: str) -> Any:
    if not _HELD or _HELD[0].is_closed():
        _HELD[:] = [await asyncpg.connect(url, statement_cache_size=0)]
    return _HELD[0]


async def _dropped(url: str, schema: str) -> None:
    async with _LOCK:
        await _drop(await _connected(url), schema)


async def _returned(url: str, schema: str) -> bool:
    async with _LOCK:
        return await _emptied(await _connected(url), url, schema)


async def _emptied(connection: Any, url: str, schema: str) -> bool:
    """Empty the tables; tell whether they are as the journal makes them."""
    if not _MADE:
        async with new_schema(url) as made:
            await PostgresJournal(url, schema=made).migrate()
            await connection.execute(f"SET search_path = {made}")
            _MADE.append(await connection.fetchval(_SHAPE))
    await connection.execute(f"SET search_path = {schema}")
    try:
        await connection.execute(_EMPTY)
        return await connection.fetchval(_SHAPE) in _MADE
    except asyncpg.PostgresError:  # never opened, or without a table
        return False
