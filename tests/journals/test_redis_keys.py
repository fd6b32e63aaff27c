"""The keys of a Redis journal: names, slots, prefixes and native expiry."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot
from redis_clients import client, fresh_prefix

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, whole
from raf_session.errors import SessionNotFoundError
from raf_session.journals._redis_keys import (
    Names,
    member_of,
    scope_member,
    scope_of_member,
    session_of_member,
)
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

pytestmark = pytest.mark.anyio

CHANGE = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    providers=StateDelta({"p": 1}),
    request=RequestDelta(0, b"12345678" * 3, 1),
    labels=LabelDelta(added=("x", "y")),
)
PARTS = st.text(
    st.sampled_from("ab:{}%/ é\n") | st.characters(exclude_categories=["Cs"]),
    max_size=6,
).filter(lambda part: "\0" not in part)
KEYS = st.builds(SessionKey, PARTS, PARTS, PARTS, PARTS.filter(bool))
SCOPES = st.builds(ScopeKey, PARTS, PARTS | st.none())
_USER = ScopeKey("app", "user")
_ANY = Query()
SESSION_KINDS = ("session", "entries", "archive", "ids", "digests")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def opened(
    **options: Any,
) -> AsyncGenerator[tuple[RedisJournal, Any, str]]:
    prefix = fresh_prefix()
    async with (
        client(prefix) as real,
        RedisJournal(real, prefix=prefix, **options) as journal,
    ):
        yield journal, real, prefix


async def names_of(real: Any, prefix: str) -> set[bytes]:
    return {key async for key in real.scan_iter(f"{prefix}*", count=10_000)}


# Names -------------------------------------------------------------------------------


def test_names_are_the_documents_with_a_hash_tag() -> None:
    names = Names("raf")
    head, *_ = names.session(SessionKey("weather", "u1", "", "s1"))
    assert head == b"raf:session:{weather:u1}::s1"
    assert (
        names.scope(ScopeKey("weather", "u1")).state == b"raf:user_state:{weather:u1}"
    )
    assert names.scope(ScopeKey("weather")).state == b"raf:app_state:{weather}"
    escaped = names.session(SessionKey("a:b", "{u}", "%", "s"))[0]
    assert escaped == b"raf:session:{a%3ab:%7bu%7d}:%25:s"


@given(KEYS, KEYS)
def test_names_tell_sessions_apart(one: SessionKey, two: SessionKey) -> None:
    names = Names("raf")
    assert (names.session(one) == names.session(two)) == (one == two)
    assert len({*names.session(one), *names.session(two)}) == 5 * (1 + (one != two))
    assert names.parse(names.session(one)[0]) == one
    assert session_of_member(member_of(one)) == one
    in_order = tuple(p.encode() for p in one) < tuple(p.encode() for p in two)
    assert (member_of(one) < member_of(two)) == in_order


@given(SCOPES, SCOPES)
def test_names_tell_scopes_apart(one: ScopeKey, two: ScopeKey) -> None:
    names = Names("raf")
    assert (names.scope(one) == names.scope(two)) == (one == two)
    assert names.parse(names.scope(one).state) == one
    assert scope_of_member(scope_member(one)) == one


@given(KEYS)
def test_a_session_and_its_users_state_share_a_slot(key: SessionKey) -> None:
    names = Names("a prefix:of ours")
    keys = [*names.session(key)]
    if key.user:
        keys += names.scope(ScopeKey(key.app, key.user))
    assert len({key_slot(name) for name in keys}) == 1
    for scope in (ScopeKey(key.app), ScopeKey(key.app, key.user)):
        assert len({key_slot(name) for name in names.scope(scope)}) == 1
    assert len({key_slot(name) for name in names.index}) == 1


@pytest.mark.parametrize("prefix", ["", "a{b", "a}", "a\0b"])
def test_a_prefix_that_would_break_slots_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in front"):
        RedisJournal("redis://localhost", prefix=prefix)


# Prefixes ----------------------------------------------------------------------------


async def test_prefixes_share_nothing() -> None:
    async with opened() as (one, real, first), opened() as (two, _, second):
        before = set(await real.keys("*"))
        for journal in (one, two):
            await journal.create(NEW, batch("a"), archived=batch("z"), change=CHANGE)
            await journal.append(KEY, batch("b"), change=CHANGE, trim=1)
        made = set(await real.keys("*")) - before
        assert all(key.startswith((first.encode(), second.encode())) for key in made)
        mine = await names_of(real, second)
        assert await one.delete(KEY)
        assert await names_of(real, second) == mine
        assert (await two.load(KEY)).app_state == {"a": 1}


async def test_a_prefix_is_literal() -> None:
    prefix = f"{fresh_prefix()}[*?\\^"
    async with client() as real:
        async with RedisJournal(real, prefix=prefix) as journal:
            await journal.create(NEW, batch("a"))
            index = f"{prefix}:{{index}}:keys"
            await real.delete(index)
            assert len((await journal.scan(_ANY, order="key")).sessions) == 1
        async for key in real.scan_iter("test-*", count=10_000):
            if key.startswith(prefix.encode()):
                await real.delete(key)


async def test_delete_leaves_nothing() -> None:
    async with opened() as (journal, real, prefix):
        await journal.update_scoped_state(ScopeKey("app"), StateDelta({"a": 0}))
        await journal.update_scoped_state(ScopeKey("app", "user"), StateDelta({"u": 0}))
        # One owed to an app is remembered until a sweep.
        await journal.create(NEW, change=Change(app=StateDelta({"a": 0})))
        await journal.delete(KEY)
        before = await names_of(real, prefix)
        sizes = {key: await size(real, key) for key in before}
        await journal.create(NEW, batch("a"), archived=batch("z"), change=CHANGE)
        await journal.append(KEY, batch("b", "c"), change=CHANGE, trim=1)
        await journal.splice(KEY, 1, 99, batch("s"), archive=True)
        assert await names_of(real, prefix) > before
        assert await journal.delete(KEY)
        assert await names_of(real, prefix) == before
        assert {key: await size(real, key) for key in before} == sizes


async def size(real: Any, key: bytes) -> int:
    kind = await real.type(key)
    if kind == b"zset":
        return int(await real.zcard(key))
    return int(await real.hlen(key)) if kind == b"hash" else 0


# Native expiry -----------------------------------------------------------------------


async def ttls(real: Any, prefix: str) -> dict[str, int]:
    """Return the milliseconds that are left to each key of a session, or its user."""
    found: dict[str, int] = {}
    for key in await names_of(real, prefix):
        kind = key.decode().removeprefix(f"{prefix}:").split(":")[0]
        if kind in {*SESSION_KINDS, "user_state", "app_state"}:
            found[kind] = await real.pttl(key)
    return found


def alike(found: dict[str, int], expected_ms: int) -> None:
    assert set(SESSION_KINDS) <= set(found)
    left = [found[kind] for kind in SESSION_KINDS]
    assert max(left) - min(left) < 50
    assert expected_ms - 5000 < min(left) <= max(left) <= expected_ms


LIMITS = Limits(
    sessions=SessionTTLOptions(max_idle_secs=1000, max_lifetime_secs=3000),
    user_state=SessionTTLOptions(max_idle_secs=500),
)


async def test_all_keys_of_a_session_expire_alike_after_each_write() -> None:
    clock = TickingClock()
    options = {"limits": LIMITS, "clock": clock, "expiry_grace_secs": 10}
    async with opened(**options) as (journal, real, prefix):
        await journal.create(NEW, batch("a"), archived=batch("z"), change=CHANGE)
        alike(await ttls(real, prefix), 1_010_000)
        found = await ttls(real, prefix)
        assert 500_000 < found["user_state"] <= 510_000
        assert found["app_state"] == -1
        for n in range(3):
            clock.tick(500)
            await journal.append(KEY, batch(f"b{n}"))
            left = 3000 - 500 * (n + 1)
            alike(await ttls(real, prefix), 1000 * min(1010, left + 10))
        clock.tick(400)
        await journal.update(KEY, Change(session=StateDelta({"t": 1})))
        alike(await ttls(real, prefix), 610_000)
        await journal.update(KEY, Change(touch=clock()))
        alike(await ttls(real, prefix), 1_010_000)
        clock.tick(100)
        await journal.splice(KEY, 2, 2, archive=True, change=Change(touch=clock()))
        alike(await ttls(real, prefix), 1_010_000)
        clock.tick(100)
        await journal.load(KEY)
        await journal.load(KEY, refresh=True)
        alike(await ttls(real, prefix), 910_000)


async def test_a_pinned_session_is_not_collected() -> None:
    async with opened(limits=LIMITS) as (journal, real, prefix):
        await journal.create(NEW, batch("a"), archived=batch("z"), change=CHANGE)
        await journal.append(KEY, batch("b"), change=Change(pin=True))
        found = await ttls(real, prefix)
        assert {found[kind] for kind in SESSION_KINDS} == {-1}
        await journal.append(KEY, batch("c"))
        assert {(await ttls(real, prefix))[kind] for kind in SESSION_KINDS} == {-1}
        await journal.update(KEY, Change(pin=False))
        assert min((await ttls(real, prefix)).values()) == -1, "the app's alone"
        alike(await ttls(real, prefix), 1000 * (1000 + 3600))


async def test_without_limits_nothing_is_collected() -> None:
    prefix = fresh_prefix()
    async with client(prefix) as real:
        async with RedisJournal(real, prefix=prefix, limits=LIMITS) as journal:
            await journal.create(NEW, batch("a"), archived=batch("z"), change=CHANGE)
        async with RedisJournal(real, prefix=prefix) as journal:
            await journal.append(KEY, batch("b"))
            found = await ttls(real, prefix)
            assert {found[kind] for kind in SESSION_KINDS} == {-1}


async def test_what_the_server_collected_is_gone_and_reported_once() -> None:
    clock = TickingClock()
    async with opened(limits=LIMITS, clock=clock) as (journal, real, prefix):
        change = Change(user=StateDelta({"u": 1}), labels=LabelDelta(added=("x",)))
        await journal.create(NEW, batch("a"), change=change)
        other = SessionKey("app", "user", "", "other")
        await journal.create(NewSession(key=other), batch("a"))
        for kind in (*SESSION_KINDS, "user_state"):
            async for key in real.scan_iter(f"{prefix}:{kind}:*"):
                if not key.endswith(b":other"):
                    await real.pexpire(key, 1)
        while await real.exists(f"{prefix}:session:{{app:user}}::session"):
            pass
        with pytest.raises(SessionNotFoundError):
            await whole(journal)
        assert len((await journal.scan(_ANY)).sessions) == 1
        assert await journal.expire() == (), "the rule has not said so yet"
        clock.tick(1001)
        assert set(await journal.expire(dry_run=True)) == {KEY, other, _USER}
        assert set(await journal.expire()) == {KEY, other, _USER}
        assert await journal.expire() == ()
        left = {key: await size(real, key) for key in await names_of(real, prefix)}
        assert max(left.values()) == 1, "only the marks of the index"
