"""Steps of the JSONL journal that fail, or at which its process dies."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

import anyio

from raf_session.changes import Change, StateDelta
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, ids, whole
from raf_session.entries import Record
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Journal
from raf_session.journals.jsonl import JsonlJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions

__all__ = (
    "CHANGE",
    "LIMITS",
    "WRITES",
    "Step",
    "Write",
    "dies",
    "fails",
    "kills",
    "opened",
    "picture",
    "prepare",
    "steps",
)

CHANGE: Final = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}, ["old"]),
    app=StateDelta({"a": 1}),
    providers=StateDelta({"p": 1}),
    title="t",
)
LIMITS: Final = Limits(sessions=SessionTTLOptions(max_idle_secs=10))
NO_QUERY: Final = Query()
OTHER: Final = SessionKey("app", "user", "", "other")
CALLS: Final = (
    *("open", "write", "fsync", "ftruncate", "replace", "unlink"),
    *("mkdir", "rmdir", "pread", "fstat"),
)
"""What the journal asks of the system; each may fail."""

Write = Callable[[Journal], Awaitable[object]]
Step = Callable[[str, tuple[Any, ...]], None]

WRITES: Final[dict[str, Write]] = {
    "create": lambda j: j.create(
        NewSession(key=OTHER), batch("x"), archived=batch("w"), change=CHANGE
    ),
    "append": lambda j: j.append(KEY, batch("x", "y"), change=CHANGE, trim=3),
    "plain append": lambda j: j.append(KEY, batch("x", "y", "v")),
    "archiving splice": lambda j: j.splice(
        KEY, 1, 2, batch("s"), archive=True, change=CHANGE
    ),
    "deleting splice": lambda j: j.splice(
        KEY, 1, 2, batch("s"), archive=False, change=CHANGE
    ),
    "clear": lambda j: j.splice(KEY, 1, 9, archive=False, purge=True),
    "update": lambda j: j.update(KEY, CHANGE),
    "delete": lambda j: j.delete(KEY),
    "scoped state": lambda j: j.update_scoped_state(
        ScopeKey("app", "user"), StateDelta({"u": 2}, ["old"])
    ),
}


def opened(
    folder: Path, clock: TickingClock, power: bool = False, **options: Any
) -> JsonlJournal:
    """Return a journal whose reports are dropped."""
    options.setdefault("report", lambda _key, _detail: None)
    return JsonlJournal(
        folder, clock=clock, durability="power" if power else "kill", **options
    )


async def prepare(folder: Path, clock: TickingClock) -> None:
    """Make a session with an archive, and state of its user."""
    async with opened(folder, clock) as journal:
        await journal.update_scoped_state(
            ScopeKey("app", "user"), StateDelta({"old": 1})
        )
        await journal.create(NEW, batch("a", "b", "c"), archived=batch("z"))


async def _record(journal: Journal, key: SessionKey) -> Record | None:
    try:
        record = await whole(journal, key)
    except SessionNotFoundError:
        return None
    return record._replace(head=record.head._replace(incarnation=""))


async def picture(folder: Path, clock: TickingClock) -> tuple[Any, ...]:
    """Return all that can be read, and check that the next write works."""
    async with opened(folder, clock) as journal:
        for key in (KEY, OTHER):
            await _record(journal, key)  # what was left to do is finished
        records = [await _record(journal, key) for key in (KEY, OTHER)]
        listed = await journal.scan(NO_QUERY, order="key")
        heads = [item.head.key for item in listed.sessions]
        found = [
            key
            for key, record in zip((KEY, OTHER), records, strict=True)
            if record is not None
        ]
        assert heads == sorted(found), "the listing"
        states = [
            (await journal.scoped_state(scope)).state
            for scope in (ScopeKey("app", "user"), ScopeKey("app"))
        ]
        if records[0] is not None:
            commit = await journal.append(KEY, batch("next"))
            assert ids(commit.entries) == ["next"]
            await journal.splice(
                KEY, commit.head.last_seq, commit.head.last_seq, archive=False
            )
    return (*records, *states)


# Steps -----------------------------------------------------------------------------


@contextmanager
def steps(folder: Path, act: Step) -> Generator[list[str]]:
    """Call `act` in front of each call to the system that concerns the folder."""
    seen: list[str] = []
    inside: set[int] = set()
    plain = {name: getattr(os, name) for name in CALLS}

    def wrap(name: str) -> Callable[..., Any]:
        call = plain[name]

        @wraps(call)
        def step(*args: Any, **options: Any) -> Any:
            target = args[0]
            if isinstance(target, int):
                mine = target in inside
            else:
                mine = os.fspath(target).startswith(str(folder))
            if mine and "/locks/" not in str(target):
                seen.append(name)
                act(name, args)
            result = call(*args, **options)
            if name == "open" and mine:
                inside.add(result)
            return result

        return step

    for name in CALLS:
        setattr(os, name, wrap(name))
    try:
        yield seen
    finally:
        for name in CALLS:
            setattr(os, name, plain[name])


def fails(at: int, code: int = errno.EIO) -> Step:
    """Return what fails the step of that number."""
    left = [at]

    def act(name: str, _args: tuple[Any, ...]) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise OSError(code, f"{name} fails")

    return act


def kills(at: int) -> Step:
    """Return what kills this process at the step of that number, in mid-write."""
    left, write = [at], os.write

    def act(name: str, args: tuple[Any, ...]) -> None:
        left[0] -= 1
        if left[0] == -1:
            if name == "write":
                fd, data = args
                write(fd, bytes(data)[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    return act


def dies(folder: Path, clock: TickingClock, write: Write, at: int) -> bool:
    """Do a write in a child that dies at a step; tell whether it came so far."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            anyio.run(partial(_child, folder, clock, write, at))
            status = 0
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, -signal.SIGKILL}, code
    return code != 0


async def _child(folder: Path, clock: TickingClock, write: Write, at: int) -> None:
    async with opened(folder, clock) as journal:
        with steps(folder, kills(at)):
            await write(journal)
