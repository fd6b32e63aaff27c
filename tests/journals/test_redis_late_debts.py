"""Deltas of app state that are applied late, by somebody who read them long ago."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis_clients import client, fresh_prefix
from redis_hooks import Hooked, When, uses

from raf_session.changes import Change, StateDelta
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, batch, said
from raf_session.errors import StorageError
from raf_session.journals._redis_read_scripts import LOOK
from raf_session.journals._redis_scripts import APPEND
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import NewSession

pytestmark = pytest.mark.anyio

APP = ScopeKey("app")
OTHER = SessionKey("app", "other", "", "s")
APPLIES = uses("@scope")
DAY = 86_400


def app(delta: StateDelta) -> Change:
    return Change(app=delta)


OLD, NEWER = StateDelta({"k": "old"}), StateDelta({"k": "new"})
GONE = StateDelta({}, ["k"])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stage(NamedTuple):
    slow: RedisJournal
    fast: RedisJournal
    hooked: Hooked
    """The client of the slow one."""
    real: Any
    prefix: str
    clock: TickingClock

    async def state(self) -> object:
        return (await self.fast.load(OTHER)).app_state


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage]:
    prefix, clock = fresh_prefix(), TickingClock()
    async with client(prefix) as real, client() as second:
        hooked = Hooked(real)
        async with (
            RedisJournal(hooked, prefix=prefix, clock=clock) as slow,
            RedisJournal(second, prefix=prefix, clock=clock) as fast,
        ):
            for key in (KEY, OTHER):
                await fast.create(NewSession(key=key))
            yield Stage(slow, fast, hooked, real, prefix, clock)


async def test_a_writer_that_pauses_does_not_bring_a_deleted_key_back() -> None:
    async with stage() as s:

        async def meanwhile() -> None:
            assert await s.state() == {"k": "old"}
            await s.fast.update_scoped_state(APP, GONE)

        s.hooked.arm(APPLIES, meanwhile)
        await s.slow.append(KEY, batch("a"), change=app(OLD))
        assert await s.state() == {}


@pytest.mark.parametrize("session", [None, KEY, OTHER], ids=["alone", "same", "other"])
async def test_a_writer_that_pauses_does_not_write_over_a_newer_value(
    session: SessionKey | None,
) -> None:
    """The state is deleted in between, so that its numbers begin anew."""
    async with stage() as s:
        for name in ("1", "2", "3"):
            await s.fast.append(KEY, batch(name), change=app(StateDelta({"k": name})))

        async def meanwhile() -> None:
            assert await s.state() == {"k": "old"}
            await s.fast.update_scoped_state(APP, GONE)
            if session is None:
                await s.fast.update_scoped_state(APP, NEWER)
            else:
                await s.fast.append(session, batch("b"), change=app(NEWER))

        s.hooked.arm(APPLIES, meanwhile)
        await s.slow.append(KEY, batch("a"), change=app(OLD))
        assert await s.state() == {"k": "new"}


async def test_a_finisher_that_pauses_harms_no_delta_that_has_its_number() -> None:
    """The new delta is in the record, and not yet applied, when the old one comes."""
    async with stage() as s, client() as third:
        broken = Hooked(third)
        async with RedisJournal(broken, prefix=s.prefix, clock=s.clock) as writer:

            async def cut() -> None:
                raise RedisConnectionError("cut by the test")

            async def meanwhile() -> None:
                assert await s.state() == {"k": "old"}
                await s.fast.update_scoped_state(APP, GONE)
                broken.arm(APPLIES, cut)
                with pytest.raises(StorageError):
                    await writer.append(KEY, batch("b"), change=app(NEWER))

            s.hooked.arm(APPLIES, meanwhile)
            await s.slow.append(KEY, batch("a"), change=app(OLD))
            assert await s.state() == {"k": "new"}
            assert await s.real.exists(f"{s.prefix}:app_owed:{{app}}") == 0


async def test_a_reader_that_finishes_late_does_not_bring_a_deleted_key_back() -> None:
    async with stage() as s, client() as third:
        paused = Hooked(third)
        async with RedisJournal(paused, prefix=s.prefix, clock=s.clock) as writer:

            async def others() -> None:
                await s.fast.load(KEY)
                await s.fast.update_scoped_state(APP, GONE)

            async def read() -> None:
                s.hooked.arm(APPLIES, others)
                await s.slow.load(OTHER)

            paused.arm(APPLIES, read)
            await writer.append(KEY, batch("a"), change=app(OLD))
            assert await s.state() == {}


async def test_clocks_more_than_a_day_apart_lose_no_delta() -> None:
    """A sweep takes the number of a writer for lost that has yet to commit."""
    async with stage() as s, client() as third:
        ahead = TickingClock()
        ahead.tick(DAY + 1)
        async with RedisJournal(third, prefix=s.prefix, clock=ahead) as sweeper:
            swept: list[object] = []

            async def sweep() -> None:
                swept.append(await sweeper.expire())

            s.hooked.arm(uses(APPEND.sha), sweep)
            await s.slow.append(KEY, batch("a"), change=app(OLD))
            assert swept == [()]
            assert await s.state() == {"k": "old"}
            assert await s.real.exists(f"{s.prefix}:app_owed:{{app}}") == 0


@pytest.mark.parametrize("name", ["update", "splice"])
async def test_a_write_ends_though_others_always_owe_something(name: str) -> None:
    async with stage() as s, client() as third:
        broken = Hooked(third)
        looks: list[int] = []
        async with RedisJournal(broken, prefix=s.prefix, clock=s.clock) as writer:

            async def cut() -> None:
                raise RedisConnectionError("cut by the test")

            async def owe() -> None:
                looks.append(1)
                assert len(looks) < 10, "it never ends"
                broken.arm(APPLIES, cut)
                change = app(StateDelta({"n": len(looks)}))
                with pytest.raises(StorageError):
                    await writer.append(KEY, [said(f"w{len(looks)}")], change=change)
                s.hooked.arm(looking, owe)

            looking: When = uses(LOOK.sha)
            s.hooked.arm(looking, owe)
            if name == "update":
                await s.slow.update(KEY, Change(title="t"))
            else:
                await s.slow.splice(KEY, 1, 1, batch("s"), archive=True)
            assert await s.state() == {"n": len(looks)}
