"""Checks of `Journal.create`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Final

from raf_session.changes import (
    Change,
    LabelDelta,
    RequestDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.clock import UNIX_EPOCH
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalFactory
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    every,
    ids,
    places,
    raises,
    said,
    same,
    varied,
    whole,
)
from raf_session.entries import Counts
from raf_session.errors import EntryConflictError, StaleSessionError
from raf_session.keys import ScopeKey
from raf_session.messages import MessageRole
from raf_session.options import NewSession


async def check_create_begins_a_session(make: JournalFactory) -> None:
    """A new session has revision 1, the places from 1 and the journal's time."""
    clock = TickingClock()
    async with make(clock=clock) as journal:
        commit = await journal.create(
            NewSession(key=KEY, session_type="Chat"),
            [said("a"), said("b", role=MessageRole.ASSISTANT)],
        )
        head = commit.head
        same(head.key, KEY, "the key")
        same(head.revision, 1, "the revision")
        same(head.last_seq, 2, "the last place")
        same(head.spliced_at, 0, "spliced_at")
        same(head.active, Counts(2, 2, 1, 0), "the active counts")
        same(head.total, Counts(2, 2, 1, 0), "the total counts")
        same(head.session_type, "Chat", "the type")
        same((head.title, head.model), ("", ""), "title and model")
        same(head.labels, frozenset(), "the labels")
        same(head.status, SessionStatus.ACTIVE, "the status")
        same((head.pinned, head.forked_from), (False, None), "pin and origin")
        same(head.request_n, None, "the request record")
        same(
            (head.created_at, head.updated_at, head.last_active_at),
            (START, START, START),
            "the times",
        )
        assert head.incarnation, "a session has an incarnation"
        same(places(commit.entries), [1, 2], "the places")
        same([e.stored_at for e in commit.entries], [START, START], "stored_at")
        same([e.left_at for e in commit.entries], [0, 0], "left_at of active entries")
        same(commit.repeated, False, "repeated")
        record = await whole(journal)
        same(record.head, head, "load reads the head that create returned")
        same(record.entries, commit.entries, "load reads what create returned")
        same(record.archived, (), "nothing is archived")
        same(
            (record.state, record.user_state, record.app_state, record.provider_states),
            ({}, {}, {}, {}),
            "a new session has no state",
        )
        same(record.request, None, "a new session has no request record")


async def check_create_makes_an_empty_session(make: JournalFactory) -> None:
    """A session may begin without entries, and the first append takes place 1."""
    async with make() as journal:
        commit = await journal.create(NEW)
        same((commit.entries, commit.head.last_seq), ((), 0), "there is no entry")
        same((await whole(journal)).entries, (), "there is no entry to read")
        commit = await journal.append(KEY, batch("a"))
        same(places(commit.entries), [1], "the first place")
        same(commit.head.revision, 2, "the revision after the first append")


async def check_create_keeps_given_times(make: JournalFactory) -> None:
    """Times, pin, origin and type of a session that existed before are kept."""
    clock = TickingClock()
    east = timezone(timedelta(hours=8))
    created = datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=east)
    updated = datetime(2025, 3, 1, 0, 0, 0, 1, tzinfo=east)
    active = datetime(2025, 3, 1, 0, 0, 1, tzinfo=east)
    async with make(clock=clock) as journal:
        await journal.create(
            NewSession(
                key=KEY,
                session_type="Chat",
                created_at=created,
                updated_at=updated,
                last_active_at=active,
                pinned=True,
                forked_from="somewhere/else",
            ),
            batch("a"),
        )
        head = (await journal.load(KEY)).head
        same(head.created_at, created, "created_at")
        same(head.updated_at, updated, "updated_at")
        same(head.last_active_at, active, "last_active_at")
        same(head.pinned, True, "the pin")
        same(head.forked_from, "somewhere/else", "the origin")
        same(head.session_type, "Chat", "the type")
        same(head.created_at.utcoffset(), timedelta(), "times are read in UTC")


async def check_create_keeps_the_epoch(make: JournalFactory) -> None:
    """`UNIX_EPOCH` as a time of creation and of activity is kept as it is."""
    async with make(clock=TickingClock()) as journal:
        await journal.create(
            NewSession(key=KEY, created_at=UNIX_EPOCH, last_active_at=UNIX_EPOCH)
        )
        head = (await journal.load(KEY)).head
        same(head.created_at, UNIX_EPOCH, "created_at")
        same(head.last_active_at, UNIX_EPOCH, "last_active_at")


async def check_create_keeps_stored_at(make: JournalFactory) -> None:
    """Entries that bring a `stored_at` keep it, archived ones too; others follow."""
    clock = TickingClock()
    past = [START - timedelta(days=9 - n, microseconds=n) for n in range(4)]
    entries = [varied(said(f"e{n}"), stored_at=past[n]) for n in range(4)]
    async with make(clock=clock) as journal:
        await journal.create(NEW, entries[2:], archived=entries[:2])
        record = await whole(journal)
        same([e.stored_at for e in record.archived], past[:2], "archived stored_at")
        same([e.stored_at for e in record.entries], past[2:], "active stored_at")
        commit = await journal.append(KEY, batch("later"))
        same(commit.entries[0].stored_at, START, "an append is of now")
        ahead = START + timedelta(hours=1)
        other = KEY._replace(session="other")
        commit = await journal.create(
            NewSession(key=other),
            [varied(said("ahead"), stored_at=ahead), said("behind")],
        )
        same(
            [e.stored_at for e in commit.entries],
            [ahead, ahead],
            "stored_at is never before the one in front",
        )
        commit = await journal.append(other, batch("later"))
        same(commit.entries[0].stored_at, ahead, "nor is that of an append")


async def check_create_ignores_given_places(make: JournalFactory) -> None:
    """Places that entries bring from another journal are drawn anew."""
    async with make() as journal:
        brought = [
            varied(said(entry_id), seq=seq, stored_at=START)
            for entry_id, seq in (("a", 70), ("b", 9))
        ]
        commit = await journal.create(NEW, brought)
        same(ids(commit.entries), ["a", "b"], "the order given")
        same(places(commit.entries), [1, 2], "the places")
        same(places((await whole(journal)).entries), [1, 2], "the places read")


async def check_create_puts_archived_entries_first(make: JournalFactory) -> None:
    """Archived entries take the places in front, and are read when asked for alone."""
    async with make() as journal:
        commit = await journal.create(NEW, batch("c", "d"), archived=batch("a", "b"))
        same(places(commit.entries)[-2:], [3, 4], "the places of the active window")
        same(commit.head.last_seq, 4, "the last place")
        same(commit.head.active, Counts(2, 2, 2, 0), "the active counts")
        same(commit.head.total, Counts(4, 4, 4, 0), "the total counts")
        record = await journal.load(KEY)
        same((ids(record.entries), record.archived), (["c", "d"], ()), "a plain load")
        record = await whole(journal)
        same(ids(record.entries), ["c", "d"], "the active window")
        same(ids(record.archived), ["a", "b"], "the archive")
        same(places(record.archived), [1, 2], "the places of the archive")
        assert all(e.left_at > 0 for e in record.archived), "archived entries have left"
        again = await journal.append(KEY, batch("a"))
        same(again.repeated, True, "an archived id is known")
        same(places((await journal.append(KEY, batch("e"))).entries), [5], "the next")


async def check_create_commits_its_change(make: JournalFactory) -> None:
    """State of all scopes and the description are stored in the step that creates."""
    request = RequestDelta(0, b"12345678" * 2, 2**64 - 1, 2**63, 1)
    change = Change(
        session=StateDelta({"s": [1, {"t": None}]}),
        user=StateDelta({"u": 2}),
        app=StateDelta({"a": 3}),
        providers=StateDelta({"openai": {"id": "r-1"}}),
        request=request,
        title="Trip",
        model="m-1",
        labels=LabelDelta(added=("x", "y")),
        pin=True,
        status=SessionStatus.COMPACTED,
    )
    async with make() as journal:
        commit = await journal.create(NEW, batch("a"), change=change)
        same(commit.head.revision, 1, "the revision")
        record = await whole(journal)
        same(record.head, commit.head, "the head")
        same(record.state, {"s": (1, {"t": None})}, "the session's state")
        same(record.user_state, {"u": 2}, "the user's state")
        same(record.app_state, {"a": 3}, "the app's state")
        same(record.provider_states, {"openai": {"id": "r-1"}}, "provider states")
        same(
            record.request,
            RequestRecord(b"12345678" * 2, 2**64 - 1, 2**63, 1),
            "the request",
        )
        head = record.head
        same((head.title, head.model), ("Trip", "m-1"), "title and model")
        same(head.labels, frozenset({"x", "y"}), "the labels")
        same((head.pinned, head.status), (True, "compacted"), "pin and status")
        same(
            (head.request_n, head.request_hash, head.request_header),
            (2, 2**64 - 1, 2**63),
            "the request in the head",
        )
        scoped = await journal.scoped_state(ScopeKey("app", "user"))
        same(scoped.state, {"u": 2}, "the user's state, read by scope")


async def check_create_refuses_an_id_twice(make: JournalFactory) -> None:
    """An id that stands twice is a conflict, the archive included; nothing is made."""
    async with make() as journal:
        change = Change(user=StateDelta({"u": 1}))
        for entries, archived in (
            (batch("a", "b", "a"), ()),
            ((), batch("a", "a")),
            (batch("a"), batch("b", "a")),
            ((said("a", "one"), said("a", "two")), ()),
        ):
            with raises(EntryConflictError, "an id that stands twice") as caught:
                await journal.create(NEW, entries, archived=archived, change=change)
            same(caught[0].entry_id, "a", "the id of the error")
            same(await alive(journal), False, "a refused session does not exist")
        scoped = await journal.scoped_state(ScopeKey("app", "user"))
        same(scoped.state, {}, "a refused session leaves no state")
        same(await every(journal), [], "a refused session is not listed")
        await journal.create(NEW, batch("a"))


async def check_request_of_create_keeps_nothing(make: JournalFactory) -> None:
    """A new session has no request to keep digests of: stale, and nothing is made."""
    async with make() as journal:
        with raises(StaleSessionError, "digests of no request"):
            await journal.create(
                NEW, change=Change(request=RequestDelta(1, b"12345678", 1))
            )
        same(await alive(journal), False, "a refused session does not exist")
        record = RequestRecord(b"12345678", 7)
        await journal.create(NEW, change=Change(request=record.after(None)))
        same((await journal.load(KEY)).request, record, "the request record")


CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_create_begins_a_session,
    check_create_makes_an_empty_session,
    check_create_keeps_given_times,
    check_create_keeps_the_epoch,
    check_create_keeps_stored_at,
    check_create_ignores_given_places,
    check_create_puts_archived_entries_first,
    check_create_commits_its_change,
    check_create_refuses_an_id_twice,
    check_request_of_create_keeps_nothing,
)
