"""Checks of `Journal.expire`: what a sweep removes, and what it reports."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, Final

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    every,
    ids,
    raises,
    same,
    together,
    whole,
)
from raf_session.errors import SessionError, SessionNotFoundError
from raf_session.journal import Commit
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

_USER: Final = ScopeKey("app", "user")


def _idle(seconds: float) -> Limits:
    return Limits(sessions=SessionTTLOptions(max_idle_secs=seconds))


def _key(n: int) -> SessionKey:
    return SessionKey("app", "user", "", f"s{n:02}")


async def check_delete_of_an_expired_session_says_no(make: JournalFactory) -> None:
    """There is no live session to delete, and nothing comes back afterwards."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        await journal.create(NEW, batch("a"))
        clock.tick(11)
        same(await journal.delete(KEY), False, "delete")
        same(await alive(journal), False, "it is gone")
        await journal.create(NEW)
        same((await whole(journal)).entries, (), "the next begins empty")


async def check_expire_leaves_nothing(make: JournalFactory) -> None:
    """What was swept has no entries, archive, state or index left; its key is free."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        change = Change(
            session=StateDelta({"s": 1}),
            user=StateDelta({"u": 1}),
            providers=StateDelta({"p": 1}),
            title="old",
        )
        old = await journal.create(NEW, batch("a"), archived=batch("z"), change=change)
        clock.tick(11)
        same(await journal.expire(), (KEY,), "expire")
        await journal.create(NEW)
        record = await whole(journal)
        same((record.entries, record.archived), ((), ()), "no entry came back")
        same((record.state, record.provider_states), ({}, {}), "no state came back")
        same(record.user_state, {"u": 1}, "the user's state is not the session's")
        with raises(SessionNotFoundError, "a write of the swept incarnation"):
            await journal.append(KEY, batch("late"), incarnation=old.head.incarnation)


async def check_expire_takes_at_most_its_limit(make: JournalFactory) -> None:
    """`limit` bounds one call; calls until nothing is left report each once."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        for n in range(10):
            await journal.create(NewSession(key=_key(n)), batch("a"))
        clock.tick(5)
        await journal.create(NEW)
        clock.tick(6)
        dry = await journal.expire(4, dry_run=True)
        same(len(dry), 4, "a dry run has the limit too")
        same(len(await journal.expire(100, dry_run=True)), 10, "and deletes nothing")
        found: list[object] = []
        for size in (4, 4, 2, 0):
            part = await journal.expire(4)
            same(len(part), size, "how many were deleted")
            found.extend(part)
        expected: set[object] = {_key(n) for n in range(10)}
        same((set(found), len(found)), (expected, 10), "each once")
        same([x.head.key for x in await every(journal)], [KEY], "the live one stays")


async def check_parallel_sweeps_report_each_once(make: JournalFactory) -> None:
    """Of five parallel callers each expired session is reported by one alone."""
    clock = TickingClock()
    limits = Limits(
        sessions=SessionTTLOptions(max_idle_secs=10),
        user_state=SessionTTLOptions(max_idle_secs=10),
    )
    async with make(limits=limits, clock=clock) as journal:
        expected: set[object] = set()
        for n in range(20):
            key = SessionKey("app", f"u{n % 4}", "", f"s{n}")
            change = Change(user=StateDelta({"u": n}))
            await journal.create(NewSession(key=key), batch("a"), change=change)
            expected |= {key, ScopeKey("app", key.user)}
        clock.tick(11)
        found: Counter[object] = Counter()
        for _ in range(10):
            for answer in await together(*[partial(journal.expire, 3)] * 5):
                assert not isinstance(answer, SessionError), f"{answer!r}"
                found.update(answer)
        same(found, Counter(expected), "who was reported how often")


async def check_creators_may_race_a_sweep(make: JournalFactory) -> None:
    """A key re-created beside a sweep holds the new session, whole."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        keys = [_key(n) for n in range(10)]
        for key in keys:
            await journal.create(NewSession(key=key), batch("old"))
        clock.tick(11)
        sweeps: list[Any] = [partial(journal.expire, 3)] * 5
        creates: list[Any] = [
            partial(journal.create, NewSession(key=key), batch("new")) for key in keys
        ]
        calls = [
            call for pair in zip(creates, sweeps * 2, strict=True) for call in pair
        ]
        answers = await together(*calls)
        same(sum(isinstance(a, Commit) for a in answers), 10, "all were created")
        swept: list[object] = []
        for answer in answers:
            if not isinstance(answer, Commit | SessionError):
                swept.extend(answer)
        same(len(swept), len(set(swept)), "none was swept twice")
        for key in keys:
            same(ids((await whole(journal, key)).entries), ["new"], f"{key}")


async def check_expire_checks_again(make: JournalFactory) -> None:
    """A sweep beside writers removes no session that is live, and loses no write."""
    clock = TickingClock()
    async with make(limits=_idle(10), clock=clock) as journal:
        for n in range(10):
            await journal.create(NewSession(key=_key(n)), batch("a"))
        clock.tick(10)
        same(len(await journal.expire(dry_run=True)), 0, "none has expired")
        touches = [
            partial(journal.append, _key(n), batch("b")) for n in range(0, 10, 2)
        ]
        await together(*touches)
        clock.tick(1)
        more = [partial(journal.append, _key(n), batch("c")) for n in range(10)]
        await together(
            *more[:5], partial(journal.expire), *more[5:], partial(journal.expire)
        )
        for n in range(10):
            if n % 2:
                same(await alive(journal, _key(n)), False, f"{n} had expired")
            else:
                record = await journal.load(_key(n))
                same(ids(record.entries), ["a", "b", "c"], f"{n} is whole")


async def check_scoped_state_expires(make: JournalFactory) -> None:
    """State of users and apps expires by limits of its own, and is swept."""
    clock = TickingClock()
    limits = Limits(
        user_state=SessionTTLOptions(max_idle_secs=10),
        app_state=SessionTTLOptions(max_lifetime_secs=20),
    )
    async with make(limits=limits, clock=clock) as journal:
        await journal.create(
            NEW, change=Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1}))
        )
        clock.tick(10)
        same(await journal.expire(), (), "at the limit")
        await journal.load(KEY, refresh=True)
        clock.tick(10)
        await journal.update_scoped_state(_USER, StateDelta({"v": 2}))
        same(await journal.expire(), (), "at the limits, refreshed")
        clock.tick(0, microseconds=1)
        same(await journal.expire(dry_run=True), (ScopeKey("app"),), "dry")
        same(await journal.expire(), (ScopeKey("app"),), "the app's lifetime")
        clock.tick(10)
        same(await journal.expire(), (_USER,), "the user's idle time")
        record = await journal.load(KEY)
        same((record.user_state, record.app_state), ({}, {}), "the session lives on")
        same(await journal.expire(), (), "once")


async def check_scoped_lifetime_counts_from_the_first_key(make: JournalFactory) -> None:
    """created_at of a scope is its first key's, and deleting all keys ends it."""
    clock = TickingClock()
    limits = Limits(app_state=SessionTTLOptions(max_lifetime_secs=10))
    app = ScopeKey("app")
    async with make(limits=limits, clock=clock) as journal:
        await journal.update_scoped_state(app, StateDelta({"a": 1}))
        clock.tick(10)
        await journal.update_scoped_state(app, StateDelta({"b": 1}))
        clock.tick(0, microseconds=1)
        same((await journal.scoped_state(app)).state, {}, "past the lifetime")
        await journal.update_scoped_state(app, StateDelta({"c": 1}))
        begun = clock()
        clock.tick(10)
        scoped = await journal.scoped_state(app)
        same((scoped.state, scoped.created_at), ({"c": 1}, begun), "begun anew")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_delete_of_an_expired_session_says_no,
    check_expire_leaves_nothing,
    check_expire_takes_at_most_its_limit,
    check_parallel_sweeps_report_each_once,
    check_creators_may_race_a_sweep,
    check_expire_checks_again,
    check_scoped_state_expires,
    check_scoped_lifetime_counts_from_the_first_key,
)
