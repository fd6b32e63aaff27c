"""Checks through the back door: reads that trust no write, writes that no read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from raf_session.conformance.backdoor import Backdoor
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_harness import JournalCheck, JournalHarness
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    body,
    ids,
    raises,
    said,
    same,
    varied,
    whole,
)
from raf_session.entries import Entry
from raf_session.errors import EntryConflictError, SessionDamagedError
from raf_session.journal import Journal
from raf_session.options import Limits, NewSession, SessionTTLOptions, Window

__all__ = ("BACKDOOR_CHECKS",)

_NEIGHBOUR: Final = KEY._replace(session=f"{KEY.session}.")


@asynccontextmanager
async def _open(
    harness: JournalHarness, clock: TickingClock, limits: Limits | None = None
) -> AsyncGenerator[tuple[Journal, Backdoor]]:
    assert harness.backdoor is not None, "the harness gives no back door"
    async with harness(limits=limits or Limits(), clock=clock) as journal:
        yield journal, harness.backdoor(journal)


def _row(entry_id: str, seq: int, left_at: int = 0) -> Entry:
    return varied(said(entry_id), seq=seq, stored_at=START, left_at=left_at)


def _facts(rows: Iterable[Entry]) -> list[tuple[int, int, str, object, str]]:
    return sorted(
        (row.seq, row.left_at, row.id, row.stored_at, body(row)) for row in rows
    )


async def check_reads_order_by_place(harness: JournalHarness) -> None:
    """Rows written in any order, with gaps and equal times, are read by place."""
    # The ids stand in no order that the places have.
    rows = [_row("b", 9), _row("z", 3), _row("a", 5, 4), _row("y", 1, 4), _row("m", 4)]
    async with _open(harness, TickingClock()) as (journal, backdoor):
        await journal.create(NEW, batch("x"))
        await backdoor.put(KEY, rows)
        record = await whole(journal)
        same(ids(record.entries), ["z", "m", "b"], "the active window")
        same(ids(record.archived), ["y", "a"], "the archive")
        same(_facts(record.entries + record.archived), _facts(rows), "what was read")
        for window, expected in (
            (Window(last=2), ["m", "b"]),
            (Window(after_seq=3), ["m", "b"]),
            (Window(before_seq=9), ["z", "m"]),
            (Window(after_time=START), []),
        ):
            same(ids((await journal.load(KEY, window)).entries), expected, f"{window}")


async def check_an_append_goes_on_behind_the_rows(harness: JournalHarness) -> None:
    """An append goes behind the highest place, and knows ids that it never wrote."""
    async with _open(harness, TickingClock()) as (journal, backdoor):
        await journal.create(NEW, batch("x"))
        await backdoor.put(KEY, [_row("g", 7), _row("b", 2, 1)])
        for known in ("g", "b"):
            with raises(EntryConflictError, "a known id with another body"):
                await journal.append(KEY, [said(known, "other")])
        commit = await journal.append(KEY, batch("h"))
        same([e.seq for e in commit.entries], [8], "the next place")


async def check_writes_store_what_they_answer(harness: JournalHarness) -> None:
    """The storage holds what the answers say: each entry once, on its place."""
    clock = TickingClock()
    async with _open(harness, clock) as (journal, backdoor):
        await journal.create(NEW, batch("b", "c"), archived=batch("a"))
        clock.tick()
        await journal.append(KEY, batch("d", "e"), trim=3)
        await journal.append(KEY, batch("d", "e"))
        await journal.splice(KEY, 3, 4, batch("s"), archive=True)
        await journal.splice(KEY, 5, 5, archive=False)
        record = await whole(journal)
        rows = await backdoor.rows(KEY)
        same(_facts(rows), _facts(record.entries + record.archived), "the rows")
        same(sorted(ids(rows)), ["a", "b", "c", "d", "s"], "their ids")


async def check_what_goes_leaves_no_row(harness: JournalHarness) -> None:
    """Purged, deleted, swept: no row of it is left, and every row of its neighbour."""
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
    async with _open(harness, clock, limits) as (journal, backdoor):
        neighbour = NewSession(key=_NEIGHBOUR, pinned=True)
        await journal.create(neighbour, batch("b"), archived=batch("a"))
        near = _facts(await backdoor.rows(_NEIGHBOUR))
        for way in ("purge", "delete", "expire", "create"):
            await journal.create(NEW, batch("b", "c"), archived=batch("a"))
            await journal.append(KEY, batch("d"), trim=2)
            same(len(await backdoor.rows(KEY)), 4, "the rows before")
            left: list[str] = []
            if way == "purge":
                await journal.splice(KEY, 1, 4, archive=False, purge=True)
            elif way == "delete":
                await journal.delete(KEY)
            else:
                clock.tick(11)
                if way == "expire":
                    await journal.expire()
                else:
                    await journal.create(NEW, batch("new"))
                    left = ["new"]
            same(ids(await backdoor.rows(KEY)), left, f"the rows after {way}")
            same(_facts(await backdoor.rows(_NEIGHBOUR)), near, "its neighbour's")
            await journal.delete(KEY)


async def check_damage_is_told(harness: JournalHarness) -> None:
    """A damaged entry raises `SessionDamagedError`; it stays, and so do the others."""
    async with _open(harness, TickingClock()) as (journal, backdoor):
        await journal.create(NewSession(key=_NEIGHBOUR), batch("a"))
        head = (await journal.create(NEW, batch("a", "b", "c"))).head
        await backdoor.spoil(KEY, 2)
        with raises(SessionDamagedError, "a read of what is damaged") as caught:
            await journal.load(KEY)
        same(caught[0].key, str(KEY), "the key in the error")
        same(await alive(journal, _NEIGHBOUR), True, "the neighbour is read")
        whole_ones = await journal.load(KEY, Window(after_seq=2))
        same((whole_ones.head, ids(whole_ones.entries)), (head, ["c"]), "the rest")
        same((await journal.append(KEY, batch("d"))).entries[0].seq, 4, "a write")


BACKDOOR_CHECKS: Final[tuple[JournalCheck, ...]] = (
    check_reads_order_by_place,
    check_an_append_goes_on_behind_the_rows,
    check_writes_store_what_they_answer,
    check_what_goes_leaves_no_row,
    check_damage_is_told,
)
"""Each requirement that needs the back door of a `JournalHarness`."""
