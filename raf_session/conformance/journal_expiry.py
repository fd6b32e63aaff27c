"""Checks of expiry: the rule, what it hides, and `Journal.expire`."""

from __future__ import annotations

from functools import partial
from typing import Final

from raf_session.changes import Change, StateDelta
from raf_session.clock import UNIX_EPOCH
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    every,
    raises,
    same,
)
from raf_session.errors import SessionNotFoundError
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

_USER: Final = ScopeKey("app", "user")


def _idle(seconds: float) -> Limits:
    return Limits(sessions=SessionTTLOptions(max_idle_secs=seconds))


def _lifetime(seconds: float) -> Limits:
    return Limits(sessions=SessionTTLOptions(max_lifetime_secs=seconds))


def _key(n: int) -> SessionKey:
    return SessionKey("app", "user", "", f"s{n:02}")


async def check_expiry_is_strict_to_the_microsecond(make: JournalFactory) -> None:
    """At the limit a session lives, a microsecond later it does not: both rules."""
    for seconds in (0, 0.000001, 0.1, 1, 3600, 10**9):
        for limits in (_idle(seconds), _lifetime(seconds)):
            clock = TickingClock()
            async with make(limits=limits, clock=clock) as journal:
                await journal.create(NEW)
                clock.tick(seconds)
                same(await alive(journal), True, f"at the limit of {seconds}")
                same(await journal.expire(dry_run=True), (), f"dry at {seconds}")
                same(await journal.expire(), (), f"expire at {seconds}")
                same(await alive(journal), True, f"after expire at {seconds}")
                clock.tick(0, microseconds=1)
                same(await alive(journal), False, f"a microsecond after {seconds}")
                same(await every(journal), [], f"listed after {seconds}")
                same(await journal.expire(), (KEY,), f"expired after {seconds}")


async def check_without_limits_nothing_expires(make: JournalFactory) -> None:
    """With the limits off nothing ever expires."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, change=Change(user=StateDelta({"u": 1})))
        clock.tick(86_400 * 365 * 500)
        same(await journal.expire(), (), "expire")
        same((await journal.load(KEY)).user_state, {"u": 1}, "the session lives")


async def check_activity_keeps_a_session(make: JournalFactory) -> None:
    """Append, touch and refresh put off the idle rule; other calls do not."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        await journal.create(NEW)
        clock.tick(8)
        await journal.append(KEY, batch("a"))
        clock.tick(8)
        await journal.update(KEY, Change(touch=clock()))
        clock.tick(8)
        await journal.load(KEY, refresh=True)
        clock.tick(8)
        await journal.load(KEY)
        await every(journal, state=True)
        await journal.update(KEY, Change(title="t"))
        await journal.append(KEY, batch("a"))  # a repeated one
        clock.tick(2)
        same(await alive(journal), True, "at the limit since the refresh")
        clock.tick(0, microseconds=1)
        same(await alive(journal), False, "past the limit since the refresh")


async def check_lifetime_ends_a_busy_session(make: JournalFactory) -> None:
    """The lifetime rule counts from created_at, whatever happens in between."""
    clock = TickingClock()
    both = SessionTTLOptions(max_idle_secs=60, max_lifetime_secs=300)
    async with make(limits=Limits(sessions=both), clock=clock) as journal:
        await journal.create(NEW)
        for n in range(10):
            clock.tick(30)
            await journal.append(KEY, batch(f"e{n}"))
        clock.tick(0, microseconds=1)
        same(await alive(journal), False, "after 300 s")
        with raises(SessionNotFoundError, "an append after 300 s"):
            await journal.append(KEY, batch("late"))
        same(await journal.expire(), (KEY,), "expire")


async def check_expired_is_invisible_to_every_call(make: JournalFactory) -> None:
    """Before any sweep no call reads, writes, lists or revives what has expired."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        old = (await journal.create(NEW, batch("a", "b"))).head.incarnation
        clock.tick(11)
        change = Change(session=StateDelta({"k": 1}), user=StateDelta({"late": 1}))
        for incarnation in (None, old):
            calls = (
                partial(journal.load, KEY),
                partial(journal.load, KEY, refresh=True, archived=True),
                partial(journal.append, KEY, batch("c"), change=change),
                partial(journal.append, KEY, batch("a"), incarnation=incarnation),
                partial(journal.splice, KEY, 1, 2, archive=True, change=change),
                partial(journal.update, KEY, change, incarnation=incarnation),
                partial(journal.update, KEY, Change(touch=clock())),
                partial(journal.update, KEY, Change(pin=True)),
            )
            for call in calls:
                with raises(SessionNotFoundError, f"{call}"):
                    await call()
        for order in ("key", "activity"):
            listed = await every(
                journal, Query(app="app"), order="key" if order == "key" else "activity"
            )
            same(listed, [], f"listed by {order}")
        same((await journal.scoped_state(_USER)).state, {}, "no late write was stored")
        same(await journal.expire(dry_run=True), (KEY,), "it waits to be swept")
        same(await journal.expire(), (KEY,), "it is swept")
        same(await journal.expire(), (), "once")


async def check_a_pinned_session_does_not_expire(make: JournalFactory) -> None:
    """A pin exempts from both rules; without it they apply at once."""
    clock = TickingClock()
    both = SessionTTLOptions(max_idle_secs=10, max_lifetime_secs=20)
    async with make(limits=Limits(sessions=both), clock=clock) as journal:
        await journal.create(NewSession(key=_key(0), pinned=True))
        await journal.create(NewSession(key=_key(1)), change=Change(pin=True))
        await journal.create(NewSession(key=_key(2)))
        await journal.update(_key(2), Change(pin=True))
        clock.tick(1000)
        same(await journal.expire(), (), "expire")
        same(
            [x.head.key for x in await every(journal)], [_key(n) for n in range(3)], "-"
        )
        await journal.update(_key(1), Change(pin=False))
        same(await alive(journal, _key(1)), False, "unpinned")
        same(await journal.expire(), (_key(1),), "expire after unpinning")


async def check_sentinels_exempt_from_their_rule(make: JournalFactory) -> None:
    """`UNIX_EPOCH` as last_active_at skips the idle rule, as created_at the other."""
    clock = TickingClock()
    both = SessionTTLOptions(max_idle_secs=10, max_lifetime_secs=20)
    async with make(limits=Limits(sessions=both), clock=clock) as journal:
        never = NewSession(
            key=_key(0), created_at=UNIX_EPOCH, last_active_at=UNIX_EPOCH
        )
        await journal.create(never)
        await journal.create(
            NewSession(key=_key(1), created_at=START, last_active_at=UNIX_EPOCH)
        )
        await journal.create(
            NewSession(key=_key(2), created_at=UNIX_EPOCH, last_active_at=START)
        )
        clock.tick(11)
        same(await journal.expire(), (_key(2),), "the idle rule")
        clock.tick(10)
        same(await journal.expire(), (_key(1),), "the lifetime rule")
        clock.tick(10**8)
        same(await journal.expire(), (), "neither applies")
        same(await alive(journal, _key(0)), True, "a session of unknown age lives")
        await journal.load(_key(0), refresh=True)
        head = (await journal.load(_key(0))).head
        same(head.last_active_at, clock(), "a refresh gives it an age")
        clock.tick(11)
        same(await journal.expire(), (_key(0),), "the idle rule applies from then on")


async def check_old_times_expire_at_once(make: JournalFactory) -> None:
    """A session created with times that are over the limit is expired at once."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        past = START.replace(year=2020)
        old = NewSession(key=KEY, created_at=past, last_active_at=START)
        await journal.create(old)
        same(await alive(journal), True, "only created_at is old")
        other = NewSession(key=_key(1), created_at=past, last_active_at=past)
        await journal.create(other)
        same(await alive(journal, _key(1)), False, "last_active_at is old")


async def check_a_clock_set_back_expires_nothing(make: JournalFactory) -> None:
    """Times ahead of the clock neither expire a session nor break a call."""
    clock = TickingClock()
    both = SessionTTLOptions(max_idle_secs=10, max_lifetime_secs=20)
    limits = Limits(sessions=both, user_state=both)
    async with make(limits=limits, clock=clock) as journal:
        await journal.create(NEW, change=Change(user=StateDelta({"u": 1})))
        clock.tick(-3600)
        same(await journal.expire(), (), "expire")
        commit = await journal.append(KEY, batch("a"))
        same(commit.head.last_active_at, START, "last_active_at")
        same((await journal.load(KEY)).user_state, {"u": 1}, "the user's state")
        clock.set(START)
        clock.tick(10)
        same(await alive(journal), True, "the limit counts from the stored time")


async def check_a_very_long_limit_expires_nothing(make: JournalFactory) -> None:
    """Limits of centuries and millennia neither overflow nor expire anything."""
    for seconds in (86_400 * 99_999, 1e12):
        ttl = SessionTTLOptions(max_idle_secs=seconds, max_lifetime_secs=seconds)
        limits = Limits(sessions=ttl, user_state=ttl, app_state=ttl)
        clock = TickingClock()
        async with make(limits=limits, clock=clock) as journal:
            change = Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1}))
            await journal.create(NEW, batch("a"), change=change)
            clock.tick(86_400 * 365 * 200)
            same(await journal.expire(), (), "expire")
            record = await journal.load(KEY, refresh=True)
            same((record.user_state, record.app_state), ({"u": 1}, {"a": 1}), "states")
            same([x.head.key for x in await every(journal)], [KEY], "the listing")
            await journal.append(KEY, batch("b"))


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_expiry_is_strict_to_the_microsecond,
    check_without_limits_nothing_expires,
    check_a_very_long_limit_expires_nothing,
    check_activity_keeps_a_session,
    check_lifetime_ends_a_busy_session,
    check_expired_is_invisible_to_every_call,
    check_a_pinned_session_does_not_expire,
    check_sentinels_exempt_from_their_rule,
    check_old_times_expire_at_once,
    check_a_clock_set_back_expires_nothing,
)
