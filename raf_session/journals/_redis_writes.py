"""Writes that Python decides on: look, decide, commit if nothing moved meanwhile."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from raf_session.encoding import Row
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals import _rules
from raf_session.journals._redis_changes import (
    add_index,
    add_labels,
    add_states,
    add_user,
    write_head,
)
from raf_session.journals._redis_core import Core, operate, text
from raf_session.journals._redis_debts import Debt, Debts
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_heads import Stored, parse_head, parse_rows
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_read_scripts import LOOK
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey

__all__ = ("Look", "Plan", "Writes", "clamp", "look", "pause")

_CLAMP: Final = 1 << 53


def clamp(number: int) -> int:
    """Return the nearest number that a script takes for what it is."""
    return max(-_CLAMP, min(number, _CLAMP))


class Look(NamedTuple):
    """A session as it was seen."""

    stored: Stored | None
    detail: str
    """What is wrong with it; empty: nothing."""
    holds_entries: bool
    remains: bool
    """Whether any of its keys is there."""
    run: Sequence[Row] = ()
    front: int | None = None
    """When the entry in front of the run was stored."""
    behind: int | None = None
    purged: Sequence[Row] = ()
    known: frozenset[str] = frozenset()

    def live(
        self, core: Core, key: SessionKey, now: int, incarnation: str | None
    ) -> Stored:
        """Return the head of a session that may be written.

        Raises:
            SessionNotFoundError: missing, expired or another incarnation.
            SessionDamagedError: a part of it is gone.
            SchemaVersionError: a newer library wrote it.
        """
        stored = self.stored
        core.rules.live(key, None if stored is None else stored.head, now, incarnation)
        assert stored is not None  # noqa: S101  (`live` raised otherwise)
        if self.detail:
            raise SessionDamagedError(key, BACKEND, self.detail)
        return stored


async def look(
    link: Link,
    core: Core,
    key: SessionKey,
    *,
    run: tuple[int, int] | None = None,
    bodies: int = 0,
    purge: bool = False,
    ids: Sequence[str] = (),
) -> Look:
    """Read what a write needs to know.

    Args:
        link: where.
        core: what the journal is made of.
        key: the session.
        run: the first and the last place of a run, if it matters.
        bodies: the rows of a run of at most so many come with their bodies.
        purge: whether archived rows of the run matter.
        ids: which ids may be known.
    """
    first, last = ("", "") if run is None else (clamp(run[0]), clamp(run[1]))
    args = [first, last, bodies, int(purge), *[entry_id.encode() for entry_id in ids]]
    reply = await link.run(LOOK, core.names.session(key), args, write=False)
    stored = parse_head(key, reply[:4]) if reply[1] else None
    seen = Look(stored, text(reply[4]), text(reply[5]) != "0", text(reply[11]) != "0")
    if run is None:
        return seen
    return seen._replace(
        run=parse_rows(key, reply[6]),
        front=int(reply[7]) if reply[7] else None,
        behind=int(reply[8]) if reply[8] else None,
        purged=parse_rows(key, reply[9]),
        known=frozenset(text(reply[10]).split("\0")) - {""},
    )


async def pause(turn: int) -> None:
    """Let others be faster for a moment, longer each time."""
    if turn > 1:
        await asyncio.sleep(random.random() * 0.002 * min(turn, 16))  # noqa: S311


class Plan(NamedTuple):
    """What is to become of a session."""

    seen: str
    """What `COMMIT` is to find."""
    before: SessionHead | None
    after: Stored
    ops: Operations
    """Operations on entries; head, states and index are added."""
    debts: Sequence[Debt] = ()


class Writes:
    """Commits plans, and does what follows from them in other slots.

    Args:
        core: what the journal is made of.
        debts: deltas on their way.
    """

    def __init__(self, core: Core, debts: Debts) -> None:
        self.core = core
        self.debts = debts

    async def until_done(
        self, step: Callable[[str], Awaitable[tuple[bool, Any]]]
    ) -> Any:
        """Take a step again while others are faster.

        The step is given a name of its own for this write, so that one whose answer
        was lost knows itself again.
        """
        by = secrets.token_hex(8)
        turn = 0
        while True:
            done, result = await step(by)
            if done:
                return result
            await pause(turn := turn + 1)

    def operations(self, key: SessionKey) -> Operations:
        """Return an empty list over the keys of a session."""
        return Operations(self.core.names.session(key))

    async def commit(
        self, link: Link, plan: Plan, texts: ChangeTexts, by: str, now: int
    ) -> bool:
        """Commit a plan; tell whether the session was still as it was seen."""
        core, ops = self.core, plan.ops
        key, before = plan.after.head.key, plan.before
        head_key = ops.keys[0]
        after = plan.after._replace(owed=plan.after.owed + len(plan.debts))
        if link.one_slot:
            self._index(ops, before, after.head, one_slot=True)
        user = add_user(core, ops, key, texts, now, one_slot=link.one_slot)
        add_states(ops, head_key, texts, plan.debts)
        write_head(ops, head_key, before, after)
        ops.add("HSET", head_key, "by", by)
        apart = not link.one_slot
        if apart:
            await self._announce(link, before, after.head, now, user=user)
        ttl = core.timing.ttl(core.rules.sessions, after.head, after.owed, now)
        reply = await link.commit(ops.keys, [plan.seen, by, ttl, *ops.words])
        if text(reply[0]) != "done":
            return False
        if apart:
            others = Operations()
            self._index(others, before, after.head, one_slot=False)
            await operate(link, others)
            if user and len(reply) > 1:
                scope = _rules.user_scope(key)
                await self.debts.index(link, scope, text(reply[1]))
        await self.debts.pay(link, key, plan.debts)
        return True

    def _index(
        self,
        ops: Operations,
        before: SessionHead | None,
        after: SessionHead,
        *,
        one_slot: bool,
    ) -> None:
        if before is None:
            self.core.index.enter(ops, after)
        else:
            add_index(self.core, ops, before, after, one_slot=one_slot)

    async def _announce(
        self,
        link: Link,
        before: SessionHead | None,
        after: SessionHead,
        now: int,
        *,
        user: bool,
    ) -> None:
        """Write to the index what must not be missing there once it is committed."""
        ops = Operations()
        if before is None:
            self.core.index.enter(ops, after)
        else:
            add_labels(self.core, ops, before, after, one_slot=False)
        if user:
            self.core.index.announce_scope(ops, _rules.user_scope(after.key), now)
        await operate(link, ops)
