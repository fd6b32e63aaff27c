"""Deltas for scopes in other slots: drawn a number, carried along, then applied.

The number comes from the scope; the delta stands under it in the session's record from
the moment that commits; it is applied key by key over smaller numbers only, then taken
out of the record, and at last the number is settled with the scope.  Whoever finds a
delta in a record does the rest, any number of times.
"""

from __future__ import annotations

import json
import secrets
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

    key: SessionKey
    """Whose record carries it."""
    scope: ScopeKey
    number: int
    made_at: int
    name: str
    """Drawn by chance: numbers may begin anew."""
    texts: Texts

    @property
    def field(self) -> bytes:
        """The field of the session's hash that carries it."""
        kind = "app" if self.scope.user is None else "user"
        return f"{_PREFIX}{kind}:{self.number}".encode()

    @property
    def member(self) -> bytes:
        """What stands for it among what the scope is owed."""
        words = f"{self.number}\0{self.made_at}\0{self.name}\0"
        return words.encode() + member_of(self.key)

    @classmethod
    def of_member(cls, scope: ScopeKey, member: bytes) -> Debt:
        """Read what stands for a delta; what it alters is in the session's record."""
        number, made_at, name, key = member.split(b"\0", 3)
        owner = session_of_member(key)
        return cls(owner, scope, int(number), int(made_at), name.decode(), Texts())

    @property
    def body(self) -> bytes:
        """What stands in the field."""
        return json.dumps(
            [self.made_at, self.name, self.texts.set, self.texts.deleted],
            ensure_ascii=False,
        ).encode()

    @classmethod
    def parse(cls, key: SessionKey, field: str, body: str) -> Debt:
        """Read a field of a session's hash."""
        try:
            _, kind, number = field.split(":")
            made_at, name, pairs, deleted = json.loads(body)
            texts = Texts(tuple((n, t) for n, t in pairs), tuple(deleted))
            user = None if kind == "app" else key.user
            scope = ScopeKey(key.app, user)
            return cls(key, scope, int(number), made_at, name, texts)
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
                debt = Debt(key, scope, 0, now, secrets.token_hex(8), delta)
                debts.append(debt._replace(number=await self._draw(link, debt)))
        return debts

    async def _draw(self, link: Link, debt: Debt) -> int:
        core, scope = self._core, debt.scope
        keys = core.names.scope(scope)
        ops = Operations()
        marks = ops if link.one_slot else Operations()
        marks.add("ZINCRBY", core.index.keys.owing, 1, scope_member(scope))
        if marks is not ops:
            core.index.announce_scope(marks, scope, debt.made_at)
            await operate(link, marks)
        _, who = debt.member.split(b"\0", 1)
        ops.special("@draw", ops.number(keys.state), ops.number(keys.owed), who)
        return int((await operate(link, ops))[0])

    async def pay(self, link: Link, key: SessionKey, debts: Sequence[Debt]) -> None:
        """Apply deltas that are in the record, and take them out of it."""
        if not debts:
            return
        core = self._core
        now = core.rules.now()
        for debt in debts:
            if not await self._apply(link, debt, now) and await self._carried(
                link, debt
            ):
                # A sweep whose clock is a day ahead took its writer for dead.
                await self._owe(link, debt)
                await self._apply(link, debt, now)
        fields = [word for debt in debts for word in (debt.field, debt.body)]
        await link.run(CLEAR, core.names.session(key), [core.terms(now), *fields])
        await self.settle(link, debts)

    async def _apply(self, link: Link, debt: Debt, now: int) -> bool:
        return await self.write(
            link, debt.scope, debt.texts, now, touch=debt.made_at, owed=debt.member
        )

    async def _carried(self, link: Link, debt: Debt) -> bool:
        head = self._core.names.session(debt.key)[0]
        (body,) = await link.commands([("HGET", head, debt.field)])
        return body is not None and text(body) == text(debt.body)

    async def _owe(self, link: Link, debt: Debt) -> None:
        ops = Operations()
        owed = self._core.names.scope(debt.scope).owed
        ops.add("ZADD", owed, debt.number, debt.member)
        await operate(link, ops)

    async def write(
        self,
        link: Link,
        scope: ScopeKey,
        texts: Texts,
        now: int,
        *,
        touch: int,
        owed: bytes = b"",
    ) -> bool:
        """Write the state of a scope, and keep its index.

        Returns:
            Whether it was written: what is no longer owed was, by whoever settled it.
        """
        core = self._core
        if not owed:
            # Sent once: a connection that was cut while nobody used it fails here.
            await link.commands([("EXISTS", core.names.scope(scope).state)])
        ops = Operations()
        if not link.one_slot:
            core.index.announce_scope(ops, scope, touch)
            await operate(link, ops)
            ops = Operations()
        core.write_scope(
            ops, scope, texts, now, touch=touch, owed=owed, one_slot=link.one_slot
        )
        (times,) = await operate(link, ops, again=bool(owed))
        if times == "settled":
            return False
        if not link.one_slot:
            await self.index(link, scope, times)
        return True

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
                "@settle", ops.number(keys.state), ops.number(keys.owed), debt.member
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
        for member in {words.split(b"\0", 3)[3] for words in owed}:
            much = await self.finish(link, session_of_member(member)) or much
        return much
