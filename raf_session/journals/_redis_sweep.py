"""`Journal.expire`: what the rule calls expired, and what the server collected."""

from __future__ import annotations

import secrets
from typing import Final, NamedTuple

from raf_session.clock import to_micros
from raf_session.errors import SessionDamagedError
from raf_session.expiry import ExpiryRule
from raf_session.journals._redis_core import Core, operate, text
from raf_session.journals._redis_creates import remove
from raf_session.journals._redis_debts import Debt, Debts
from raf_session.journals._redis_keys import (
    member_of,
    scope_member,
    scope_of_member,
    session_of_member,
)
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_repair import Repair, read_heads
from raf_session.journals._redis_walks import FIND
from raf_session.journals._redis_writes import Writes
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Sweep",)

_BATCH: Final = 200
_LOST_US: Final = 86_400_000_000
"""A number that no record carries for so long was drawn in vain."""


class _Range(NamedTuple):
    """Where members stand whose time is over."""

    key: bytes
    low: str
    high: str


class Sweep:
    """Finds and deletes what has expired.

    Args:
        writes: how sessions are removed.
        repair: what mends the index.
        limit: the most to delete.
        dry_run: whether to find only.
    """

    def __init__(
        self, writes: Writes, repair: Repair, limit: int, *, dry_run: bool
    ) -> None:
        self._writes = writes
        self._core: Core = writes.core
        self._debts: Debts = writes.debts
        self._repair = repair
        self._limit = limit
        self._dry_run = dry_run
        self.gone: dict[SessionKey | ScopeKey, None] = {}
        """What was deleted, in order."""
        self._damage: SessionDamagedError | None = None

    async def run(self, link: Link) -> None:
        """Delete until it is as much as was asked for, or nothing is left to delete.

        Raises:
            SessionDamagedError: a session that cannot be read stays, and nothing was
                deleted beside it.
            StorageError: the server failed; `gone` is what was deleted until then.
        """
        rules, index = self._core.rules, self._core.index.keys
        await self._repair.ensure(link)
        if not self._dry_run:
            await self._finish(link)
        now = rules.now()
        for where in _ranges(index.activity, index.created, rules.sessions, now, -1):
            await self._sessions(link, where)
        for scope in (ScopeKey(""), ScopeKey("", "")):
            _, active, created = index.of_scope(scope)
            for where in _ranges(active, created, rules.scope_rule(scope), now, 1):
                await self._scopes(link, where)
        if self._damage is not None and not self.gone:
            raise self._damage

    async def _find(self, link: Link, where: _Range, stays: int) -> list[bytes]:
        """Return members and their tokens, beyond those that stay."""
        room = min(_BATCH, self._limit - len(self.gone))
        if room <= 0:
            return []
        found: list[bytes] = await link.run(
            FIND,
            [where.key, self._core.index.keys.tokens],
            [where.low, where.high, stays, room],
            write=False,
        )
        return found[::2]

    # Sessions --------------------------------------------------------------------

    async def _sessions(self, link: Link, where: _Range) -> None:
        stays = 0
        while found := await self._find(link, where, stays):
            keys = [session_of_member(member) for member in found]
            heads = await read_heads(link, self._core, keys)
            for key, stored in zip(keys, heads, strict=True):
                now = self._core.rules.now()
                if key in self.gone:
                    stays += 1
                elif isinstance(stored, SessionDamagedError):
                    stays += 1
                    self._damage = stored
                elif stored is not None and not self._core.rules.sessions.head_expired(
                    stored.head, now
                ):
                    stays += 1
                    ops = Operations()
                    active = to_micros(stored.head.last_active_at)
                    self._core.index.move(ops, member_of(key), active)
                    await operate(link, ops)
                elif self._dry_run:
                    stays += 1
                    self.gone[key] = None
                elif await self._remove(link, key):
                    self.gone[key] = None
                else:
                    stays += 1

    async def _remove(self, link: Link, key: SessionKey) -> bool:
        """Remove a session that has expired; tell whether it was this call that did."""
        try:
            return await self._remove_readable(link, key)
        except SessionDamagedError as error:
            self._damage = error
            return False

    async def _remove_readable(self, link: Link, key: SessionKey) -> bool:
        core = self._core
        while True:
            (stored,) = await read_heads(link, core, [key])
            if isinstance(stored, SessionDamagedError):
                raise stored
            if stored is None:
                return bool(await self._repair.forget(link, [key], again=False))
            if not core.rules.sessions.head_expired(stored.head, core.rules.now()):
                return False
            if stored.owed:
                await self._debts.finish(link, key)
                continue
            by = secrets.token_hex(8)
            removed = await remove(self._writes, link, key, stored, by)
            if removed is not None:
                return removed

    # Scopes ----------------------------------------------------------------------

    async def _scopes(self, link: Link, where: _Range) -> None:
        stays = 0
        while found := await self._find(link, where, stays):
            for scope in map(scope_of_member, found):
                if scope not in self.gone and await self._drop(link, scope):
                    self.gone[scope] = None
                    stays += self._dry_run
                else:
                    stays += 1

    async def _drop(self, link: Link, scope: ScopeKey) -> bool:
        """Remove a scope that has expired; tell whether it was this call that did."""
        core = self._core
        state = core.names.scope(scope).state
        member = scope_member(scope)
        index = core.index.keys.of_scope(scope)
        meta, score = await link.commands(
            [("HGET", state, ""), ("ZSCORE", index[1], member)]
        )
        ops = Operations()
        if meta is not None:
            created, active, *_ = text(meta).split()
            now = core.rules.now()
            rule = core.rules.scope_rule(scope)
            if not rule.expired(int(created), int(active), now):
                return False
            ops.special("@drop", ops.number(state), created, active)
        if self._dry_run:
            return True
        if score is None:
            return False
        if not link.one_slot:
            await operate(link, ops)
            ops = Operations()
        ops.special("@unscope", ops.number(*index), member, f"{float(score):.0f}")
        return (await operate(link, ops, again=False))[-1] == "1"

    # What was left undone --------------------------------------------------------

    async def _finish(self, link: Link) -> None:
        """Apply what writers that died left in the records of their sessions."""
        owing = self._core.index.keys.owing
        (members,) = await link.commands([("ZRANGE", owing, 0, -1)])
        for member in members:
            scope = scope_of_member(member)
            owed = self._core.names.scope(scope).owed
            score, numbers = await link.commands(
                [("ZSCORE", owing, member), ("ZRANGE", owed, 0, -1)]
            )
            for words in numbers:
                await self._finish_one(link, Debt.of_member(scope, words))
            (left,) = await link.commands([("EXISTS", owed)])
            if not left and score is not None:
                ops = Operations()
                ops.special("@unowe", ops.number(owing), member, f"{float(score):.0f}")
                await operate(link, ops, again=False)

    async def _finish_one(self, link: Link, debt: Debt) -> None:
        try:
            await self._debts.finish(link, debt.key)
        except SessionDamagedError as error:
            self._damage = error
            return
        if self._core.rules.now() - debt.made_at > _LOST_US:
            await self._debts.settle(link, [debt])


def _ranges(
    by_activity: bytes, by_creation: bytes, rule: ExpiryRule, now: int, sign: int
) -> list[_Range]:
    """Return where expired members stand; a time of 0 never expires.

    Args:
        by_activity: the index by activity, its scores times of that sign.
        by_creation: the index by creation.
        rule: the rule.
        now: the journal's time.
        sign: 1 or -1.
    """
    found: list[_Range] = []
    for index, cutoff, direction in zip(
        (by_activity, by_creation), rule.cutoffs(now), (sign, 1), strict=True
    ):
        if cutoff is None:
            continue
        ends = [f"({cutoff}"] if cutoff <= 0 else ["(0", f"({cutoff}"]
        starts = ["-inf", "(0"][: len(ends)]
        for start, end in zip(starts, ends, strict=True):
            low, high = (
                (start, end) if direction > 0 else (_negated(end), _negated(start))
            )
            found.append(_Range(index, low, high))
    return found


def _negated(bound: str) -> str:
    return "+inf" if bound == "-inf" else f"({-int(bound[1:])}"
