"""A journal with few connections in PostgreSQL, and ways to look behind it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from journal_bindings import postgres_storage
from servers import postgres

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.journals._postgres_pools import OwnPool
from raf_session.journals.postgres import PostgresJournal

SMALL = 2
CHANGE = Change(session=StateDelta({"a": 1}), user=StateDelta({"b": 1}))


@asynccontextmanager
async def small_journal() -> AsyncGenerator[PostgresJournal]:
    async with postgres_storage() as opener:
        opened = opener(pool_size=SMALL, busy_timeout_secs=5)  # type: ignore[call-arg]
        async with opened as own:
            assert isinstance(own, PostgresJournal)
            await own.create(NEW, batch("e1"))
            yield own


@asynccontextmanager
async def stranger() -> AsyncGenerator[Any]:
    """Hold a connection of the driver's own."""
    connection = await asyncpg.connect(postgres.url())
    yield connection
    await connection.close()


async def pool_of(journal: PostgresJournal) -> OwnPool:
    assert journal._runner is not None
    pool = await journal._runner._pools.pool()
    assert isinstance(pool, OwnPool)
    return pool


async def cut(other: Any, journal: PostgresJournal) -> int:
    """End the sessions of the server that the journal has."""
    pool = await pool_of(journal)
    lent = [*pool._used, *pool._idle]
    for connection in lent:
        await other.fetch(
            "SELECT pg_terminate_backend($1, 5000)", connection.lent.get_server_pid()
        )
    return len(lent)


async def found(journal: PostgresJournal) -> list[str]:
    return ids((await journal.load(KEY)).entries)
