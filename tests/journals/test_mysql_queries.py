"""How the statements of the MySQL journal are run, and people's own queries."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import asyncmy
import pytest
from mysql_databases import ask, database

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import said
from raf_session.entries import Entry
from raf_session.journal import Order
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_routine import ROUTINES
from raf_session.journals._mysql_values import expanded
from raf_session.journals.mysql import MysqlJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

DAY: Final = 86_400
IDLE: Final = SessionTTLOptions(max_idle_secs=DAY, max_lifetime_secs=30 * DAY)
LIMITS: Final = Limits(sessions=IDLE, user_state=IDLE, app_state=IDLE)
SESSIONS: Final = 160
KEY: Final = SessionKey("app1", "user1", "", "s1")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Step(NamedTuple):
    """How one table of a statement is read."""

    sql: str
    table: str
    kind: str
    key: str
    rows: int
    extra: str


class Traced:
    """A journal over many sessions, and the statements that it runs."""

    def __init__(self, url: str, patch: pytest.MonkeyPatch) -> None:
        self.url = url
        self.clock = TickingClock()
        self.journal = MysqlJournal(url, clock=self.clock, limits=LIMITS)
        self.trips = 0
        self._seen: list[tuple[str, Sequence[Any]]] = []
        run, script, end = (
            getattr(MysqlConnection, name) for name in ("run", "script", "_end")
        )

        async def traced_run(
            connection: MysqlConnection, text: str, values: Sequence[Any] = ()
        ) -> Any:
            self._seen.append((text, values))
            self.trips += 1
            return await run(connection, text, values)

        async def traced_script(connection: MysqlConnection, text: str) -> Any:
            self.trips += 1
            return await script(connection, text)

        async def traced_end(connection: MysqlConnection, step: Any) -> None:
            self.trips += 1
            await end(connection, step)

        patch.setattr(MysqlConnection, "run", traced_run)
        patch.setattr(MysqlConnection, "script", traced_script)
        patch.setattr(MysqlConnection, "_end", traced_end)

    async def round_trips(self, call: Awaitable[object]) -> int:
        """Return how often a call waits for the server."""
        self.trips = 0
        await call
        return self.trips

    async def plan(self, call: Awaitable[object]) -> list[Step]:
        """Return how the statements of a call are run."""
        self._seen.clear()
        await call
        seen = [(text, values) for text, values in self._seen if "CALL" not in text]
        parts = urlsplit(self.url)
        connection: Any = await asyncmy.connect(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            database=parts.path[1:],
        )
        steps: list[Step] = []
        for text, values in seen:
            if not text.split()[0].startswith("INSERT"):
                sql, args = expanded(text, values)
                statement = await connection.prepare(f"EXPLAIN {sql}")
                for row in (await statement.execute(args)).rows:
                    _, _, table, kind, _, key, _, _, rows, extra = row
                    steps.append(
                        Step(
                            " ".join(sql.split()),
                            *(table, kind, key, int(rows or 0), extra or ""),
                        )
                    )
        await connection.ensure_closed()
        return steps


def key_of(n: int) -> SessionKey:
    return SessionKey(f"app{n % 4}", f"user{n % 20}", "", f"s{n}")


@pytest.fixture
async def traced(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Traced]:
    async with database() as url:
        traced = Traced(url, monkeypatch)
        async with traced.journal as journal:
            for n in range(SESSIONS):
                traced.clock.tick(1)
                delta = StateDelta({f"k{i}": i for i in range(3)})
                await journal.create(
                    NewSession(key=key_of(n)),
                    [said(f"{n}-{i}") for i in range(30 if n == 1 else 3)],
                    change=Change(
                        session=delta, user=delta, labels=LabelDelta([f"l{n % 40}"])
                    ),
                )
            await ask(
                url,
                "ANALYZE TABLE raf_heads, raf_entries, raf_labels, raf_scopes, "
                "raf_session_state, raf_scoped_state, raf_provider_states, "
                "raf_request_digests",
            )
            await journal.load(KEY)
            await journal.append(KEY, [said("warm")])
            yield traced


def scans(steps: Sequence[Step]) -> list[Step]:
    """Return the steps that read all of a table with rows in it."""
    return [step for step in steps if step.kind == "ALL" and step.rows > 1]


# Round trips ---------------------------------------------------------------------


async def test_an_append_is_one_round_trip(traced: Traced) -> None:
    journal = traced.journal
    for n, entries in enumerate([1, 1, 5, 30]):
        batch = [said(f"{n}.{i}") for i in range(entries)]
        assert await traced.round_trips(journal.append(KEY, batch)) == 1
    touch = Change(touch=traced.clock())
    assert await traced.round_trips(journal.append(KEY, [said("t")], change=touch)) == 1
    trim = journal.append(KEY, [said("u")], trim=1000, expected_revision=7)
    assert await traced.round_trips(trim) == 1


async def test_a_load_is_one_round_trip(traced: Traced) -> None:
    journal = traced.journal
    for window in (
        Window(),
        Window(last=5),
        Window(after_seq=3, before_seq=9),
        Window(after_time=traced.clock(), last=2),
    ):
        for archived in (False, True):
            await journal.load(KEY, window, archived=archived)  # it is prepared
            call = journal.load(KEY, window, archived=archived)
            assert await traced.round_trips(call) == 1


@pytest.mark.parametrize("order", ["key", "activity"])
async def test_a_page_takes_few_round_trips(traced: Traced, order: Order) -> None:
    journal = traced.journal
    for limit in (5, 200):
        first = await journal.scan(Query(), order=order, limit=limit, state=True)
        call = journal.scan(Query(), first.cursor, order=order, limit=limit, state=True)
        assert await traced.round_trips(call) <= 5


# Plans ---------------------------------------------------------------------------


async def test_a_load_reads_by_keys(traced: Traced) -> None:
    window = Window(last=5, after_time=traced.clock())
    for asked, archived in ((Window(), False), (window, True)):
        steps = await traced.plan(traced.journal.load(KEY, asked, archived=archived))
        assert not scans(steps)
        assert not [step for step in steps if "filesort" in step.extra]
        assert not [step for step in steps if step.rows > 40]


async def test_writes_find_their_rows_by_keys(traced: Traced) -> None:
    journal = traced.journal
    journal._missing.update(ROUTINES)
    delta = StateDelta({"a": 1}, deleted=["k1"])
    change = Change(session=delta, user=delta, app=delta, providers=delta)
    title = Change(title="t", labels=LabelDelta(["x"], ["l1"]))
    calls: tuple[Callable[[], Awaitable[object]], ...] = (
        partial(journal.append, KEY, [said("a"), said("b")], change=change, trim=20),
        partial(journal.splice, KEY, 16, 20, [said("c")], archive=True),
        partial(journal.splice, KEY, 1, 25, [], archive=False, purge=True),
        partial(journal.update, KEY, title),
        partial(journal.load, KEY, refresh=True),
        partial(journal.delete, KEY),
        partial(journal.update_scoped_state, ScopeKey("app1", "user1"), delta),
    )
    for call in calls:
        assert not scans(await traced.plan(call()))


QUERIES: Final = (
    Query(),
    Query(app="app1"),
    Query(app="app1", user="user1"),
    Query(labels=["l1"]),
)


@pytest.mark.parametrize("order", ["key", "activity"])
async def test_listings_use_an_index(traced: Traced, order: Order) -> None:
    journal = traced.journal
    for query in QUERIES:
        first = await journal.scan(query, order=order, limit=3)
        for cursor in (None, first.cursor):
            steps = await traced.plan(journal.scan(query, cursor, order=order, limit=3))
            assert not scans(steps)
            if query == Query():
                assert {step.key for step in steps} == {f"heads_by_{order}"}
                assert not [step for step in steps if "filesort" in step.extra]


async def test_sweeps_use_the_indexes_of_times(traced: Traced) -> None:
    for dry_run in (True, False):
        traced.clock.tick(DAY - SESSIONS + 5)
        steps = await traced.plan(traced.journal.expire(3, dry_run=dry_run))
        assert not scans(steps)
        found = [step for step in steps if step.sql.startswith("SELECT")]
        assert {step.key for step in found} <= {
            "heads_by_activity",
            "heads_by_age",
            "scopes_by_activity",
            "scopes_by_age",
        }


# People's own queries ------------------------------------------------------------


@pytest.fixture
async def told() -> AsyncGenerator[str]:
    """Give the URL of a database with three conversations in it."""
    clock = TickingClock()
    async with database(charset="latin1") as url, MysqlJournal(url, clock=clock) as one:
        for n, user in enumerate(["ann", "ann ", "bé\N{GRINNING FACE}"]):
            key = SessionKey("app", user, "", f"s{n}")
            await one.create(
                NewSession(key=key),
                change=Change(session=StateDelta({"mood": "gut", "n": [n, None]})),
            )
            for i in range(n + 1):
                clock.tick(60)
                await one.append(
                    key,
                    [
                        Entry(
                            f"{n}-{i}",
                            "event",
                            ChatMessage.user(
                                "hé\N{GRINNING FACE}" + "\ud800" * (i == 2)
                            ),
                            author="agent" if i else "user",
                            invocation_id=f"run{i}",
                            timestamp=1_700_000_000.25 if i else None,
                        )
                    ],
                )
        await one.splice(SessionKey("app", "ann", "", "s0"), 1, 1, archive=True)
        yield url


async def test_sessions_of_each_user(told: str) -> None:
    found = await ask(
        told,
        "SELECT user_id, COUNT(*), SUM(conversation_count) FROM sessions "
        "WHERE app_name = 'app' GROUP BY user_id ORDER BY 3",
    )
    assert [(user, int(n), int(talks)) for user, n, talks in found] == [
        ("ann", 1, 0),
        ("ann ", 1, 2),
        ("bé\N{GRINNING FACE}", 1, 3),
    ]


async def test_events_of_each_author_and_day(told: str) -> None:
    found = await ask(
        told,
        "SELECT author, DATE(timestamp) AS day, COUNT(*) FROM events "
        "GROUP BY author, day ORDER BY author",
    )
    start = TickingClock()().date()
    assert [(author, str(day), n) for author, day, n in found] == [
        (None, str(start), 1),  # MariaDB does not read a lone surrogate
        ("agent", "2023-11-14", 2),
        ("user", str(start), 2),
    ]


async def test_the_latest_event_of_each_session(told: str) -> None:
    found = await ask(
        told,
        "SELECT s.id, JSON_UNQUOTE(JSON_EXTRACT(s.state, '$.mood')), e.invocation_id, "
        "JSON_UNQUOTE(JSON_EXTRACT(e.content, '$.content')) "
        "FROM sessions AS s JOIN events AS e ON e.session_id = s.id "
        "AND e.user_id = s.user_id "
        "WHERE e.seq = (SELECT MAX(seq) FROM events AS x WHERE x.session_id = s.id) "
        "AND s.create_time <= s.update_time ORDER BY s.id",
    )
    assert [(row[0], row[1], row[2]) for row in found] == [
        ("s1", "gut", "run1"),
        ("s2", "gut", None),
    ]
    assert found[0][3] == "hé\N{GRINNING FACE}"


async def test_labels_that_are_too_large_for_one_value_of_the_server() -> None:
    labels = [f"{n:05}{'é' * 250}" for n in range(6500)]
    async with database() as url, MysqlJournal(url) as journal:
        change = Change(labels=LabelDelta(labels))
        await journal.create(NewSession(key=KEY), [said("e1")], change=change)
        assert not (await journal.append(KEY, [said("e2")])).repeated
        record = await journal.load(KEY, refresh=True)
        assert record.head.labels == frozenset(labels)
        assert [entry.id for entry in record.entries] == ["e1", "e2"]
        assert len((await journal.scan(Query())).sessions) == 1
        assert await journal.delete(KEY)
