"""Checks of what `Journal.splice` refuses, and of what is no change."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    body,
    ids,
    places,
    raises,
    said,
    same,
    together,
    unchanged,
    whole,
)
from raf_session.entries import Entry, EntryKind
from raf_session.errors import (
    EntryConflictError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Commit
from raf_session.messages import ChatMessage, Usage

_LETTERS: Final = ("a", "b", "c", "d", "e", "f")


def _summary(entry_id: str) -> Entry:
    return Entry(
        entry_id,
        EntryKind.SUMMARY,
        ChatMessage.assistant(f"summary {entry_id}"),
        usage=Usage(total_tokens=5),
    )


async def check_splice_refuses_bad_arguments(make: JournalFactory) -> None:
    """More replacements than places, first > last, archive with purge: `ValueError`."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        change = Change(session=StateDelta({"k": 1}), user=StateDelta({"u": 1}))
        cases: tuple[tuple[int, int, int, dict[str, Any]], ...] = (
            (2, 1, 0, {"archive": True}),
            (1, 2, 3, {"archive": True}),
            (1, 3, 3, {"archive": False, "keep": (2,)}),
            (9, 12, 1, {"archive": True}),
            (1, 3, 0, {"archive": True, "purge": True}),
        )
        for first, last, n, options in cases:
            async with unchanged(journal, f"splice {first} {last} {n} {options}"):
                with raises(ValueError, f"splice {first} {last} {n} {options}"):
                    await journal.splice(
                        KEY,
                        first,
                        last,
                        batch(*(f"r{i}" for i in range(n))),
                        change=change,
                        **options,
                    )


async def check_a_splice_of_nothing_is_no_op(make: JournalFactory) -> None:
    """A splice that neither removes nor purges changes nothing."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.splice(KEY, 2, 2, archive=False)
        clock.tick()
        async with unchanged(journal, "a splice of nothing"):
            await journal.splice(KEY, 4, 9, archive=True)
            await journal.splice(KEY, 2, 2, archive=False)
            await journal.splice(KEY, 1, 3, keep=(1, 3), archive=True)
            await journal.splice(KEY, 2, 2, archive=False, purge=True)


async def check_a_splice_of_nothing_commits_its_change(make: JournalFactory) -> None:
    """A splice that removes nothing does what an update with its change does."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a", "b"))
        before = await whole(journal)
        clock.tick()
        change = Change(session=StateDelta({"k": 1}), user=StateDelta({"u": 1}))
        await journal.splice(KEY, 9, 9, archive=True, change=change)
        after = await whole(journal)
        same((after.state, after.user_state), ({"k": 1}, {"u": 1}), "the states")
        same((after.head.revision, after.head.spliced_at), (2, 0), "the revision")
        same((after.entries, after.archived), (before.entries, ()), "the entries")


async def check_a_repeated_splice_changes_nothing(make: JournalFactory) -> None:
    """A splice whose run is what it would put there is a no-op that reports it."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch(*_LETTERS))
        call = partial(
            journal.splice,
            KEY,
            1,
            3,
            [_summary("s")],
            archive=True,
            change=Change(session=StateDelta({"k": 1})),
            expected_revision=1,
        )
        first = await call()
        await journal.append(
            KEY, batch("g"), change=Change(session=StateDelta({"k": 2}))
        )
        clock.tick()
        async with unchanged(journal, "a repeated splice"):
            again = await call()
            same((again.repeated, again.entries), (True, first.entries), "the answer")


async def check_parallel_splices_happen_once(make: JournalFactory) -> None:
    """Of 10 parallel splices of one summary one happens, 9 report it."""
    async with make() as journal:
        await journal.create(NEW, batch(*_LETTERS))
        call = partial(journal.splice, KEY, 1, 4, [_summary("s")], archive=True)
        commits = [c for c in await together(*[call] * 10) if isinstance(c, Commit)]
        same(sum(not c.repeated for c in commits), 1, "who spliced")
        same(len(commits), 10, "answers")
        record = await whole(journal)
        same(ids(record.entries), ["s", "e", "f"], "the active window")
        same(record.head.revision, 2, "the revision")


async def check_splice_conflicts_with_known_ids(make: JournalFactory) -> None:
    """A replacement whose id is known elsewhere is a conflict; nothing changes."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c", "d"))
        await journal.splice(KEY, 1, 1, archive=True)
        change = Change(user=StateDelta({"u": 1}))
        for given in (
            [said("d", "another")],
            [said("a", "another")],
            [said("new"), said("d")],
            [said("new"), said("new")],
        ):
            async with unchanged(journal, f"replacements {ids(given)}"):
                with raises(EntryConflictError, f"replacements {ids(given)}"):
                    await journal.splice(KEY, 2, 3, given, archive=True, change=change)


async def check_an_edit_keeps_its_id(make: JournalFactory) -> None:
    """A replacement may have the id of an entry that it removes, with another body."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        edited = said("b", "edited")
        commit = await journal.splice(KEY, 2, 2, [edited], archive=False)
        same(places(commit.entries), [2], "the place")
        record = await whole(journal)
        same(ids(record.entries), ["a", "b", "c"], "the window")
        same(body(record.entries[1]), body(edited), "the new body")
        again = await journal.append(KEY, [edited])
        same(again.repeated, True, "the new body is the known one")
        with raises(EntryConflictError, "the old body"):
            await journal.append(KEY, batch("b"))


async def check_splice_checks_session_and_revision(make: JournalFactory) -> None:
    """Missing, of another incarnation, stale: nothing changes."""
    async with make() as journal:
        with raises(SessionNotFoundError, "a splice of nothing"):
            await journal.splice(KEY, 1, 2, archive=True)
        old = (await journal.create(NEW, batch("a"))).head.incarnation
        await journal.delete(KEY)
        await journal.create(NEW, batch("a", "b"))
        change = Change(session=StateDelta({"k": 1}))
        async with unchanged(journal, "a refused splice"):
            with raises(SessionNotFoundError, "another incarnation") as gone:
                await journal.splice(
                    KEY, 1, 2, archive=True, change=change, incarnation=old
                )
            same(gone[0].reason, "replaced", "the reason")
            with raises(StaleSessionError, "a stale splice") as caught:
                await journal.splice(
                    KEY, 1, 1, batch("s"), archive=True, expected_revision=9
                )
            same(caught[0].expected, 9, "the revision of the error")
        commit = await journal.splice(KEY, 1, 1, archive=True, expected_revision=1)
        same(commit.head.revision, 2, "the revision")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_splice_refuses_bad_arguments,
    check_a_splice_of_nothing_is_no_op,
    check_a_splice_of_nothing_commits_its_change,
    check_a_repeated_splice_changes_nothing,
    check_parallel_splices_happen_once,
    check_splice_conflicts_with_known_ids,
    check_an_edit_keeps_its_id,
    check_splice_checks_session_and_revision,
)
