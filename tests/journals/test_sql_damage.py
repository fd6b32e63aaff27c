"""Rows that somebody else has altered, in the journals over server databases."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from journal_bindings import HARNESSES

from raf_session.changes import Change, RequestDelta, StateDelta
from raf_session.conformance import JournalHarness
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.errors import (
    SchemaVersionError,
    SessionDamagedError,
    SessionNotFoundError,
)
from raf_session.journals._sql_dialect import Value
from raf_session.journals._sql_journal import SqlJournal
from raf_session.options import Query, Window

pytestmark = pytest.mark.anyio

SQL = [
    pytest.param(harness, id=harness.name)
    for harness in HARNESSES
    if harness.name in {"postgresql", "mariadb", "mysql"}
]
CHANGE = Change(
    session=StateDelta({"a": 1}),
    app=StateDelta({"b": 1}),
    request=RequestDelta(0, b"12345678" * 100, 7),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=SQL)
async def journal(request: pytest.FixtureRequest) -> AsyncGenerator[SqlJournal]:
    harness: JournalHarness = request.param
    async with harness() as opened:
        assert isinstance(opened, SqlJournal)
        await opened.create(NEW, batch("e1", "e2", "e3"), change=CHANGE)
        yield opened


async def alter(journal: SqlJournal, sql: str, *values: Value) -> None:
    runner = journal._runner
    assert runner is not None
    await runner.write(lambda tx: tx.execute(sql, *values))


BROKEN: dict[str, tuple[str, tuple[Value, ...], str]] = {
    "a body that is no JSON": (
        "UPDATE ~entries SET body = ? WHERE id = ?",
        ("{", "e2"),
        "entry 'e2' at 2",
    ),
    "a body that is no object": (
        "UPDATE ~entries SET body = ? WHERE id = ?",
        ("[]", "e2"),
        "entry 'e2' at 2",
    ),
    "a body that is a pickle": (
        "UPDATE ~entries SET body = ? WHERE id = ?",
        ("cos\nsystem\n(S'true'\ntR.", "e1"),
        "entry 'e1' at 1",
    ),
    "a kind that is none": ("UPDATE ~entries SET kind = ?", ("x",), "entry 'e1'"),
    "an entry that is gone": (
        "DELETE FROM ~entries WHERE id = ?",
        ("e1",),
        "2 active entries, not 3",
    ),
    "a state": ("UPDATE ~session_state SET value = ?", ("{",), "state 'a'"),
    "the app's state": ("UPDATE ~scoped_state SET value = ?", ("{",), "state 'b'"),
    "digests": (
        "DELETE FROM ~request_digests WHERE chunk = ?",
        (1,),
        "100 messages, 512 bytes",
    ),
    "a status": ("UPDATE ~heads SET status = ?", ("x",), "head cannot be read"),
    "labels": ("UPDATE ~heads SET labels = ?", ("[",), "head cannot be read"),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_what_cannot_be_read_is_told(journal: SqlJournal, case: str) -> None:
    sql, values, detail = BROKEN[case]
    await alter(journal, sql, *values)
    with pytest.raises(SessionDamagedError, match=detail) as caught:
        await journal.load(KEY)
    assert (caught.value.key, caught.value.backend) == (str(KEY), journal.backend)
    if "head" in detail:
        with pytest.raises(SessionDamagedError):
            await journal.create(NEW)
        with pytest.raises(SessionDamagedError):
            await journal.scan(Query())
    assert await journal.delete(KEY)
    commit = await journal.create(NEW, batch("e1"))
    assert commit.head.revision == 1
    with pytest.raises(SessionNotFoundError):
        await journal.load(KEY._replace(session="none"))


async def test_what_is_whole_beside_it_is_read(journal: SqlJournal) -> None:
    await alter(journal, "UPDATE ~entries SET body = ? WHERE id = ?", "{", "e1")
    record = await journal.load(KEY, Window(last=2))
    assert ids(record.entries) == ["e2", "e3"]
    await journal.append(KEY, batch("e4"))


async def test_a_damaged_head_without_entries_gives_way(journal: SqlJournal) -> None:
    await alter(journal, "DELETE FROM ~entries")
    await alter(journal, "UPDATE ~heads SET status = ?", "x")
    await journal.create(NEW, batch("e1"))
    assert ids((await journal.load(KEY)).entries) == ["e1"]
    assert (await journal.load(KEY)).state == {}


WRITES: dict[str, Callable[[SqlJournal], Any]] = {
    "append": lambda j: j.append(KEY, batch("x")),
    "append with a change": lambda j: j.append(KEY, batch("x"), change=CHANGE),
    "splice": lambda j: j.splice(KEY, 1, 1, batch("y"), tail=batch("x"), archive=True),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_place_that_is_taken(journal: SqlJournal, write: str) -> None:
    await alter(journal, "UPDATE ~heads SET last_seq = ?", 1)
    with pytest.raises(SessionDamagedError, match="a place is taken") as caught:
        await WRITES[write](journal)
    assert caught.value.__cause__ is not None
    await alter(journal, "UPDATE ~heads SET last_seq = ?", 3)
    assert ids((await journal.load(KEY)).entries) == ["e1", "e2", "e3"]
    await WRITES[write](journal)


@pytest.mark.parametrize("write", WRITES)
async def test_a_session_of_a_newer_library(journal: SqlJournal, write: str) -> None:
    await alter(journal, "UPDATE ~heads SET version = ?", 99)
    with pytest.raises(SchemaVersionError):
        await WRITES[write](journal)
    with pytest.raises(SchemaVersionError):
        await journal.load(KEY)


async def test_digests_that_are_gone_are_not_built_upon(journal: SqlJournal) -> None:
    await alter(journal, "DELETE FROM ~request_digests WHERE chunk = ?", 1)
    request = RequestDelta(99, b"abcdefgh", 8, base=7)
    for write in (
        journal.append(KEY, batch("x"), change=Change(request=request)),
        journal.update(KEY, Change(request=request)),
    ):
        with pytest.raises(SessionDamagedError, match="digests"):
            await write
    await journal.append(
        KEY, batch("x"), change=Change(request=RequestDelta(10, b"abcdefgh", 8, base=7))
    )
    record = await journal.load(KEY)
    assert record.request is not None
    assert record.request.digests == b"12345678" * 10 + b"abcdefgh"
