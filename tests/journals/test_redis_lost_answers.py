"""Writes of a Redis journal whose answer was lost: done once, or not known."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis_clients import client, fresh_prefix
from redis_hooks import Hooked, Lossy, uses
from servers import redis as servers

from raf_session.changes import Change, StateDelta
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, ids
from raf_session.errors import SessionNotFoundError, StorageError
from raf_session.journals._redis_scripts import COMMIT, OPERATE
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey
from raf_session.options import Limits, SessionTTLOptions

pytestmark = pytest.mark.anyio

APP = ScopeKey("app")
ONE, TWO = StateDelta({"n": 1}), StateDelta({"n": 2})
UNKNOWN = suppress(StorageError)
"""It may or may not have been done: the one error that promises nothing."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stage(NamedTuple):
    journal: RedisJournal
    """Loses the answer that the proxy is told to lose."""
    other: RedisJournal
    proxy: Lossy
    prefix: str
    clock: TickingClock


@asynccontextmanager
async def stage(losses: int = 1) -> AsyncGenerator[Stage]:
    prefix, clock = fresh_prefix(), TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    options: dict[str, Any] = {"prefix": prefix, "clock": clock, "limits": limits}
    async with (
        client(prefix),
        Lossy(servers.server().port) as proxy,
        RedisJournal(proxy.url, **options) as journal,
        RedisJournal(servers.url(), **options) as other,
    ):
        yield Stage(journal, other, proxy, prefix, clock)
        assert proxy.lost == losses


async def test_a_delete_says_that_it_deleted_or_that_nobody_knows() -> None:
    async with stage() as s:
        await s.journal.create(NEW, batch("a"))
        s.proxy.arm(COMMIT.sha)
        with UNKNOWN:
            assert await s.journal.delete(KEY)


async def test_a_delete_does_not_take_the_session_that_came_after() -> None:
    async with stage() as s:
        await s.journal.create(NEW, batch("old"))
        s.proxy.arm(COMMIT.sha, lambda: s.other.create(NEW, batch("new")))
        with UNKNOWN:
            await s.journal.delete(KEY)
        assert ids((await s.other.load(KEY)).entries) == ["new"]


async def test_a_sweep_reports_what_it_deleted_or_that_nobody_knows() -> None:
    async with stage() as s:
        await s.journal.create(NEW, batch("a"))
        s.clock.tick(11)
        s.proxy.arm(COMMIT.sha)
        with UNKNOWN:
            assert await s.journal.expire() == (KEY,)
        assert await s.journal.expire() == ()
        with pytest.raises(SessionNotFoundError):
            await s.journal.load(KEY)


async def test_an_update_is_not_done_again_over_a_newer_one() -> None:
    async with stage() as s:
        await s.journal.create(NEW)

        async def newer() -> None:
            assert (await s.other.load(KEY)).state == {"n": 1}
            await s.other.update(KEY, Change(session=TWO))

        s.proxy.arm(COMMIT.sha, newer)
        with UNKNOWN:
            await s.journal.update(KEY, Change(session=ONE))
        record = await s.other.load(KEY)
        assert (record.state, record.head.revision) == ({"n": 2}, 3)


def write_title(s: Stage) -> Callable[[], Any]:
    return lambda: s.other.update(KEY, Change(title="other"))


async def test_an_update_that_was_done_is_not_called_stale() -> None:
    async with stage() as s:
        await s.journal.create(NEW)
        s.proxy.arm(COMMIT.sha, write_title(s))
        with UNKNOWN:
            await s.journal.update(KEY, Change(session=ONE), expected_revision=1)
        assert (await s.other.load(KEY)).state == {"n": 1}


async def test_a_splice_that_was_done_is_not_called_a_conflict() -> None:
    async with stage() as s:
        await s.journal.create(NEW, batch("a", "b", "c"))
        s.proxy.arm(COMMIT.sha, write_title(s))
        with UNKNOWN:
            await s.journal.splice(KEY, 1, 2, batch("s"), tail=batch("t"), archive=True)
        assert ids((await s.other.load(KEY)).entries) == ["s", "c", "t"]


async def test_a_create_that_was_done_is_not_refused() -> None:
    async with stage() as s:
        s.proxy.arm(COMMIT.sha, write_title(s))
        with UNKNOWN:
            await s.journal.create(NEW, batch("a"))
        assert ids((await s.other.load(KEY)).entries) == ["a"]


async def test_writes_that_know_themselves_again_are_acknowledged() -> None:
    async with stage(losses=3) as s:
        s.proxy.arm(COMMIT.sha)
        commit = await s.journal.create(NEW, batch("a", "b"))
        assert (commit.head.revision, ids(commit.entries)) == (1, ["a", "b"])
        s.proxy.arm(COMMIT.sha)
        assert (await s.journal.update(KEY, Change(title="t"))).head.revision == 2
        s.proxy.arm(COMMIT.sha)
        await s.journal.splice(KEY, 1, 1, batch("s"), archive=True)
        assert ids((await s.other.load(KEY)).entries) == ["s", "b"]


async def test_a_client_that_is_handed_in_is_not_made_to_send_again() -> None:
    prefix = fresh_prefix()
    async with client(prefix) as real:
        hooked = Hooked(real)
        async with RedisJournal(hooked, prefix=prefix) as journal:
            cuts: list[int] = []

            async def cut() -> None:
                cuts.append(1)
                hooked.arm(uses(COMMIT.sha), cut, behind=True)
                raise RedisConnectionError("cut by the test")

            hooked.arm(uses(COMMIT.sha), cut, behind=True)
            with pytest.raises(StorageError, match="cut by the test"):
                await journal.create(NEW)
            assert cuts == [1]


@pytest.mark.parametrize("scope", [APP, ScopeKey("app", "user")], ids=["app", "user"])
async def test_a_state_is_not_set_again_over_a_newer_one(scope: ScopeKey) -> None:
    async with stage() as s:

        async def newer() -> None:
            assert (await s.other.scoped_state(scope)).state == {"n": 1}
            await s.other.update_scoped_state(scope, TWO)

        s.proxy.arm(OPERATE.sha, newer)
        with UNKNOWN:
            await s.journal.update_scoped_state(scope, ONE)
        assert (await s.other.scoped_state(scope)).state == {"n": 2}


async def test_a_number_is_drawn_once() -> None:
    async with stage() as s, client() as real:
        await s.journal.create(NEW)
        s.proxy.arm("@draw")
        with UNKNOWN:
            await s.journal.append(KEY, batch("a"), change=Change(app=ONE))
            assert await real.exists(f"{s.prefix}:app_owed:{{app}}") == 0
            assert (await s.other.load(KEY)).app_state == {"n": 1}


async def test_a_commit_that_was_done_is_written_again_for_its_replicas() -> None:
    """A connection that only read waits for no replica."""
    async with stage() as s, client() as real:
        written: list[int] = []

        async def look() -> None:
            told = await real.info("persistence")
            written.append(told["rdb_changes_since_last_save"])

        s.proxy.arm(COMMIT.sha, look)
        await s.journal.create(NEW)
        await look()
        assert written[1] > written[0]
