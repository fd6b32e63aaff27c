"""Checks of deletion, and of writes that come after it."""

from __future__ import annotations

from functools import partial
from typing import Final

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    every,
    places,
    raises,
    said,
    same,
    together,
    unchanged,
    whole,
)
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Journal


async def _late_writes(journal: Journal, incarnation: str | None) -> None:
    changes = Change(session=StateDelta({"late": 1}), user=StateDelta({"late": 1}))
    with raises(SessionNotFoundError, "a late append"):
        await journal.append(
            KEY, batch("late"), change=changes, incarnation=incarnation
        )
    with raises(SessionNotFoundError, "a late retry of a stored append"):
        await journal.append(KEY, batch("a"), incarnation=incarnation)
    with raises(SessionNotFoundError, "a late splice"):
        await journal.splice(
            KEY, 1, 9, batch("late"), archive=True, incarnation=incarnation
        )
    with raises(SessionNotFoundError, "a late update"):
        await journal.update(KEY, changes, incarnation=incarnation)
    with raises(SessionNotFoundError, "a late touch"):
        await journal.update(
            KEY, Change(touch=journal.clock()), incarnation=incarnation
        )
    same(await journal.delete(KEY, incarnation=incarnation), False, "a late delete")


async def check_delete_leaves_nothing(make: JournalFactory) -> None:
    """A deleted session is gone from reads, listings and the next of its key."""
    async with make() as journal:
        await journal.create(
            NEW,
            batch("a", "b"),
            change=Change(
                session=StateDelta({"s": 1}),
                user=StateDelta({"u": 1}),
                app=StateDelta({"a": 1}),
                providers=StateDelta({"p": 1}),
                request=RequestDelta(0, b"12345678", 1),
                title="old",
                labels=LabelDelta(added=("old",)),
                pin=True,
            ),
        )
        await journal.append(KEY, batch("c"), trim=1)
        await journal.splice(KEY, 3, 3, batch("d"), archive=True)
        same(await journal.delete(KEY), True, "there was a session")
        same(await alive(journal), False, "it is gone")
        same(await every(journal), [], "it is not listed by key")
        same(await every(journal, order="activity"), [], "it is not listed by activity")
        same(await journal.delete(KEY), False, "there is no session any more")
        new = (await journal.create(NEW)).head
        record = await whole(journal)
        same((record.head, record.head.revision), (new, 1), "the next is a new one")
        same((record.entries, record.archived), ((), ()), "no entry came back")
        same((record.state, record.provider_states), ({}, {}), "no state came back")
        same(record.request, None, "no request record came back")
        same((new.title, new.labels, new.pinned), ("", frozenset(), False), "nor title")
        same((new.last_seq, new.spliced_at), (0, 0), "places begin anew")
        same((record.user_state, record.app_state), ({"u": 1}, {"a": 1}), "scopes stay")
        commit = await journal.append(KEY, [said("a", "new"), said("d", "new")])
        same(places(commit.entries), [1, 2], "no id came back")


async def check_a_late_write_revives_nothing(make: JournalFactory) -> None:
    """After a delete no append, splice, update or touch brings a session back."""
    async with make() as journal:
        old = (await journal.create(NEW, batch("a"))).head.incarnation
        await journal.delete(KEY)
        for incarnation in (None, old):
            await _late_writes(journal, incarnation)
            same(await alive(journal), False, "it stays gone")
            same(await every(journal), [], "it is not listed")
        await journal.create(NEW)
        record = await whole(journal)
        same((record.entries, record.state), ((), {}), "nothing of theirs was stored")
        same(record.user_state, {}, "nor in the user's state")


async def check_a_stale_incarnation_touches_nothing(make: JournalFactory) -> None:
    """Writes that name the former incarnation leave the re-created session alone."""
    async with make() as journal:
        old = (await journal.create(NEW, batch("a"))).head.incarnation
        await journal.delete(KEY)
        new = (await journal.create(NEW, batch("a", "b"))).head.incarnation
        async with unchanged(journal, "a write of the former incarnation"):
            await _late_writes(journal, old)
        commit = await journal.append(KEY, batch("c"), incarnation=new)
        same(places(commit.entries), [3], "the incarnation of now may write")
        await journal.splice(KEY, 1, 1, archive=True, incarnation=new)
        await journal.update(KEY, Change(title="t"), incarnation=new)
        same(await journal.delete(KEY, incarnation=new), True, "and delete")


async def check_parallel_deletes_have_one_winner(make: JournalFactory) -> None:
    """Of 10 parallel deletes one says that there was a session."""
    async with make() as journal:
        await journal.create(NEW, batch("a"))
        answers = await together(*[partial(journal.delete, KEY)] * 10)
        same(sorted(map(bool, answers)), [False] * 9 + [True], "the answers")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_delete_leaves_nothing,
    check_a_late_write_revives_nothing,
    check_a_stale_incarnation_touches_nothing,
    check_parallel_deletes_have_one_winner,
)
