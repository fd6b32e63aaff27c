"""Damaged rows in the SQLite file of a journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch
from raf_session.errors import SessionDamagedError
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession, Query, Window

pytestmark = pytest.mark.anyio

OTHER = SessionKey("app", "other", "", "session")
TABLES = (
    "heads",
    "labels",
    "entries",
    "session_state",
    "provider_states",
    "request_digests",
)
FULL = Change(
    session=StateDelta({"a": 1}),
    user=StateDelta({"b": 2}),
    app=StateDelta({"c": 3}),
    providers=StateDelta({"p": {"id": 4}}),
    request=RequestDelta(0, b"digests!" * 100, 5),
    labels=LabelDelta(["l", "m"]),
)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@contextmanager
def connected(path: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def rows(path: Path, *tables: str) -> dict[str, int]:
    with connected(path) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in tables
        }


def run(path: Path, sql: str, *values: Any) -> Any:
    with connected(path) as connection:
        return connection.execute(sql, values).fetchall()


@pytest.mark.parametrize(
    "body", ['{"message"', '{"message":1}', "{},{}", "7", b"\xff\xfe", None]
)
async def test_damaged_body_is_named(path: Path, body: object) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1", "e2", "e3"))
        await journal.create(NewSession(key=OTHER), batch("e2"))
        if body is None:
            sql = "UPDATE entries SET body = CAST(x'22ff22' AS TEXT)"
        else:
            sql = "UPDATE entries SET body = :body"
        with connected(path) as connection:
            connection.execute(
                f"{sql} WHERE id = 'e2' AND session = 1",
                {"body": body},
            )
        for _ in range(2):
            with pytest.raises(SessionDamagedError, match="'e2' at 2"):
                await journal.load(KEY)
        assert len((await journal.load(OTHER)).entries) == 1
        assert len((await journal.load(KEY, Window(last=1))).entries) == 1
        assert len((await journal.scan(Query())).sessions) == 2


@pytest.mark.parametrize(
    ("sql", "detail"),
    [
        ("UPDATE heads SET created_at = 'then'", "head"),
        ("UPDATE heads SET status = 'odd'", "head"),
        ("UPDATE session_state SET value = '{'", "state 'a'"),
        ("UPDATE provider_states SET value = '{'", "state 'p'"),
        ("DELETE FROM request_digests WHERE chunk = 1", "digests"),
        ("DELETE FROM entries WHERE id = 'e1'", "1 active entries"),
    ],
)
async def test_damage_is_told_and_can_be_deleted(
    path: Path, sql: str, detail: str
) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1", "e2"), change=FULL)
        run(path, sql)
        with pytest.raises(SessionDamagedError, match=detail):
            await journal.load(KEY)
        assert await journal.delete(KEY)
        assert not any(rows(path, *TABLES).values())


async def test_create_spares_a_damaged_session_with_entries(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1"))
        run(path, "UPDATE heads SET status = 'odd'")
        with pytest.raises(SessionDamagedError):
            await journal.create(NEW)
        run(path, "DELETE FROM entries")
        await journal.create(NEW, batch("e2"))
        assert len((await journal.load(KEY)).entries) == 1


async def test_a_taken_place_is_damage(path: Path) -> None:
    async with SqliteJournal(path) as journal:
        await journal.create(NEW, batch("e1"))
        run(path, "UPDATE heads SET last_seq = 0")
        with pytest.raises(SessionDamagedError, match="place"):
            await journal.append(KEY, batch("e2"))
