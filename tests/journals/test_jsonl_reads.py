"""What the JSONL journal reads, and how much of it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.conformance.clock import START, TickingClock
from raf_session.conformance.journal_values import (
    KEY,
    NEW,
    alive,
    batch,
    every,
    ids,
    said,
    whole,
)
from raf_session.journal import Journal, Order
from raf_session.journals import _jsonl_logs, _jsonl_tree
from raf_session.journals._jsonl_files import Busy
from raf_session.journals._jsonl_logs import Logs
from raf_session.journals.jsonl import JsonlJournal
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

pytestmark = pytest.mark.anyio

FILE: Final = "app/user/session.jsonl"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def opened(folder: Path, clock: TickingClock | None = None, **o: Any) -> JsonlJournal:
    return JsonlJournal(folder, clock=clock or TickingClock(), **o)


@contextmanager
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> Generator[list[int]]:
    """Note the size of each read of a session's file."""
    sizes: list[int] = []
    pread = os.pread

    def note(fd: int, size: int, offset: int) -> bytes:
        data = pread(fd, size, offset)
        sizes.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", note)
        yield sizes


# Windows ---------------------------------------------------------------------------


async def change_at_random(
    journal: Journal, clock: TickingClock, chance: random.Random, n: int
) -> None:
    """Do one of the things that change a window."""
    clock.tick(chance.randrange(3))
    active = [entry.seq for entry in (await journal.load(KEY)).entries]
    kind = chance.choice(("append", "append", "trim", "splice", "splice", "state"))
    if kind == "append":
        names = [f"{n}.{i}" for i in range(chance.randrange(1, 4))]
        await journal.append(KEY, batch(*names))
    elif kind == "trim":
        await journal.append(KEY, batch(f"{n}"), trim=chance.randrange(8))
    elif kind == "state":
        await journal.update(KEY, Change(session=StateDelta({f"k{n}": n})))
    elif active:
        first, last = sorted(chance.choices(active, k=2))
        keep = chance.sample(active, k=min(2, len(active)))
        leaving = [s for s in active if first <= s <= last and s not in keep]
        names = [f"s{n}.{i}" for i in range(min(2, len(leaving)))]
        await journal.splice(
            KEY,
            first,
            last,
            batch(*names),
            tail=batch(f"t{n}") if chance.random() < 0.3 else (),
            keep=keep,
            archive=chance.random() < 0.8,
        )


@pytest.mark.parametrize("seed", range(12))
async def test_the_end_read_alone_is_the_end_of_the_whole(
    tmp_path: Path, seed: int
) -> None:
    chance, clock = random.Random(seed), TickingClock()
    async with opened(tmp_path, clock) as journal:
        await journal.create(NEW, batch("a", "b", "c"), archived=batch("z"))
        for n in range(25):
            await change_at_random(journal, clock, chance, n)
        record = await journal.load(KEY)
    entries = record.entries
    places = [entry.seq for entry in entries]
    windows = [
        *(Window(last=n) for n in (1, 2, 3, 5, 8, 100)),
        *(Window(after_seq=n) for n in (0, 2, *places)),
        *(Window(after_time=START + timedelta(seconds=n)) for n in range(0, 40, 5)),
        *(Window(last=2, after_seq=n) for n in places),
        *(Window(last=2, before_seq=n) for n in places),
        Window(last=3, after_time=START + timedelta(seconds=9)),
    ]
    async with opened(tmp_path, clock) as warm:
        assert await warm.load(KEY) == record
        for window in windows:
            async with opened(tmp_path, clock) as cold:
                found = await cold.load(KEY, window)
            assert found == await warm.load(KEY, window), window
            kept = [
                entry
                for entry in entries
                if (window.after_seq is None or entry.seq > window.after_seq)
                and (window.before_seq is None or entry.seq < window.before_seq)
                and (
                    window.after_time is None
                    or (entry.stored_at or START) > window.after_time
                )
            ]
            if window.last is not None:
                kept = kept[-window.last :]
            assert found.entries == tuple(kept), window


async def fill(folder: Path, n: int) -> None:
    async with opened(folder) as journal:
        await journal.create(NEW)
        for first in range(0, n, 50):
            await journal.append(
                KEY, [said(f"e{i}", "x" * 1000) for i in range(first, first + 50)]
            )


async def test_the_last_entries_cost_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, 5000)
    with read_bytes(monkeypatch) as sizes:
        async with opened(tmp_path) as journal:
            record = await journal.load(KEY, Window(last=10))
            assert ids(record.entries) == [f"e{n}" for n in range(4990, 5000)]
            assert record.head.active.entries == 5000
            await journal.update(KEY, Change(title="t"))
            await journal.scan(Query(), state=True)
    assert sum(sizes) < 200_000, "of 5 MB"


async def test_after_the_first_append_costs_are_those_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, 2000)
    async with opened(tmp_path) as one, opened(tmp_path) as two:
        await one.append(KEY, batch("one"))
        await two.append(KEY, batch("two"))
        with read_bytes(monkeypatch) as sizes:
            for n in range(20):
                await one.append(KEY, batch(f"one{n}"))
                await two.append(KEY, batch(f"two{n}"))
        assert sum(sizes) < 40 * 1000, "of 2 MB"
        again = await one.append(KEY, batch("two7"))
        assert again.repeated, "what the other wrote is known"
        with read_bytes(monkeypatch) as sizes:
            await one.load(KEY, Window(last=10))
        assert sum(sizes) < 10_000


async def test_what_is_known_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jsonl_logs, "_TURNS", 1)
    monkeypatch.setattr(Logs.__init__, "__defaults__", (5, 100))
    async with opened(tmp_path) as journal:
        logs = journal._opened().folder.logs
        keys = [KEY._replace(session=f"s{n}") for n in range(20)]
        for key in keys:
            await journal.create(NewSession(key=key))
            await journal.append(key, batch("a", "b"))
            assert len(logs._logs) <= 5
            assert (tmp_path / "app/user" / f"{key.session}.jsonl").exists()
        for n in range(6):
            key = keys[n]
            await journal.append(key, [said(f"x{i}") for i in range(40)])
        await journal.load(keys[6])
        known = sum(len(x.index) for x in logs._logs.values() if x.index is not None)
        assert known <= 100
        for n, key in enumerate(keys):
            found = ids((await journal.load(key)).entries)
            assert found[:2] == ["a", "b"]
            assert len(found) == (42 if n < 6 else 2)
    sidecars = [path.stem for path in (tmp_path / "app/user").glob("*.head")]
    assert len(sidecars) == 20, "put out or closed, each left its sidecar"


# Listings --------------------------------------------------------------------------


async def many(folder: Path, clock: TickingClock, n: int = 250) -> list[SessionKey]:
    keys = [SessionKey("app", f"u{i % 7}", "", f"s{i}") for i in range(n)]
    async with opened(folder, clock) as journal:
        for i, key in enumerate(keys):
            change = Change(
                labels=LabelDelta(added=(f"l{i % 3}", f"l{i % 2}x")),
                session=StateDelta({"i": i}),
            )
            await journal.create(NewSession(key=key), batch("a"), change=change)
            clock.tick()
    return keys


async def test_a_listing_reads_no_session_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TickingClock()
    monkeypatch.setattr(_jsonl_tree, "_SETTLED_NS", -(10**15))
    keys = await many(tmp_path, clock)
    for _ in range(2):
        with read_bytes(monkeypatch) as sizes:
            async with opened(tmp_path, clock) as journal:
                found = [x.head.key for x in await every(journal, order="activity")]
        assert found == keys[::-1]
        assert sizes == [], "the catalog and the sidecars say it all"
    catalog = tmp_path / ".raf" / "catalog.json"
    for data in (None, b"", b"{", b"[]", b'{"version":9}', b'{"version":1}'):
        catalog.unlink(missing_ok=True)
        if data is not None:
            catalog.write_bytes(data)
        async with opened(tmp_path, clock) as journal:
            assert [x.head.key for x in await every(journal)] == sorted(keys)


async def test_a_listing_sees_what_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TickingClock()
    keys = await many(tmp_path, clock)
    limits = Limits(sessions=SessionTTLOptions(max_idle_secs=10**6))
    async with opened(tmp_path, clock, limits=limits) as one, opened(tmp_path) as two:
        monkeypatch.setattr(_jsonl_tree, "_SETTLED_NS", -(10**15))
        assert len(await every(one)) == len(keys)
        await two.append(keys[3], batch("b"))
        await two.update(keys[4], Change(title="new", labels=LabelDelta(added=("y",))))
        await two.delete(keys[5])
        await two.delete(keys[6])
        await two.create(NewSession(key=keys[6]))
        await two.splice(keys[7], 1, 1, archive=False)
        found = {x.head.key: x.head for x in await every(one)}
        assert sorted(found) == sorted({*keys} - {keys[5]})
        for key in keys[:9]:
            if key in found:
                assert found[key] == (await two.load(key)).head
        labelled = await every(one, Query(labels=("y",), app="app"))
        assert [x.head.key for x in labelled] == [keys[4]]


async def test_sessions_made_anew_at_once_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same name, inode, size and time stamp may be another session."""
    monkeypatch.setattr(_jsonl_tree, "_SETTLED_NS", 60 * 10**9)
    stamp = time.time_ns()
    async with opened(tmp_path) as one, opened(tmp_path) as two:
        for n in range(20):
            head = (await two.create(NEW)).head
            os.utime(tmp_path / FILE, ns=(stamp, stamp))
            (listed,) = (await one.scan(Query())).sessions
            assert listed.head.incarnation == head.incarnation, n
            assert (await one.load(KEY)).head == head
            await two.delete(KEY)
            if n % 2:
                assert not await alive(one)


async def test_a_listing_pages_in_both_orders(tmp_path: Path) -> None:
    clock = TickingClock()
    keys = await many(tmp_path, clock, 60)
    async with opened(tmp_path, clock) as journal:
        orders: dict[Order, list[SessionKey]] = {
            "key": sorted(keys),
            "activity": keys[::-1],
        }
        for order, expected in orders.items():
            found: list[SessionKey] = []
            cursor = None
            while True:
                page = await journal.scan(
                    Query(), cursor, order=order, limit=7, state=True
                )
                for head, state in page.sessions:
                    assert state == {"i": keys.index(head.key)}
                    found.append(head.key)
                cursor = page.cursor
                if cursor is None:
                    break
            assert found == expected


async def test_two_paths_to_one_directory_are_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    async with opened(tmp_path / "real") as one, opened(tmp_path / "link") as two:
        await one.create(NEW)
        with one._opened().folder.locks.hold(
            "session", one._opened().folder.path(KEY), patient=True
        ):
            folder = two._opened().folder
            lock = folder.locks.hold("session", folder.path(KEY), patient=False)
            with pytest.raises(Busy), lock:
                pass
        for n in range(10):
            await (one, two)[n % 2].append(KEY, batch(f"{n}"))
        assert ids((await whole(two)).entries) == [f"{n}" for n in range(10)]
