"""Checks of `Journal.splice`: replace, archive, remove, purge, clear."""

from __future__ import annotations

from functools import partial
from typing import Final

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
from raf_session.entries import Counts, Entry, EntryKind
from raf_session.errors import EntryConflictError
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


async def check_splice_replaces_a_run(make: JournalFactory) -> None:
    """Replacements take the lowest freed places in order; what leaves is archived."""
    async with make() as journal:
        before = await journal.create(NEW, batch(*_LETTERS))
        given = (_summary("s"), said("t"))
        commit = await journal.splice(KEY, 2, 5, given, archive=True)
        record = await whole(journal)
        same(ids(record.entries), ["a", "s", "t", "f"], "the active window")
        same(places(record.entries), [1, 2, 3, 6], "its places")
        same(ids(record.archived), ["b", "c", "d", "e"], "the archive")
        same(places(record.archived), [2, 3, 4, 5], "the places in the archive")
        same([e.left_at for e in record.archived], [2] * 4, "left_at is the revision")
        same(
            [e.left_at for e in record.entries], [0] * 4, "active entries have not left"
        )
        same(commit.entries, record.entries[1:3], "the answer has the replacements")
        same([body(e) for e in commit.entries], [body(e) for e in given], "as given")
        same(commit.head, record.head, "the head")
        same((commit.head.revision, commit.head.spliced_at), (2, 2), "the revision")
        same(commit.head.last_seq, 6, "the last place")
        for index in (0, 5):
            found = next(e for e in record.entries if e.id == _LETTERS[index])
            same(found, before.entries[index], "entries around it are untouched")


async def check_splice_removes_without_archive(make: JournalFactory) -> None:
    """With `archive=False` what leaves is read nowhere; the rest keeps its places."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.splice(KEY, 2, 2, archive=False)
        record = await whole(journal)
        same((ids(record.entries), record.archived), (["a", "c"], ()), "middle removed")
        same(places(record.entries), [1, 3], "the places")
        commit = await journal.splice(KEY, 1, 3, archive=False)
        record = await whole(journal)
        same((record.entries, record.archived), ((), ()), "an empty window is legal")
        same(commit.head.active, Counts(), "the counts of nothing")
        same(places((await journal.append(KEY, batch("d"))).entries), [4], "the next")


async def check_splice_keeps_what_is_named(make: JournalFactory) -> None:
    """Kept places stay where they are, and replacements take the freed ones alone."""
    async with make() as journal:
        await journal.create(NEW, batch(*_LETTERS))
        await journal.splice(
            KEY, 1, 5, [_summary("s"), said("t")], keep={1, 3, 6, 99}, archive=True
        )
        record = await whole(journal)
        same(ids(record.entries), ["a", "s", "c", "t", "f"], "the active window")
        same(places(record.entries), [1, 2, 3, 4, 6], "its places")
        same(ids(record.archived), ["b", "d", "e"], "the archive")


async def check_splice_takes_places_that_exist(make: JournalFactory) -> None:
    """A range may reach past both ends; gaps of former splices free no place."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c", "d"))
        await journal.splice(KEY, 2, 2, archive=False)
        async with unchanged(journal, "a place that was free before"):
            with raises(ValueError, "more replacements than places were freed"):
                await journal.splice(KEY, 1, 3, batch("x", "y", "z"), archive=True)
        await journal.splice(KEY, -5, 2**40, batch("x", "y"), archive=True)
        record = await whole(journal)
        same(ids(record.entries), ["x", "y"], "the active window")
        same(places(record.entries), [1, 3], "the lowest places that were freed")


async def check_splice_recounts_the_window(make: JournalFactory) -> None:
    """Active counts are those of the window after each splice."""
    async with make() as journal:
        entries = [_summary("s"), *batch("a", "b"), Entry("e", EntryKind.EVENT)]
        await journal.create(NEW, entries)
        for first, last, given, archive in (
            (2, 3, (_summary("t"),), True),
            (4, 4, (), False),
            (1, 2, (said("u"),), False),
        ):
            commit = await journal.splice(KEY, first, last, given, archive=archive)
            record = await journal.load(KEY)
            same(commit.head.active, Counts.of(record.entries), "the active counts")
            same(record.head, commit.head, "the head")
            total = commit.head.total
            assert total.entries >= 4, (
                f"what was ever appended does not shrink: {total}"
            )


async def check_splice_appends_its_tail(make: JournalFactory) -> None:
    """`tail` takes new places at the end, in the step that replaces the run."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        now = clock.tick()
        commit = await journal.splice(
            KEY, 1, 2, [_summary("s")], tail=batch("x", "y"), archive=True
        )
        record = await whole(journal)
        same(ids(record.entries), ["s", "c", "x", "y"], "the active window")
        same(places(record.entries), [1, 3, 4, 5], "its places")
        same(ids(record.archived), ["a", "b"], "the archive")
        same(ids(commit.entries), ["s", "x", "y"], "the answer")
        same([e.stored_at for e in record.entries[2:]], [now, now], "stored_at")
        same(record.head, commit.head, "the head")
        same((commit.head.revision, commit.head.last_seq), (2, 5), "one step")
        same(commit.head.active, Counts.of(record.entries), "the active counts")
        commit = await journal.splice(KEY, 5, 5, tail=batch("z"), archive=False)
        same(places(commit.entries), [6], "no freed place is taken by a tail")
        await journal.splice(KEY, 9, 9, tail=batch("w"), archive=True)
        record = await whole(journal)
        same(ids(record.entries), ["s", "c", "x", "z", "w"], "a tail alone")
        for given, tail in (
            ((), batch("a")),
            ((), [said("c", "another")]),
            (batch("new"), batch("new")),
            (batch("new"), batch("n2", "x")),
        ):
            async with unchanged(journal, f"a tail {ids(tail)}"):
                with raises(EntryConflictError, f"a tail {ids(tail)}"):
                    await journal.splice(KEY, 1, 1, given, tail=tail, archive=True)


async def check_times_stay_in_order(make: JournalFactory) -> None:
    """The time of a replacement lies between those of its neighbours."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"))
        for entry_id in ("b", "c", "d", "e", "f"):
            clock.tick(10)
            await journal.append(KEY, batch(entry_id))
        for seconds in (10, -35, -1000):
            clock.tick(seconds)
            for first, last, keep in ((2, 5, {4}), (1, 1, ()), (2, 3, ()), (6, 6, ())):
                before = (await journal.load(KEY)).entries
                free = sum(first <= e.seq <= last and e.seq not in keep for e in before)
                given = batch(*(f"{seconds} {first} {n}" for n in range(free)))
                await journal.splice(KEY, first, last, given, keep=keep, archive=True)
                times = [e.stored_at for e in (await journal.load(KEY)).entries]
                same(times, sorted(filter(None, times)), f"the times at {seconds}")


async def check_appends_survive_a_splice(make: JournalFactory) -> None:
    """What is appended while a run is replaced stands behind it, once."""
    async with make() as journal:
        await journal.create(NEW, batch(*_LETTERS))
        await journal.append(KEY, batch("n20"))
        appends = [partial(journal.append, KEY, batch(f"n{n}")) for n in range(20)]
        splice = partial(journal.splice, KEY, 1, 6, [_summary("s")], archive=True)
        answers = await together(*appends[:10], splice, *appends[10:])
        same(sum(isinstance(a, Commit) for a in answers), 21, "all were stored")
        record = await whole(journal)
        same(ids(record.entries)[0], "s", "the summary stands first")
        same(sorted(ids(record.entries)[1:]), sorted(f"n{n}" for n in range(21)), "all")
        same(ids(record.archived), list(_LETTERS), "the archive")


async def check_a_place_is_archived_more_than_once(make: JournalFactory) -> None:
    """Entries that left one place are told apart by `left_at`, in order of leaving."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b"))
        await journal.splice(KEY, 1, 1, batch("s1"), archive=True)
        await journal.splice(KEY, 1, 2, batch("s2"), archive=True)
        await journal.append(KEY, batch("c"), trim=1)
        record = await whole(journal)
        seen = [(e.id, e.seq, e.left_at) for e in record.archived]
        expected = [("a", 1, 2), ("s1", 1, 3), ("s2", 1, 4), ("b", 2, 3)]
        same(seen, expected, "the archive")
        same(record.head.spliced_at, 4, "spliced_at")


async def check_splice_commits_its_change(make: JournalFactory) -> None:
    """State of every scope and description change in the step that replaces."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b"))
        await journal.splice(
            KEY,
            1,
            1,
            archive=True,
            change=Change(
                session=StateDelta({"s": 1}),
                user=StateDelta({"u": 1}),
                providers=StateDelta({"p": 1}),
                title="t",
            ),
        )
        record = await whole(journal)
        same(
            (record.state, record.user_state, record.provider_states),
            ({"s": 1}, {"u": 1}, {"p": 1}),
            "the states",
        )
        same((record.head.title, record.head.revision), ("t", 2), "title and revision")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_splice_replaces_a_run,
    check_splice_removes_without_archive,
    check_splice_keeps_what_is_named,
    check_splice_takes_places_that_exist,
    check_splice_recounts_the_window,
    check_splice_appends_its_tail,
    check_times_stay_in_order,
    check_appends_survive_a_splice,
    check_a_place_is_archived_more_than_once,
    check_splice_commits_its_change,
)
