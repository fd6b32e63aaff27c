"""Checks of what tells entries and sessions apart: ids, incarnations, deletion."""

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
from raf_session.entries import Entry, EntryKind
from raf_session.errors import (
    EntryConflictError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Commit
from raf_session.messages import ChatMessage, MessageRole, Usage

_CHANGE: Final = Change(
    session=StateDelta({"k": 1}), user=StateDelta({"u": 1}), title="t"
)


async def check_a_repeated_append_changes_nothing(make: JournalFactory) -> None:
    """Ids all known with the same bodies are a no-op that reports what is stored."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        await journal.create(NEW, batch("a"))
        first = await journal.append(KEY, batch("b", "c"), expected_revision=1)
        await journal.append(KEY, batch("d"))
        clock.tick(60)
        async with unchanged(journal, "a repeated append"):
            for revision in (None, 1, 99):
                again = await journal.append(
                    KEY,
                    batch("b", "c"),
                    change=_CHANGE,
                    trim=0,
                    expected_revision=revision,
                )
                same(again.repeated, True, "repeated")
                same(again.entries, first.entries, "the stored entries")
                same(again.head, (await journal.load(KEY)).head, "the head of now")
            stored = await journal.append(KEY, first.entries)
            same(stored.repeated, True, "stored entries given back are known")
            mixed = await journal.append(KEY, batch("c", "a"))
            same(places(mixed.entries), [3, 1], "known entries of several calls")


async def check_parallel_retries_store_once(make: JournalFactory) -> None:
    """Of 20 parallel appends of one batch one stores, 19 report the same entries."""
    async with make() as journal:
        await journal.create(NEW)
        change = Change(session=StateDelta({"k": 1}))
        call = partial(journal.append, KEY, batch("a", "b"), change=change)
        commits = [c for c in await together(*[call] * 20) if isinstance(c, Commit)]
        same(len(commits), 20, "answers")
        same(sum(not commit.repeated for commit in commits), 1, "who stored")
        record = await whole(journal)
        same(ids(record.entries), ["a", "b"], "the entries")
        same(record.head.revision, 2, "the revision")
        for commit in commits:
            same(commit.entries, record.entries, "what each was told")


async def check_an_archived_id_is_known(make: JournalFactory) -> None:
    """An id is known while its entry is archived, by trim or by splice."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.append(KEY, batch("d"), trim=3)
        await journal.splice(KEY, 2, 2, archive=True)
        archived = (await whole(journal)).archived
        same(ids(archived), ["a", "b"], "the archive")
        async with unchanged(journal, "an archived id"):
            again = await journal.append(KEY, batch("a", "b"))
            same((again.repeated, again.entries), (True, archived), "the answer")
            with raises(EntryConflictError, "an archived id with another body"):
                await journal.append(KEY, [said("a", "another")])
            with raises(EntryConflictError, "an archived id beside a new one"):
                await journal.append(KEY, batch("b", "new"))


async def check_a_removed_id_is_free(make: JournalFactory) -> None:
    """An id is free again when its entry was removed or purged, not archived."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.splice(KEY, 1, 1, archive=False)
        commit = await journal.append(KEY, [said("a", "another")])
        same((commit.repeated, places(commit.entries)), (False, [4]), "a removed id")
        await journal.splice(KEY, 2, 2, archive=True)
        await journal.splice(KEY, 2, 2, archive=False, purge=True)
        commit = await journal.append(KEY, [said("b", "another")])
        same((commit.repeated, places(commit.entries)), (False, [5]), "a purged id")


async def check_another_body_conflicts(make: JournalFactory) -> None:
    """Any part of the caller's event is its body: kind, message, metadata and all."""
    message = ChatMessage(role=MessageRole.USER, content="hi", metadata={"m": 1})
    entry = Entry("a", message=message, metadata={"n": 1}, usage=Usage(total_tokens=1))
    others = [
        varied(entry, kind=EntryKind.EVENT),
        varied(entry, message=None),
        varied(entry, message=message.model_copy(update={"content": "Hi"})),
        varied(entry, message=message.model_copy(update={"id": "x"})),
        varied(entry, message=message.model_copy(update={"metadata": {"m": 2}})),
        varied(entry, message=message.model_copy(update={"role": "system"})),
        varied(entry, author="x"),
        varied(entry, author=""),
        varied(entry, invocation_id="x"),
        varied(entry, branch="x"),
        varied(entry, timestamp=0.0),
        varied(entry, state_delta=StateDelta({"k": 1})),
        varied(entry, state_delta=StateDelta()),
        varied(entry, usage=None),
        varied(entry, usage=Usage(total_tokens=2)),
        varied(entry, metadata={}),
        varied(entry, metadata={"n": 1.0}),
        varied(entry, metadata={"n": True}),
        varied(entry, metadata={"n": None}),
        varied(entry, extra={"n": 1}),
    ]
    async with make() as journal:
        await journal.create(NEW, [entry])
        async with unchanged(journal, "another body"):
            for other in others:
                with raises(EntryConflictError, f"another body: {other}") as caught:
                    await journal.append(KEY, [other], change=_CHANGE)
                same(
                    (caught[0].key, caught[0].entry_id, caught[0].reason),
                    (str(KEY), "a", "another body"),
                    "the error",
                )
            same((await journal.append(KEY, [entry])).repeated, True, "the same body")


async def check_null_and_absent_content_differ(make: JournalFactory) -> None:
    """A message with null content and one without content are two bodies."""
    absent = Entry("a", message=ChatMessage.from_openai({"role": "assistant"}))
    null = {"role": "assistant", "content": None}
    given = Entry("a", message=ChatMessage.from_openai(null))
    async with make() as journal:
        await journal.create(NEW, [absent])
        with raises(EntryConflictError, "null content"):
            await journal.append(KEY, [given])


async def check_a_partly_known_batch_conflicts(make: JournalFactory) -> None:
    """A batch of which only some ids are known stores nothing."""
    async with make() as journal:
        await journal.create(NEW, batch("a", "b"))
        for entries in (batch("b", "c"), batch("c", "b"), batch("c", "d", "a")):
            async with unchanged(journal, "a partly known batch"):
                with raises(EntryConflictError, "a partly known batch"):
                    await journal.append(KEY, entries, change=_CHANGE)
        same(places((await journal.append(KEY, batch("c"))).entries), [3], "the next")


async def check_an_id_twice_in_a_batch_conflicts(make: JournalFactory) -> None:
    """An id that a batch repeats is a conflict, whether its bodies are equal or not."""
    async with make() as journal:
        await journal.create(NEW)
        for entries in (batch("a", "a"), (said("a"), said("b"), said("a", "other"))):
            async with unchanged(journal, "an id twice in a batch"):
                with raises(EntryConflictError, "an id twice in a batch") as caught:
                    await journal.append(KEY, entries, change=_CHANGE)
            same(caught[0].entry_id, "a", "the id of the error")


async def check_append_checks_in_order(make: JournalFactory) -> None:
    """Missing, then known, then conflict, then revision: the first to apply decides."""
    async with make() as journal:
        old = (await journal.create(NEW, batch("a"))).head.incarnation
        await journal.delete(KEY)
        with raises(SessionNotFoundError, "missing goes before stale"):
            await journal.append(KEY, batch("a"), expected_revision=9)
        await journal.create(NEW, batch("a"))
        async with unchanged(journal, "the order of checks"):
            with raises(SessionNotFoundError, "incarnation goes before known") as seen:
                await journal.append(KEY, batch("a"), incarnation=old)
            same(seen[0].reason, "replaced", "the reason")
            with raises(SessionNotFoundError, "incarnation goes before conflict"):
                await journal.append(KEY, [said("a", "x")], incarnation=old)
            known = await journal.append(KEY, batch("a"), expected_revision=9)
            same(known.repeated, True, "known goes before revision")
            with raises(EntryConflictError, "conflict goes before revision"):
                await journal.append(KEY, [said("a", "x")], expected_revision=9)
            with raises(EntryConflictError, "partly known goes before revision"):
                await journal.append(KEY, batch("a", "b"), expected_revision=9)
            with raises(StaleSessionError, "revision"):
                await journal.append(KEY, batch("b"), expected_revision=9)


async def check_equal_messages_are_kept_apart(make: JournalFactory) -> None:
    """Entries that say the same under different ids are different entries."""
    async with make() as journal:
        await journal.create(NEW, [said("a", "ok"), said("b", "ok")])
        for entry_id in ("c", "d"):
            commit = await journal.append(KEY, [said(entry_id, "ok")])
            same(commit.repeated, False, "a genuine repeat")
        commit = await journal.append(KEY, [said("e", "ok"), said("f", "ok")])
        same(places(commit.entries), [5, 6], "the places")
        same(ids((await journal.load(KEY)).entries), list("abcdef"), "the entries")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_a_repeated_append_changes_nothing,
    check_parallel_retries_store_once,
    check_an_archived_id_is_known,
    check_a_removed_id_is_free,
    check_equal_messages_are_kept_apart,
    check_another_body_conflicts,
    check_null_and_absent_content_differ,
    check_a_partly_known_batch_conflicts,
    check_an_id_twice_in_a_batch_conflicts,
    check_append_checks_in_order,
)
