"""A copy that is stopped anywhere goes on; what cannot be copied is said."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance import JournalHarness, TickingClock
from raf_session.conformance.journal_values import batch, ids, said, whole
from raf_session.entries import Counts
from raf_session.errors import (
    CopyMismatchError,
    EntryTooLargeError,
    SessionDamagedError,
    StorageFullError,
)
from raf_session.journal import Commit, Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.journals.sqlite import SqliteJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query
from raf_session.transfer import copy
from transfer.transfer_values import (
    ANN,
    BOB,
    RAF,
    BrokenError,
    Damage,
    Watched,
    everything,
    fill,
    fill_scopes,
    kept,
)

pytestmark = pytest.mark.anyio


async def begun(source: Journal, target: Journal, clock: TickingClock) -> None:
    """Make a source of which the target holds an earlier copy of a part."""
    for key in (ANN, RAF):
        await fill(source, key, clock)
    await copy(source, target)
    clock.tick()
    await source.append(ANN, batch("later"))
    await fill(source, BOB, clock)
    await fill_scopes(source)
    clock.tick()


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("side", ["source", "target"])
async def test_stopped_at_any_call_it_goes_on(
    harness: JournalHarness, side: str, *, late: bool
) -> None:
    number = 0
    while True:
        clock = TickingClock()
        source = MemoryJournal.opened(clock=clock)
        async with harness(clock=clock) as target:
            await begun(source, target, clock)
            watched = Watched(source if side == "source" else target)
            watched.break_at(number, late=late)
            journals = (
                (watched.journal, target)
                if side == "source"
                else (source, watched.journal)
            )
            try:
                await copy(*journals)
            except BrokenError:
                number += 1
            else:
                assert number > 5
                return
            report = await copy(source, target)
            assert report.complete
            assert await everything(target) == await everything(source)


SCRIPT = """
import os, signal, sys
import anyio
from raf_session.journals.sqlite import SqliteJournal
from raf_session.transfer import copy
from transfer.transfer_values import Watched

async def main(source, target, number):
    async with SqliteJournal(source) as one, SqliteJournal(target) as other:
        watched = Watched(other)

        async def before(_):
            if len(watched.calls) > number:
                os.kill(os.getpid(), signal.SIGKILL)

        watched.before = before
        await copy(one, watched.journal)

anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def test_killed_anywhere_it_goes_on(tmp_path: Path) -> None:
    async def make() -> None:
        clock = TickingClock()
        async with (
            SqliteJournal(tmp_path / "source.db", clock=clock) as source,
            SqliteJournal(tmp_path / "target.db", clock=clock) as target,
        ):
            await begun(source, target, clock)

    async def compare() -> None:
        async with (
            SqliteJournal(tmp_path / "source.db") as source,
            SqliteJournal(tmp_path / "target.db") as target,
        ):
            assert await everything(target) == await everything(source)

    anyio.run(make)
    kills = 0
    for number in (*range(1, 12), 1000):  # each goes on where the last was killed
        done = subprocess.run(
            [
                *(sys.executable, "-W", "error", "-c", SCRIPT),
                *(str(tmp_path / "source.db"), str(tmp_path / "target.db")),
                str(number),
            ],
            check=False,
            cwd=Path(__file__).parent,
            env={
                "PYTHONPATH": f"{Path(__file__).parents[2]}:{Path(__file__).parents[1]}"
            },
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        kills += 1
    else:
        pytest.fail("it never ended")
    assert kills > 5
    anyio.run(compare)


async def test_cancelled_while_it_replaces_it_leaves_a_whole_session(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    source = MemoryJournal.opened(clock=clock)
    async with harness(clock=clock) as target:
        await begun(source, target, clock)
        watched = Watched(target)
        with anyio.CancelScope() as scope:

            async def before(name: str) -> None:
                if name == "delete":
                    scope.cancel()
                await anyio.lowlevel.checkpoint()

            watched.before = before
            await copy(source, watched.journal)
        assert scope.cancelled_caught
        assert await kept(target, ANN) == await kept(source, ANN)


async def test_writers_at_work_are_copied_at_one_moment_each(
    harness: JournalHarness,
) -> None:
    async with harness() as source, MemoryJournal() as target:
        await source.create(NewSession(key=ANN))
        stop = False

        async def write() -> None:
            n = 0
            while not stop:
                n += 1
                await source.append(ANN, batch(f"{n}a", f"{n}b", f"{n}c"))
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            for _ in range(5):
                await anyio.sleep(0.01)
                assert (await copy(source, target)).complete
                found = ids((await target.load(ANN)).entries)
                assert len(found) % 3 == 0
            stop = True
        await copy(source, target)
        assert await kept(target, ANN) == await kept(source, ANN)


# What cannot be copied ----------------------------------------------------------------


async def test_a_damaged_session_is_reported_and_the_next_is_copied(
    harness: JournalHarness,
) -> None:
    source = MemoryJournal.opened()
    for key in (ANN, BOB):
        await source.create(NewSession(key=key), batch("a"))
    damaged = SessionDamagedError(ANN, "memory", "torn")
    watched = Watched(source)

    async def after(name: str, answer: Any) -> Any:
        if name == "load" and answer.head.key == ANN:
            raise damaged
        return answer

    watched.after = after
    async with harness() as target:
        report = await copy(watched.journal, target)
        assert not report.complete
        assert [(f.key, f.error) for f in report.failures] == [(ANN, damaged)]
        assert set(await everything(target)) == {BOB}
        assert report.to_json()["failures"] == [
            {"key": str(ANN), "error": str(damaged)}
        ]


PEOPLE = [SessionKey("shop", f"u{n:03}", "", "s") for n in range(20)]


@pytest.mark.parametrize("torn", [{0}, {19}, {7}, {3, 4, 5, 18}, set(range(20))])
@pytest.mark.parametrize("query", [Query(), Query(app="shop", labels=["x"])])
async def test_heads_that_cannot_be_read_are_reported_and_the_others_copied(
    tmp_path: Path, torn: set[int], query: Query
) -> None:
    path = tmp_path / "s.db"
    labelled = Change(labels=LabelDelta({"x"}))
    async with SqliteJournal(path) as source:
        for key in PEOPLE:
            await source.create(NewSession(key=key), batch("a"), change=labelled)
        for n in torn:
            Damage(path).tear_head(PEOPLE[n])
        target = MemoryJournal.opened()
        report = await copy(source, target, query=query)
        assert [f.key for f in report.failures] == [PEOPLE[n] for n in sorted(torn)]
        assert {type(f.error) for f in report.failures} == {SessionDamagedError}
        healthy = {key for n, key in enumerate(PEOPLE) if n not in torn}
        assert set(await everything(target)) == healthy
        assert report.copied == len(healthy)
        again = await copy(source, target, query=query)
        assert (again.unchanged, len(again.failures)) == (len(healthy), len(torn))


@pytest.mark.parametrize("query", [Query(), Query(labels=["x"])])
async def test_a_state_that_cannot_be_read_is_reported_and_the_next_is_copied(
    tmp_path: Path, query: Query
) -> None:
    path = tmp_path / "s.db"
    async with SqliteJournal(path) as source:
        for key in PEOPLE[:3]:
            state = StateDelta({f"of {key.user}": 1})
            change = Change(user=state, labels=LabelDelta({"x"}))
            await source.create(NewSession(key=key), batch("a"), change=change)
        Damage(path).tear_state("of u001")
        target = MemoryJournal.opened()
        report = await copy(source, target, query=query)
        assert [f.key for f in report.failures] == [ScopeKey("shop", "u001"), PEOPLE[1]]
        assert set(await everything(target)) == {PEOPLE[0], PEOPLE[2]}
        assert report.state_keys == 2
        assert report.to_json()["failures"][0]["key"] == "shop/u001"


async def test_where_scopes_cannot_be_listed_those_of_sessions_are_copied() -> None:
    source = MemoryJournal.opened()
    for key in PEOPLE[:2]:
        change = Change(user=StateDelta({"a": 1}), app=StateDelta({"b": 1}))
        await source.create(NewSession(key=key), batch("a"), change=change)
    watched = Watched(source)

    async def before(name: str) -> None:
        if name == "scopes":
            raise SessionDamagedError("shop/users/u7.json", "jsonl", "torn")

    watched.before = before
    target = MemoryJournal.opened()
    report = await copy(watched.journal, target)
    assert [f.key for f in report.failures] == [ScopeKey("shop")]
    assert (report.copied, report.state_keys) == (2, 3)
    assert await everything(target) == await everything(source)


async def test_damage_that_is_no_session_ends_the_listing() -> None:
    source = MemoryJournal.opened()
    watched = Watched(source)
    for name in ("a/b/c/d/e", "one"):
        damage = SessionDamagedError(name, "memory", "torn")

        async def before(call: str, damage: SessionDamagedError = damage) -> None:
            if call == "scan":
                raise damage

        watched.before = before
        with pytest.raises(SessionDamagedError) as caught:
            await copy(watched.journal, MemoryJournal.opened())
        assert caught.value is damage


async def test_equal_copies_at_once_are_no_conflict() -> None:
    source, target = MemoryJournal.opened(), MemoryJournal.opened()
    await source.create(NewSession(key=ANN), batch("a"))
    watched = Watched(target)

    async def before(name: str) -> None:
        if name == "create" and watched.calls.count("create") == 1:
            await copy(source, target)

    watched.before = before
    report = await copy(source, watched.journal)
    assert (report.complete, report.copied, report.unchanged) == (True, 0, 1)


async def test_an_entry_too_large_for_the_target_leaves_what_is_there(
    harness: JournalHarness,
) -> None:
    source = MemoryJournal.opened()
    for key in (ANN, BOB):
        await source.create(NewSession(key=key), batch("a"))
    async with harness(limits=Limits(max_entry_bytes=500)) as target:
        await copy(source, target)
        before = await kept(target, ANN)
        for key in (ANN, BOB):
            text = "x" * (1000 if key == ANN else 10)
            await source.append(key, [said("long", text)])
        report = await copy(source, target)
        assert [type(f.error) for f in report.failures] == [EntryTooLargeError]
        assert report.completed == 1
        assert await kept(target, ANN) == before


async def test_a_full_target_ends_the_copy(harness: JournalHarness) -> None:
    source = MemoryJournal.opened()
    await source.create(NewSession(key=ANN), batch("a"))
    async with harness() as target:
        watched = Watched(target)

        async def before(name: str) -> None:
            if name == "create":
                raise StorageFullError("any", "full")

        watched.before = before
        with pytest.raises(StorageFullError):
            await copy(source, watched.journal)
        assert await everything(target) == {}


async def test_a_session_created_meanwhile_is_a_conflict() -> None:
    source, target = MemoryJournal.opened(), MemoryJournal.opened()
    await source.create(NewSession(key=ANN), batch("a"))
    watched = Watched(target)

    async def before(name: str) -> None:
        if name == "create":
            await target.create(NewSession(key=ANN), batch("theirs"))

    watched.before = before
    report = await copy(source, watched.journal)
    assert [conflict.key for conflict in report.conflicts] == [ANN]
    assert ids((await target.load(ANN)).entries) == ["theirs"]


async def test_a_session_deleted_meanwhile_is_none() -> None:
    source, target = MemoryJournal.opened(), MemoryJournal.opened()
    await source.create(NewSession(key=ANN), batch("a"))
    watched = Watched(source)

    async def before(name: str) -> None:
        if name == "load":
            await source.delete(ANN)

    watched.before = before
    report = await copy(watched.journal, target)
    assert report.complete
    assert report.copied == 0


def lose_one(commit: Commit) -> Commit:
    counts = Counts(1, 1, 1, 0)
    return commit._replace(head=commit.head._replace(active=counts, total=counts))


@pytest.mark.parametrize("spoil", [lose_one, None], ids=["entries", "sessions"])
async def test_other_counts_than_were_given_are_an_error(
    spoil: Callable[[Commit], Commit] | None,
) -> None:
    source, target = MemoryJournal.opened(), MemoryJournal.opened()
    await source.create(NewSession(key=ANN), batch("a", "b"))
    watched = Watched(target)

    async def after(name: str, answer: Any) -> Any:
        if name != "create":
            return answer
        if spoil is None:
            await target.delete(ANN)
            return answer
        return spoil(answer)

    watched.after = after
    with pytest.raises(CopyMismatchError) as caught:
        await copy(source, watched.journal)
    if spoil is None:
        assert caught.value.key == ""
        assert (caught.value.expected, caught.value.found) == (
            "1 sessions",
            "0 sessions",
        )
    else:
        assert caught.value.key == str(ANN)
        assert "entries=2" in caught.value.expected
        assert "entries=1" in caught.value.found


async def test_a_source_is_only_read(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as source, MemoryJournal(clock=clock) as target:
        await fill(source, ANN, clock)
        await fill_scopes(source)
        before = await whole(source, ANN)
        watched = Watched(source)
        await copy(watched.journal, target)
        await source.update(ANN, Change(touch=before.head.last_active_at))
        await copy(watched.journal, target)
        assert set(watched.calls) == {"scan", "load", "scopes", "scoped_state"}
        assert await whole(source, ANN) == before
