"""`copy`: the same in both journals, nothing twice, nothing of others overwritten."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest
from journal_bindings import HARNESSES, loops

from raf_session.changes import (
    Change,
    LabelDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.clock import UNIX_EPOCH
from raf_session.conformance import JournalHarness, TickingClock
from raf_session.conformance.clock import START
from raf_session.conformance.journal_values import (
    alive,
    batch,
    ids,
    places,
    said,
    varied,
    whole,
)
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions
from raf_session.transfer import CopyReport, copy
from transfer.transfer_values import ANN, BOB, RAF, everything, fill, fill_scopes, kept

pytestmark = pytest.mark.anyio

PAIRS = [
    pytest.param(one, other, id=f"{one.name}-{other.name}")
    for one in HARNESSES
    for other in HARNESSES
]
TTL = Limits(sessions=SessionTTLOptions(max_idle_secs=3600))


def done(report: CopyReport) -> tuple[int, int, int]:
    assert report.complete, report
    return report.copied, report.completed, report.unchanged


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_a_session_is_equal_to_itself_there_and_back(
    one: JournalHarness, other: JournalHarness
) -> None:
    clock, later = TickingClock(), TickingClock(START + timedelta(days=9))
    async with one(clock=clock) as source, other(clock=later) as target:
        for key in (ANN, BOB, RAF):
            await fill(source, key, clock)
        await fill_scopes(source)
        before = await everything(source)
        assert before[ANN]["archived"] != sorted(
            before[ANN]["archived"], key=lambda entry: entry[1]
        ), "the archive is in order of place, not of time"
        report = await copy(source, target)
        assert done(report) == (3, 0, 0)
        assert (report.entries, report.state_keys) == (30, 4)
        assert await everything(target) == before
        assert await everything(source) == before
        assert (await target.scoped_state(ScopeKey("shop", "zoe"))).state == {
            "lang": "it"
        }
        async with one(clock=clock) as again:
            assert done(await copy(target, again)) == (3, 0, 0)
            assert await everything(again) == before
        there, here = await whole(target, ANN), await whole(source, ANN)
        assert there.head.incarnation != here.head.incarnation
        assert there.head.revision == 1
        assert places(there.archived) == [1, 2, 3, 4, 5]
        assert places(there.entries) == [6, 7, 8, 9, 10]


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_on_every_loop(harness: JournalHarness) -> None:
    async def run() -> None:
        clock = TickingClock()
        async with harness(clock=clock) as source, MemoryJournal() as target:
            await fill(source, ANN, clock)
            await copy(source, target)
            assert await kept(target, ANN) == await kept(source, ANN)

    for loop in loops(harness):
        anyio.run(run, backend=loop)


async def test_a_second_run_writes_nothing(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        await fill(source, ANN, clock)
        await fill_scopes(source)
        await copy(source, target)
        first = await whole(target, ANN)
        clock.tick()
        report = await copy(source, target)
        assert done(report) == (0, 0, 1)
        assert (report.entries, report.state_keys) == (0, 0)
        assert await whole(target, ANN) == first
        clock.tick()
        await target.load(ANN, refresh=True)
        used = await whole(target, ANN)
        assert done(await copy(source, target)) == (0, 0, 1)
        assert await whole(target, ANN) == used


async def test_a_later_run_completes_what_grew_shrank_or_was_touched(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as source, harness(clock=clock) as target:
        await fill(source, ANN, clock)
        await copy(source, target)
        for step in ("append", "state", "edit", "clear", "touch"):
            clock.tick()
            match step:
                case "append":
                    await source.append(ANN, batch("n1", "n2"))
                case "state":
                    await source.update(ANN, Change(session=StateDelta({"n": 1})))
                case "edit":
                    record = await source.load(ANN)
                    seq = record.entries[1].seq
                    await source.splice(ANN, seq, seq, [said("edited")], archive=False)
                case "clear":
                    await source.splice(ANN, 1, 999, archive=False, purge=True)
                case _:
                    await source.update(ANN, Change(touch=clock()))
            clock.tick()
            expected = (0, 0, 1) if step == "touch" else (0, 1, 0)
            assert done(await copy(source, target)) == expected, step
            assert await kept(target, ANN) == await kept(source, ANN), step


CHANGES = {
    "state": Change(session=StateDelta({"n": 1})),
    "providers": Change(providers=StateDelta({"openai": 1})),
    "request": Change(request=RequestRecord(bytes(8), 1).after(None)),
    "title": Change(title="other"),
    "model": Change(model="other"),
    "labels": Change(labels=LabelDelta({"z"}, {"x"})),
    "pin": Change(pin=False),
    "status": Change(status=SessionStatus.ARCHIVED),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_is_seen_where_no_time_moved(name: str) -> None:
    clock = TickingClock()
    source, target = MemoryJournal.opened(clock=clock), MemoryJournal.opened()
    await fill(source, ANN, clock)
    await copy(source, target)
    await source.update(ANN, CHANGES[name])
    assert done(await copy(source, target)) == (0, 1, 0)
    assert await kept(target, ANN) == await kept(source, ANN)


async def test_what_was_changed_there_is_a_conflict_and_stays(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        for key in (ANN, BOB, RAF):
            await fill(source, key, clock)
        await copy(source, target)
        clock.tick()
        await target.append(BOB, batch("theirs"))
        await source.append(BOB, batch("ours"))
        await source.append(RAF, batch("ours"))
        await target.load(RAF, refresh=True)
        clock.tick()
        await target.load(RAF, refresh=True)
        before = await everything(target)
        report = await copy(source, target)
        assert [conflict.key for conflict in report.conflicts] == [RAF, BOB]
        assert not report.complete
        assert report.unchanged == 1
        assert "newer" in report.conflicts[0].reason
        assert "changed" in report.conflicts[1].reason
        assert await everything(target) == before


@pytest.mark.parametrize("began", [None, UNIX_EPOCH])
async def test_another_session_of_the_key_is_a_conflict_and_stays(
    harness: JournalHarness, began: object
) -> None:
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        new = NewSession(
            key=ANN,
            created_at=UNIX_EPOCH if began else clock(),
            updated_at=UNIX_EPOCH if began else clock(),
            last_active_at=UNIX_EPOCH if began else clock(),
        )
        await target.create(new, batch("theirs"))
        clock.tick()
        if began is None:
            new = NewSession(key=ANN)
        await source.create(new, batch("ours"))
        before = await everything(target)
        report = await copy(source, target)
        assert [conflict.key for conflict in report.conflicts] == [ANN]
        assert "another session" in report.conflicts[0].reason
        assert await everything(target) == before


async def test_sessions_without_times_are_completed_where_nothing_is_lost(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        await source.create(
            NewSession(
                key=ANN,
                created_at=UNIX_EPOCH,
                updated_at=UNIX_EPOCH,
                last_active_at=UNIX_EPOCH,
            ),
            batch("a"),
        )
        await copy(source, target)
        await source.append(ANN, batch("b"), change=Change(touch=UNIX_EPOCH))
        assert done(await copy(source, target)) == (0, 1, 0)
        assert await kept(target, ANN) == await kept(source, ANN)


async def test_expired_sessions_stay_behind(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock, limits=TTL) as source:
        await source.create(NewSession(key=ANN), batch("old"))
        clock.tick(3601)
        await source.create(NewSession(key=BOB), batch("new"))
        async with MemoryJournal(clock=clock) as target:
            assert done(await copy(source, target)) == (1, 0, 0)
            assert not await alive(target, ANN)
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source:
        await source.create(NewSession(key=ANN), batch("old"))
        await source.create(NewSession(key=BOB, pinned=True), batch("pinned"))
        clock.tick(3601)
        async with harness(clock=clock, limits=TTL) as target:
            report = await copy(source, target)
            assert (report.copied, report.expired, report.complete) == (1, 1, True)
            assert await target.expire() == ()


async def test_skip_looks_at_nothing_that_is_there(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        for key in (ANN, BOB):
            await source.create(NewSession(key=key), batch("a"))
        await copy(source, target, query=Query(user="ann"))
        await source.append(ANN, batch("b"))
        report = await copy(source, target, on_exists="skip")
        assert (report.copied, report.skipped) == (1, 1)
        assert ids((await target.load(ANN)).entries) == ["a"]


async def test_a_query_narrows_sessions_and_scopes(harness: JournalHarness) -> None:
    clock = TickingClock()
    marked = ANN._replace(session="marked")
    async with harness(clock=clock) as source:
        for key in (ANN, BOB, RAF, marked):
            await source.create(NewSession(key=key), batch("a"))
        await source.update(marked, Change(labels=LabelDelta({"x"})))
        await fill_scopes(source)
        await source.update_scoped_state(ScopeKey("empty", "u"), StateDelta({"k": 1}))
        for query, keys, scopes in (
            (Query(app="shop"), {ANN, BOB, marked}, {None, "ann", "zoe"}),
            (Query(app="shop", user="ann"), {ANN, marked}, {None, "ann"}),
            (Query(user="ann"), {ANN, marked}, {None, "ann"}),
            (Query(labels={"x"}), {marked}, {None, "ann"}),
            (Query(app="shop", scope="web:per_peer"), {BOB}, {None}),
        ):
            async with MemoryJournal(clock=clock) as target:
                report = await copy(source, target, query=query)
                assert report.complete
                assert set(await everything(target)) == keys
                found = {scope.user for scope in await target.scopes("shop")}
                assert found == scopes, query
        async with MemoryJournal(clock=clock) as target:
            await copy(source, target, query=Query(app="empty"))
            assert await target.scopes("empty") == (ScopeKey("empty", "u"),)


async def test_state_that_differs_is_a_conflict_and_what_is_missing_is_set(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    scope = ScopeKey("shop", "ann")
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        await source.update_scoped_state(
            scope, StateDelta({"same": 1, "other": 1, "new": None})
        )
        await target.update_scoped_state(
            scope, StateDelta({"same": 1, "other": 1.0, "theirs": 2})
        )
        report = await copy(source, target, query=Query(app="shop"))
        assert [conflict.key for conflict in report.conflicts] == [scope]
        assert report.conflicts[0].reason.endswith("of 'other'")
        assert report.state_keys == 1
        state = (await target.scoped_state(scope)).state
        assert repr(dict(state)) == repr(
            {"new": None, "other": 1.0, "same": 1, "theirs": 2}
        )


async def test_many_sessions_go_over_by_pages(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with MemoryJournal(clock=clock) as source, harness(clock=clock) as target:
        for n in range(620):
            key = SessionKey(f"a{n % 3}", f"u{n % 7}", "", f"s{n}")
            await source.create(NewSession(key=key), batch("x"))
        assert done(await copy(source, target)) == (620, 0, 0)
        assert len(await everything(target)) == 620


async def test_a_long_session_goes_over_whole(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as source, harness(clock=clock) as target:
        await source.create(NewSession(key=ANN))
        for n in range(12):
            clock.tick()
            await source.append(ANN, batch(*(f"e{n}-{m}" for m in range(250))))
        await source.splice(ANN, 1, 1100, [said("sum")], archive=True)
        assert done(await copy(source, target)) == (1, 0, 0)
        assert await kept(target, ANN) == await kept(source, ANN)


async def test_ordinary_times_of_active_entries_stay_in_order(
    harness: JournalHarness,
) -> None:
    async with harness(clock=TickingClock()) as journal:
        early = varied(said("early"), stored_at=START - timedelta(days=2))
        late = varied(said("late"), stored_at=START - timedelta(days=1))
        first = varied(said("first"), stored_at=START - timedelta(days=3))
        later = varied(said("later"), stored_at=START - timedelta(hours=1))
        commit = await journal.create(
            NewSession(key=ANN), [early, said("now")], archived=[late, first, later]
        )
        record = await whole(journal, ANN)
        assert [e.stored_at for e in record.archived] == [
            START - timedelta(days=1),
            START - timedelta(days=3),
            START - timedelta(hours=1),
        ]
        assert [e.stored_at for e in record.entries] == [
            START - timedelta(days=2),
            START,
        ]
        assert [e.stored_at for e in commit.entries] == [
            e.stored_at for e in record.entries
        ]


async def test_bad_arguments_touch_nothing() -> None:
    async with MemoryJournal() as journal, MemoryJournal() as target:
        with pytest.raises(ValueError, match="itself"):
            await copy(journal, journal)
        with pytest.raises(ValueError, match="on_exists"):
            await copy(journal, target, on_exists="overwrite")  # type: ignore[arg-type]
