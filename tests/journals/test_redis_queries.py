"""How often a Redis journal asks its server, and what it costs there."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from redis_clients import Faulty, client, fresh_prefix

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.clock import to_micros
from raf_session.conformance import TickingClock
from raf_session.conformance.clock import START
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, said
from raf_session.journal import Order
from raf_session.journals import _redis_listing
from raf_session.journals._redis_core import operate
from raf_session.journals._redis_heads import about_text
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_repair import read_heads
from raf_session.journals.redis import RedisJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession, Query, Window

pytestmark = pytest.mark.anyio

ORDERS: tuple[Order, ...] = ("activity", "key")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stage(NamedTuple):
    journal: RedisJournal
    faulty: Faulty
    real: Any
    clock: TickingClock

    async def trips(self, call: Callable[[], Awaitable[Any]]) -> int:
        """Return how many round trips a call takes, its scripts being known."""
        await call()
        self.faulty.trips = 0
        await call()
        return self.faulty.trips

    async def commands(self, call: Callable[[], Awaitable[Any]]) -> dict[str, int]:
        """Return which commands the server carried out, and how often."""
        await self.real.config_resetstat()
        await call()
        stats = await self.real.info("commandstats")
        return {
            name.removeprefix("cmdstat_"): stat["calls"]
            for name, stat in stats.items()
            if not re.search("config|info", name)
        }


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage]:
    prefix, clock = fresh_prefix(), TickingClock()
    async with client(prefix) as real:
        faulty = Faulty(real)
        async with RedisJournal(faulty, prefix=prefix, clock=clock) as journal:
            yield Stage(journal, faulty, real, clock)


async def test_an_append_is_one_round_trip() -> None:
    async with stage() as s:
        await s.journal.create(NEW)
        number = 0
        changes = [
            None,
            Change(session=StateDelta({"s": 1}, ["t"]), providers=StateDelta({"p": 1})),
            Change(request=RequestDelta(0, b"12345678", 1)),
            Change(touch=s.clock()),
        ]
        for change in changes:
            for trim in (None, 3):

                async def append(
                    change: Change | None = change, trim: int | None = trim
                ) -> None:
                    nonlocal number
                    number += 1
                    await s.journal.append(
                        KEY, batch(f"e{number}"), change=change, trim=trim
                    )

                assert await s.trips(append) == 1, f"{change} {trim}"
        assert await s.trips(lambda: s.journal.append(KEY, batch("e1"))) == 1


async def test_other_calls_take_few_round_trips() -> None:
    async with stage() as s:
        await s.journal.create(NEW, [said(f"e{n}") for n in range(1000)])
        number = 0

        async def user() -> None:
            nonlocal number
            number += 1
            change = Change(user=StateDelta({"u": number}))
            await s.journal.append(KEY, batch(f"u{number}"), change=change)

        async def splice() -> None:
            nonlocal number
            number += 1
            place = [(await s.journal.load(KEY, Window(last=1))).head.last_seq]
            s.faulty.trips = 0
            await s.journal.splice(
                KEY, place[0], place[0], batch(f"s{number}"), archive=False
            )

        async def title() -> None:
            nonlocal number
            number += 1
            await s.journal.update(KEY, Change(title=f"t{number}"))

        assert await s.trips(lambda: s.journal.load(KEY, Window(last=1000))) == 1
        assert await s.trips(lambda: s.journal.load(KEY, refresh=True)) == 1
        assert await s.trips(user) == 1
        assert await s.trips(splice) == 2
        assert await s.trips(title) == 2


async def test_a_load_costs_its_window() -> None:
    async with stage() as s:
        await s.journal.create(NEW, [said(f"e{n}") for n in range(3000)])
        await s.journal.splice(KEY, 11, 2990, archive=True)
        window = Window(last=20)
        assert len((await s.journal.load(KEY, window)).entries) == 20
        for one in (
            Window(last=5),
            Window(after_seq=2995),
            Window(before_seq=6),
            Window(after_time=START + timedelta(seconds=-1), last=5),
        ):
            told = await s.commands(lambda one=one: s.journal.load(KEY, one))  # type: ignore[misc]
            assert told["zrange"] <= 12, told
            assert "zrangebyscore" not in told


async def test_pages_are_of_one_moment() -> None:
    async with stage() as s:
        names = [f"e{n}" for n in range(2500)]
        await s.journal.create(NEW, [said(name) for name in names])
        assert await s.trips(lambda: s.journal.load(KEY)) == 3
        s.faulty.trips = 0
        trip = s.faulty._trip

        async def meddle(go: Callable[[], Awaitable[Any]]) -> Any:
            reply = await trip(go)
            if s.faulty.trips == 2:
                s.faulty.trips = 100
                await s.journal.append(KEY, batch("new"))
                await s.journal.splice(KEY, 2000, 2100, batch("sum"), archive=True)
            return reply

        s.faulty._trip = meddle  # type: ignore[method-assign]
        record = await s.journal.load(KEY, archived=True)
        assert ids(record.entries) == [*names[:1999], "sum", *names[2100:], "new"]
        assert ids(record.archived) == names[1999:2100]
        assert record.head.revision == 3


def in_turn(i: int) -> str:
    """Return the app of a session: every other one."""
    return "ab"[i % 2]


async def fill(s: Stage, n: int, app: Callable[[int], str] = in_turn) -> None:
    """Enter sessions into the index and store their heads, without other calls."""
    link = await s.journal._link()
    core = s.journal._core
    await s.journal.create(NEW)
    (template,) = await link.commands([("HGETALL", core.names.session(KEY)[0])])
    head = (await s.journal.load(KEY)).head
    await s.journal.delete(KEY)
    pipeline = s.real.pipeline(transaction=False)
    words = template[b"facts"].decode().split()
    for start in range(0, n, 500):
        ops = Operations()
        for i in range(start, start + 500):
            key = SessionKey(app(i), f"u{i % 7}", "", f"s{i:05}")
            labels = (
                {"all"}
                | ({"half"} if i % 2 else set())
                | ({"few"} if i % 500 == 0 else set())
            )
            moment = START + timedelta(seconds=i)
            one = head._replace(
                key=key, labels=frozenset(labels), last_active_at=moment
            )
            core.index.enter(ops, one)
            words[4] = str(to_micros(moment))
            fields = template | {b"about": about_text(one), b"facts": " ".join(words)}
            pipeline.hset(core.names.session(key)[0], mapping=fields)
        await operate(link, ops)
    await pipeline.execute()


async def test_twenty_of_ten_thousand_take_a_constant_number_of_round_trips() -> None:
    async with stage() as s:
        await fill(s, 10_000)
        s.clock.tick(20_000)
        for query, matching in (
            (Query(), 10_000),
            (Query(labels=("all",)), 10_000),
            (Query(labels=("half",)), 5000),
            (Query(labels=("few",)), 20),
            (Query(labels=("half", "all"), app="b"), 5000),
            (Query(app="a"), 5000),
            (Query(app="a", user="u3"), 714),
            (Query(user="u3"), 1429),
            (Query(active_before=START + timedelta(seconds=100)), 100),
            (Query(active_since=START + timedelta(seconds=9900)), 100),
        ):
            for order in ORDERS:
                s.faulty.trips = 0
                await s.real.config_resetstat()
                page = await s.journal.scan(query, order=order, limit=20)
                told = await s.real.info("commandstats")
                assert s.faulty.trips <= 10, f"{query} by {order}"
                assert not {"cmdstat_keys", "cmdstat_scan"} & set(told)
                heads = [item.head for item in page.sessions]
                timed = query.active_since or query.active_before
                if order == "activity" or not timed:
                    assert len(heads) == min(20, matching), f"{query} by {order}"
                if order == "activity":
                    times = [head.last_active_at for head in heads]
                    assert times == sorted(times, reverse=True)


async def test_every_page_ends_and_all_come_once() -> None:
    async with stage() as s:
        await fill(s, 3000)
        for query, matching in ((Query(user="u3"), 429), (Query(labels=("few",)), 6)):
            for order in ORDERS:
                seen: list[SessionKey] = []
                cursor: str | None = None
                while True:
                    page = await s.journal.scan(
                        query,
                        cursor,
                        order=order,
                        limit=50,
                    )
                    seen += [item.head.key for item in page.sessions]
                    cursor = page.cursor
                    if cursor is None:
                        break
                assert len(seen) == len(set(seen)) == matching, f"{query} by {order}"


@pytest.mark.parametrize("order", ORDERS)
async def test_a_page_costs_the_same_among_any_number(order: Order) -> None:
    told: list[dict[str, int]] = []
    for n in (500, 1500, 3000):
        async with stage() as s:
            await fill(s, n)
            query = Query(app="a")

            async def page(s: Stage = s, query: Query = query) -> None:
                found = await s.journal.scan(query, order=order, limit=20)
                assert len(found.sessions) == 20

            assert await s.trips(page) == 2
            told.append(await s.commands(page))
    for one in told:
        one.pop("zcard", None)
    assert told[0] == told[1] == told[2]
    assert told[0]["hmget"] == 20
    assert told[0]["evalsha"] == 2
    assert not {"zadd", "zmscore", "del"} & set(told[0])


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("first", [0, 200, 300, 450])
async def test_sorted_or_looked_for_the_order_is_by_activity(
    monkeypatch: pytest.MonkeyPatch, few: int, first: int
) -> None:
    monkeypatch.setattr(_redis_listing, "_FEW", few)
    async with stage() as s:
        # Those of "a" stand together, so that few or none of them are among the last.
        await fill(s, 500, lambda i: "a" if first <= i < first + 200 else "b")
        s.clock.tick(1000)
        middle = START + timedelta(seconds=first + 25)
        end = min(500, first + 200)
        for query, wanted in (
            (Query(app="a"), range(first, end)),
            (Query(app="a", active_before=middle), range(first, first + 25)),
            (
                Query(app="a", labels=("half",)),
                range(first | 1, end, 2),
            ),
        ):
            seen: list[str] = []
            cursor: str | None = None
            while True:
                page = await s.journal.scan(query, cursor, limit=7)
                seen += [item.head.key.session for item in page.sessions]
                cursor = page.cursor
                if cursor is None:
                    break
                assert few == 0 or len(page.sessions) == 7
            assert seen == [f"s{i:05}" for i in reversed(wanted)], query


async def test_heads_read_together_are_those_read_one_by_one() -> None:
    async with stage() as s:
        await fill(s, 500)
        link, core = await s.journal._link(), s.journal._core
        keys = [SessionKey("ab"[i % 2], f"u{i % 7}", "", f"s{i:05}") for i in range(7)]
        names = [core.names.session(key)[0] for key in keys]
        await s.real.delete(names[1])
        await s.real.hdel(names[2], "facts")
        await s.real.hset(names[3], "facts", "")
        await s.real.hdel(names[4], "incarnation")
        for text in (b"[]", b"\0", b"\0\0\0\0"):
            await s.real.hset(names[5], "about", text)
            told: list[list[str]] = []
            for together in (True, False):
                link.one_slot = together
                found = await read_heads(link, core, keys)
                told.append([repr(one) for one in found])
            assert told[0] == told[1]
            assert [one == "None" for one in told[0]] == [n in {1, 2} for n in range(7)]
        link.one_slot = True


async def test_an_append_costs_the_same_at_any_length() -> None:
    async with stage() as s:
        told: list[dict[str, int]] = []
        for size in (10, 5000):
            key = SessionKey("app", "user", "", f"s{size}")
            await s.journal.create(
                NewSession(key=key), [said(f"e{n}") for n in range(size)]
            )
            await s.journal.append(key, batch("a"))
            told.append(
                await s.commands(lambda key=key: s.journal.append(key, batch("b")))  # type: ignore[misc]
            )
        assert told[0] == told[1]


async def test_labels_that_come_and_go_are_found_as_they_are() -> None:
    async with stage() as s:
        await s.journal.create(NEW, change=Change(labels=LabelDelta(added=("x",))))
        await s.journal.append(
            KEY, batch("a"), change=Change(labels=LabelDelta(("y",), ("x",)))
        )
        await s.journal.update(KEY, Change(labels=LabelDelta(("z",))))
        for label, n in (("x", 0), ("y", 1), ("z", 1)):
            page = await s.journal.scan(Query(labels=(label,)))
            assert len(page.sessions) == n, label
