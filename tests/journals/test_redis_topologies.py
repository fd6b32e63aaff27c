"""A Redis journal on a cluster of six nodes, and behind Sentinels."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from redis import Redis
from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.exceptions import ConnectionError as RedisConnectionError
from redis_clients import fresh_prefix
from redis_topologies import Cluster, Sentinels, Topology, info, wait_until
from writers import judge, kill, prepare, read_all, start, wait_for

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance import (
    JOURNAL_CHECKS,
    Capability,
    JournalHarness,
    JournalOpener,
    run_journal_checks,
)
from raf_session.conformance.journal_values import KEY, NEW, batch, every, ids
from raf_session.errors import StorageError
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio

MODULES = ("create", "scopes")
CHECKS = [
    check
    for check in JOURNAL_CHECKS
    if check.__module__.rpartition("journal_")[2] in MODULES
]
CHANGE = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    labels=LabelDelta(added=("x",)),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def cluster() -> Generator[Cluster]:
    with Cluster() as held:
        yield held


@pytest.fixture(scope="module")
def sentinels() -> Generator[Sentinels]:
    with Sentinels() as held:
        yield held


async def keeps_the_contract(url: str) -> None:
    @asynccontextmanager
    async def storage() -> AsyncGenerator[JournalOpener]:
        yield partial(RedisJournal, url, prefix=fresh_prefix())

    harness = JournalHarness("several servers", storage, frozenset(Capability))
    outcomes = await run_journal_checks(harness, CHECKS)
    assert [str(o) for o in outcomes if o.result == "broken"] == []


@pytest.mark.slow
async def test_a_cluster_keeps_the_contract(cluster: Cluster) -> None:
    await keeps_the_contract(cluster.url)


@pytest.mark.slow
async def test_sentinels_keep_the_contract(sentinels: Sentinels) -> None:
    await keeps_the_contract(sentinels.url)


async def test_a_node_of_a_cluster_alone_is_refused(cluster: Cluster) -> None:
    url = cluster.servers[0].url
    with pytest.raises(StorageError, match=r"redis\+cluster://"):
        async with RedisJournal(url):
            pass


async def test_a_cluster_client_may_be_handed_in(cluster: Cluster) -> None:
    url = cluster.url.replace("+cluster", "")
    async with RedisCluster.from_url(url) as real:
        async with RedisJournal(real, prefix=fresh_prefix()) as journal:
            await journal.create(NEW, batch("a"), change=CHANGE)
        assert await real.ping()


async def test_sessions_are_spread_and_listed_together(cluster: Cluster) -> None:
    prefix = fresh_prefix()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=0))
    async with RedisJournal(cluster.url, prefix=prefix) as journal:
        keys = [SessionKey("app", f"u{n}", "", "s") for n in range(30)]
        for key in keys:
            await journal.create(NewSession(key=key), batch("a"), change=CHANGE)
            await journal.append(key, batch("b"), change=CHANGE)
        for server in cluster.servers:
            if info(server.port, "replication")["role"] == "master":
                with Redis(port=server.port) as one:
                    found = list(one.scan_iter(f"{prefix}:session:*"))
                    assert 3 < len(found) < 25
        for _ in range(2):
            listed = await every(journal, Query(labels=("x",)), order="key")
            assert [item.head.key for item in listed] == sorted(keys)
            assert len(await journal.scopes("app")) == 31
            # Then all of it once more, with the index made anew.
            for server in cluster.servers:
                with Redis(port=server.port) as one:
                    if info(server.port, "replication")["role"] == "master":
                        for name in one.scan_iter(f"{prefix}:{{index}}:*"):
                            one.delete(name)
        assert await journal.delete(keys[0])
    async with RedisJournal(cluster.url, prefix=prefix, limits=limits) as journal:
        assert sorted(await journal.expire(), key=str) == sorted(keys[1:], key=str)
        assert (await journal.scoped_state(ScopeKey("app"))).state == {"a": 1}


@pytest.mark.parametrize("replicas", [0, 1])
async def test_a_cluster_does_no_update_again_over_a_newer_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    prefix = fresh_prefix()
    async with (
        RedisJournal(cluster.url, prefix=prefix, wait_replicas=replicas) as journal,
        RedisJournal(cluster.url, prefix=prefix) as other,
    ):
        await journal.create(NEW)
        parse = ClusterNode.parse_response
        newer = [Change(session=StateDelta({"n": 2}))]

        async def losing(
            node: ClusterNode, connection: Any, command: str, **options: Any
        ) -> Any:
            reply = await parse(node, connection, command, **options)
            if newer and isinstance(reply, list) and reply[:1] == [b"done"]:
                await other.update(KEY, newer.pop())
                await connection.disconnect()
                raise RedisConnectionError("cut by the test")
            return reply

        monkeypatch.setattr(ClusterNode, "parse_response", losing)
        with pytest.raises(StorageError, match="cut by the test"):
            await journal.update(KEY, Change(session=StateDelta({"n": 1})))
        record = await other.load(KEY)
        assert (record.state, record.head.revision) == ({"n": 2}, 3)


# Kills -------------------------------------------------------------------------------


def write_through(
    servers: Topology, opener: JournalOpener, folder: Path, *, rejoin: bool
) -> None:
    """Kill two writers and the master of the first session in the midst of the work."""
    job = prepare(opener, folder, 6, appends=40, kills=2)
    writers = start(job)
    wait_for(job, 0, 8)
    port = master_of(opener, servers)
    server = servers.kill_master(port)
    wait_until(lambda: failed_over(servers, port), "nobody took over")
    if rejoin:
        server.start()
    killed = kill(job, writers)
    judge(job, read_all(job), killed)
    if not rejoin:
        server.start()


def master_of(opener: JournalOpener, servers: Topology) -> int:
    """Return the port of the master that holds the app's state."""
    prefix = opener.keywords["prefix"]  # type: ignore[attr-defined]
    for server in servers.servers:
        if info(server.port, "replication")["role"] == "master":
            with Redis(port=server.port) as one:
                if list(one.scan_iter(f"{prefix}:app_state:*")):
                    return server.port
    raise AssertionError("no master holds the state")


def failed_over(servers: Topology, killed: int) -> bool:
    masters = 0
    for server in servers.servers:
        if server.port != killed:
            masters += info(server.port, "replication")["role"] == "master"
    return masters >= (3 if isinstance(servers, Cluster) else 1)


@pytest.mark.slow
async def test_a_cluster_loses_a_master_and_no_acknowledged_write(
    cluster: Cluster, tmp_path: Path
) -> None:
    opener = partial(
        RedisJournal,
        cluster.url,
        prefix=fresh_prefix(),
        wait_replicas=1,
        wait_timeout_secs=0.5,
    )
    run = partial(write_through, cluster, opener, tmp_path, rejoin=True)
    await anyio.to_thread.run_sync(run)


async def test_sentinels_fail_over_and_lose_no_acknowledged_write(
    sentinels: Sentinels, tmp_path: Path
) -> None:
    opener = partial(
        RedisJournal,
        sentinels.url,
        prefix=fresh_prefix(),
        wait_replicas=1,
        wait_timeout_secs=0.5,
    )
    run = partial(write_through, sentinels, opener, tmp_path, rejoin=False)
    await anyio.to_thread.run_sync(run)


async def test_a_write_that_too_few_replicas_have_says_so(
    sentinels: Sentinels,
) -> None:
    prefix = fresh_prefix()
    options = {"prefix": prefix, "wait_timeout_secs": 0.05}
    async with RedisJournal(sentinels.url, prefix=prefix) as journal:
        await journal.create(NEW)
    async with RedisJournal(sentinels.url, wait_replicas=9, **options) as journal:  # type: ignore[arg-type]
        with pytest.raises(StorageError, match="of 9 replicas confirmed"):
            await journal.append(KEY, batch("a"))
        with pytest.raises(StorageError, match="stored on the master"):
            await journal.append(KEY, batch("a"))
    async with RedisJournal(sentinels.url, wait_replicas=1, **options) as journal:  # type: ignore[arg-type]
        again = await journal.append(KEY, batch("a"))
        assert again.repeated
        assert ids((await journal.load(KEY)).entries) == ["a"]
