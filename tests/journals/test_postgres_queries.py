"""People's own SQL over the journal in PostgreSQL, and the plans of the journal's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from itertools import combinations
from typing import Any

import asyncpg
import pytest
from journal_bindings import postgres_storage
from servers import postgres
from waits import reached

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_values import batch, said, varied
from raf_session.entries import Entry
from raf_session.journals._postgres_connections import PostgresConnection
from raf_session.journals._sql_dialect import Value
from raf_session.journals._sql_tables import HEAD_COLUMNS
from raf_session.journals.postgres import PostgresJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import MessageRole
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

LIMITS = Limits(
    sessions=SessionTTLOptions(max_idle_secs=3600, max_lifetime_secs=86_400),
    user_state=SessionTTLOptions(max_idle_secs=3600),
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def journal() -> AsyncGenerator[PostgresJournal]:
    async with postgres_storage() as opener, opener(clock=TickingClock()) as opened:
        assert isinstance(opened, PostgresJournal)
        yield opened


async def ask(journal: PostgresJournal, sql: str, *values: object) -> list[Any]:
    connection = await asyncpg.connect(
        postgres.url(), server_settings={"search_path": journal.schema}
    )
    rows = await connection.fetch(sql, *values)
    await connection.close()
    return [tuple(row) for row in rows]


# Statistics ----------------------------------------------------------------------


async def fill(journal: PostgresJournal) -> None:
    clock = journal.clock
    assert isinstance(clock, TickingClock)
    for user, turns in (("ann", 3), ("bob", 1)):
        key = SessionKey("shop", user, "", "s1")
        await journal.create(
            NewSession(key=key), change=Change(session=StateDelta({"b": 1, "a": "é"}))
        )
        for n in range(turns):
            event = varied(
                said(f"{n}u"),
                author="user",
                invocation_id=f"i{n}",
                timestamp=clock().timestamp() + 86_400 * n,
            )
            answer = said(f"{n}a", "yes", MessageRole.ASSISTANT)
            await journal.append(key, [event, varied(answer, author="agent")])
            clock.tick(60)


async def test_sessions_of_each_user(journal: PostgresJournal) -> None:
    await fill(journal)
    found = await ask(
        journal,
        """
        SELECT app_name, user_id, count(*), sum(conversation_count), min(create_time)
        FROM sessions WHERE app_name = 'shop' GROUP BY app_name, user_id
        ORDER BY user_id
        """,
    )
    assert found == [
        ("shop", "ann", 1, 3, START),
        ("shop", "bob", 1, 1, START + timedelta(minutes=3)),
    ]


async def test_events_of_each_author_and_day(journal: PostgresJournal) -> None:
    await fill(journal)
    found = await ask(
        journal,
        """
        SELECT date_trunc('day', timestamp AT TIME ZONE 'UTC')::date - $1::date AS day,
            author, count(*), count(DISTINCT invocation_id)
        FROM events JOIN sessions ON sessions.id = session_id
            AND sessions.user_id = events.user_id
        WHERE events.user_id = 'ann' GROUP BY day, author ORDER BY day, author
        """,
        START.date(),
    )
    assert found == [
        (0, "agent", 3, 0),
        (0, "user", 1, 1),
        (1, "user", 1, 1),
        (2, "user", 1, 1),
    ]


async def test_what_the_contents_and_states_say(journal: PostgresJournal) -> None:
    await fill(journal)
    found = await ask(
        journal,
        """
        SELECT e.content ->> 'role' AS role, count(*),
            max(length(e.content ->> 'content')), max(s.state ->> 'a')
        FROM events AS e JOIN sessions AS s
            ON (s.app_name, s.user_id, s.id) = (e.app_name, e.user_id, e.session_id)
        GROUP BY role ORDER BY role
        """,
    )
    assert found == [("assistant", 4, 3, "é"), ("user", 4, 14, "é")]


async def test_no_content_breaks_a_query(journal: PostgresJournal) -> None:
    key = SessionKey("app", "u", "", "s")
    await journal.create(NewSession(key=key))
    texts = ["a\0\0b", "\ud83d", "\\u0000", "\\\\\0", "😀\udcff", 'a "\\ud800"']
    await journal.append(
        key,
        [
            *(varied(said(f"{n}", text), author="me") for n, text in enumerate(texts)),
            Entry("big", author="me", timestamp=1e300, extra={"n": 10**400}),
        ],
    )
    rows = await ask(
        journal,
        "SELECT id, author, content ->> 'content' FROM events ORDER BY seq",
    )
    shown = [
        "a\ufffd\ufffdb",
        "\ufffd",
        "\\u0000",
        "\\\\\ufffd",
        "\ufffd\ufffd\ufffd",
        'a "\\ud800"',
    ]
    assert rows == [
        *((f"{n}", "me", text) for n, text in enumerate(shown)),
        ("big", "me", None),
    ]
    assert [
        entry.message and entry.message.text
        for entry in (await journal.load(key)).entries[:-1]
    ] == texts


async def test_no_zone_alters_anything() -> None:
    connection = await asyncpg.connect(postgres.url())
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f"ALTER DATABASE {name} SET timezone = 'Asia/Shanghai'")
    try:
        clock = TickingClock()
        async with postgres_storage() as opener, opener(clock=clock) as journal:
            assert isinstance(journal, PostgresJournal)
            key = SessionKey("app", "u", "", "s")
            head = (await journal.create(NewSession(key=key), batch("a"))).head
            record = await journal.load(key)
            assert (record.head, record.entries[0].stored_at) == (head, START)
            ((created, at),) = await ask(
                journal,
                "SELECT create_time, timestamp FROM sessions JOIN events USING (scope)",
            )
            assert (created, at) == (START, START)
    finally:
        await connection.execute(f"ALTER DATABASE {name} RESET timezone")
        await connection.close()


# Plans ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def full() -> AsyncGenerator[PostgresJournal]:
    """10,000 sessions, one of them long."""
    async with (
        postgres_storage() as opener,
        opener(clock=TickingClock(), limits=LIMITS) as opened,
    ):
        assert isinstance(opened, PostgresJournal)
        label = Change(labels=LabelDelta(added=["rare"]))
        key = SessionKey("app", "user0", "", "long")
        await opened.create(NewSession(key=key), change=label)
        names = ", ".join(HEAD_COLUMNS)
        values = names.replace("last_active_at", "last_active_at - 200000 * n")
        await ask(
            opened,
            f"""
            INSERT INTO heads (app, usr, scope, session, tail_at, labels, {names})
            SELECT 'app', 'user' || n / 100, '', 'session' || n, 0, '', {values}
            FROM heads, generate_series(1, 10000) AS n
            """,  # noqa: S608
        )
        for start in range(0, 5000, 1000):
            await opened.append(key, batch(*(f"e{start + n}" for n in range(1000))))
        await ask(opened, "ANALYZE heads")
        await ask(opened, "ANALYZE entries")
        yield opened


class Plans:
    """What the server is asked, and how it means to find it."""

    def __init__(self, journal: PostgresJournal, patch: pytest.MonkeyPatch) -> None:
        self._journal = journal
        self.asked: list[tuple[str, tuple[Value, ...]]] = []
        plain = PostgresConnection.rows

        async def rows(own: PostgresConnection, sql: str, /, *values: Value) -> Any:
            self.asked.append((sql, values))
            return await plain(own, sql, *values)

        patch.setattr(PostgresConnection, "rows", rows)

    async def plan(self, sql: str, values: tuple[Value, ...]) -> str:
        text = self._journal._postgres.translate(sql)
        rows = await ask(self._journal, f"EXPLAIN {text}", *values)
        return "\n".join(line for (line,) in rows)


@pytest.fixture
def plans(full: PostgresJournal, monkeypatch: pytest.MonkeyPatch) -> Plans:
    return Plans(full, monkeypatch)


LONG = SessionKey("app", "user0", "", "long")
SCANS: dict[str, tuple[Query, Any, str]] = {
    "activity": (Query(), "activity", "by_activity"),
    "an app's": (Query(app="app"), "activity", "by_activity"),
    "a user's": (Query(app="app", user="user7"), "activity", "heads_by_"),
    "by key": (Query(), "key", "heads_by_key"),
    "a user's by key": (Query(app="app", user="user7"), "key", "heads_by_key"),
    "by label": (Query(labels=["rare"]), "activity", "labels"),
}


@pytest.mark.parametrize("case", SCANS)
async def test_listings_use_an_index(
    full: PostgresJournal, plans: Plans, case: str
) -> None:
    query, order, index = SCANS[case]
    page = await full.scan(query, order=order, limit=20)
    assert len(page.sessions) == (1 if case == "by label" else 20)
    assert len(plans.asked) == 1
    if page.cursor is not None:
        await full.scan(query, page.cursor, order=order, limit=20, state=True)
        assert len(plans.asked) <= 4
    for sql, values in plans.asked:
        plan = await plans.plan(sql, values)
        assert "Seq Scan on heads" not in plan, plan
        assert index in plan or "session_state" in sql, plan


async def test_appends_leave_the_indexes_of_heads_alone() -> None:
    async with postgres_storage() as opener:
        opened = opener(clock=TickingClock())
        assert isinstance(opened, PostgresJournal)
        async with opened:
            await opened.create(NewSession(key=LONG))
            for n in range(50):
                await opened.append(LONG, batch(f"e{n}"))

        async def in_place() -> int:
            ((updates,),) = await ask(
                opened,
                "SELECT n_tup_hot_upd FROM pg_stat_user_tables "
                "WHERE relname = 'heads' AND schemaname = $1",
                opened.schema,
            )
            return int(updates)

        # A row moves to another page now and then.
        assert await reached(in_place, lambda updates: updates > 40) > 40


async def test_reads_of_a_window_use_an_index(
    full: PostgresJournal, plans: Plans
) -> None:
    record = await full.load(LONG, Window(last=20))
    assert [entry.seq for entry in record.entries] == list(range(4981, 5001))
    await full.load(LONG, Window(after_seq=4990))
    await full.load(LONG, Window(after_time=START, last=5))
    assert len(plans.asked) == 3, "one statement each"
    for sql, values in plans.asked:
        plan = await plans.plan(sql, values)
        assert "entries_by_place" in plan, plan
        assert "Seq Scan on heads" not in plan, plan
        assert "Seq Scan on entries" not in plan, plan
        assert "Sort" not in plan, plan


GUARDS = ("expected_revision", "incarnation", "trim")


@pytest.mark.parametrize(
    "named", [names for n in range(4) for names in combinations(GUARDS, n)]
)
@pytest.mark.parametrize("index", ["heads_by_key", "heads_pkey"])
async def test_an_append_is_one_statement_whatever_it_asks_for(
    full: PostgresJournal, plans: Plans, index: str, named: tuple[str, ...]
) -> None:
    before = said(" ".join(("before", index, *named)))
    head = (await full.append(LONG, [before])).head
    asked = {"expected_revision": head.revision, "incarnation": head.incarnation}
    asked |= {"trim": head.active.entries + 1}
    options: dict[str, Any] = {name: asked[name] for name in named}
    if index == "heads_by_key":
        full._known.forget(LONG)
    plans.asked.clear()
    entry = said(" ".join(("guarded", index, *named)))
    commit = await full.append(LONG, [entry], **options)
    assert commit.head.revision == head.revision + 1
    ((sql, values),) = plans.asked
    plan = await plans.plan(sql, values)
    assert index in plan, plan
    assert "Seq Scan" not in plan, plan


async def test_a_retry_and_a_sweep_use_an_index(
    full: PostgresJournal, plans: Plans
) -> None:
    again = await full.append(LONG, batch("e7", "e4000"))
    assert again.repeated
    assert await full.expire(10) == ()
    await full.scoped_state(ScopeKey("app", "user0"))
    assert any("id IN ??" in sql for sql, _ in plans.asked)
    for sql, values in plans.asked:
        if "~append_" in sql or "scopes" in sql:
            continue
        plan = await plans.plan(sql, values)
        assert "Seq Scan" not in plan, plan
