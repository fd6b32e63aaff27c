"""Checks of journals that are not open, that are, and that meet errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta, timezone
from functools import partial
from typing import Final, TypeAlias

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import (
    JournalCheck,
    JournalFactory,
    JournalHarness,
)
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    every,
    raises,
    same,
    together,
    whole,
)
from raf_session.errors import JournalClosedError
from raf_session.journal import Commit, Journal
from raf_session.keys import ScopeKey
from raf_session.options import Limits, Query, SessionTTLOptions

_Call: TypeAlias = Callable[[], Awaitable[object]]
_CHANGE: Final = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    providers=StateDelta({"p": 1}),
    title="t",
)


async def check_an_error_leaves_the_journal_usable(make: JournalFactory) -> None:
    """After refused writes of every kind the next write works at once."""
    async with make() as journal:
        await journal.create(NEW, batch("a"))
        for n in range(10):
            bad: Sequence[_Call] = (
                partial(journal.create, NEW),
                partial(journal.append, KEY, batch("b"), expected_revision=99),
                partial(journal.append, KEY, batch("a", "b", "new")),
                partial(journal.splice, KEY, 1, 1, archive=True, incarnation="none"),
                partial(journal.update, KEY, _CHANGE, expected_revision=99),
                partial(journal.load, KEY._replace(session="none")),
            )
            await together(*bad)
            commit = await journal.append(KEY, batch(f"e{n}"))
            same(commit.head.revision, n + 2, "the next write")


def _calls(journal: Journal) -> tuple[_Call, ...]:
    scope = ScopeKey("app", "user")
    return (
        partial(journal.create, NEW),
        partial(journal.load, KEY),
        partial(journal.append, KEY, batch("x")),
        partial(journal.splice, KEY, 1, 1, archive=True),
        partial(journal.update, KEY, Change(title="x")),
        partial(journal.delete, KEY),
        partial(journal.scan, Query()),
        partial(journal.expire),
        partial(journal.scoped_state, scope),
        partial(journal.update_scoped_state, scope, StateDelta({"x": 1})),
        partial(journal.scopes, "app"),
    )


async def check_a_closed_journal_refuses_every_call(harness: JournalHarness) -> None:
    """Before it is opened and after it is closed each call is `JournalClosedError`."""
    async with harness.storage() as opened:
        journal = opened()
        for call in _calls(journal):
            with raises(JournalClosedError, f"{call} before open") as caught:
                await call()
            same(caught[0].backend, journal.backend, "the backend of the error")
        async with journal as entered:
            assert entered is journal, "a journal enters as itself"
            await journal.create(NEW)
        for call in _calls(journal):
            with raises(JournalClosedError, f"{call} after close"):
                await call()
        await journal.__aexit__(None, None, None)


async def check_a_journal_opens_once(harness: JournalHarness) -> None:
    """An open journal that is opened again raises `RuntimeError` and stays open."""
    async with harness.storage() as opened, opened() as journal:
        with raises(RuntimeError, "opening an open journal"):
            await journal.__aenter__()
        await journal.create(NEW)
        same(await alive(journal), True, "it is still open")


async def check_a_journal_shows_what_it_was_given(make: JournalFactory) -> None:
    """`limits` and `clock` are those given; it names its backend and is a `Journal`."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10), max_entry_bytes=99)
    async with make(limits=limits, clock=clock) as journal:
        same(journal.limits, limits, "the limits")
        same(journal.clock(), clock(), "the clock")
        assert journal.backend, "the backend has a name"
        assert isinstance(journal, Journal), "it has every member"


async def check_a_clock_may_be_of_any_zone(make: JournalFactory) -> None:
    """A clock that tells another zone's time changes no moment; reads are in UTC."""
    clock = TickingClock()
    east = timezone(timedelta(hours=8))
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with make(limits=limits, clock=lambda: clock().astimezone(east)) as journal:
        await journal.create(NEW, batch("a"))
        clock.tick(10)
        record = await journal.load(KEY)
        same(record.head.created_at, START, "created_at")
        same(record.head.created_at.utcoffset(), timedelta(), "its zone")
        stored_at = record.entries[0].stored_at
        same((stored_at, stored_at and stored_at.tzname()), (START, "UTC"), "stored_at")
        clock.tick(0, microseconds=1)
        same(await alive(journal), False, "expiry counts moments")


async def check_journals_share_nothing(make: JournalFactory) -> None:
    """Two journals over storage of their own see nothing of one another."""
    async with make() as one, make() as two:
        await one.create(NEW, batch("a"), change=_CHANGE)
        same(await alive(two), False, "the other has no such session")
        same(await every(two), [], "nor lists it")
        commit = await two.create(NEW)
        assert isinstance(commit, Commit), "the key is free there"
        same((await whole(two)).user_state, {}, "nor shares state")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_an_error_leaves_the_journal_usable,
    check_a_closed_journal_refuses_every_call,
    check_a_journal_opens_once,
    check_a_journal_shows_what_it_was_given,
    check_a_clock_may_be_of_any_zone,
    check_journals_share_nothing,
)
