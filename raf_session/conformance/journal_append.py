"""Checks of `Journal.append`: places, times, counts, trimming and revisions."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    body,
    ids,
    places,
    raises,
    said,
    same,
    together,
    unchanged,
    varied,
    whole,
)
from raf_session.entries import Counts, Entry, EntryKind
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.journal import Commit
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.options import Limits, SessionTTLOptions


async def check_append_keeps_the_order(make: JournalFactory) -> None:
    """Entries stand in the order of the calls and of each batch, the clock frozen."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW)
        expected: list[str] = []
        for n in range(40):
            entries = [said(f"{n}.{i}") for i in (3, 1, 2, 0)]
            commit = await journal.append(KEY, entries)
            expected += ids(entries)
            same(ids(commit.entries), ids(entries), "the answer has the batch's order")
        record = await whole(journal)
        same(ids(record.entries), expected, "the order")
        same(places(record.entries), list(range(1, 161)), "the places")
        for _ in range(5):
            same(await whole(journal), record, "reading again gives the same")


async def check_append_reports_what_is_stored(make: JournalFactory) -> None:
    """The answer of an append is what the next load reads."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        before = (await journal.create(NEW, batch("a"))).head
        now = clock.tick()
        given = said("b")
        commit = await journal.append(
            KEY, [given], change=Change(session=StateDelta({"k": 1}))
        )
        record = await whole(journal)
        same(commit.head, record.head, "the head")
        same(commit.entries, record.entries[1:], "the entries")
        same(commit.repeated, False, "repeated")
        same(body(commit.entries[0]), body(given), "the event is the caller's")
        same(commit.entries[0].stored_at, now, "stored_at")
        same(
            record.head,
            before._replace(
                revision=2,
                updated_at=now,
                last_active_at=now,
                last_seq=2,
                active=Counts(2, 2, 2, 0),
                total=Counts(2, 2, 2, 0),
            ),
            "only revision, times, place and counts moved",
        )


async def check_append_needs_entries(make: JournalFactory) -> None:
    """No entries, or a negative trim, is a `ValueError` before anything is touched."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b"))
        async with unchanged(journal, "a refused append"):
            with raises(ValueError, "an append of nothing"):
                await journal.append(
                    KEY, [], change=Change(session=StateDelta({"k": 1}))
                )
            with raises(ValueError, "a negative trim"):
                await journal.append(KEY, batch("c"), trim=-1)


async def check_append_to_a_missing_session_raises(make: JournalFactory) -> None:
    """Nothing is stored for a session that does not exist, its scopes included."""
    async with make() as journal:
        with raises(SessionNotFoundError, "an append to nothing") as caught:
            await journal.append(
                KEY, batch("a"), change=Change(user=StateDelta({"u": 1}))
            )
        same((caught[0].key, caught[0].reason), (str(KEY), "missing"), "the error")
        record = await journal.create(NEW)
        same(record.head.revision, 1, "the session begins new")
        read = await whole(journal)
        same((read.entries, read.user_state), ((), {}), "nothing was stored before")


async def check_append_checks_the_revision(make: JournalFactory) -> None:
    """The expected revision is compared exactly; the error says both."""
    async with make() as journal:
        await journal.create(NEW, batch("a"))
        commit = await journal.append(KEY, batch("b"), expected_revision=1)
        same(commit.head.revision, 2, "the revision")
        for wrong in (1, 3, 0):
            async with unchanged(journal, "a stale append"):
                with raises(StaleSessionError, "a stale append") as caught:
                    await journal.append(
                        KEY,
                        batch("c"),
                        change=Change(
                            session=StateDelta({"k": 1}), user=StateDelta({"u": 1})
                        ),
                        expected_revision=wrong,
                    )
            same((caught[0].key, caught[0].expected), (str(KEY), wrong), "the error")
            assert caught[0].actual in {2, None}, "the error names another revision"


async def check_appends_without_revision_commute(make: JournalFactory) -> None:
    """50 parallel appends are each stored once, batches unbroken."""
    async with make() as journal:
        await journal.create(NEW)
        calls = [
            partial(journal.append, KEY, batch(f"{n}.0", f"{n}.1")) for n in range(50)
        ]
        answers = await together(*calls)
        commits = [answer for answer in answers if isinstance(answer, Commit)]
        same(len(commits), 50, "all were stored")
        record = await whole(journal)
        same(places(record.entries), list(range(1, 101)), "the places")
        same(record.head.revision, 51, "the revision")
        same(record.head.active.entries, 100, "the count")
        found = ids(record.entries)
        same(
            sorted(zip(found[::2], found[1::2], strict=True)),
            sorted((f"{n}.0", f"{n}.1") for n in range(50)),
            "each batch stands together, once",
        )
        for commit in commits:
            same(commit.head.revision, commit.entries[-1].seq // 2 + 1, "its revision")
            stored = [record.entries[e.seq - 1] for e in commit.entries]
            same(list(commit.entries), stored, "what each was told")


async def check_one_of_equal_revisions_wins(make: JournalFactory) -> None:
    """Of 20 parallel appends under one revision one is stored, 19 are stale."""
    async with make() as journal:
        await journal.create(NEW)
        calls = [
            partial(journal.append, KEY, batch(f"e{n}"), expected_revision=1)
            for n in range(20)
        ]
        answers = await together(*calls)
        same(sum(isinstance(a, Commit) for a in answers), 1, "winners")
        stale = sum(isinstance(a, StaleSessionError) for a in answers)
        same(stale, 19, "stale writers")
        same(len((await whole(journal)).entries), 1, "stored entries")


async def check_trim_archives_the_oldest(make: JournalFactory) -> None:
    """`trim` moves the oldest active entries to the archive in the same step."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        commit = await journal.append(KEY, batch("d"), trim=4)
        same(commit.head.spliced_at, 0, "a trim that moves nothing is no move")
        commit = await journal.append(KEY, batch("e", "f"), trim=3)
        record = await whole(journal)
        same(ids(record.entries), ["d", "e", "f"], "the active window")
        same(ids(record.archived), ["a", "b", "c"], "the archive")
        same([e.left_at for e in record.archived], [3, 3, 3], "left_at is the revision")
        same(record.head, commit.head, "the head")
        same(commit.head.revision, 3, "one step, one revision")
        same(commit.head.spliced_at, 3, "followers are told")
        same(commit.head.active, Counts(3, 3, 3, 0), "the active counts")
        same(commit.head.total, Counts(6, 6, 6, 0), "the total counts")
        same(commit.head.last_seq, 6, "the last place")


async def check_trim_to_nothing_archives_all(make: JournalFactory) -> None:
    """`trim=0` archives what was appended too; the next place follows."""
    async with make() as journal:
        await journal.create(NEW, batch("a"))
        commit = await journal.append(KEY, batch("b", "c"), trim=0)
        same(commit.head.active, Counts(), "nothing is active")
        same(places(commit.entries), [2, 3], "the answer has the places")
        record = await whole(journal)
        same((ids(record.archived), record.entries), (["a", "b", "c"], ()), "archive")
        same(places((await journal.append(KEY, batch("d"))).entries), [4], "the next")


async def check_stored_at_never_goes_back(make: JournalFactory) -> None:
    """With the clock going backwards, order, stored_at and activity do not."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"))
        late = clock.tick(3600)
        await journal.append(KEY, batch("b"))
        clock.tick(-7200)
        commit = await journal.append(KEY, batch("c"))
        same(commit.head.last_active_at, late, "last_active_at")
        await journal.splice(KEY, 3, 3, archive=True)
        await journal.append(KEY, batch("d"))
        clock.set(late + timedelta(microseconds=1))
        await journal.append(KEY, batch("e"))
        record = await whole(journal)
        same(ids(record.entries), ["a", "b", "d", "e"], "the order")
        times = [e.stored_at for e in record.entries]
        same(times, [START, late, late, clock()], "stored_at")


async def check_places_are_never_drawn_twice(make: JournalFactory) -> None:
    """Places grow after the tail was removed, archived or purged, and after a clear."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.splice(KEY, 3, 3, archive=False)
        same(places((await journal.append(KEY, batch("d"))).entries), [4], "removed")
        await journal.splice(KEY, 4, 4, archive=True)
        same(places((await journal.append(KEY, batch("e"))).entries), [5], "archived")
        await journal.splice(KEY, 5, 5, archive=False, purge=True)
        same(places((await journal.append(KEY, batch("f"))).entries), [6], "purged")
        cleared = await journal.splice(KEY, 1, 6, archive=False, purge=True)
        same(cleared.head.last_seq, 6, "last_seq is the highest place ever drawn")
        same(places((await journal.append(KEY, batch("g"))).entries), [7], "cleared")


async def check_counts_follow_the_window(make: JournalFactory) -> None:
    """Entries, messages, conversations and tokens are counted, active and in all."""
    entries = [
        said("u1"),
        varied(said("a1", role=MessageRole.ASSISTANT), usage=Usage(total_tokens=10)),
        Entry("event", EntryKind.EVENT, author="tool"),
        Entry("used", EntryKind.EVENT, usage=Usage(total_tokens=2**40)),
        varied(said("s1", role=MessageRole.SYSTEM), kind=EntryKind.SUMMARY),
        said("u2"),
    ]
    async with make() as journal:
        await journal.create(NEW)
        for n, entry in enumerate(entries, 1):
            head = (await journal.append(KEY, [entry])).head
            same(head.active, Counts.of(entries[:n]), "active counts after an append")
            same(head.total, head.active, "total counts after an append")
        head = (await journal.append(KEY, batch("u3"), trim=4)).head
        same(head.active, Counts.of([*entries[3:], said("u3")]), "after a trim")
        same(head.total, Counts.of([*entries, said("u3")]), "all that was appended")
        head = (await journal.splice(KEY, 4, 5, archive=False)).head
        same(head.active, Counts.of([entries[5], said("u3")]), "after a removal")
        same((await journal.load(KEY)).head, head, "the head is stored so")


async def check_append_moves_times_as_told(make: JournalFactory) -> None:
    """last_active_at and updated_at move to what the change says, else to now."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW)
        clock.tick(100)
        spoke = START + timedelta(seconds=40)
        made = START + timedelta(seconds=30)
        commit = await journal.append(
            KEY, batch("a"), change=Change(touch=spoke, updated_at=made)
        )
        same(commit.head.last_active_at, spoke, "last_active_at as told")
        same(commit.head.updated_at, made, "updated_at as told")
        past = Change(touch=START - timedelta(days=1))
        commit = await journal.append(KEY, batch("b"), change=past)
        same(commit.head.last_active_at, spoke, "last_active_at never goes back")
        commit = await journal.append(KEY, batch("c"))
        same(commit.head.last_active_at, clock(), "last_active_at is now")
        same(commit.head.updated_at, clock(), "updated_at is now")


async def check_append_leaves_the_description(make: JournalFactory) -> None:
    """Title, model, labels, pin, states and status survive appends of others."""
    async with make() as journal:
        await journal.create(NEW, batch("a"))
        await journal.update(
            KEY,
            Change(
                session=StateDelta({"s": 1}),
                user=StateDelta({"u": 1}),
                providers=StateDelta({"p": 1}),
                title="Trip",
                model="m",
                labels=LabelDelta(added=("x",)),
                pin=True,
            ),
        )
        before = await whole(journal)
        commit = await journal.append(KEY, batch("b"))
        after = await whole(journal)
        head = commit.head
        same((head.title, head.model, head.pinned), ("Trip", "m", True), "the head")
        same(head.labels, frozenset({"x"}), "the labels")
        same(after[3:], before[3:], "states")


async def check_the_callers_time_decides_nothing(make: JournalFactory) -> None:
    """An event's own time is data: it moves no place, no `stored_at`, no activity."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with make(limits=limits, clock=clock) as journal:
        await journal.create(NEW)
        now = START.timestamp()
        told = (now + 18_000, now, -1.0, 0.0, 1e15)
        later = ChatMessage(
            role=MessageRole.USER, content="x", created_at=START + timedelta(days=1)
        )
        entries = [
            Entry(f"e{n}", message=later, timestamp=moment)
            for n, moment in enumerate(told)
        ]
        await journal.append(KEY, entries[:3])
        await journal.append(KEY, entries[3:])
        record = await whole(journal)
        same(ids(record.entries), ids(entries), "the order")
        same([e.timestamp for e in record.entries], list(told), "the caller's times")
        same({e.stored_at for e in record.entries}, {START}, "stored_at")
        head = record.head
        same((head.updated_at, head.last_active_at), (START, START), "the times")
        clock.tick(10, microseconds=1)
        same(await alive(journal), False, "it expires by the journal's clock")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_append_keeps_the_order,
    check_append_reports_what_is_stored,
    check_append_needs_entries,
    check_append_to_a_missing_session_raises,
    check_append_checks_the_revision,
    check_appends_without_revision_commute,
    check_one_of_equal_revisions_wins,
    check_trim_archives_the_oldest,
    check_trim_to_nothing_archives_all,
    check_stored_at_never_goes_back,
    check_the_callers_time_decides_nothing,
    check_places_are_never_drawn_twice,
    check_counts_follow_the_window,
    check_append_moves_times_as_told,
    check_append_leaves_the_description,
)
