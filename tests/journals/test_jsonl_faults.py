"""The JSONL journal where the system fails at any step, or its process dies there."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonl_faults import WRITES, Write, dies, fails, opened, picture, prepare, steps

from raf_session.changes import Change
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, said
from raf_session.errors import StorageBusyError, StorageError, StorageFullError

pytestmark = pytest.mark.anyio

MAX_STEPS = 400
NEEDS_FORK = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the system has no fork"
)
on_every_write = pytest.mark.parametrize(
    "write", [pytest.param(write, id=name) for name, write in WRITES.items()]
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def do(folder: Path, clock: TickingClock, write: Write) -> None:
    async with opened(folder, clock) as journal:
        await write(journal)


def pictures(tmp_path: Path, write: Write) -> list[tuple[Any, ...]]:
    """Return what there is before a write and after it."""
    clock = TickingClock()
    found: list[tuple[Any, ...]] = []
    for name in ("before", "after"):
        folder = tmp_path / name
        anyio.run(prepare, folder, clock)
        if name == "after":
            anyio.run(do, folder, clock, write)
        found.append(anyio.run(picture, folder, clock))
    assert found[0] != found[1], "it does something"
    return found


def at_every_step(
    tmp_path: Path, write: Write, attempt: Callable[[Path, TickingClock, int], bool]
) -> set[int]:
    """Return which pictures were seen: before, after."""
    expected = pictures(tmp_path, write)
    clock, seen = TickingClock(), set[int]()
    for at in range(MAX_STEPS):
        folder = tmp_path / "tried"
        anyio.run(prepare, folder, clock)
        came = attempt(folder, clock, at)
        found = anyio.run(picture, folder, clock)
        assert found in expected, f"at step {at}"
        seen.add(expected.index(found))
        shutil.rmtree(folder)
        if not came:
            return seen
    raise AssertionError("there is no end of steps")


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@on_every_write
def test_a_step_that_fails(tmp_path: Path, write: Write, power: bool) -> None:
    def attempt(folder: Path, clock: TickingClock, at: int) -> bool:
        taken: list[str] = []

        async def run() -> None:
            async with opened(folder, clock, power) as journal:
                with steps(folder, fails(at)) as seen:
                    with suppress(StorageError):
                        await write(journal)
                    taken.extend(seen)

        anyio.run(run)
        return len(taken) > at

    assert at_every_step(tmp_path, write, attempt) == {0, 1}


async def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = os.write, [20_000]

    def limited(fd: int, data: bytes) -> int:
        taken = min(len(data), room[0])
        if not taken:
            raise OSError(errno.ENOSPC, "no space left")
        room[0] -= taken
        return write(fd, bytes(data)[:taken])

    path = tmp_path / "app/user/session.jsonl"
    clock = TickingClock()
    async with opened(tmp_path, clock) as journal:
        await journal.create(NEW)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", limited)
            stored: list[str] = []
            refused = 0
            for n in range(60):
                size = path.stat().st_size
                try:
                    await journal.append(KEY, [said(f"{n}", "x" * 1000)])
                    stored.append(f"{n}")
                except StorageFullError:
                    refused += 1
                    assert path.stat().st_size == size, "no torn record stays"
                assert ids((await journal.load(KEY)).entries) == stored
            assert stored
            assert refused > 40, "each time"
            room[0] = 10_000
            await journal.append(KEY, batch("more"))
        await journal.append(KEY, batch("last"))
    told: list[str] = []
    async with opened(
        tmp_path, clock, report=lambda _, detail: told.append(detail)
    ) as journal:
        assert ids((await journal.load(KEY)).entries) == [*stored, "more", "last"]
    assert not told


@pytest.mark.parametrize(
    "code", [errno.EIO, errno.EACCES, errno.EMFILE, errno.ENOSPC, errno.EDQUOT]
)
async def test_errors_of_the_system_are_ours(tmp_path: Path, code: int) -> None:
    clock = TickingClock()
    async with opened(tmp_path, clock) as journal:
        await journal.create(NEW)
        with steps(tmp_path, fails(0, code)), pytest.raises(StorageError) as caught:
            await journal.append(KEY, batch("a"))
        cause = caught.value.__cause__
        assert isinstance(cause, OSError)
        assert cause.errno == code
        full = code in {errno.ENOSPC, errno.EDQUOT}
        assert isinstance(caught.value, StorageFullError) == full
        await journal.append(KEY, batch("a"))


async def test_a_lock_that_is_not_had_in_time(tmp_path: Path) -> None:
    clock = TickingClock()
    async with opened(tmp_path, clock) as one:
        await one.create(NEW)
        async with opened(tmp_path, clock, busy_timeout_secs=0) as two:
            folder = one._opened().folder
            held = folder.locks.hold("session", folder.path(KEY), patient=True)
            with held, pytest.raises(StorageBusyError):
                await two.append(KEY, batch("a"))
            await two.append(KEY, batch("a"))


async def test_power_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    clock = TickingClock()
    for power in (False, True):
        folder = tmp_path / str(power)
        async with opened(folder, clock, power) as journal:
            for call, synced in (
                (lambda: journal.create(NEW, batch("a")), 4),  # file, 3 folders
                (lambda: journal.append(KEY, batch("b")), 1),
                (lambda: journal.splice(KEY, 1, 1, archive=True), 1),
                (lambda: journal.splice(KEY, 2, 2, archive=False), 2),
                (lambda: journal.update(KEY, Change(title="t")), 1),
                (lambda: journal.delete(KEY), 1),
            ):
                with steps(folder, fails(-1)) as seen:
                    await call()
                assert seen.count("fsync") == (synced if power else 0)


@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@on_every_write
def test_a_process_dies(tmp_path: Path, write: Write) -> None:
    def attempt(folder: Path, clock: TickingClock, at: int) -> bool:
        return dies(folder, clock, write, at)

    assert at_every_step(tmp_path, write, attempt) == {0, 1}
