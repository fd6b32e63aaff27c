"""A schema that is used again is as new."""

from __future__ import annotations

import asyncpg
import pytest
from postgres_schemas import used_schema
from servers import postgres

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch
from raf_session.journals.postgres import PostgresJournal

pytestmark = pytest.mark.anyio

CHANGE = Change(
    session=StateDelta({"a": 1}),
    user=StateDelta({"b": 1}),
    app=StateDelta({"c": 1}),
    labels=LabelDelta(added=["d"]),
)
TABLES = ("entries", "labels", "session_state", "heads", "scoped_state", "scopes")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def used(statement: str = "SELECT 1") -> str:
    """Write to a schema and run a statement in it; return its name."""
    async with used_schema() as schema:
        async with PostgresJournal(postgres.url(), schema=schema) as journal:
            await journal.create(NEW, batch("e1"))
            await journal.append(KEY, batch("e2"), change=CHANGE)
        connection = await asyncpg.connect(
            postgres.url(), server_settings={"search_path": schema}
        )
        await connection.execute(statement)
        await connection.close()
    return schema


async def test_it_is_empty() -> None:
    before = await used()
    async with used_schema() as schema:
        assert schema == before
        connection = await asyncpg.connect(postgres.url())
        for table in TABLES:
            assert not await connection.fetch(f"SELECT FROM {schema}.{table}")
        await connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE heads ADD COLUMN hue text",
        "DROP TABLE labels",
        "CREATE TABLE other (n int)",
        "ALTER TABLE heads DISABLE TRIGGER USER",
        "DROP FUNCTION write_digests CASCADE",
        "UPDATE meta SET value = '99' WHERE name = 'schema'",
        "CREATE INDEX other ON heads (title)",
    ],
)
async def test_one_that_was_altered_is_not_used_again(statement: str) -> None:
    altered = await used(statement)
    assert await used() != altered
