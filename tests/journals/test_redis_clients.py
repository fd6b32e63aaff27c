"""A Redis journal over clients, URLs and servers of many kinds."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import MaxConnectionsError
from redis_clients import Faulty, client, fresh_prefix
from servers import redis as servers
from servers.redis import RedisServer
from typing_extensions import override
from waits import reached

from raf_session.changes import Change, StateDelta
from raf_session.conformance import (
    JOURNAL_CHECKS,
    Capability,
    JournalHarness,
    JournalOpener,
    run_journal_checks,
)
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, said, whole
from raf_session.errors import (
    SchemaVersionError,
    StorageBusyError,
    StorageError,
    StorageFullError,
)
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey
from raf_session.options import Limits, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio

LIMITS = Limits(sessions=SessionTTLOptions(max_idle_secs=1000))
MODULES = ("create", "load", "scopes")
CHECKS = [
    check
    for check in JOURNAL_CHECKS
    if check.__module__.rpartition("journal_")[2] in MODULES
    and "threads" not in check.__name__
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# Clients -----------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decode_responses", [False, True])
async def test_replies_may_come_in_any_form(
    protocol: int, decode_responses: bool
) -> None:
    options = {"protocol": protocol, "decode_responses": decode_responses}

    @asynccontextmanager
    async def storage() -> AsyncGenerator[JournalOpener]:
        prefix = fresh_prefix()
        async with client(prefix, **options) as real:
            yield partial(RedisJournal, real, prefix=prefix)

    claims = frozenset({Capability.DURABLE, Capability.SHARED, Capability.CODEC})
    harness = JournalHarness("handed in", storage, claims)
    outcomes = await run_journal_checks(harness, CHECKS)
    assert len(outcomes) > 20
    assert [str(o) for o in outcomes if o.result == "broken"] == []


async def test_a_client_that_is_handed_in_is_not_closed() -> None:
    prefix = fresh_prefix()
    async with client(prefix, single_connection_client=True) as real:
        for _ in range(2):
            async with RedisJournal(real, prefix=prefix):
                pass
        assert await real.ping()
        assert real.connection is not None
        assert real.connection.is_connected


def test_a_client_that_is_handed_in_has_one_event_loop() -> None:
    async def begin(journal: RedisJournal) -> None:
        await journal.__aenter__()
        await journal.create(NEW)

    async def use(journal: RedisJournal) -> None:
        with pytest.raises(RuntimeError, match="belongs to one event loop"):
            await journal.load(KEY)

    with asyncio.Runner() as runner, asyncio.Runner() as other:
        real: Any = Redis.from_url(servers.url())
        journal = RedisJournal(real, prefix=fresh_prefix())
        runner.run(begin(journal))
        other.run(use(journal))
        runner.run(journal.delete(KEY))
        runner.run(journal.__aexit__(None, None, None))
        runner.run(real.aclose())


async def test_a_pool_that_is_exhausted_is_busy() -> None:
    prefix = fresh_prefix()
    async with (
        client(prefix, max_connections=1) as real,
        RedisJournal(real, prefix=prefix) as journal,
    ):
        held = await real.connection_pool.get_connection()
        with pytest.raises(StorageBusyError) as caught:
            await journal.create(NEW)
        assert isinstance(caught.value.__cause__, MaxConnectionsError)
        await real.connection_pool.release(held)
        await journal.create(NEW)


@pytest.mark.parametrize("how", ["flush", "kill"])
async def test_scripts_and_connections_that_are_lost_come_back(how: str) -> None:
    prefix = fresh_prefix()
    async with client(prefix) as real, client() as admin:
        async with RedisJournal(servers.url(), prefix=prefix) as journal:

            async def disturb() -> None:
                if how == "flush":
                    await admin.script_flush()
                else:
                    await admin.client_kill_filter(_type="normal", skipme=True)

            change = Change(app=StateDelta({"a": 1}), user=StateDelta({"u": 1}))
            await disturb()
            await journal.create(NEW, batch("a"), change=change)
            await disturb()
            await journal.append(KEY, batch("b"))
            await disturb()
            await journal.append(KEY, batch("c"), change=change)
            await disturb()
            await journal.splice(KEY, 1, 1, archive=True)
            await disturb()
            assert ids((await whole(journal)).entries) == ["b", "c"]
            await disturb()
            assert len((await journal.scan(Query())).sessions) == 1
            await disturb()
            assert (await journal.scoped_state(ScopeKey("app"))).state == {"a": 1}
            await disturb()
            assert await journal.expire() == ()
            assert await journal.delete(KEY)
        await real.ping()


# URLs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "redis+nonsense://localhost",
        "redis://localhost:notaport",
        "redis+sentinel://localhost:1",
        "redis+sentinel://localhost/name",
        "redis+sentinel://localhost:x/name",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        RedisJournal(url)


@pytest.mark.parametrize(
    "options",
    [
        {"durability": "none"},
        {"wait_replicas": -1},
        {"wait_timeout_secs": 0},
        {"wait_timeout_secs": float("nan")},
        {"expiry_grace_secs": -1},
        {"expiry_grace_secs": float("inf")},
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is"):
        RedisJournal("redis://localhost", **options)


async def test_a_server_that_does_not_answer_is_an_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{probe.getsockname()[1]}"
        journal = RedisJournal(url)
        for _ in range(2):
            with pytest.raises(StorageError):
                await journal.__aenter__()


# Servers -----------------------------------------------------------------------------


async def opens(url: object, **options: Any) -> None:
    async with RedisJournal(url, prefix=fresh_prefix(), **options) as journal:
        await journal.create(NEW, batch("a"))
        await journal.append(KEY, batch("b"))
        await journal.delete(KEY)


async def test_a_server_that_forgets_is_refused() -> None:
    with (
        RedisServer("--appendonly", "no") as server,
        pytest.raises(StorageError, match="set appendonly yes"),
    ):
        await opens(server.url)
    with RedisServer() as server:
        await opens(server.url)
        with pytest.raises(StorageError, match="set appendfsync always"):
            await opens(server.url, durability="power")
    with RedisServer("--appendfsync", "always") as server:
        await opens(server.url, durability="power")


async def test_a_server_that_does_not_tell_is_named() -> None:
    silent = ("--rename-command", "CONFIG", "")
    with RedisServer(*silent) as server:
        await opens(server.url)
        with pytest.warns(RuntimeWarning, match="does not tell"):
            await opens(server.url, durability="power")
    with (
        RedisServer(*silent, "--appendonly", "no") as server,
        pytest.raises(StorageError, match="set appendonly yes"),
    ):
        await opens(server.url)


async def test_a_server_that_evicts_is_named() -> None:
    with (
        RedisServer("--maxmemory-policy", "allkeys-lru") as server,
        pytest.warns(RuntimeWarning, match="evicts any key"),
    ):
        await opens(server.url)


async def test_an_expiry_that_fails_loses_no_write() -> None:
    prefix = fresh_prefix()
    with RedisServer("--rename-command", "PEXPIRE", "") as server:
        async with RedisJournal(server.url, prefix=prefix, limits=LIMITS) as journal:
            await journal.create(NEW, batch("a"))
            await journal.append(
                KEY, batch("b"), change=Change(user=StateDelta({"u": 1}))
            )
            record = await journal.load(KEY, refresh=True)
            assert ids(record.entries) == ["a", "b"]
            assert record.user_state == {"u": 1}


class Aged(Faulty):
    """A client whose server says it is older than it is."""

    @override
    async def execute_command(self, *args: Any, **options: Any) -> Any:
        reply = await super().execute_command(*args, **options)
        if args[:2] == ("INFO", "server"):
            reply["redis_version"] = "6.2.14"
        return reply


async def test_a_server_that_is_too_old_is_refused() -> None:
    async with client() as real:
        with pytest.raises(StorageError, match=r"6\.2\.14; 7\.0 is the oldest"):
            await opens(Aged(real))


async def test_a_full_server_says_so() -> None:
    with RedisServer("--maxmemory", "3mb") as server:
        prefix = fresh_prefix()
        async with RedisJournal(server.url, prefix=prefix) as journal:
            await journal.create(NEW)
            stored = 0
            with pytest.raises(StorageFullError):  # noqa: PT012
                while True:
                    await journal.append(KEY, [said(f"e{stored}", "x" * 50_000)])
                    stored += 1
            async with Redis.from_url(server.url) as admin:
                await admin.config_set("maxmemory", 0)
            assert len((await whole(journal)).entries) == stored
            await journal.append(KEY, batch("next"))


# Versions ----------------------------------------------------------------------------


async def test_a_schema_of_a_newer_library_is_refused_and_stays() -> None:
    prefix = fresh_prefix()
    async with client(prefix) as real:
        async with RedisJournal(real, prefix=prefix) as journal:
            await journal.create(NEW)
        assert await real.get(f"{prefix}:schema") == b"1"
        await real.set(f"{prefix}:schema", "2")
        with pytest.raises(SchemaVersionError) as caught:
            await opens_again(real, prefix)
        assert (caught.value.found, caught.value.supported) == (2, 1)
        await real.set(f"{prefix}:schema", "somebody else's")
        with pytest.raises(StorageError, match="not a journal's"):
            await opens_again(real, prefix)
        assert await real.get(f"{prefix}:schema") == b"somebody else's"


async def opens_again(real: Redis, prefix: str) -> None:
    async with RedisJournal(real, prefix=prefix):
        pass


# Event loops -------------------------------------------------------------------------


def test_trio_is_told_why_not() -> None:
    code = """
import trio
from raf_session.journals.redis import RedisJournal

async def main():
    async with RedisJournal("redis://localhost"):
        pass

try:
    trio.run(main)
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONPATH": "."},
    )
    assert b"needs asyncio" in done.stdout, done.stderr


def test_an_event_loop_that_ends_closes_its_connections() -> None:
    prefix = fresh_prefix()
    journal = RedisJournal(servers.url(), prefix=prefix)

    async def begin() -> None:
        await journal.__aenter__()
        await journal.create(NEW)

    async def use(name: str, most: int) -> int:
        await journal.append(KEY, batch(name))
        async with client() as admin:
            found = await reached(admin.client_list, lambda found: len(found) <= most)
        return len(found)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(begin())
        first = asyncio.run(use("e", sys.maxsize))
        later = [asyncio.run(use(f"e{n}", first)) for n in range(4)]
        assert max(later) <= first, "connections are left"
        asyncio.run(journal.delete(KEY))
        asyncio.run(journal.__aexit__(None, None, None))
