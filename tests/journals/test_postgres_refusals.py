"""What the journal in PostgreSQL or its server refuses, in the library's own errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import asyncpg
import pytest
from postgres_stage import CHANGE, found, pool_of, small_journal, stranger

from raf_session.conformance.journal_values import KEY, batch, ids, said
from raf_session.errors import (
    EntryTooLargeError,
    SessionNotFoundError,
    StaleSessionError,
    StorageBusyError,
    StorageError,
    StorageFullError,
)
from raf_session.journals.postgres import PostgresJournal

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def journal() -> AsyncGenerator[PostgresJournal]:
    async with small_journal() as own:
        yield own


@pytest.fixture
async def other() -> AsyncGenerator[Any]:
    async with stranger() as connection:
        yield connection


async def test_arguments_that_no_column_holds(journal: PostgresJournal) -> None:
    for call in (
        journal.append(KEY, batch("x"), expected_revision=1 << 70),
        journal.append(KEY, batch("x"), expected_revision=-(1 << 70)),
    ):
        with pytest.raises(StaleSessionError):
            await call
    with pytest.raises(SessionNotFoundError, match="replaced"):
        await journal.append(KEY, batch("x"), incarnation="\0")
    for name in ("a\0b", "\ud83d"):
        with pytest.raises(ValueError, match="app"):
            await journal.scopes(name)
    await journal.append(KEY, batch("x"), trim=1 << 70)
    assert await found(journal) == ["e1", "x"]


async def raising(other: Any, journal: PostgresJournal, state: str) -> None:
    """Let each insert of an entry fail with this state."""
    await other.execute(
        f"""
        CREATE OR REPLACE FUNCTION "{journal.schema}".fails() RETURNS trigger
        LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'told so' USING ERRCODE = '{state}'; END $$;
        CREATE TRIGGER fails BEFORE INSERT ON "{journal.schema}".entries
        FOR EACH ROW EXECUTE FUNCTION "{journal.schema}".fails();
        """
    )


@pytest.mark.parametrize(
    ("state", "error"),
    [("53100", StorageFullError), ("57014", StorageBusyError), ("42704", StorageError)],
)
async def test_what_the_server_refuses(
    journal: PostgresJournal, other: Any, state: str, error: type[StorageError]
) -> None:
    await raising(other, journal, state)
    for change in (None, CHANGE):
        for _ in range(5):
            with pytest.raises(error, match=f"told so.*{state}") as caught:
                await journal.append(KEY, batch("e2"), change=change)
            assert isinstance(caught.value.__cause__, asyncpg.PostgresError)
    await other.execute(f'DROP TRIGGER fails ON "{journal.schema}".entries')
    await journal.append(KEY, batch("e2"))
    assert (await pool_of(journal)).used == 0
    assert await found(journal) == ["e1", "e2"]


async def test_conflicts_are_tried_again_and_end(
    journal: PostgresJournal, other: Any
) -> None:
    await raising(other, journal, "40001")
    task = asyncio.ensure_future(journal.append(KEY, batch("e2")))
    await asyncio.sleep(0.05)
    assert not task.done()
    await other.execute(f'DROP TRIGGER fails ON "{journal.schema}".entries')
    assert ids((await task).entries) == ["e2"]
    await raising(other, journal, "40P01")
    with pytest.raises(StorageBusyError):
        await journal.append(KEY, batch("e3"))


async def test_a_body_that_no_server_takes(
    journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_max_body", 1000)
    with pytest.raises(EntryTooLargeError) as caught:
        await journal.append(KEY, [said("e2", "é" * 600)])
    assert (caught.value.limit, caught.value.size > 1200) == (1000, True)
    await journal.append(KEY, [said("e2", "é" * 300)])
