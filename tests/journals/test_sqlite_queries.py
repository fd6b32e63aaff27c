"""How many statements the journal in a SQLite file needs, and how they are run."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, every, said
from raf_session.journal import Order
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

DAY: Final = 86_400
IDLE: Final = SessionTTLOptions(max_idle_secs=DAY, max_lifetime_secs=30 * DAY)
LIMITS: Final = Limits(sessions=IDLE, user_state=IDLE, app_state=IDLE)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


class Traced:
    """A journal, and the statements that it runs."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.journal = journal
        self._seen: list[str] = []
        self.result: Any = None
        """What the last call returned."""

    async def statements(self, call: Awaitable[object]) -> list[str]:
        """Return the statements of a call, without those that begin and end it."""
        database = self.journal._opened().database
        connections = [*database._idle, database._writer]
        for connection in connections:
            assert connection is not None
            connection.set_trace_callback(self._seen.append)
        self._seen.clear()
        self.result = await call
        return [" ".join(sql.split()) for sql in self._seen]

    async def plans(self, call: Awaitable[object]) -> dict[str, str]:
        """Return how each statement of a call is run."""
        statements = await self.statements(call)
        with closing(sqlite3.connect(self.journal.path)) as connection:
            return {
                sql: " ; ".join(
                    str(row[3])
                    for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")
                )
                for sql in statements
                if sql.startswith(("SELECT", "UPDATE", "DELETE"))
            }


@pytest.fixture
async def traced(path: Path) -> AsyncGenerator[Traced]:
    async with SqliteJournal(path, clock=TickingClock(), limits=LIMITS) as journal:
        await journal.create(NEW, [said(f"e{n}") for n in range(20)])
        await journal.load(KEY)  # a reader is open from here on
        yield Traced(journal)


def is_full_scan(plan: str) -> bool:
    return any(
        step.startswith("SCAN") and "json_each" not in step and "INDEX" not in step
        for step in plan.split(" ; ")
    )


# Statements ----------------------------------------------------------------------


async def test_an_append_takes_five_statements(traced: Traced) -> None:
    journal = traced.journal
    first = await traced.statements(journal.append(KEY, [said("a1")]))
    assert [sql.split()[0] for sql in first] == [
        *("BEGIN", "PRAGMA", "SELECT", "INSERT", "UPDATE", "COMMIT")
    ]
    for n in range(5):
        again = await traced.statements(journal.append(KEY, [said(f"b{n}")]))
        assert [sql.split()[0] for sql in again] == [
            *("BEGIN", "PRAGMA", "INSERT", "UPDATE", "COMMIT")
        ]


async def test_an_append_touches_only_what_it_names(traced: Traced) -> None:
    journal = traced.journal
    digests = b"digests!" * 10_000
    await journal.update(KEY, Change(request=RequestDelta(0, digests, 5)))
    statements = await traced.statements(
        journal.append(
            KEY,
            [said("a1")],
            change=Change(
                session=StateDelta({"a": 1}),
                request=RequestDelta(10_000, b"one more", 6, base=5),
            ),
        )
    )
    written = [sql for sql in statements if not sql.startswith(("BEGIN", "COMMIT"))]
    assert len(written) == 7
    assert not any("digests!" * 65 in sql for sql in statements)


@pytest.mark.parametrize("order", ["key", "activity"])
@pytest.mark.parametrize(
    "query",
    [
        Query(),
        Query(app="app"),
        Query(app="app", user="u1"),
        Query(labels=["even"]),
        Query(user="u1", scope=""),
    ],
    ids=repr,
)
async def test_a_page_takes_a_constant_number_of_statements(
    traced: Traced, order: Order, query: Query
) -> None:
    journal = traced.journal
    for n in range(300):
        await journal.create(
            NewSession(key=SessionKey("app", f"u{n % 7}", "", f"s{n}")),
            change=Change(
                session=StateDelta({"n": n}),
                labels=LabelDelta(["odd" if n % 2 else "even"]),
            ),
        )
    for limit in (5, 100):
        cursor = None
        for _ in range(3):
            statements = await traced.statements(
                journal.scan(query, cursor, order=order, limit=limit, state=True)
            )
            assert len(statements) <= 2 + 4
            assert not any("FROM entries" in sql for sql in statements)
            cursor = traced.result.cursor
            if cursor is None:
                break


# Plans ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    [
        Window(),
        Window(last=3),
        Window(after_seq=5),
        Window(before_seq=5, last=2),
        Window(after_time=TickingClock()()),
    ],
    ids=repr,
)
async def test_a_load_uses_indexes(traced: Traced, window: Window) -> None:
    plans = await traced.plans(traced.journal.load(KEY, window, archived=True))
    assert len(plans) >= 7
    assert not [sql for sql, plan in plans.items() if is_full_scan(plan)]
    active = [plan for sql, plan in plans.items() if "left_at = 0" in sql]
    assert active
    for plan in active:
        assert "entries_by_place (session=? AND left_at=?" in plan
        assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("cursor", [False, True])
@pytest.mark.parametrize("order", ["key", "activity"])
@pytest.mark.parametrize(
    ("query", "bounds"),
    [
        (Query(), ""),
        (Query(app="app"), "app=?"),
        (Query(app="app", user="user"), "app=? AND user=?"),
        (Query(app="app", user="user", scope=""), "app=? AND user=? AND scope=?"),
    ],
)
async def test_a_listing_uses_indexes(
    traced: Traced, order: Order, query: Query, bounds: str, cursor: bool
) -> None:
    journal = traced.journal
    await journal.create(NewSession(key=SessionKey("app", "user", "", "t")))
    after = None
    if cursor:
        after = (await journal.scan(query, order=order, limit=1)).cursor
    plans = await traced.plans(journal.scan(query, after, order=order, state=True))
    pages = [plan for sql, plan in plans.items() if "tail_at" in sql]
    assert pages
    for plan in pages:
        assert not is_full_scan(plan)
        if order == "key" or bounds:
            assert f"heads_by_key ({bounds}" in plan or not (bounds or cursor)
        else:
            assert "heads_by_activity" in plan
            assert "TEMP B-TREE" not in plan
        if order == "key":
            assert "TEMP B-TREE" not in plan
            assert not cursor or ">(" in plan or ">?" in plan


async def test_a_listing_of_many_walks_in_order(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raf_session.journals._sqlite_listing._FEW", 0)
    journal = traced.journal
    for query in (Query(app="app"), Query(labels=["l"]), Query(app="app", user="user")):
        plans = await traced.plans(journal.scan(query))
        (page,) = [plan for sql, plan in plans.items() if "tail_at" in sql]
        assert "heads USING INDEX heads_by_activity" in page
        assert "TEMP B-TREE" not in page


async def test_a_listing_by_a_rare_label_reads_those(traced: Traced) -> None:
    plans = await traced.plans(traced.journal.scan(Query(labels=["rare"])))
    (page,) = [plan for sql, plan in plans.items() if "tail_at" in sql]
    assert "SEARCH heads USING INTEGER PRIMARY KEY" in page
    assert "labels_by_label (label=?)" in page


async def test_a_sweep_uses_indexes(traced: Traced) -> None:
    plans = await traced.plans(traced.journal.expire())
    selects = {sql: plan for sql, plan in plans.items() if "SELECT" in sql}
    assert len(selects) == 6
    for plan in selects.values():
        assert plan.startswith("SEARCH")
        assert "_at<?" in plan


async def test_a_splice_and_a_delete_use_indexes(traced: Traced) -> None:
    journal = traced.journal
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: journal.splice(KEY, 3, 5, [said("s")], archive=True),
        lambda: journal.append(KEY, [said("t")], trim=4),
        lambda: journal.splice(KEY, 1, 99, archive=False, purge=True),
        lambda: journal.delete(KEY),
    ]
    for call in calls:
        plans = await traced.plans(call())
        assert not [sql for sql, plan in plans.items() if is_full_scan(plan)]


async def test_both_ways_of_listing_agree(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TickingClock()
    async with SqliteJournal(path, clock=clock) as journal:
        for n in range(60):
            clock.tick(n % 3)  # some are active at the same moment
            await journal.create(
                NewSession(key=SessionKey(f"a{n % 2}", f"u{n % 5}", "", f"s{n}")),
                change=Change(labels=LabelDelta([f"l{n % 3}"])),
            )
        queries = [
            Query(),
            Query(app="a1"),
            Query(app="a1", user="u2"),
            Query(user="u2"),
            Query(labels=["l1"]),
            Query(app="a0", labels=["l0"]),
        ]
        few = [
            await every(journal, query, order=order, limit=7)
            for query in queries
            for order in ("key", "activity")
        ]
        monkeypatch.setattr("raf_session.journals._sqlite_listing._FEW", 0)
        many = [
            await every(journal, query, order=order, limit=7)
            for query in queries
            for order in ("key", "activity")
        ]
    assert few == many
    assert [len(listed) for listed in few[::2]] == [60, 30, 6, 12, 20, 10]


# Size ----------------------------------------------------------------------------


async def test_stored_bytes_per_message(path: Path) -> None:
    n, size = 2000, 1000
    async with SqliteJournal(path) as journal:
        keys = [SessionKey("app", f"u{m}", "", "s") for m in range(10)]
        for key in keys:
            await journal.create(NewSession(key=key))
        for m in range(n):
            entry = said(f"00000000-0000-4000-8000-{m * 7919 % 10**12:012}", "x" * size)
            await journal.append(keys[m % 10], [entry])
    assert path.stat().st_size <= 2 * n * size  # noqa: ASYNC240
