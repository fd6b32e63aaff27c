"""Checks of the state of users and apps."""

from __future__ import annotations

from functools import partial
from typing import Final

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    same,
    together,
    unchanged,
    whole,
)
from raf_session.journal import ScopedState
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

_USER: Final = ScopeKey("app", "user")
_APP: Final = ScopeKey("app")


async def check_scoped_state_is_shared(make: JournalFactory) -> None:
    """A user's state is one for all sessions of that user, an app's for all of it."""
    sibling = SessionKey("app", "user", "scope", "other")
    stranger = SessionKey("app", "else", "", "session")
    foreign = SessionKey("other", "user", "", "session")
    async with make() as journal:
        for key in (KEY, sibling, stranger, foreign):
            await journal.create(NewSession(key=key))
        change = Change(
            session=StateDelta({"s": 1}),
            user=StateDelta({"u": 1}),
            app=StateDelta({"a": 1}),
        )
        await journal.append(KEY, batch("a"), change=change)
        await journal.append(
            sibling, batch("a"), change=Change(app=StateDelta({"b": 2}))
        )
        both = {"a": 1, "b": 2}
        for key, state, user, app in (
            (KEY, {"s": 1}, {"u": 1}, both),
            (sibling, {}, {"u": 1}, both),
            (stranger, {}, {}, both),
            (foreign, {}, {}, {}),
        ):
            record = await whole(journal, key)
            seen = (record.state, record.user_state, record.app_state)
            same(seen, (state, user, app), f"the states that {str(key)!r} reads")


async def check_scoped_state_is_set_and_deleted(make: JournalFactory) -> None:
    """Keys are set and deleted one by one; the first sets created_at, all touch it."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        nothing = ScopedState({}, None, None)
        for scope in (_USER, _APP):
            same(await journal.scoped_state(scope), nothing, "before the first key")
            begun = clock.tick()
            await journal.update_scoped_state(scope, StateDelta({"x": [1], "y": None}))
            state = {"x": (1,), "y": None}
            expected = ScopedState(state, begun, begun)
            same(await journal.scoped_state(scope), expected, "the first keys")
            now = clock.tick()
            await journal.update_scoped_state(scope, StateDelta({"z": 1}, ["x", "no"]))
            expected = ScopedState({"y": None, "z": 1}, begun, now)
            same(await journal.scoped_state(scope), expected, "set and deleted")
        await journal.create(NEW)
        record = await whole(journal)
        same(record.user_state, {"y": None, "z": 1}, "a session reads its user's")
        same(record.app_state, {"y": None, "z": 1}, "a session reads its app's")


async def check_scoped_state_needs_no_session(make: JournalFactory) -> None:
    """The states of user and app stay when the last session is deleted."""
    async with make() as journal:
        change = Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1}))
        await journal.create(NEW, change=change)
        await journal.delete(KEY)
        same((await journal.scoped_state(_USER)).state, {"u": 1}, "the user's state")
        same((await journal.scoped_state(_APP)).state, {"a": 1}, "the app's state")


async def check_the_empty_user_has_a_state_of_its_own(make: JournalFactory) -> None:
    """Sessions without a user share the state of the empty user, not the app's."""
    key = SessionKey("app", "", "", "session")
    async with make() as journal:
        await journal.create(
            NewSession(key=key),
            change=Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1})),
        )
        record = await whole(journal, key)
        same((record.user_state, record.app_state), ({"u": 1}, {"a": 1}), "as read")
        empty = await journal.scoped_state(ScopeKey("app", ""))
        same(empty.state, {"u": 1}, "the empty user's state")
        same((await journal.scoped_state(_APP)).state, {"a": 1}, "the app's state")
        bare = SessionKey.raf("session")
        await journal.create(
            NewSession(key=bare),
            change=Change(user=StateDelta({"u": 2}), app=StateDelta({"a": 2})),
        )
        record = await whole(journal, bare)
        same((record.user_state, record.app_state), ({"u": 2}, {"a": 2}), "without app")


async def check_scopes_lists_what_holds_state(make: JournalFactory) -> None:
    """`scopes` names the app and its users with live state, once each, no others."""
    async with make() as journal:
        delta = StateDelta({"k": 1})
        scopes = [
            ScopeKey("app", user) for user in (None, "", "%", "*", "a/b", "用户", "u")
        ]
        for scope in scopes:
            await journal.update_scoped_state(scope, delta)
        await journal.update_scoped_state(ScopeKey("apple", "u"), delta)
        await journal.update_scoped_state(ScopeKey("App", "u"), delta)
        await journal.create(NewSession(key=SessionKey("app", "idle", "", "s")))
        same(sorted(await journal.scopes("app")), sorted(scopes), "the scopes")
        for scope in scopes[1:4]:
            await journal.update_scoped_state(scope, StateDelta({}, ["k"]))
            same((await journal.scoped_state(scope)).state, {}, "no key is left")
        left = [scopes[0], *scopes[4:]]
        same(sorted(await journal.scopes("app")), sorted(left), "those with state")


async def check_scope_refresh_moves_activity(make: JournalFactory) -> None:
    """Reading with `refresh` moves last_active_at of that scope alone."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, change=Change(user=StateDelta({"u": 1})))
        await journal.update_scoped_state(_APP, StateDelta({"a": 1}))
        now = clock.tick()
        async with unchanged(journal, "a refresh of the user's state"):
            await journal.scoped_state(_USER, refresh=True)
            await journal.scoped_state(ScopeKey("app", "nobody"), refresh=True)
        expected = ScopedState({"u": 1}, START, now)
        same(await journal.scoped_state(_USER), expected, "the user's state")
        same((await journal.scoped_state(_APP)).last_active_at, START, "the app's")
        same(sorted(await journal.scopes("app")), sorted([_APP, _USER]), "the scopes")


async def check_parallel_scope_writers_merge(make: JournalFactory) -> None:
    """Keys that sessions and direct writers set in parallel are all there."""
    async with make() as journal:
        keys = [SessionKey("app", "user", "", f"s{n}") for n in range(10)]
        for key in keys:
            await journal.create(NewSession(key=key))
        appends = [
            partial(
                journal.append,
                key,
                batch("a"),
                change=Change(
                    user=StateDelta({f"s{n}": n}), app=StateDelta({f"s{n}": n})
                ),
            )
            for n, key in enumerate(keys)
        ]
        writes = [
            partial(journal.update_scoped_state, scope, StateDelta({f"w{n}": n}))
            for n in range(10)
            for scope in (_APP, _USER)
        ]
        await together(*appends, *writes)
        expected = {f"s{n}": n for n in range(10)} | {f"w{n}": n for n in range(10)}
        same((await journal.scoped_state(_USER)).state, expected, "the user's state")
        same((await journal.scoped_state(_APP)).state, expected, "the app's state")


async def check_expired_state_is_invisible(make: JournalFactory) -> None:
    """Expired state is empty for every reader, and what comes later begins anew."""
    clock = TickingClock()
    limits = Limits(user_state=SessionTTLOptions(max_idle_secs=10))
    async with make(limits=limits, clock=clock) as journal:
        change = Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1}))
        await journal.create(NEW, change=change)
        clock.tick(10)
        same((await journal.load(KEY)).user_state, {"u": 1}, "at the limit")
        clock.tick(0, microseconds=1)
        nothing = ScopedState({}, None, None)
        same(await journal.scoped_state(_USER, refresh=True), nothing, "past the limit")
        same(
            (await journal.load(KEY, refresh=True)).user_state, {}, "as a session reads"
        )
        same(list(await journal.scopes("app")), [_APP], "the scopes")
        await journal.append(KEY, batch("a"), change=Change(user=StateDelta({"v": 2})))
        expected = ScopedState({"v": 2}, clock(), clock())
        same(await journal.scoped_state(_USER), expected, "after an append")
        clock.tick(11)
        await journal.update_scoped_state(_USER, StateDelta({"w": 3}, ["x"]))
        expected = ScopedState({"w": 3}, clock(), clock())
        same(await journal.scoped_state(_USER), expected, "after a direct write")


async def check_writes_touch_no_scope_unnamed(make: JournalFactory) -> None:
    """A write that names no state of user or app leaves the times of these alone."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        change = Change(user=StateDelta({"u": 1}), app=StateDelta({"a": 1}))
        await journal.create(NEW, batch("a"), change=change)
        clock.tick(60)
        await journal.append(
            KEY, batch("b"), change=Change(session=StateDelta({"s": 1}))
        )
        await journal.splice(KEY, 1, 1, archive=True)
        await journal.update(KEY, Change(title="t"))
        await journal.create(NewSession(key=KEY._replace(session="other")))
        await journal.delete(KEY)
        for scope in (ScopeKey("app", "user"), ScopeKey("app")):
            scoped = await journal.scoped_state(scope)
            same(scoped.last_active_at, START, f"activity of {scope}")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_scoped_state_is_shared,
    check_scoped_state_is_set_and_deleted,
    check_scoped_state_needs_no_session,
    check_the_empty_user_has_a_state_of_its_own,
    check_scopes_lists_what_holds_state,
    check_scope_refresh_moves_activity,
    check_writes_touch_no_scope_unnamed,
    check_parallel_scope_writers_merge,
    check_expired_state_is_invisible,
)
