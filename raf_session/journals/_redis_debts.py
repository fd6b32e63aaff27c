"""Deltas for scopes in other slots: drawn a number, carried along, then applied.

The number comes from the scope; the delta stands under it in the session's record from
the moment that commits; it is applied key by key over smaller numbers only, then taken
out of the record, and at last the number is settled with the scope.  Whoever finds a
delta in a record does the rest, any number of times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from raf_session.errors import SessionDamagedError
from raf_session.journals import _rules
from raf_session.journals._redis_core import Core, operate, text
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_keys import (
    is_remote,
    member_of,
    scope_member,
    session_of_member,
)
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_scripts import CLEAR
from raf_session.journals._texts import ChangeTexts, Texts
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Debt", "Debts", "debts_of")

_PREFIX = "owed:"


class Debt(NamedTuple):
    """A delta on its way."""

    scope: ScopeKey
    number: int
    made_at: int
    texts: Texts

    @property
    def field(self) -> bytes:
        """The field of the session's hash that carries it."""
        kind = "app" if self.scope.user is None else "user"
        return f"{_PREFIX}{kind}:{self.number}".encode()

    @property
    def body(self) -> bytes:
        """What stands in the field."""
        return json.dumps(
            [self.made_at, self.texts.set, self.texts.deleted], ensure_ascii=False
        ).encode()

    @classmethod
    def parse(cls, key: SessionKey, field: str, body: str) -> Debt:
        """Read a field of a session's hash."""
        try:
            _, kind, number = field.split(":")
            made_at, pairs, deleted = json.loads(body)
            texts = Texts(tuple((n, t) for n, t in pairs), tuple(deleted))
            user = None if kind == "app" else key.user
            return cls(ScopeKey(key.app, user), int(number), made_at, texts)
        except (ValueError, TypeError) as error:
            detail = f"its delta {field!r} cannot be read: {error}"
            raise SessionDamagedError(key, BACKEND, detail) from error


def debts_of(key: SessionKey, fields: Iterable[tuple[str, str]]) -> list[Debt]:
    """Return the deltas among the fields of a session's hash."""
    return [
        Debt.parse(key, name, body) for name, body in fields if name.startswith(_PREFIX)
    ]


class Debts:
    """Draws, applies and settles.

    Args:
        core: what the journal is made of.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def draw(
        self, link: Link, key: SessionKey, texts: ChangeTexts, now: int
    ) -> list[Debt]:
        """Draw a number for each delta that goes to another slot."""
        debts: list[Debt] = []
        for scope, delta in (
            (_rules.app_scope(key), texts.app if texts.change.app else None),
            (_rules.user_scope(key), texts.user if texts.change.user else None),
        ):
            if delta is not None and is_remote(scope):
                number = await self._draw(link, key, scope, now)
                debts.append(Debt(scope, number, now, delta))
        return debts

    async def _draw(
        self, link: Link, key: SessionKey, scope: ScopeKey, now: int
    ) -> int:
        core = self._core
        keys = core.names.scope(scope)
        ops = Operations()
        marks = ops if link.one_slot else Operations()
        marks.add("ZINCRBY", core.index.keys.owing, 1, scope_member(scope))
        if marks is not ops:
            core.index.announce_scope(marks, scope, now)
            await operate(link, marks)
        who = f"{now}\0".encode() + member_of(key)
        ops.special("@draw", ops.number(keys.state), ops.number(keys.owed), who)
        return int((await operate(link, ops))[0])

    async def pay(self, link: Link, key: SessionKey, debts: Sequence[Debt]) -> None:
        """Apply deltas that are in the record, and take them out of it."""
        if not debts:
            return
        core = self._core
        now = core.rules.now()
        for debt in debts:
            await self._apply(link, debt, now)
        await link.run(
            CLEAR,
            core.names.session(key),
            [core.terms(now), *[debt.field for debt in debts]],
        )
        await self.settle(link, debts)

    async def _apply(self, link: Link, debt: Debt, now: int) -> None:
        await self.write(
            link, debt.scope, debt.texts, now, touch=debt.made_at, number=debt.number
        )

    async def write(
        self,
        link: Link,
        scope: ScopeKey,
        texts: Texts,
        now: int,
        *,
        touch: int,
        number: int | None = None,
    ) -> None:
        """Write the state of a scope, and keep its index."""
        core = self._core
        ops = Operations()
        if not link.one_slot:
            core.index.announce_scope(ops, scope, touch)
            await operate(link, ops)
            ops = Operations()
        core.write_scope(
            ops, scope, texts, now, touch=touch, number=number, one_slot=link.one_slot
        )
        (times,) = await operate(link, ops)
        if not link.one_slot:
            await self.index(link, scope, times)

    async def index(self, link: Link, scope: ScopeKey, times: str) -> None:
        """Keep the index of a scope, after a write, where it stands elsewhere."""
        if times:
            created, active = map(int, times.split(" "))
            ops = Operations()
            self._core.index.enter_scope(ops, scope, created, active)
            await operate(link, ops)

    async def settle(self, link: Link, debts: Iterable[Debt]) -> None:
        """Give numbers back that no record carries."""
        for debt in debts:
            keys = self._core.names.scope(debt.scope)
            ops = Operations()
            ops.special(
                "@settle", ops.number(keys.state), ops.number(keys.owed), debt.number
            )
            await operate(link, ops)

    async def finish(self, link: Link, key: SessionKey) -> bool:
        """Do what is left of earlier writes of a session; tell whether it was much."""
        head = self._core.names.session(key)[0]
        (fields,) = await link.commands([("HGETALL", head)])
        pairs = [(text(name), text(body)) for name, body in fields.items()]
        debts = debts_of(key, pairs)
        await self.pay(link, key, debts)
        return bool(debts)

    async def finish_all(self, link: Link, owed: Iterable[bytes]) -> bool:
        """Do the same for the sessions that a scope is owed by.

        Args:
            link: where.
            owed: what `draw` wrote beside the numbers.
        """
        much = False
        for member in {words.split(b"\0", 2)[2] for words in owed}:
            much = await self.finish(link, session_of_member(member)) or much
        return much
