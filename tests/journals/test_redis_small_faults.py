"""Single faults of servers, indexes and heads, and what becomes of a Redis journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from redis.asyncio import Redis
from redis_clients import client, fresh_prefix
from redis_hooks import Hooked, uses
from servers.redis import RedisServer

from raf_session.changes import Change, LabelDelta
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, every, said
from raf_session.errors import (
    SessionDamagedError,
    SessionNotFoundError,
    StorageFullError,
)
from raf_session.journal import Order
from raf_session.journals._redis_read_scripts import LOOK, PAGE
from raf_session.journals.redis import RedisJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio

LIMITS = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
LABELS = Change(labels=LabelDelta(added=("x",)))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stage(NamedTuple):
    journal: RedisJournal
    hooked: Hooked
    real: Any
    prefix: str
    clock: TickingClock

    async def create(self, *names: str) -> list[SessionKey]:
        keys = [SessionKey("app", "user", "", name) for name in names]
        for key in keys:
            await self.journal.create(NewSession(key=key))
        return keys

    async def break_head(self, name: str) -> None:
        head = f"{self.prefix}:session:{{app:user}}::{name}"
        await self.real.hset(head, "about", "nonsense")

    async def labels(self) -> int:
        found: int = await self.real.zcard(f"{self.prefix}:{{index}}:labels")
        return found


@asynccontextmanager
async def stage(limits: Limits | None = None) -> AsyncGenerator[Stage]:
    prefix, clock = fresh_prefix(), TickingClock()
    async with client(prefix) as real:
        hooked = Hooked(real)
        async with RedisJournal(
            hooked, prefix=prefix, clock=clock, limits=limits
        ) as journal:
            yield Stage(journal, hooked, real, prefix, clock)


# Entries and labels ------------------------------------------------------------------


async def test_a_load_ends_where_entries_are_evicted_between_its_pages() -> None:
    async with stage() as s:
        await s.journal.create(NEW, [said(f"e{n}") for n in range(1500)])
        pages: list[int] = []

        def paging(commands: Sequence[Sequence[Any]]) -> bool:
            pages.extend(1 for _ in filter(None, [uses(PAGE.sha)(commands)]))
            assert len(pages) < 10, "it pages for ever"
            return len(pages) == 1

        async def evict() -> None:
            await s.real.delete(f"{s.prefix}:entries:{{app:user}}::session")
            s.hooked.arm(paging, evict)

        s.hooked.arm(paging, evict)
        with pytest.raises(SessionDamagedError):
            await s.journal.load(KEY)


@pytest.mark.parametrize("end", ["expired", "evicted"])
async def test_no_label_outlives_its_incarnation(end: str) -> None:
    async with stage(LIMITS) as s:
        before = await s.labels()
        await s.journal.create(NEW, change=LABELS)
        if end == "expired":
            s.clock.tick(11)
        else:
            async for name in s.real.scan_iter(f"{s.prefix}:*:session"):
                await s.real.delete(name)
        await s.journal.create(NEW)
        assert await s.labels() == before
        await s.journal.update(KEY, LABELS)
        assert await s.labels() == before + 1
        assert await s.journal.delete(KEY)
        assert await s.labels() == before


async def test_an_append_to_a_session_made_meanwhile_loses_no_title() -> None:
    async with stage() as s, client() as second:
        change = Change(title="mine", labels=LABELS.labels)
        async with RedisJournal(second, prefix=s.prefix) as other:

            async def create() -> None:
                await other.create(NEW)

            s.hooked.arm(uses(LOOK.sha), create, behind=True)
            with pytest.raises(SessionNotFoundError):
                await s.journal.append(KEY, batch("a"), change=change)
            head = (await s.journal.append(KEY, batch("a"), change=change)).head
            assert (head.title, set(head.labels)) == ("mine", {"x"})


# The index ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["session", "user_state", "app_state"])
async def test_an_index_is_made_anew_beside_a_journal_of_a_longer_prefix(
    kind: str,
) -> None:
    async with stage() as s:
        await s.journal.create(NEW)
        longer = f"{s.prefix}:{kind}"
        async with client() as second, RedisJournal(second, prefix=longer) as other:
            await other.create(NewSession(key=SessionKey("b", "u", "", "s")))
        await s.real.set(f"{longer}:{{".encode() + b"\xff}:s", "no text")
        await s.real.delete(f"{s.prefix}:{{index}}:keys")
        assert [item.head.key for item in await every(s.journal)] == [KEY]


@pytest.mark.parametrize("order", ["key", "activity"])
async def test_opening_hides_nothing_where_the_index_went_with_the_schema(
    order: Order,
) -> None:
    async with stage() as s, client() as second:
        await s.journal.create(NEW)
        for name in ("schema", "{index}:keys", "{index}:activity"):
            await s.real.delete(f"{s.prefix}:{name}")
        async with RedisJournal(second, prefix=s.prefix) as other:
            found = await every(other, order=order)
            assert [item.head.key for item in found] == [KEY]


# Heads that cannot be read -----------------------------------------------------------


async def test_a_damaged_session_does_not_stop_the_sweep_of_others() -> None:
    async with stage(LIMITS) as s:
        keys = await s.create("a", "b", "c")
        await s.break_head("b")
        s.clock.tick(11)
        assert set(await s.journal.expire()) == {keys[0], keys[2]}
        with pytest.raises(SessionDamagedError) as caught:
            await s.journal.expire()
        assert caught.value.key == str(keys[1])


async def test_a_damaged_delta_does_not_stop_a_sweep() -> None:
    async with stage(LIMITS) as s:
        keys = await s.create("a", "b", "c")
        head = f"{s.prefix}:session:{{app:user}}::b"
        facts = (await s.real.hget(head, "facts")).split()
        facts[18] = b"1"
        fields = {"facts": b" ".join(facts), "owed:app:9": "nonsense"}
        await s.real.hset(head, mapping=fields)
        s.clock.tick(11)
        assert {keys[0], keys[2]} <= set(await s.journal.expire())
        with pytest.raises(SessionDamagedError):
            await s.journal.expire()


async def test_a_damaged_session_does_not_stop_a_rebuild_and_is_named() -> None:
    async with stage() as s:
        keys = await s.create("a", "b")
        other = SessionKey("app", "other", "", "s")
        await s.journal.create(NewSession(key=other))
        await s.break_head("b")
        async for name in s.real.scan_iter(f"{s.prefix}:{{index}}:*"):
            await s.real.delete(name)
        page = await s.journal.scan(Query(user="other"), order="key")
        assert [item.head.key for item in page.sessions] == [other]
        orders: tuple[Order, ...] = ("key", "activity")
        for order in orders:
            with pytest.raises(SessionDamagedError) as caught:
                await s.journal.scan(Query(user="user"), order=order)
            assert caught.value.key == str(keys[1])
        async for name in s.real.scan_iter(f"{s.prefix}:*::b"):
            await s.real.delete(name)
        found = await every(s.journal, Query(user="user"), order="key")
        assert [item.head.key for item in found] == keys[:1]
        tokens = await s.real.hkeys(f"{s.prefix}:{{index}}:tokens")
        assert b"app\0user\0\0b" not in tokens


# A full server -----------------------------------------------------------------------


async def test_nothing_is_created_on_a_full_server() -> None:
    with RedisServer() as server:
        async with (
            Redis.from_url(server.url) as admin,
            RedisJournal(server.url) as journal,
        ):
            await journal.create(NewSession(key=SessionKey("x", "", "", "y")))
            await admin.config_set("maxmemory", "1mb")
            with pytest.raises(StorageFullError):
                await journal.create(NEW, [said("a", "x" * 100_000)])
            await admin.config_set("maxmemory", "0")
            with pytest.raises(SessionNotFoundError):
                await journal.load(KEY)
