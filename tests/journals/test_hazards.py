"""Sequences that hurt users of other session stores, on every journal.

`tests/hazards.toml` tells which test stands for which kind of fault.
"""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
import tracemalloc
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from journal_bindings import HARNESSES, loops

import raf_session
from raf_session.changes import Change, StateDelta
from raf_session.conformance import Capability, JournalHarness, TickingClock
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    batch,
    ids,
    said,
    varied,
    whole,
)
from raf_session.entries import Entry, EntryKind
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

EVERYWHERE = [
    pytest.param(harness, loop, id=f"{harness.name}-{loop}")
    for harness in HARNESSES
    for loop in loops(harness)
]
on_every_journal = pytest.mark.parametrize(("harness", "anyio_backend"), EVERYWHERE)


@on_every_journal
async def test_the_first_append_after_create_is_not_stale(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        made = await journal.create(NEW)
        after = await journal.append(
            KEY, batch("a"), expected_revision=made.head.revision
        )
        await journal.append(KEY, batch("b"), expected_revision=after.head.revision)
        with pytest.raises(StaleSessionError) as caught:
            await journal.append(KEY, batch("c"), expected_revision=made.head.revision)
        assert (caught.value.expected, caught.value.actual) == (1, 3)


@on_every_journal
async def test_what_left_one_place_again_and_again_comes_in_the_order_of_leaving(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        await journal.create(NEW, batch("0"))
        for n in range(1, 13):
            await journal.splice(KEY, 1, 1, batch(str(n)), archive=True)
        archived = (await whole(journal, KEY)).archived
        assert ids(archived) == [str(n) for n in range(12)]
        assert [entry.left_at for entry in archived] == list(range(2, 14))


@on_every_journal
async def test_an_append_makes_the_scopes_that_are_missing(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    short = SessionTTLOptions(max_idle_secs=1)
    async with harness(
        limits=Limits(user_state=short, app_state=short), clock=clock
    ) as journal:
        change = Change(user=StateDelta({"a": 1}), app=StateDelta({"a": 1}))
        await journal.create(NEW, change=change)
        clock.tick(10)
        assert set(await journal.expire()) == {
            ScopeKey("app"),
            ScopeKey("app", "user"),
        }
        change = Change(user=StateDelta({"b": 2}), app=StateDelta({"c": 3}))
        await journal.append(KEY, batch("e"), change=change)
        record = await whole(journal)
        assert (record.user_state, record.app_state) == ({"b": 2}, {"c": 3})


@on_every_journal
async def test_the_callers_timestamps_order_and_expire_nothing(
    harness: JournalHarness,
) -> None:
    clock = TickingClock()
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=60))
    async with harness(limits=limits, clock=clock) as journal:
        await journal.create(NEW)
        hour = 3600.0
        now = clock().timestamp()
        times = [now + 5 * hour, now, -1.0, 0.0, now - 5000 * hour]
        for n, timestamp in enumerate(times):
            await journal.append(KEY, [varied(said(f"e{n}"), timestamp=timestamp)])
        assert await journal.expire() == ()
        record = await whole(journal)
        assert [entry.timestamp for entry in record.entries] == times
        assert record.head.last_active_at <= clock()
        clock.tick(61)
        assert await journal.expire() == (KEY,)


@on_every_journal
async def test_a_batch_keeps_its_order_under_one_time(harness: JournalHarness) -> None:
    clock = TickingClock()
    kinds = ["reasoning", "message", "call", "result"]
    async with harness(clock=clock) as journal:
        await journal.create(NEW)
        wanted: list[str] = []
        for n in range(25):
            names = [f"{kind}{n}" for kind in kinds]
            await journal.append(KEY, batch(*names))
            wanted += names
        for _ in range(3):
            record = await whole(journal)
            assert ids(record.entries) == wanted
            assert len({entry.stored_at for entry in record.entries}) <= len(wanted)


@on_every_journal
async def test_rewrites_keep_the_order(harness: JournalHarness) -> None:
    async with harness() as journal:
        await journal.create(NEW, batch("a", "b", "c"))
        await journal.splice(KEY, 2, 2, archive=False)
        assert ids((await whole(journal)).entries) == ["a", "c"]
        await journal.splice(KEY, 1, 3, archive=False)
        assert (await whole(journal)).entries == ()
        await journal.append(KEY, batch("d"))
        assert ids((await whole(journal)).entries) == ["d"]


@on_every_journal
async def test_scopes_of_many_sessions_are_written_without_deadlock(
    harness: JournalHarness,
) -> None:
    async with harness() as journal:
        keys = [SessionKey("app", f"u{n % 3}", "", f"s{n}") for n in range(12)]
        for key in keys:
            await journal.create(NewSession(key=key))

        async def write(n: int) -> None:
            for i in range(5):
                names = [f"{n}-{i}-{name}" for name in ("x", "y")]
                if n % 2:
                    names.reverse()
                delta = StateDelta(dict.fromkeys(names, i))
                shared = StateDelta({"shared": n, **delta.set})
                change = Change(session=delta, user=shared, app=shared)
                await journal.append(keys[n], [said(f"e{n}-{i}")], change=change)

        with anyio.fail_after(120):
            async with anyio.create_task_group() as group:
                for n in range(len(keys)):
                    group.start_soon(write, n)
        names = {f"{n}-{i}-{x}" for n in range(12) for i in range(5) for x in "xy"}
        app = await journal.scoped_state(ScopeKey("app"))
        assert set(app.state) == names | {"shared"}
        for user in range(3):
            mine = await journal.scoped_state(ScopeKey("app", f"u{user}"))
            expected = {name for name in names if int(name.split("-")[0]) % 3 == user}
            assert set(mine.state) == expected | {"shared"}


@on_every_journal
async def test_another_users_session_is_not_found(harness: JournalHarness) -> None:
    async with harness() as journal:
        await journal.create(NEW, batch("a"), change=Change(user=StateDelta({"k": 1})))
        other = KEY._replace(user="other")
        for call in (
            lambda: journal.load(other),
            lambda: journal.append(other, batch("x")),
            lambda: journal.update(other, Change(title="mine")),
            lambda: journal.splice(other, 1, 9, archive=False, purge=True),
        ):
            with pytest.raises(SessionNotFoundError):
                await call()
        assert not await journal.delete(other)
        found = await journal.scan(Query(app="app", user="other"))
        assert found.sessions == ()
        assert (await journal.scoped_state(ScopeKey("app", "other"))).state == {}
        assert ids((await whole(journal)).entries) == ["a"]


@on_every_journal
async def test_windows_cut_anywhere_hold_what_they_say(harness: JournalHarness) -> None:
    clock = TickingClock()
    async with harness(clock=clock) as journal:
        await journal.create(NEW)
        times = []
        for n in range(10):
            commit = await journal.append(KEY, [said(f"e{n}")])
            times.append(commit.entries[0].stored_at)
            clock.tick(1)
        for last in (0, 1, 3, 10, 11):
            found = (await journal.load(KEY, Window(last=last))).entries
            assert ids(found) == [f"e{n}" for n in range(10)][10 - min(last, 10) :]
        assert times[4] is not None
        eps = timedelta(microseconds=1)
        for after, first in ((times[4], 5), (times[4] - eps, 4), (clock(), 10)):
            found = (await journal.load(KEY, Window(after_time=after, last=3))).entries
            assert ids(found) == [f"e{n}" for n in range(first, 10)][-3:]


@on_every_journal
async def test_short_lives_leave_no_memory(harness: JournalHarness) -> None:
    async with harness() as journal:

        async def live(n: int) -> None:
            key = SessionKey("app", f"u{n}", "", f"s{n}")
            await journal.create(NewSession(key=key), batch("a"))
            await journal.append(key, batch("b"))
            await journal.delete(key)

        tracemalloc.start()
        try:
            for n in range(300):  # what is bounded is full then
                await live(n)
            before = tracemalloc.take_snapshot()
            for n in range(300, 400):
                await live(n)
            after = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        root = str(Path(raf_session.__file__).parent / "journals")
        grown = sum(
            stat.size_diff
            for stat in after.compare_to(before, "filename")
            if stat.traceback[0].filename.startswith(root)
        )
        assert grown < 20_000, f"{grown} bytes for 100 sessions that are gone"


@pytest.mark.parametrize(
    "harness",
    [
        pytest.param(harness, id=harness.name)
        for harness in HARNESSES
        if Capability.DURABLE in harness.capabilities
    ],
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_zones_of_processes_change_nothing(harness: JournalHarness) -> None:
    code = """
import asyncio, base64, pickle, sys
from raf_session.conformance.journal_values import KEY, NEW, said
from raf_session.entries import Entry, EntryKind
opener = pickle.loads(base64.b64decode(sys.argv[1]))
async def use():
    async with opener() as journal:
        head = (await journal.create(NEW, [said("a"), said("b")])).head
        for n in range(3):
            head = (await journal.append(
                KEY, [said(f"e{n}")], expected_revision=head.revision)).head
        summary = Entry("s", EntryKind.SUMMARY, metadata={"of": 2})
        await journal.splice(KEY, 1, 2, [summary], archive=True)
asyncio.run(use())
"""
    for zone in ("Asia/Shanghai", "UTC", "America/New_York"):
        async with harness.storage() as opener:
            done = await anyio.run_process(
                [sys.executable, "-c", code, b64encode(pickle.dumps(opener)).decode()],
                env={**os.environ, "TZ": zone},
                check=False,
                stderr=subprocess.PIPE,
            )
            assert (done.returncode, done.stderr.decode()) == (0, "")
            limits = Limits(sessions=SessionTTLOptions(max_idle_secs=600))
            async with opener(limits=limits) as journal:
                assert await journal.expire() == ()
                record = await journal.load(KEY, archived=True)
                assert ids(record.entries) == ["s", "e0", "e1", "e2"]
                assert record.entries[0].kind is EntryKind.SUMMARY
                assert ids(record.archived) == ["a", "b"]


@on_every_journal
async def test_large_payloads_are_not_read_by_listings(harness: JournalHarness) -> None:
    image = "data:image/png;base64," + "A" * 2_000_000
    async with harness() as journal:
        await journal.create(NEW)
        for n in range(6):
            entry = Entry(f"e{n}", message=ChatMessage.user(image))
            await journal.append(KEY, [entry])
        tracemalloc.start()
        try:
            await journal.scan(Query(), state=True)
            await journal.append(KEY, batch("small"))
            await journal.load(KEY, Window(last=1))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2_000_000, "none of the payloads was held"


def test_nothing_that_is_stored_can_run_code() -> None:
    banned = {"pickle", "marshal", "shelve", "dill"}
    root = Path(raf_session.__file__).parent
    for path in set(root.rglob("*.py")) - set(root.glob("conformance/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not banned & {alias.name for alias in node.names}, path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in banned, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec"}, path
