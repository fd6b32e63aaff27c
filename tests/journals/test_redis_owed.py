"""State of apps, which a Redis journal writes in another slot than the session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from redis_clients import Faulty, client, fresh_prefix

from raf_session.changes import Change, StateDelta
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, batch
from raf_session.errors import StaleSessionError, StorageError
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

pytestmark = pytest.mark.anyio

APP = ScopeKey("app")
EMPTY_USER = ScopeKey("app", "")
LONE = SessionKey("app", "", "", "lone")
DAY = 86_400


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stage(NamedTuple):
    journal: RedisJournal
    faulty: Faulty
    real: Any
    prefix: str
    clock: TickingClock

    async def break_after_commit(
        self, delta: StateDelta, key: SessionKey = KEY, entry: str = "x"
    ) -> None:
        """Append, and fail where the delta is committed and not yet applied."""
        self.faulty.trips, self.faulty.at, self.faulty.when = 0, 3, "before"
        change = Change(app=delta) if key is KEY else Change(user=delta, session=delta)
        with pytest.raises(StorageError):
            await self.journal.append(key, batch(entry), change=change)
        self.faulty.at = 0

    async def owed(self) -> Sequence[Any]:
        """Return the fields of deltas that sessions carry."""
        found: list[Any] = []
        async for key in self.real.scan_iter(f"{self.prefix}:session:*"):
            found += [n for n in await self.real.hkeys(key) if n.startswith(b"owed:")]
        return found


@asynccontextmanager
async def stage(limits: Limits | None = None) -> AsyncGenerator[Stage]:
    prefix, clock = fresh_prefix(), TickingClock()
    async with client(prefix) as real:
        faulty = Faulty(real)
        async with RedisJournal(
            faulty, prefix=prefix, clock=clock, limits=limits
        ) as journal:
            for key in (KEY, LONE):
                await journal.create(NewSession(key=key))
                await journal.append(
                    key,
                    batch("first"),
                    change=Change(app=StateDelta({"n": 0}), user=StateDelta({"n": 0})),
                )
            yield Stage(journal, faulty, real, prefix, clock)


async def test_a_delta_that_a_crash_left_is_applied_by_the_next_load() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"x": 1}))
        assert len(await s.owed()) == 1
        record = await s.journal.load(KEY)
        assert record.app_state == {"n": 0, "x": 1}
        assert [entry.id for entry in record.entries] == ["first", "x"]
        assert await s.owed() == []


async def test_a_reader_of_the_state_sees_what_was_committed() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"x": 1}))
        assert (await s.journal.scoped_state(APP)).state == {"n": 0, "x": 1}
        await s.break_after_commit(StateDelta({"y": 1}, ["n"]), entry="y")
        other = SessionKey("app", "other", "", "other")
        await s.journal.create(NewSession(key=other))
        assert (await s.journal.load(other)).app_state == {"x": 1, "y": 1}


async def test_the_empty_user_is_written_alike() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"x": 1}), LONE)
        assert (await s.journal.scoped_state(EMPTY_USER)).state == {"n": 0, "x": 1}
        await s.break_after_commit(StateDelta({"y": 1}), LONE, "y")
        assert (await s.journal.load(LONE)).user_state == {"n": 0, "x": 1, "y": 1}


@pytest.mark.parametrize("name", ["append", "update", "splice"])
async def test_any_next_write_of_the_session_finishes_it(name: str) -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"x": 1}))
        if name == "append":
            await s.journal.append(KEY, batch("next"))
        elif name == "update":
            await s.journal.update(KEY, Change(title="t"))
        else:
            await s.journal.splice(KEY, 1, 1, archive=True)
        assert await s.owed() == []
        assert await s.real.hget(f"{s.prefix}:app_state:{{app}}", "x") is not None


async def test_a_delta_outlives_its_session() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"x": 1}))
        assert await s.journal.delete(KEY)
        assert (await s.journal.scoped_state(APP)).state == {"n": 0, "x": 1}
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with stage(limits) as s:
        await s.break_after_commit(StateDelta({"x": 1}))
        s.clock.tick(11)
        assert KEY in await s.journal.expire()
        assert (await s.journal.scoped_state(APP)).state == {"n": 0, "x": 1}


async def test_a_record_that_carries_a_delta_is_not_collected() -> None:
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with stage(limits) as s:
        (head,) = [k async for k in s.real.scan_iter(f"{s.prefix}:session:*:session")]
        assert await s.real.pttl(head) > 0
        await s.break_after_commit(StateDelta({"x": 1}))
        assert await s.real.pttl(head) == -1
        await s.journal.load(KEY)
        assert await s.real.pttl(head) > 0


async def test_a_sweep_finishes_it() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"x": 1}))
        assert await s.journal.expire(dry_run=True) == ()
        assert len(await s.owed()) == 1
        assert await s.journal.expire() == ()
        assert await s.owed() == []
        assert await s.real.exists(f"{s.prefix}:{{index}}:owing") == 0


async def test_a_late_delta_is_no_newer_for_that() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"a": 1, "b": 1, "c": 1}, ["n"]))
        await s.journal.update_scoped_state(APP, StateDelta({"a": 2, "n": 2}, ["b"]))
        state = (await s.journal.scoped_state(APP)).state
        assert state == {"a": 2, "c": 1, "n": 2}
        # What stood for the deletion is gone once nothing older can come.
        names = await s.real.hkeys(f"{s.prefix}:app_state:{{app}}")
        assert set(names) == {b"", b"a", b"c", b"n"}


async def test_a_deletion_of_the_last_key_outlives_a_late_delta() -> None:
    async with stage() as s:
        await s.break_after_commit(StateDelta({"a": 1}))
        await s.journal.update_scoped_state(APP, StateDelta({}, ["a", "n"]))
        assert (await s.journal.scopes("app")) == (EMPTY_USER, ScopeKey("app", "user"))
        assert (await s.journal.scoped_state(APP)).state == {}
        assert await s.real.exists(f"{s.prefix}:app_state:{{app}}") == 0
        s.clock.tick()
        await s.journal.update_scoped_state(APP, StateDelta({"a": 3}))
        found = await s.journal.scoped_state(APP)
        assert (found.state, found.created_at) == ({"a": 3}, s.clock())


async def test_a_refused_write_owes_nothing() -> None:
    async with stage() as s:
        change = Change(app=StateDelta({"x": 1}))
        with pytest.raises(StaleSessionError):
            await s.journal.append(KEY, batch("y"), change=change, expected_revision=9)
        assert await s.real.exists(f"{s.prefix}:app_owed:{{app}}") == 0
        assert (await s.journal.scoped_state(APP)).state == {"n": 0}


async def test_a_number_that_was_drawn_in_vain_is_given_back() -> None:
    async with stage() as s:
        owed = f"{s.prefix}:app_owed:{{app}}"
        s.faulty.trips, s.faulty.at, s.faulty.when = 0, 2, "before"
        with pytest.raises(StorageError):
            await s.journal.append(
                KEY, batch("x"), change=Change(app=StateDelta({"x": 1}))
            )
        s.faulty.at = 0
        assert await s.real.zcard(owed) == 1
        await s.journal.expire()
        assert await s.real.zcard(owed) == 1, "its writer may be slow"
        s.clock.tick(DAY + 1)
        await s.journal.expire()
        assert await s.real.exists(owed) == 0
