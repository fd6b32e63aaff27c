"""Several processes over one directory of JSONL files, some of them killed."""

from __future__ import annotations

import json
import os
import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from writers import CONTEXT

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, said
from raf_session.errors import SessionNotFoundError
from raf_session.journals.jsonl import JsonlJournal
from raf_session.options import NewSession

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")

PROCESSES: Final = 8
FILE: Final = "app/user/session.jsonl"


def opened(folder: Path) -> JsonlJournal:
    return JsonlJournal(folder, report=lambda _where, _detail: None)


def create(folder: Path, *names: str) -> None:
    async def run() -> None:
        async with opened(folder) as journal:
            await journal.create(NEW, batch(*names))

    anyio.run(run)


def start(target: Any, *arguments: Any) -> list[Any]:
    processes = [
        CONTEXT.Process(target=target, args=(n, *arguments), daemon=True)
        for n in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    return processes


def join(processes: list[Any], killed: int = 0) -> None:
    for process in processes:
        process.join(120)
    codes = sorted(process.exitcode for process in processes)
    assert codes == [-9] * killed + [0] * (len(processes) - killed)


# Large records ---------------------------------------------------------------------


def write_large(n: int, folder: Path, appends: int, size: int) -> None:
    async def run() -> None:
        async with opened(folder) as journal:
            for i in range(appends):
                await journal.append(KEY, [said(f"{n}-{i}", chr(97 + n) * size)])

    anyio.run(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("appends", "size"),
    [(30, 200_000), pytest.param(200, 200_000, marks=pytest.mark.slow)],
)
def test_large_records_stand_on_lines_of_their_own(
    tmp_path: Path, appends: int, size: int
) -> None:
    create(tmp_path)
    join(start(write_large, tmp_path, appends, size))
    seen: list[tuple[str, int]] = []
    with (tmp_path / FILE).open("rb") as file:
        next(file)
        for line in file:
            fields = json.loads(line)
            n = int(fields["id"].split("-")[0])
            assert fields["content"] == chr(97 + n) * size
            seen.append((fields["id"], fields["raf"]["seq"]))
    assert [seq for _, seq in seen] == list(range(1, PROCESSES * appends + 1))
    for n in range(PROCESSES):
        mine = [name for name, _ in seen if name.startswith(f"{n}-")]
        assert mine == [f"{n}-{i}" for i in range(appends)]


# Two that go on with one session ---------------------------------------------------


def take_turns(n: int, folder: Path, turns: Any) -> None:
    async def run() -> None:
        async with opened(folder) as journal:
            await journal.load(KEY)
            for i in range(10):
                turns[n].acquire()
                await journal.append(KEY, [said(f"{n}-{i}")])
                turns[1 - n].release()

    anyio.run(run)


def test_two_processes_resume_one_session(tmp_path: Path) -> None:
    create(tmp_path, *(f"old{n}" for n in range(10)))
    turns = [CONTEXT.Semaphore(1), CONTEXT.Semaphore(0)]
    processes = [
        CONTEXT.Process(target=take_turns, args=(n, tmp_path, turns), daemon=True)
        for n in range(2)
    ]
    for process in processes:
        process.start()
    join(processes)

    async def check() -> None:
        async with opened(tmp_path) as journal:
            entries = (await journal.load(KEY)).entries
        assert [entry.seq for entry in entries] == list(range(1, 31))
        assert ids(entries[10:]) == [f"{n % 2}-{n // 2}" for n in range(20)]

    anyio.run(check)


# Everything at once ----------------------------------------------------------------


def do_all(n: int, folder: Path, notes: Path, rounds: int) -> None:
    chance = random.Random(n)

    async def run() -> None:
        async with opened(folder) as journal:
            with (notes / f"{n}").open("a", buffering=1) as file:
                for i in range(rounds):
                    name = f"{n}-{i}"
                    what = chance.choice(("append", "append", "edit", "archive"))
                    change = Change(
                        user=StateDelta({f"p{n}": i}), session=StateDelta({f"p{n}": i})
                    )
                    await journal.append(KEY, batch(name), change=change)
                    print(name, file=file)
                    if what == "append":
                        continue
                    mine = [
                        entry
                        for entry in (await journal.load(KEY)).entries
                        if entry.id.startswith(f"{n}-")
                    ]
                    if mine:  # one's own entries are changed by oneself alone
                        last = mine[-1]
                        await journal.splice(
                            KEY,
                            last.seq,
                            last.seq,
                            [said(f"{last.id}+", "edited")],
                            archive=what == "archive",
                        )

    anyio.run(run)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_splices_and_appends_while_some_are_killed(tmp_path: Path, seed: int) -> None:
    folder, notes = tmp_path / "base", tmp_path / "notes"
    notes.mkdir()
    create(folder)
    processes = start(do_all, folder, notes, 40)
    chance = random.Random(seed)
    victims = chance.sample(range(PROCESSES), 2)
    for victim in victims:
        file = notes / f"{victim}"
        until = time.monotonic() + 60
        while not file.exists() or file.read_text().count("\n") < 10:
            assert time.monotonic() < until
            time.sleep(0.001)
        time.sleep(chance.random() / 50)
        processes[victim].kill()
    join(processes, killed=2)

    async def check() -> None:
        async with opened(folder) as journal:
            record = await journal.load(KEY, archived=True)
            seqs = [entry.seq for entry in record.entries]
            assert all(a < b for a, b in pairwise(seqs))
            found = ids(record.entries)
            assert record.head.active.entries == len(found) == len(set(found))
            for n in range(PROCESSES):
                told = (notes / f"{n}").read_text().splitlines()
                mine = [name.rstrip("+") for name in found if name.startswith(f"{n}-")]
                assert mine[: len(told)] == told
                assert len(mine) <= len(told) + (n in victims)
                last = len(mine) - 1
                assert record.state[f"p{n}"] == last
                assert record.user_state[f"p{n}"] == last
            edited = [name for name in found if name.endswith("+")]
            left = set(ids(record.archived))
            assert left <= {name.rstrip("+") for name in edited}
            await journal.append(KEY, batch("next"))
            assert (await journal.append(KEY, batch("next"))).repeated

    anyio.run(check)


# Deleted and made anew -------------------------------------------------------------


def come_and_go(n: int, folder: Path, rounds: int) -> None:
    async def run() -> None:
        async with opened(folder) as journal:
            for i in range(rounds):
                try:
                    head = (await journal.load(KEY)).head
                    await journal.append(
                        KEY,
                        [said(f"{n}-{i}", head.incarnation)],
                        incarnation=head.incarnation,
                    )
                except SessionNotFoundError:
                    pass
                if n == 0:
                    assert await journal.delete(KEY)
                    await journal.create(NEW)

    anyio.run(run)


def test_a_late_append_revives_nothing(tmp_path: Path) -> None:
    create(tmp_path)
    join(start(come_and_go, tmp_path, 60))

    async def check() -> None:
        async with opened(tmp_path) as journal:
            record = await journal.load(KEY)
            for entry in record.entries:
                assert entry.message is not None
                assert entry.message.text == record.head.incarnation
            assert await journal.delete(KEY)

    anyio.run(check)
    assert not (tmp_path / "app").exists()


def neighbours(n: int, folder: Path, rounds: int) -> None:
    """Make and remove sessions in one folder, which goes and comes with them."""
    key = KEY._replace(session=f"s{n}")

    async def run() -> None:
        async with opened(folder) as journal:
            for _ in range(rounds):
                await journal.create(NewSession(key=key), batch("a"))
                await journal.append(key, batch("b"))
                assert await journal.delete(key)

    anyio.run(run)


def test_folders_in_use_are_not_removed(tmp_path: Path) -> None:
    anyio.run(_touch, tmp_path)
    join(start(neighbours, tmp_path, 60))
    assert not (tmp_path / "app").exists()


async def _touch(folder: Path) -> None:
    async with opened(folder):
        pass
