"""Writers in processes of their own, and a judge that knows no journal.

Each writer notes in a file of its own what it is about to store and what was
acknowledged; the judge reads these notes beside what the journal gives back.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from raf_session.changes import Change, StateDelta
from raf_session.conformance import JournalOpener
from raf_session.conformance.journal_values import said
from raf_session.entries import Entry, Record
from raf_session.errors import StorageError
from raf_session.journal import Commit, Journal
from raf_session.keys import SessionKey
from raf_session.options import NewSession

__all__ = (
    "CONTEXT",
    "WRITERS",
    "Job",
    "judge",
    "kill",
    "prepare",
    "read_all",
    "start",
)

WRITERS: Final = 8
APPENDS: Final = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 48
"""Of each writer."""
_PATIENCE_SECS: Final = 60.0
_END_SECS: Final = 120.0

CONTEXT: Final = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["raf_session", "raf_session.conformance", "anyio._backends._asyncio"]
)


class Job(NamedTuple):
    """What the writers do: so many appends each, over these sessions in turn."""

    opener: JournalOpener
    keys: Sequence[SessionKey]
    folder: Path
    """Where the notes are."""
    appends: int = APPENDS
    kills: int = 0

    @property
    def victims(self) -> list[int]:
        """The writers that are to be killed; until then they go on without end."""
        return random.Random(len(self.keys)).sample(range(WRITERS), self.kills)

    def notes(self, writer: int) -> Path:
        """Return the file of a writer's notes."""
        return self.folder / f"{writer}.notes"

    def progress(self, writer: int) -> int:
        """Return how many appends were acknowledged to a writer."""
        notes = self.notes(writer)
        return notes.read_text().count("stored") if notes.exists() else 0


class Note(NamedTuple):
    """What a writer knows of one append."""

    key: SessionKey
    acknowledged: tuple[int, int] | None
    """Place and revision, 0 where it had been stored by an earlier attempt."""


def sessions(n: int) -> list[SessionKey]:
    """Return the keys of so many sessions, of two users."""
    return [SessionKey("app", f"u{i % 2}", "", f"s{i}") for i in range(n)]


async def _prepare(job: Job) -> None:
    async with job.opener() as journal:
        for key in job.keys:
            await journal.create(NewSession(key=key))


def prepare(
    opener: JournalOpener,
    folder: Path,
    n: int,
    appends: int = APPENDS,
    *,
    kills: int = 0,
) -> Job:
    """Make the sessions of a job."""
    job = Job(opener, sessions(n), folder, appends, kills)
    anyio.run(_prepare, job)
    return job


# Writing -------------------------------------------------------------------------


def _entry(writer: int, n: int) -> Entry:
    return said(f"{writer}-{n}")


async def _store(journal: Journal, key: SessionKey, writer: int, n: int) -> Commit:
    """Store one entry, trying the same again where the backend failed."""
    change = Change(
        session=StateDelta({f"last-{writer}": n}),
        user=StateDelta({f"last-{writer}": n}),
        app=StateDelta({f"last-{writer}": n}),
    )
    until = time.monotonic() + _PATIENCE_SECS
    while True:
        try:
            return await journal.append(key, [_entry(writer, n)], change=change)
        except StorageError:
            if time.monotonic() > until:
                raise
            await anyio.sleep(0.02)


def write(writer: int, job: Job, barrier: Barrier) -> None:
    """Do the work of one writer."""

    async def run() -> None:
        async with job.opener() as journal:
            barrier.wait(_PATIENCE_SECS)
            with job.notes(writer).open("a", buffering=1) as notes:
                for n in count() if writer in job.victims else range(job.appends):
                    place = (writer + n) % len(job.keys)
                    print("try", n, place, file=notes)
                    commit = await _store(journal, job.keys[place], writer, n)
                    # A retry that finds it stored is told a later revision.
                    revision = 0 if commit.repeated else commit.head.revision
                    seq = commit.entries[0].seq
                    print("stored", n, seq, revision, file=notes)

    anyio.run(run)


def start(job: Job) -> list[BaseProcess]:
    """Start the writers; return when all have begun."""
    barrier = CONTEXT.Barrier(WRITERS + 1)
    writers: list[BaseProcess] = [
        CONTEXT.Process(target=write, args=(n, job, barrier), daemon=True)
        for n in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    barrier.wait(_PATIENCE_SECS)
    return writers


def kill(job: Job, writers: Sequence[BaseProcess]) -> list[int]:
    """Kill the victims in the midst of their work; return which, after the end of all.

    Writers that were not killed must have done their work.
    """
    chance, chosen = random.Random(len(job.keys)), job.victims
    for victim in chosen:
        wait_for(job, victim, chance.randrange(job.appends // 4, job.appends // 2))
        writers[victim].kill()
    for writer in writers:
        writer.join(_END_SECS)
    ends = [writer.exitcode for writer in writers]
    assert ends == [-9 if n in chosen else 0 for n in range(WRITERS)], ends
    return chosen


def wait_for(job: Job, writer: int, appends: int) -> None:
    """Wait until a writer has stored so much."""
    until = time.monotonic() + _END_SECS
    while job.progress(writer) < appends:
        assert time.monotonic() < until, f"writer {writer} gets nowhere"
        time.sleep(0.002)


# Judging -------------------------------------------------------------------------


async def _read_all(job: Job) -> dict[SessionKey, Record]:
    async with job.opener() as journal:
        return {key: await journal.load(key) for key in job.keys}


def read_all(job: Job) -> dict[SessionKey, Record]:
    """Read the sessions of a job with a journal of its own."""
    return anyio.run(_read_all, job)


def _notes(job: Job, writer: int) -> list[Note]:
    notes: list[Note] = []
    for line in job.notes(writer).read_text().splitlines():
        word, _, *numbers = line.split()
        if word == "try":
            notes.append(Note(job.keys[int(numbers[0])], None))
        elif len(numbers) == 2:  # a killed writer may leave half a line
            seq, revision = map(int, numbers)
            notes[-1] = notes[-1]._replace(acknowledged=(seq, revision))
    return notes


def judge(
    job: Job, records: Mapping[SessionKey, Record], killed: Sequence[int] = ()
) -> None:
    """Decide whether acknowledged means stored, once, in order, and nothing else.

    Args:
        job: what was to be done.
        records: what the journal holds.
        killed: the writers that may have stored one more than they could note.
    """
    stored: dict[int, dict[int, tuple[SessionKey, int]]] = defaultdict(dict)
    for key, record in records.items():
        seqs = [entry.seq for entry in record.entries]
        assert all(a < b for a, b in pairwise(seqs)), f"{key}: places {seqs}"
        head = record.head
        assert head.revision == 1 + len(seqs), f"{key}: a step for each append"
        assert head.total.entries == head.active.entries == len(seqs), str(key)
        latest: dict[int, int] = {}
        for entry in record.entries:
            writer, n = map(int, entry.id.split("-"))
            assert n not in stored[writer], f"{entry.id} is stored twice"
            assert n > latest.get(writer, -1), f"{entry.id} is out of order"
            assert entry.message == _entry(writer, n).message, entry.id
            latest[writer] = n
            stored[writer][n] = key, entry.seq
        assert record.state == {f"last-{w}": n for w, n in latest.items()}, str(key)
    for writer in range(WRITERS):
        notes, kept = _notes(job, writer), stored[writer]
        for n, note in enumerate(notes):
            if note.acknowledged is not None:
                assert kept.get(n) == (note.key, note.acknowledged[0]), (writer, n)
        unsaid = [n for n in kept if notes[n].acknowledged is None]
        if writer in killed:
            assert unsaid in ([], [len(notes) - 1]), f"{writer} stored {unsaid}"
        else:
            assert not unsaid
            assert len(kept) == job.appends
    revisions = [
        (note.key, note.acknowledged[1])
        for writer in range(WRITERS)
        for note in _notes(job, writer)
        if note.acknowledged is not None and note.acknowledged[1]
    ]
    assert len(set(revisions)) == len(revisions), "two appends, one revision"
    _judge_scopes(records, stored)


def _judge_scopes(
    records: Mapping[SessionKey, Record],
    stored: Mapping[int, Mapping[int, tuple[SessionKey, int]]],
) -> None:
    for key, record in records.items():
        of_app = {f"last-{w}": max(kept) for w, kept in stored.items() if kept}
        assert record.app_state == of_app, str(key)
        of_user = {
            f"last-{w}": max(mine)
            for w, kept in stored.items()
            if (mine := [n for n, (at, _) in kept.items() if at.user == key.user])
        }
        assert record.user_state == of_user, str(key)
