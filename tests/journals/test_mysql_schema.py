"""Tables, views and procedure in a database: who makes them, and what is left alone."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator

import anyio
import pytest
from mysql_databases import ask, database, user_of

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, ids, said
from raf_session.entries import Entry
from raf_session.errors import SchemaVersionError, StorageError
from raf_session.journals._mysql_routine import APPEND, APPEND_ONE, ROUTINES, Routine
from raf_session.journals.mysql import MysqlJournal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import NewSession, Query

pytestmark = pytest.mark.anyio

NAMES = sorted(routine.name for routine in ROUTINES)
READ_AND_WRITE = "SELECT, INSERT, UPDATE, DELETE ON *.*"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def url() -> AsyncGenerator[str]:
    async with database() as url:
        yield url


def rights(url: str, *names: str) -> str:
    return f"{', '.join(names)} ON {url.rpartition('/')[2]}.*"


async def use(journal: MysqlJournal) -> None:
    """Write and read in every way."""
    async with journal:
        await journal.create(NEW, [said("a")])
        await journal.append(KEY, [said("b")])
        await journal.append(
            KEY, [said("c"), said("d")], change=Change(user=StateDelta({"u": 1}))
        )
        await journal.splice(KEY, 1, 2, [said("s")], archive=True)
        record = await journal.load(KEY, archived=True)
        assert ids(record.entries) == ["s", "c", "d"]
        assert ids(record.archived) == ["a", "b"]
        assert await journal.delete(KEY)


# Who makes them ------------------------------------------------------------------


async def test_a_user_with_all_rights_makes_everything(url: str) -> None:
    async with user_of(url, rights(url, "ALL")) as theirs:
        await use(MysqlJournal(theirs))
    found = await ask(
        url,
        "SELECT table_name, engine, row_format FROM information_schema.tables "
        "WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'",
    )
    assert {name for name, _, _ in found} == {
        "raf_entries",
        "raf_heads",
        "raf_labels",
        "raf_meta",
        "raf_provider_states",
        "raf_request_digests",
        "raf_scoped_state",
        "raf_scopes",
        "raf_session_state",
    }
    assert {(engine, form) for _, engine, form in found} == {("InnoDB", "Dynamic")}


async def test_a_user_without_routines_does_without(url: str) -> None:
    may = rights(
        url,
        *("SELECT", "INSERT", "UPDATE", "DELETE"),
        *("CREATE", "REFERENCES", "INDEX", "CREATE VIEW"),
    )
    async with user_of(url, may) as theirs:
        await use(MysqlJournal(theirs))
        assert not await routines(url)
        await use(MysqlJournal(theirs))


async def test_a_user_who_may_not_call_the_routine_does_without(url: str) -> None:
    await MysqlJournal(url).migrate()
    assert await routines(url)
    async with user_of(url, rights(url, "SELECT", "INSERT", "UPDATE", "DELETE")) as one:
        await use(MysqlJournal(one))


async def test_a_user_who_may_call_it_does(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await MysqlJournal(url).migrate()
    may = rights(url, "SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE")
    async with user_of(url, may) as theirs, MysqlJournal(theirs) as journal:
        await journal.create(NEW)
        monkeypatch.delattr("raf_session.journals._sql_writes.Append.run")
        await journal.append(KEY, [said("b")])
        await journal.append(KEY, [said("c"), said("d")])
        assert ids((await journal.load(KEY)).entries) == ["b", "c", "d"]


async def routines(url: str) -> list[str]:
    found = await ask(
        url,
        "SELECT routine_name FROM information_schema.routines "
        "WHERE routine_schema = DATABASE() ORDER BY routine_name",
    )
    return [name for (name,) in found]


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_user_who_may_create_nothing_needs_a_migration(
    url: str, *, migrate: bool
) -> None:
    may = rights(url, "SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE")
    async with user_of(url, may) as theirs:
        with pytest.raises(StorageError, match="raf-session migrate"):
            await MysqlJournal(theirs, migrate=migrate).__aenter__()
        await MysqlJournal(url).migrate()
        await use(MysqlJournal(theirs, migrate=migrate))


async def test_nothing_is_made_that_was_not_wanted(url: str) -> None:
    with pytest.raises(StorageError, match="raf-session migrate"):
        await MysqlJournal(url, migrate=False).__aenter__()
    assert await ask(url, "SHOW TABLES") == ()


async def test_a_user_without_views_is_told(url: str) -> None:
    may = rights(
        url,
        *("SELECT", "INSERT", "UPDATE", "DELETE"),
        *("CREATE", "REFERENCES", "INDEX", "CREATE ROUTINE", "EXECUTE"),
    )
    async with user_of(url, may) as theirs:
        with pytest.warns(RuntimeWarning, match="may not create the view"):
            await use(MysqlJournal(theirs))
        await use(MysqlJournal(theirs))  # and not told again


# What is there already -----------------------------------------------------------


async def test_tables_of_others_stay_as_they_are(url: str) -> None:
    await ask(url, "CREATE TABLE sessions (id INT)", "INSERT INTO sessions VALUES (7)")
    with pytest.warns(RuntimeWarning, match="'sessions' of another program"):
        await use(MysqlJournal(url))
    assert await ask(url, "SELECT id FROM sessions") == ((7,),)
    assert await ask(url, "SELECT count(*) FROM events") == ((0,),)


@pytest.mark.parametrize("migrate", [True, False])
async def test_newer_tables_are_refused(url: str, *, migrate: bool) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
    await ask(url, "UPDATE raf_meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(SchemaVersionError) as caught:
        await MysqlJournal(url, migrate=migrate).__aenter__()
    assert (caught.value.found, caught.value.supported) == (99, 1)
    with pytest.raises(SchemaVersionError):
        await MysqlJournal(url).migrate()
    assert await ask(url, "SELECT count(*) FROM raf_heads") == ((1,),)


async def test_what_a_kill_left_of_a_migration_is_completed(url: str) -> None:
    await MysqlJournal(url).migrate()
    await ask(
        url,
        "DELETE FROM raf_meta",
        "DROP TABLE raf_scoped_state",
        "DROP VIEW events",
        f"DROP PROCEDURE {APPEND.name}",
    )
    await use(MysqlJournal(url))
    assert await routines(url) == NAMES
    assert await ask(url, "SELECT count(*) FROM events") == ((0,),)


async def test_a_migration_that_is_cancelled_leaves_no_lock(url: str) -> None:
    for steps in (1, 5, 10, 15, 20, 40):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(MysqlJournal(url).migrate)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
    with anyio.fail_after(20):
        await use(MysqlJournal(url))


async def test_an_open_journal_migrates_too(url: str) -> None:
    async with MysqlJournal(url) as journal:
        await ask(url, f"DROP PROCEDURE {APPEND_ONE.name}")
        await journal.migrate()
        assert await routines(url) == NAMES


@pytest.mark.parametrize("gone", [[APPEND], [APPEND_ONE], [APPEND, APPEND_ONE]])
async def test_routines_that_are_gone_are_done_without(
    url: str, gone: list[Routine]
) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
        await journal.append(KEY, [said("a")])
        await ask(url, *(f"DROP PROCEDURE {routine.name}" for routine in gone))
        await journal.append(KEY, [said("b")])
        await journal.append(KEY, [said("c"), said("d")])
        await journal.append(KEY, [said("e")])
        stored = (await journal.load(KEY)).entries
        assert ids(stored) == ["a", "b", "c", "d", "e"]


# Texts ---------------------------------------------------------------------------


@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "utf8mb4", "ucs2"])
async def test_texts_do_not_depend_on_the_character_set(charset: str) -> None:
    text = "a\N{GRINNING FACE}\U00020bb7é '\\\"\n%s ?"
    key = SessionKey(text, f"{text}u", "", f"{text}s")
    near = [
        key._replace(session=session) for session in ("a", "a ", "A", "ä", "a\u0308")
    ]
    async with database(charset=charset) as url, MysqlJournal(url) as journal:
        for one in (key, *near):
            await journal.create(NewSession(key=one))
        entry = Entry(text, message=ChatMessage.user(text))
        change = Change(
            session=StateDelta({text: text}),
            user=StateDelta({text: text}),
            title=text,
            model=text,
            labels=LabelDelta([text]),
        )
        await journal.append(key, [entry], change=change)
        await journal.append(key, [Entry(f"{text}2"), Entry(f"{text}3")])
        await journal.append(key, [Entry(f"{text}4", message=entry.message)])
        record = await journal.load(key)
        assert [one.id for one in record.entries] == [
            text,
            *(f"{text}{n}" for n in "234"),
        ]
        assert record.entries[0].message == record.entries[3].message == entry.message
        assert dict(record.state) == dict(record.user_state) == {text: text}
        assert (record.head.title, record.head.model) == (text, text)
        page = await journal.scan(Query(labels=[text]))
        assert [one.head.key for one in page.sessions] == [key]
        page = await journal.scan(Query(), order="key")
        assert [one.head.key for one in page.sessions] == sorted([key, *near])


async def test_opening_warns_of_nothing(url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await use(MysqlJournal(url))
        await use(MysqlJournal(url))
