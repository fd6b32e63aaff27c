"""Checks of `Journal.create` where the key is, or was, taken."""

from __future__ import annotations

from functools import partial
from typing import Final

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    body,
    every,
    ids,
    raises,
    said,
    same,
    together,
    unchanged,
    whole,
)
from raf_session.errors import (
    EntryConflictError,
    EntryTooLargeError,
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Commit
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions


async def check_create_of_a_taken_key_changes_nothing(make: JournalFactory) -> None:
    """A taken key raises `SessionExistsError`, and the session is as it was."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a", "b"))
        await journal.append(
            KEY, batch("c"), change=Change(session=StateDelta({"k": 1}), title="kept")
        )
        clock.tick()
        async with unchanged(journal, "create of a taken key"):
            with raises(SessionExistsError, "create of a taken key") as caught:
                await journal.create(
                    NEW,
                    batch("x"),
                    archived=batch("y"),
                    change=Change(
                        session=StateDelta({"k": 2}),
                        user=StateDelta({"u": 2}),
                        title="lost",
                    ),
                )
        same(caught[0].key, str(KEY), "the key of the error")


async def check_parallel_creators_have_one_winner(make: JournalFactory) -> None:
    """Of 20 parallel creators one wins, 19 are told, and the winner's data stands."""
    async with make() as journal:
        calls = [
            partial(
                journal.create,
                NEW,
                batch(f"first-{n}"),
                change=Change(session=StateDelta({"by": n})),
            )
            for n in range(20)
        ]
        answers = await together(*calls)
        won = [n for n, answer in enumerate(answers) if isinstance(answer, Commit)]
        lost = [a for a in answers if isinstance(a, SessionExistsError)]
        same((len(won), len(lost)), (1, 19), "winners and losers")
        record = await whole(journal)
        same(ids(record.entries), [f"first-{won[0]}"], "the winner's entry alone")
        same(record.state, {"by": won[0]}, "the winner's state alone")


async def check_create_takes_an_expired_key(make: JournalFactory) -> None:
    """An expired session goes whole in the step that creates another of its key."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with make(limits=limits, clock=clock) as journal:
        old = await journal.create(
            NEW,
            batch("a", "b"),
            archived=batch("z"),
            change=Change(
                session=StateDelta({"s": 1}),
                user=StateDelta({"u": 1}),
                providers=StateDelta({"p": 1}),
                request=RequestDelta(0, b"12345678", 1),
                title="old",
                labels=LabelDelta(added=("old",)),
            ),
        )
        await journal.append(KEY, batch("c"), trim=1)
        clock.tick(11)
        new = await journal.create(NEW, [said("a", "another body")])
        assert new.head.incarnation != old.head.incarnation, "another incarnation"
        same(new.head.revision, 1, "the revision begins anew")
        record = await whole(journal)
        same(record.head, new.head, "the head is the new one")
        same([body(e) for e in record.entries], [body(said("a", "another body"))], "e")
        same(record.archived, (), "the old archive is gone")
        same((record.state, record.provider_states), ({}, {}), "the old state is gone")
        same((record.request, record.head.title), (None, ""), "so is the description")
        same(record.head.labels, frozenset(), "so are the labels")
        same(record.user_state, {"u": 1}, "the user's state is not the session's")
        same(await journal.expire(), (), "there is nothing left to expire")
        with raises(SessionNotFoundError, "a write of the old incarnation"):
            await journal.append(KEY, batch("d"), incarnation=old.head.incarnation)
        same([x.head for x in await every(journal)], [new.head], "the listing")


async def check_a_refused_create_removes_nothing(make: JournalFactory) -> None:
    """A create that fails leaves an expired session of its key to the sweep."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10), max_entry_bytes=4000)
    async with make(limits=limits, clock=clock) as journal:
        await journal.create(NEW, batch("a"))
        clock.tick(11)
        with raises(EntryConflictError, "an id that stands twice"):
            await journal.create(NEW, batch("b", "b"))
        with raises(EntryTooLargeError, "too large an entry"):
            await journal.create(NEW, [said("b", "x" * 4001)])
        with raises(StaleSessionError, "digests of no request"):
            request = RequestDelta(1, b"12345678", 1, base=1)
            await journal.create(NEW, batch("b"), change=Change(request=request))
        same(await journal.expire(dry_run=True), (KEY,), "it waits to be swept")
        same(await journal.expire(), (KEY,), "it is swept and reported")


async def check_incarnations_differ(make: JournalFactory) -> None:
    """Every session has an incarnation of its own, the re-created one too."""
    async with make() as journal:
        seen: set[str] = set()
        for _ in range(20):
            seen.add((await journal.create(NEW)).head.incarnation)
            await journal.delete(KEY)
        other = SessionKey("app", "user", "", "other")
        seen.add((await journal.create(NewSession(key=other))).head.incarnation)
        same(len(seen), 21, "incarnations")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_create_of_a_taken_key_changes_nothing,
    check_parallel_creators_have_one_winner,
    check_create_takes_an_expired_key,
    check_a_refused_create_removes_nothing,
    check_incarnations_differ,
)
