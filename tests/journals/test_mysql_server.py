"""Servers that are set in other ways than a journal would wish."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any, cast

import pytest
from asyncmy.errors import OperationalError
from mysql_databases import ask, database
from servers.mariadb import MariadbServer

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, ids, said
from raf_session.errors import EntryTooLargeError, StorageError
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_routine import ROUTINES
from raf_session.journals._mysql_server import check_server
from raf_session.journals.mysql import MysqlJournal
from raf_session.options import Limits, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

PACKET = 1024 * 1024
HOSTILE = (
    "--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH",
    "--transaction-isolation=SERIALIZABLE",
    "--character-set-server=latin1",
    "--skip-character-set-client-handshake",
    "--autocommit=0",
    "--completion-type=CHAIN",
    "--default-time-zone=+09:00",
    "--default-storage-engine=MyISAM",
    "--innodb-default-row-format=compact",
    "--lower-case-table-names=1",
    "--innodb-lock-wait-timeout=1",
    "--group-concat-max-len=4",
    "--init-connect=SET sql_safe_updates = 1, sql_select_limit = 1, time_zone = '-8:0'",
    f"--max-allowed-packet={PACKET}",
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def hostile() -> Generator[MariadbServer]:
    with MariadbServer(*HOSTILE) as server:
        yield server


@pytest.fixture
async def url(hostile: MariadbServer) -> AsyncGenerator[str]:
    async with database(hostile.url) as url:
        # What `init_connect` says does not hold for a superuser.
        await ask(
            url,
            "CREATE USER IF NOT EXISTS plain@'%'",
            "GRANT ALL ON *.* TO plain@'%'",
            "REVOKE SUPER, CONNECTION ADMIN ON *.* FROM plain@'%'",
        )
        yield url.replace("root@", "plain@")


async def test_settings_of_the_server_change_nothing(url: str) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW, [said("a\\'\"\N{GRINNING FACE}")])
        for n in range(20):
            await journal.append(KEY, [said(f"b{n}")])
        delta = StateDelta({f"k{n}": n for n in range(20)})
        change = Change(session=delta, user=delta, app=delta)
        await journal.append(KEY, [said("c"), said("d")], change=change, trim=10)
        await journal.splice(KEY, 14, 16, [said("s")], archive=False)
        record = await journal.load(KEY, archived=True)
        assert (len(record.entries), len(record.archived)) == (8, 13)
        assert record.archived[0].message == said("a\\'\"\N{GRINNING FACE}").message
        assert dict(record.user_state) == dict(delta.set)
        assert await journal.delete(KEY)
    found = await ask(
        url,
        "SELECT engine, row_format FROM information_schema.tables "
        "WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' LIMIT 20",
    )
    assert set(found) == {("InnoDB", "Dynamic")}


async def test_times_are_those_of_the_journal(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=1))
    heads: list[object] = []
    for zone in ("Asia/Shanghai", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        async with MysqlJournal(url, limits=limits, clock=heads_clock) as journal:
            if not heads:
                await journal.create(NEW, [said("a")])
            record = await journal.load(KEY)
            heads.append((record.head, record.entries))
    monkeypatch.undo()
    time.tzset()
    assert heads[0] == heads[1]
    found = await ask(url, "SELECT create_time, update_time FROM sessions")
    assert [str(moment) for moment in found[0]] == ["2030-01-02 03:04:05.678900"] * 2


def heads_clock() -> Any:
    from datetime import UTC, datetime

    return datetime(2030, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)


# Packets -------------------------------------------------------------------------


async def test_an_entry_over_the_packet_is_refused_before_it_is_sent(url: str) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
        before = await ask(url, "SHOW STATUS LIKE 'Aborted_clients'")
        for size in (PACKET, PACKET - 20_000 + 8_000, PACKET // 3):
            wide = "\u20ac" if size == PACKET // 3 else "x"
            with pytest.raises(EntryTooLargeError) as caught:
                await journal.append(KEY, [said("small"), said("big", wide * size)])
            assert caught.value.entry_id == "big"
            assert caught.value.limit < PACKET
        await journal.append(KEY, [said("a", "\\\"'\n" * (PACKET // 8))])
        await journal.append(KEY, [said("b", "x" * (PACKET - 20_000))])
        assert ids((await journal.load(KEY)).entries) == ["a", "b"]
        assert await ask(url, "SHOW STATUS LIKE 'Aborted_clients'") == before


@pytest.mark.parametrize("calls", [True, False])
async def test_entries_that_fit_one_by_one_are_stored_together(
    url: str, *, calls: bool
) -> None:
    texts = ("\\x" * (PACKET // 5), "\N{GRINNING FACE}" * (PACKET // 6))
    many = [said(f"{n}", texts[n % 2]) for n in range(12)]
    long_ids = [said(f"{n}{'é' * 250}") for n in range(999)]
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
        if not calls:
            journal._missing.update(ROUTINES)
        for batch in (many, long_ids):
            commit = await journal.append(KEY, batch)
            found = await journal.load(KEY, Window(last=len(batch)))
            assert found.entries == commit.entries
        assert commit.head.revision == 3


async def test_a_state_over_the_packet_is_an_error_of_storage(url: str) -> None:
    async with MysqlJournal(url) as journal:
        await journal.create(NEW)
        big = Change(session=StateDelta({"a": 1, "big": "x" * PACKET}))
        with pytest.raises(StorageError, match="max_allowed_packet"):
            await journal.append(KEY, [said("a")], change=big)
        record = await journal.load(KEY)
        assert (record.head.revision, dict(record.state)) == (1, {})


# Durability ----------------------------------------------------------------------


class Told:
    """A connection to a server that tells of itself what it is given."""

    def __init__(self, version: str, variables: Mapping[str, object]) -> None:
        self._version = version
        self._variables = variables
        self.driver = self
        self.is_mariadb = "MariaDB" in version

    def get_server_info(self) -> str:
        return self._version

    async def rows(self, sql: str) -> Sequence[Sequence[object]]:
        name = sql.removeprefix("SELECT @@")
        if name not in self._variables:
            raise OperationalError(1193, f"Unknown system variable '{name}'")
        return [(self._variables[name],)]


async def check(
    durability: str, version: str = "10.11.6-MariaDB", **changed: object
) -> None:
    variables: dict[str, object] = {
        "innodb_flush_log_at_trx_commit": 1,
        "innodb_flush_method": "fsync",
        "log_bin": 1,
        "sync_binlog": 1,
        "binlog_format": "ROW",
        **changed,
    }
    told = {name: value for name, value in variables.items() if value is not None}
    connection = cast("MysqlConnection", Told(version, told))
    await check_server(connection, durability)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("durability", "changed"),
    [
        ("power", {}),
        ("power", {"log_bin": 0, "sync_binlog": 0, "binlog_format": "STATEMENT"}),
        ("power", {"binlog_format": "MIXED", "innodb_flush_method": "O_DIRECT"}),
        ("kill", {"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}),
        ("kill", {"innodb_flush_method": "nosync"}),
        ("kill", {"version": "8.0.36"}),
        ("kill", {"version": "5.5.5-10.11.6-MariaDB-log"}),
        ("kill", {"version": "11.4.2-MariaDB"}),
    ],
)
async def test_servers_that_keep_what_they_say(
    durability: str, changed: dict[str, Any]
) -> None:
    await check(durability, **changed)


@pytest.mark.parametrize(
    ("durability", "changed", "said_of_it"),
    [
        ("kill", {"innodb_flush_log_at_trx_commit": 0}, "set it to 1 or 2"),
        ("power", {"innodb_flush_log_at_trx_commit": 2}, "trx_commit=2"),
        ("power", {"innodb_flush_method": "nosync"}, "nosync"),
        ("power", {"sync_binlog": 0}, "sync_binlog=0"),
        ("kill", {"binlog_format": "STATEMENT"}, "ROW or MIXED"),
        ("kill", {"version": "10.5.9-MariaDB"}, "older than 10.6"),
        ("kill", {"version": "5.5.5-10.4.2-MariaDB"}, "older than 10.6"),
        ("kill", {"version": "5.7.44"}, "older than 8.0"),
    ],
)
async def test_servers_that_do_not_are_refused(
    durability: str, changed: dict[str, Any], said_of_it: str
) -> None:
    with pytest.raises(StorageError, match=said_of_it):
        await check(durability, **changed)


@pytest.mark.parametrize("durability", ["kill", "power"])
async def test_a_server_that_does_not_tell_is_warned_of(durability: str) -> None:
    with pytest.warns(RuntimeWarning, match="does not tell"):
        await check(durability, innodb_flush_log_at_trx_commit=None)


async def test_a_real_server_is_asked(hostile: MariadbServer, url: str) -> None:
    with pytest.raises(StorageError, match="nosync"):
        await MysqlJournal(url, durability="power").__aenter__()
    setting = "SET GLOBAL innodb_flush_log_at_trx_commit ="
    await ask(hostile.url.rpartition("/")[0], f"{setting} 0")
    try:
        with pytest.raises(StorageError, match="trx_commit=0"):
            await MysqlJournal(url).__aenter__()
    finally:
        await ask(hostile.url.rpartition("/")[0], f"{setting} 1")


@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")
async def test_a_restart_of_the_server_is_got_over(hostile: MariadbServer) -> None:
    async with database(hostile.url) as url, MysqlJournal(url) as journal:
        await journal.create(NEW)
        for n in range(3):
            await journal.append(KEY, [said(f"a{n}")])
            hostile.kill()
            with pytest.raises(StorageError):
                await journal.append(KEY, [said(f"b{n}")])
            hostile.start()
        record = await journal.load(KEY)
        assert (ids(record.entries), record.head.revision) == (["a0", "a1", "a2"], 4)
