"""`fork`: the same beginning, a life of its own."""

from __future__ import annotations

import pytest

from raf_session.changes import Change, RequestRecord, SessionStatus
from raf_session.conformance import JournalHarness, TickingClock
from raf_session.conformance.journal_values import batch, ids, said, unchanged, whole
from raf_session.errors import (
    InvalidValueError,
    SessionExistsError,
    SessionNotFoundError,
)
from raf_session.journals.memory import MemoryJournal
from raf_session.options import NewSession
from raf_session.transfer import fork
from transfer.transfer_values import ANN, BOB, fill, kept

pytestmark = pytest.mark.anyio

NEW = ANN._replace(session="fork")


async def test_a_whole_fork_keeps_all_but_the_times(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await fill(journal, ANN, clock)
        now = clock.tick()
        async with unchanged(journal, "the original", ANN):
            commit = await fork(journal, ANN, NEW)
        assert commit.head.forked_from == str(ANN)
        assert not commit.head.pinned
        before, after = await kept(journal, ANN), await kept(journal, NEW)
        assert after == before | {
            "key": NEW,
            "times": (now, now, now),
            "pinned": False,
            "origin": ("Mine", str(ANN)),
        }
        async with unchanged(journal, "the original", ANN):
            await journal.append(NEW, batch("mine"))
            await journal.splice(NEW, 1, 99, archive=False, purge=True)
            await journal.delete(NEW)


async def test_a_fork_ends_at_a_place_or_an_id(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await fill(journal, ANN, clock)
        record = await whole(journal, ANN)
        assert ids(record.entries) == ["sum2", "e4", "e5", "special", "last"]
        archive = ids(record.archived)
        for upto, entries in (
            (0, []),
            (record.entries[0].seq, ["sum2"]),
            (record.entries[1].seq, ["sum2", "e4"]),
            ("special", ["sum2", "e4", "e5", "special"]),
            ("last", ["sum2", "e4", "e5", "special", "last"]),
            (10**9, ["sum2", "e4", "e5", "special", "last"]),
        ):
            await fork(journal, ANN, NEW, upto)
            found = await whole(journal, NEW)
            assert ids(found.entries) == entries
            assert [e.stored_at for e in found.entries] == [
                e.stored_at for e in record.entries[: len(entries)]
            ]
            assert (found.request is None) == (len(entries) < 5)
            assert found.state == record.state
            assert found.provider_states == record.provider_states
            assert found.head.status is SessionStatus.COMPACTED
            if entries:
                assert ids(found.archived) == archive
            await journal.delete(NEW)


async def test_of_the_archive_comes_what_stands_in_front(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        await journal.create(NewSession(key=ANN), batch(*"abcdef"))
        await journal.splice(ANN, 2, 2, archive=True)
        await journal.splice(ANN, 5, 5, [said("sum")], archive=True)
        await fork(journal, ANN, NEW, "c")
        found = await whole(journal, NEW)
        assert (ids(found.archived), ids(found.entries)) == (["b"], ["a", "c"])


async def test_the_request_of_a_whole_fork_goes_on(harness: JournalHarness) -> None:
    async with harness() as journal:
        record = RequestRecord(bytes(16), 3)
        await journal.create(
            NewSession(key=ANN), batch("a"), change=Change(request=record.after(None))
        )
        await fork(journal, ANN, NEW)
        assert (await journal.load(NEW)).request == record


async def test_refused_forks_change_nothing(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        with pytest.raises(SessionNotFoundError):
            await fork(journal, ANN, NEW)
        await fill(journal, ANN, clock)
        await journal.create(NewSession(key=BOB))
        async with unchanged(journal, "both", ANN, BOB):
            for key in (ANN, BOB):
                with pytest.raises(SessionExistsError):
                    await fork(journal, ANN, key)
            with pytest.raises(InvalidValueError, match="negative"):
                await fork(journal, ANN, NEW, -1)
            for unknown in ("nothing", "e0", ""):  # e0 is archived
                with pytest.raises(InvalidValueError, match="no active entry"):
                    await fork(journal, ANN, NEW, unknown)
        with pytest.raises(SessionNotFoundError):
            await journal.load(NEW)


async def test_a_fork_of_an_empty_session() -> None:
    journal = MemoryJournal.opened()
    await journal.create(NewSession(key=ANN))
    await fork(journal, ANN, NEW)
    assert (await whole(journal, NEW)).entries == ()
