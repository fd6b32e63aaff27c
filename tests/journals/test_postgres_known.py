"""What a journal in PostgreSQL knows of a head is used only where it is still so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_bindings import postgres_storage

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.entries import SessionHead
from raf_session.journal import Commit
from raf_session.journals import _postgres_known
from raf_session.journals._postgres_connections import PostgresConnection
from raf_session.journals._postgres_known import KnownHeads
from raf_session.journals._sql_dialect import Value
from raf_session.journals.postgres import PostgresJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession

pytestmark = pytest.mark.anyio

Pair = tuple[PostgresJournal, PostgresJournal]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def pair() -> AsyncGenerator[Pair]:
    """Two journals over one database, as two processes have them."""
    clock = TickingClock()
    async with (
        postgres_storage() as opener,
        opener(clock=clock) as one,
        opener(clock=clock) as other,
    ):
        assert isinstance(one, PostgresJournal)
        assert isinstance(other, PostgresJournal)
        yield one, other


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of both."""
    found: list[str] = []
    plain = PostgresConnection.rows

    async def rows(own: PostgresConnection, sql: str, /, *values: Value) -> Any:
        found.append(sql)
        return await plain(own, sql, *values)

    monkeypatch.setattr(PostgresConnection, "rows", rows)
    return found


async def begin(pair: Pair, *names: str) -> None:
    await pair[0].delete(KEY)
    await pair[0].create(NEW)
    for name in names:
        await pair[0].append(KEY, batch(name))


async def stored(journal: PostgresJournal) -> SessionHead:
    return (await journal.load(KEY)).head


async def recreate(journal: PostgresJournal) -> None:
    await journal.delete(KEY)
    await journal.create(NEW)


async def rewrite(journal: PostgresJournal) -> None:
    """Write a row as a restore does: what was known of it is of another past."""
    await journal._opened().call(
        lambda c: c.rows(
            "UPDATE ~heads SET title = 'restored' WHERE app = ? AND usr = ? "
            "AND scope = ? AND session = ? RETURNING number",
            *KEY,
        )
    )


Act = Callable[[PostgresJournal], Awaitable[object]]
ELSEWHERE: Final[dict[str, Act]] = {
    "title": lambda j: j.update(KEY, Change(title="other")),
    "state": lambda j: j.update(KEY, Change(session=StateDelta({"a": 1}))),
    "labels": lambda j: j.update(KEY, Change(labels=LabelDelta(added=["x"]))),
    "pin": lambda j: j.update(KEY, Change(pin=True)),
    "refresh": lambda j: j.load(KEY, refresh=True),
    "append": lambda j: j.append(KEY, batch("elsewhere")),
    "several": lambda j: j.append(KEY, batch("x", "y")),
    "changed": lambda j: j.append(KEY, batch("z"), change=Change(title="z")),
    "splice": lambda j: j.splice(KEY, 1, 1, archive=True),
    "recreate": recreate,
    "rewrite": rewrite,
}
QUIET: Final = ("title", "state", "labels", "pin", "refresh", "rewrite")
"""What leaves the entries as they are."""


@pytest.mark.parametrize("act", ELSEWHERE)
@pytest.mark.parametrize("whose", [0, 1], ids=["here", "elsewhere"])
async def test_a_head_that_was_written_meanwhile(
    pair: Pair, act: str, whose: int
) -> None:
    await begin(pair, "e1", "e2")
    clock = pair[0].clock
    assert isinstance(clock, TickingClock)
    clock.tick(5)
    await ELSEWHERE[act](pair[whose])
    clock.tick(-3)
    commit = await pair[0].append(KEY, batch("e3"))
    assert commit.head == await stored(pair[0])
    assert not commit.repeated
    entries = (await pair[0].load(KEY)).entries
    assert commit.entries == entries[-1:]


async def test_alone_each_append_is_one_statement_by_the_version(
    pair: Pair, asked: list[str]
) -> None:
    await begin(pair, "e1")
    asked.clear()
    for n in range(3):
        commit = await pair[0].append(KEY, batch(f"f{n}"))
        assert len(asked) == n + 1
        assert "xmin = " in asked[-1]
    assert commit.head == await stored(pair[0])


async def test_an_id_that_is_known_is_refused_once(
    pair: Pair, asked: list[str]
) -> None:
    await begin(pair, "e1", "e2")
    asked.clear()
    commit = await pair[0].append(KEY, batch("e2"))
    assert commit.repeated
    assert sum("INSERT INTO ~entries" in sql for sql in asked) == 1
    assert ids((await pair[0].load(KEY)).entries) == ["e1", "e2"]


async def test_writers_in_turn_miss_once_and_then_ask_at_once(
    pair: Pair, asked: list[str]
) -> None:
    await begin(pair, "e1", "e2")
    costs: list[int] = []
    for n in range(6):
        asked.clear()
        commit = await pair[(n + 1) % 2].append(KEY, batch(f"f{n}"))
        costs.append(len(asked))
        assert commit.head == await stored(pair[0])
    assert costs == [1, 2, 2, 1, 1, 1]
    for n in range(3):  # alone again
        asked.clear()
        await pair[0].append(KEY, batch(f"g{n}"))
        assert len(asked) == 1
    assert "xmin = " in asked[-1]


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from(["one", *QUIET])),
        max_size=12,
    )
)
async def test_whoever_writes_each_append_tells_the_head_it_left(
    pair: Pair, acts: list[tuple[int, str]]
) -> None:
    await begin(pair, "e1")
    appended: list[str] = ["e1"]
    for n, (whose, act) in enumerate(acts):
        if act == "one":
            commit = await pair[whose].append(KEY, batch(f"{n}"))
            assert isinstance(commit, Commit)
            assert commit.head == await stored(pair[1 - whose])
            appended.append(f"{n}")
        else:
            await ELSEWHERE[act](pair[whose])
    assert ids((await pair[0].load(KEY)).entries) == appended


async def test_only_the_latest_heads_are_kept(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_postgres_known, "_MOST", 3)
    journal = pair[0]
    journal._known = KnownHeads()
    for n in range(6):
        key = SessionKey("app", "user", "", f"many{n}")
        await journal.create(NewSession(key=key))
        await journal.append(key, batch("e1"))
    assert [key.session for key in journal._known._heads] == ["many3", "many4", "many5"]
