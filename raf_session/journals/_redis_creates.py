"""`Journal.create`, `Journal.update` and `Journal.delete`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from raf_session.encoding import Row
from raf_session.entries import Entry
from raf_session.errors import SessionDamagedError, SessionExistsError
from raf_session.journal import Commit
from raf_session.journals import _checks, _rows
from raf_session.journals._redis_core import operate, protected, text
from raf_session.journals._redis_debts import Debt
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_heads import Stored, row_text
from raf_session.journals._redis_keys import member_of
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations, chunks
from raf_session.journals._redis_writes import Look, Plan, Writes, look
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey
from raf_session.options import NewSession

__all__ = ("Create", "Delete", "Update", "add_digests", "add_rows", "remove_session")


def add_rows(ops: Operations, rows: Sequence[Row]) -> None:
    """Store rows, active and archived ones."""
    _, entries, archive, ids, _ = ops.keys[:5]
    for key, some in (
        (entries, [row for row in rows if not row.left_at]),
        (archive, [row for row in rows if row.left_at]),
    ):
        for words in chunks([w for row in some for w in (row.seq, row_text(row))]):
            ops.add("ZADD", key, *words)
    places = [w for r in rows for w in (r.id.encode(), f"{r.seq} {r.left_at}")]
    for words in chunks(places):
        ops.add("HSET", ids, *words)


def add_digests(ops: Operations, texts: ChangeTexts, former_n: int | None) -> None:
    """Store the digests of a request."""
    request = texts.change.request
    if request is not None:
        ops.special("@digests", former_n or 0, request.keep, request.digests.hex())


def remove_session(ops: Operations) -> None:
    """Delete all keys of a session."""
    for key in ops.keys[:5]:
        ops.add("UNLINK", key)


class Create(NamedTuple):
    """The arguments of `Journal.create`, and how to do it."""

    writes: Writes
    new: NewSession
    entries: Sequence[Entry]
    archived: Sequence[Entry]
    bodies: Sequence[str]
    """The encoded events, of the archived entries first."""
    texts: ChangeTexts

    async def run(self, link: Link) -> Commit:
        """Create a session."""
        return await protected(self._run(link))

    async def _run(self, link: Link) -> Commit:
        writes, key = self.writes, self.new.key
        core = writes.core
        debts: list[Debt] | None = None

        async def step(by: str) -> tuple[bool, Commit | None]:
            nonlocal debts
            now = core.rules.now()
            seen = await look(link, core, key)
            if seen.stored is not None and seen.stored.owed:
                await writes.debts.finish(link, key)
                return False, None
            former = self._make_room(seen, now)
            if debts is None:
                debts = await writes.debts.draw(link, key, self.texts, now)
            old, young = _rows.first_rows(self.bodies, self.archived, self.entries, now)
            head = core.rules.new_head(self.new, young, old, self.texts.change, now)
            ops = writes.operations(key)
            if seen.remains:
                # Not first for all: what frees memory opens a full server to the rest.
                remove_session(ops)
            add_rows(ops, [*old, *young])
            add_digests(ops, self.texts, None)
            tail_at = young[-1].stored_at if young else 0
            stored = Stored(head, 1, tail_at, len(old), 0)
            plan = Plan(former, None, stored, ops, debts)
            if await writes.commit(link, plan, self.texts, by, now):
                return True, Commit(head, _rows.stored(self.entries, young))
            return False, None

        try:
            result: Commit = await writes.until_done(step)
        except (LookupError, ValueError, RuntimeError):
            await writes.debts.settle(link, debts or ())
            raise
        return result

    def _make_room(self, seen: Look, now: int) -> str:
        key, stored = self.new.key, seen.stored
        if stored is None:
            if seen.holds_entries:
                raise SessionDamagedError(key, BACKEND, "entries without a head")
            return "none"
        if not self.writes.core.rules.sessions.head_expired(stored.head, now):
            if not seen.detail:
                raise SessionExistsError(key)
            if seen.holds_entries:
                raise SessionDamagedError(key, BACKEND, seen.detail)
        return stored.seen


class Update(NamedTuple):
    """The arguments of `Journal.update`, and how to do it."""

    writes: Writes
    key: SessionKey
    texts: ChangeTexts
    expected_revision: int | None
    incarnation: str | None

    async def run(self, link: Link) -> Commit:
        """Alter what the change names."""
        return await protected(self._run(link))

    async def _run(self, link: Link) -> Commit:
        writes, key = self.writes, self.key
        core = writes.core
        debts: list[Debt] | None = None
        finished = False

        async def step(by: str) -> tuple[bool, Commit | None]:
            nonlocal debts, finished
            now = core.rules.now()
            seen = await look(link, core, key)
            stored = seen.live(core, key, now, self.incarnation)
            if stored.owed and not finished:
                # Once: others may owe something at every moment.
                await writes.debts.finish(link, key)
                finished = True
                return False, None
            _checks.check_revision(stored.head, self.expected_revision)
            head = core.rules.updated(stored.head, self.texts.change, now)
            if head is stored.head and not self.texts.change:
                return True, Commit(head)
            if debts is None:
                debts = await writes.debts.draw(link, key, self.texts, now)
            plan = change_alone(writes, stored, self.texts, now)._replace(debts=debts)
            if await writes.commit(link, plan, self.texts, by, now):
                return True, Commit(plan.after.head)
            return False, None

        try:
            result: Commit = await writes.until_done(step)
        except (LookupError, ValueError, RuntimeError):
            await writes.debts.settle(link, debts or ())
            raise
        return result


def change_alone(writes: Writes, stored: Stored, texts: ChangeTexts, now: int) -> Plan:
    """Return the plan of a change without entries."""
    head = writes.core.rules.updated(stored.head, texts.change, now)
    ops = writes.operations(head.key)
    add_digests(ops, texts, stored.head.request_n)
    after = stored._replace(head=head, version=stored.version + 1)
    return Plan(stored.seen, stored.head, after, ops)


class Delete(NamedTuple):
    """The arguments of `Journal.delete`, and how to do it."""

    writes: Writes
    key: SessionKey
    incarnation: str | None

    async def run(self, link: Link) -> bool:
        """Remove a session, one that is damaged too, and what is left of one."""
        return await protected(self._run(link))

    async def _run(self, link: Link) -> bool:
        writes, key = self.writes, self.key
        core = writes.core

        async def step(by: str) -> tuple[bool, Any]:
            now = core.rules.now()
            seen = await look(link, core, key)
            stored = seen.stored
            if stored is None:
                if self.incarnation is None:
                    await remove(writes, link, key, None, by)
                return True, False
            if core.rules.sessions.head_expired(
                stored.head, now
            ) or self.incarnation not in {None, stored.head.incarnation}:
                return True, False
            if stored.owed:
                await writes.debts.finish(link, key)
                return False, None
            return (await remove(writes, link, key, stored, by)) is not None, True

        result: bool = await writes.until_done(step)
        return result


async def remove(
    writes: Writes, link: Link, key: SessionKey, stored: Stored | None, by: str
) -> bool | None:
    """Remove a session as it was seen.

    Returns:
        Whether it was in the index, `None` where it is not as it was seen.
    """
    core = writes.core
    ops = writes.operations(key)
    remove_session(ops)
    incarnation = "" if stored is None else stored.head.incarnation
    if link.one_slot and stored is not None:
        core.index.forget(ops, member_of(key), incarnation)
    seen = "none" if stored is None else stored.seen
    reply = await link.commit(ops.keys, [seen, by, "", *ops.words])
    if text(reply[0]) != "done":
        return None
    if stored is None:
        return False
    if link.one_slot:
        return text(reply[1]) == "1"
    others = Operations()
    core.index.forget(others, member_of(key), incarnation)
    (gone,) = await operate(link, others, again=False)
    return gone == "1"
