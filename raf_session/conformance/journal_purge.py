"""Checks of `Journal.splice` with `purge`: redaction and clear."""

from __future__ import annotations

from typing import Final

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    ids,
    said,
    same,
    whole,
)
from raf_session.entries import Counts

_LETTERS: Final = ("a", "b", "c", "d", "e", "f")


async def check_purge_reaches_the_archive(make: JournalFactory) -> None:
    """`purge` removes what is archived in the range too, and nothing around it."""
    async with make() as journal:
        await journal.create(
            NEW,
            batch(*_LETTERS),
            change=Change(request=RequestDelta(0, b"12345678", 1), title="t"),
        )
        await journal.splice(KEY, 2, 4, batch("s"), archive=True)
        await journal.splice(KEY, 2, 2, batch("t"), archive=True)
        commit = await journal.splice(KEY, 2, 3, archive=False, purge=True)
        record = await whole(journal)
        same(ids(record.entries), ["a", "e", "f"], "the active window")
        same(ids(record.archived), ["d"], "the archive")
        same((commit.head.revision, commit.head.spliced_at), (4, 4), "the revision")
        same(commit.head.active, Counts(3, 3, 3, 0), "the active counts")
        commit = await journal.splice(KEY, 4, 4, archive=False, purge=True)
        same(commit.head.revision, 5, "an archived entry alone was purged")
        same((await whole(journal)).archived, (), "the archive is empty")
        record = await whole(journal)
        same((record.head.request_n, record.head.title), (1, "t"), "the request stays")


async def check_clear_begins_anew(make: JournalFactory) -> None:
    """A purge of the whole session resets counts and request, and keeps the rest."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        created = await journal.create(
            NEW,
            batch("a", "b"),
            archived=batch("z"),
            change=Change(
                session=StateDelta({"s": 1}),
                user=StateDelta({"u": 1}),
                providers=StateDelta({"p": 1}),
                request=RequestDelta(0, b"12345678" * 3, 1, 2),
                title="t",
                labels=LabelDelta(added=("x",)),
                pin=True,
            ),
        )
        clock.tick()
        await journal.append(KEY, batch("c", "d"), trim=2)
        commit = await journal.splice(KEY, 1, 5, archive=False, purge=True)
        record = await whole(journal)
        head = record.head
        same(head, commit.head, "the head")
        same((record.entries, record.archived), ((), ()), "nothing is left")
        same((head.active, head.total), (Counts(), Counts()), "the counts")
        same(record.request, None, "the request record")
        same(
            (head.request_n, head.request_hash, head.request_header), (None,) * 3, "it"
        )
        same((head.revision, head.spliced_at), (3, 3), "the revision grows")
        same(head.created_at, START, "created_at")
        same(head.incarnation, created.head.incarnation, "the incarnation")
        same((head.title, head.pinned), ("t", True), "title and pin")
        same(head.labels, frozenset({"x"}), "the labels")
        same(
            (record.state, record.user_state, record.provider_states),
            ({"s": 1}, {"u": 1}, {"p": 1}),
            "the states",
        )
        commit = await journal.append(KEY, [said("a", "new"), said("z", "new")])
        same(commit.repeated, False, "cleared ids are free")
        same(commit.head.total, Counts(2, 2, 2, 0), "counting begins anew")
        same((await whole(journal)).archived, (), "no archive came back")


async def check_a_partial_purge_is_no_clear(make: JournalFactory) -> None:
    """While one entry is left, active or archived, the request record stays."""
    async with make() as journal:
        change = Change(request=RequestDelta(0, b"12345678", 1))
        await journal.create(NEW, batch("b", "c"), archived=batch("a"), change=change)
        commit = await journal.splice(KEY, 2, 3, archive=False, purge=True)
        same(commit.head.active, Counts(), "nothing is active")
        same(commit.head.request_n, 1, "an archived entry is left")
        commit = await journal.splice(KEY, 1, 3, archive=False, purge=True)
        same((commit.head.request_n, commit.head.total), (None, Counts()), "cleared")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_purge_reaches_the_archive,
    check_clear_begins_anew,
    check_a_partial_purge_is_no_clear,
)
