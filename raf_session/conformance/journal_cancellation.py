"""Checks of calls that are cancelled while they run."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

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
    same,
    together,
    whole,
)
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

_Call: TypeAlias = Callable[[], Awaitable[object]]
_Write: TypeAlias = Callable[[Journal], Awaitable[object]]

_STEPS: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 25, 50, 100)
"""After how many turns of the event loop a call is cancelled."""

_CHANGE: Final = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    providers=StateDelta({"p": 1}),
    title="t",
)


async def _cancelled_at_once(call: _Call) -> None:
    with anyio.CancelScope(deadline=-math.inf):
        await call()


async def _cancelled_after(steps: int, *calls: _Call) -> None:
    """Run the calls in parallel, and cancel them after that many turns."""
    scopes = [anyio.CancelScope() for _ in calls]

    async def run(scope: anyio.CancelScope, call: _Call) -> None:
        with scope:
            await call()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for scope, call in zip(scopes, calls, strict=True):
                group.start_soon(run, scope, call)
            for _ in range(steps):
                await checkpoint()
            for scope in scopes:
                scope.cancel()


async def _state(journal: Journal, scope: ScopeKey) -> object:
    return (await journal.scoped_state(scope)).state


async def _picture(journal: Journal, key: SessionKey) -> tuple[Any, ...]:
    """Return all that can be read of a session, `None` for one that is not there."""
    scopes = [
        await _state(journal, scope)
        for scope in (ScopeKey(key.app, key.user), ScopeKey(key.app))
    ]
    try:
        record = await whole(journal, key)
    except SessionNotFoundError:
        return (None, *scopes)
    head = record.head._replace(incarnation="")
    return (record._replace(head=head), *scopes)


async def _all_or_nothing(make: JournalFactory, write: _Write, what: str) -> None:
    """Cancel a write at every turn; each time it is whole or absent, and can follow."""
    pictures: list[tuple[Any, ...]] = []
    for done in (False, True):
        async with make(clock=TickingClock()) as journal:
            await journal.create(NEW, batch("a", "b", "c"))
            if done:
                await write(journal)
            pictures.append(await _picture(journal, KEY))
    assert pictures[0] != pictures[1], f"{what} does something"
    for steps in (-1, *_STEPS):
        async with make(clock=TickingClock()) as journal:
            await journal.create(NEW, batch("a", "b", "c"))
            call = partial(write, journal)
            if steps < 0:
                await _cancelled_at_once(call)
            else:
                await _cancelled_after(steps, call)
            with anyio.fail_after(60):
                seen = await _picture(journal, KEY)
                assert seen in pictures, (
                    f"{what} cancelled after {steps} turns is all or nothing: "
                    f"seen {seen!r}, expected one of {pictures!r}"
                )
                if seen[0] is not None:
                    last = await journal.append(KEY, batch("next"))
                    same(ids(last.entries), ["next"], f"a write after {what}")
                other = KEY._replace(session="other")
                await journal.create(NewSession(key=other), batch("a"))


async def check_a_cancelled_append_is_whole_or_absent(make: JournalFactory) -> None:
    """Cancelled at any await, an append with its change is stored whole or not."""

    async def write(journal: Journal) -> None:
        await journal.append(KEY, batch("x", "y"), change=_CHANGE, trim=2)

    await _all_or_nothing(make, write, "append")


async def check_a_cancelled_splice_is_whole_or_absent(make: JournalFactory) -> None:
    """Cancelled at any await, a splice with its change is stored whole or not."""

    async def write(journal: Journal) -> None:
        await journal.splice(KEY, 1, 2, batch("s"), archive=True, change=_CHANGE)

    await _all_or_nothing(make, write, "splice")


async def check_a_cancelled_update_is_whole_or_absent(make: JournalFactory) -> None:
    """Cancelled at any await, an update of all scopes is stored whole or not."""

    async def write(journal: Journal) -> None:
        await journal.update(KEY, _CHANGE)

    await _all_or_nothing(make, write, "update")


async def check_a_cancelled_delete_is_whole_or_absent(make: JournalFactory) -> None:
    """Cancelled at any await, a delete removed all or nothing."""

    async def write(journal: Journal) -> None:
        await journal.delete(KEY)

    await _all_or_nothing(make, write, "delete")


async def check_a_cancelled_create_is_whole_or_absent(make: JournalFactory) -> None:
    """Cancelled at any await, a session is created whole or not; its key is usable."""
    key = SessionKey("app", "user", "", "fresh")
    new = NewSession(key=key)
    for steps in (-1, *_STEPS):
        async with make(clock=TickingClock()) as journal:
            create = partial(
                journal.create, new, batch("a"), archived=batch("z"), change=_CHANGE
            )
            if steps < 0:
                await _cancelled_at_once(create)
            else:
                await _cancelled_after(steps, create)
            with anyio.fail_after(60):
                user = await _state(journal, ScopeKey("app", "user"))
                if not await alive(journal, key):
                    same(user, {}, f"the user's state after {steps} turns")
                    same(await every(journal), [], "an absent session is not listed")
                    await create()
                record = await whole(journal, key)
                same((ids(record.archived), ids(record.entries)), (["z"], ["a"]), "all")
                same(record[3:7], ({"s": 1}, {"u": 1}, {"a": 1}, {"p": 1}), "states")
                same(record.head.revision, 1, "the revision")


async def check_a_cancelled_expire_loses_nothing(make: JournalFactory) -> None:
    """Cancelled at any await, a sweep leaves each session whole or gone."""
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    for steps in (-1, *_STEPS):
        clock = TickingClock()
        async with make(limits=limits, clock=clock) as journal:
            keys = [SessionKey("app", "user", "", f"s{n}") for n in range(5)]
            for key in keys:
                await journal.create(NewSession(key=key), batch("a", "b"))
            clock.tick(11)
            if steps < 0:
                await _cancelled_at_once(journal.expire)
            else:
                await _cancelled_after(steps, journal.expire)
            with anyio.fail_after(60):
                left = await journal.expire()
                same(set(left) <= set(keys), True, "what the next sweep removes")
                same(await journal.expire(), (), "nothing is left")
                for key in keys:
                    commit = await journal.create(NewSession(key=key))
                    same(commit.head.last_seq, 0, "the key is free")


async def check_cancelled_waiters_hold_nobody_up(make: JournalFactory) -> None:
    """Writers cancelled while others write are whole or absent; the others go on."""
    for steps in _STEPS:
        async with make() as journal:
            await journal.create(NEW)

            async def write(n: int, journal: Journal = journal) -> None:
                change = Change(session=StateDelta({f"k{n}": n}))
                await journal.append(KEY, batch(f"{n}.0", f"{n}.1"), change=change)

            calls = [partial(write, n) for n in range(10)]
            await _cancelled_after(steps, *calls)
            kept = [partial(write, n) for n in range(10, 15)]
            await together(*kept)
            record = await whole(journal)
            found = ids(record.entries)
            heads = [entry_id.split(".")[0] for entry_id in found[::2]]
            same(found, [f"{n}.{i}" for n in heads for i in (0, 1)], "whole batches")
            same(record.state, {f"k{n}": int(n) for n in heads}, "state goes with them")
            same(set(heads) >= {str(n) for n in range(10, 15)}, True, "the others")
            same(record.head.revision, 1 + len(heads), "the revision")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_a_cancelled_append_is_whole_or_absent,
    check_a_cancelled_splice_is_whole_or_absent,
    check_a_cancelled_update_is_whole_or_absent,
    check_a_cancelled_delete_is_whole_or_absent,
    check_a_cancelled_create_is_whole_or_absent,
    check_a_cancelled_expire_loses_nothing,
    check_cancelled_waiters_hold_nobody_up,
)
