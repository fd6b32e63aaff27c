"""Checks that the state of users and apps commits with the call that brings it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint

from raf_session.changes import Change, StateDelta
from raf_session.conformance.journal_harness import (
    Capability,
    JournalCheck,
    JournalHarness,
)
from raf_session.conformance.journal_values import KEY, batch, ids
from raf_session.entries import Record
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import NewSession

__all__ = ("CHECKS", "NEEDS", "look_while_writing")

_SCOPES: Final = (ScopeKey(KEY.app, KEY.user), ScopeKey(KEY.app))
_CALLS: Final = 4
"""How many calls make a session: create, append, splice, update."""
_LOOKS: Final = 40
"""How often each reader looks; the writer goes on as long as one does."""
_PATIENCE: Final = 60


def _key(call: int) -> SessionKey:
    return KEY._replace(session=f"s{(call - 1) // _CALLS}")


async def _write(journal: Journal, call: int) -> None:
    """Make one call; its number is the id of its entry, and `n` in every state."""
    key, entries, delta = _key(call), batch(str(call)), StateDelta({"n": call})
    change = Change(session=delta, user=delta, app=delta)
    match call % _CALLS:
        case 1:
            await journal.create(NewSession(key=key), entries, change=change)
        case 2:
            await journal.append(key, entries, change=change)
        case 3:
            await journal.splice(key, 1, 1, tail=entries, archive=False, change=change)
        case _:
            await journal.update(key, change)


def _number(state: Mapping[str, Any]) -> int:
    return int(state.get("n", 0))


def _last_entry(record: Record) -> int:
    return max(map(int, ids(record.entries)), default=0)


def _begun(record: Record | None) -> int:
    """Return the last call of which the session shows its entry or its state."""
    return 0 if record is None else max(_number(record.state), _last_entry(record))


def _done(record: Record | None) -> int:
    """Return the last call of which the session shows its entry and its state."""
    if record is None:
        return 0
    last = _last_entry(record)
    if last % _CALLS == _CALLS - 1:
        last += 1  # an update has no entry
    return min(_number(record.state), last)


async def _read(journal: Journal, call: int) -> Record | None:
    try:
        return await journal.load(_key(call))
    except SessionNotFoundError:
        return None


def _in_step(where: str, begun: int, told: int, done: int) -> None:
    assert begun <= told, f"{where} tells of call {told}, the session of {begun}"
    assert told <= done, f"{where} tells of call {told}, the session of {done} alone"


async def _look(journal: Journal, call: int) -> None:
    """Read each scope between two reads of the session, while that call may run.

    What the first one showed was there before the scope was read, so its state has to
    be there too; what the scope showed has to be in the second one.
    """
    for scope in _SCOPES:
        before = await _read(journal, call)
        told = _number((await journal.scoped_state(scope)).state)
        after = await _read(journal, told) if told else None
        _in_step(f"the state of {scope}", _begun(before), told, _done(after))
        if before is not None:
            state = before.app_state if scope.user is None else before.user_state
            told = _number(state)
            done = _done(before) if _key(told) == before.head.key else told
            _in_step(f"{scope}, read with a session", _begun(before), told, done)


async def look_while_writing(*journals: Journal) -> None:
    """Write with the first journal while all of them read, and raise at a difference.

    Of two readers of one event loop, started around the writer, one runs between any
    two turns of the writer.
    """
    call, looking = 0, 2 * len(journals)

    async def look(journal: Journal) -> None:
        nonlocal looking
        for _ in range(_LOOKS):
            await _look(journal, call)
            await checkpoint()
        looking -= 1

    async def write() -> None:
        nonlocal call
        while looking:
            call += 1
            await _write(journals[0], call)
            await checkpoint()

    with anyio.fail_after(_PATIENCE):
        async with anyio.create_task_group() as group:
            for journal in journals:
                group.start_soon(look, journal)
            group.start_soon(write)
            for journal in journals:
                group.start_soon(look, journal)


async def check_scopes_commit_with_their_session(harness: JournalHarness) -> None:
    """Of each call a reader sees state of user and app with all the rest, or nothing.

    Create, append, splice and update are read while they run, through the same journal
    and, where that is claimed, through another one.
    """
    handles = 2 if Capability.SHARED in harness.capabilities else 1
    async with harness.storage() as opened, AsyncExitStack() as stack:
        journals = [await stack.enter_async_context(opened()) for _ in range(handles)]
        await look_while_writing(*journals)


NEEDS: Final[Mapping[JournalCheck, frozenset[Capability]]] = {
    check_scopes_commit_with_their_session: frozenset({Capability.ATOMIC_SCOPES}),
}
"""What each check of this module needs of a journal."""

CHECKS: Final[tuple[JournalCheck, ...]] = tuple(NEEDS)
