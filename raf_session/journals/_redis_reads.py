"""`Journal.load` and the states of scopes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from raf_session.clock import to_micros
from raf_session.encoding import BODY_VERSION, RawRow
from raf_session.entries import Record
from raf_session.errors import SessionDamagedError
from raf_session.journal import ScopedState
from raf_session.journals import _rules
from raf_session.journals._records import NO_STATE, Found, Scoped, record_of
from raf_session.journals._redis_appends import refusal
from raf_session.journals._redis_core import Core, operate, text
from raf_session.journals._redis_debts import Debts
from raf_session.journals._redis_faults import BACKEND
from raf_session.journals._redis_heads import Stored, parse_head, raw_rows
from raf_session.journals._redis_keys import (
    is_remote,
    member_of,
    scope_member,
    scope_of_member,
)
from raf_session.journals._redis_links import Call, Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_read_scripts import LOAD, PAGE, READ_SCOPE
from raf_session.journals._redis_repair import Repair
from raf_session.journals._redis_writes import clamp
from raf_session.journals._texts import Texts
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Window

__all__ = ("Load", "Scopes", "read_pairs", "scoped")

_ROWS: Final = 1000
"""So many entries come in one round trip,"""
_BYTES: Final = 8 * 1024 * 1024
"""unless they are as large as this."""


def read_pairs(flat: bytes | str) -> list[tuple[str, str]]:
    """Return names and texts that stand in one text."""
    if not flat:
        return []
    words = text(flat).split("\0")
    return list(zip(words[::2], words[1::2], strict=True))


def scoped(times: bytes | str, flat: bytes | str) -> Scoped | None:
    """Return the state of a scope as a script gives it."""
    if not times:
        return None
    created, active = map(int, times.split())
    return Scoped(sorted(read_pairs(flat)), created, active)


class Scopes:
    """Reads and writes the states of scopes.

    Args:
        core: what the journal is made of.
        debts: how they are written.
        repair: what mends the index.
    """

    def __init__(self, core: Core, debts: Debts, repair: Repair) -> None:
        self._core = core
        self._debts = debts
        self._repair = repair

    def call(self, link: Link, scope: ScopeKey, now: int, *, refresh: bool) -> Call:
        """Return the call that reads a scope."""
        core = self._core
        ops = Operations(core.names.scope(scope))
        index = ""
        if refresh and link.one_slot:
            index = str(core.index.scope_number(ops, scope))
        terms = core.timing.terms(core.rules.scope_rule(scope), now)
        args = (terms, int(refresh), index, scope_member(scope))
        return READ_SCOPE, ops.keys, args

    async def read(self, link: Link, scope: ScopeKey, *, refresh: bool) -> ScopedState:
        """Return the live state of a scope."""
        now = self._core.rules.now()
        script, keys, args = self.call(link, scope, now, refresh=refresh)
        times, flat, *owed = await link.run(script, keys, args, write=refresh)
        if await self._debts.finish_all(link, owed):
            times, flat, *_ = await link.run(script, keys, args, write=refresh)
        found = scoped(times, flat)
        if found is None:
            return NO_STATE
        if refresh and not link.one_slot:
            await self._debts.index(link, scope, text(times))
        return found.state(scope, self._core.values)

    async def write(self, link: Link, scope: ScopeKey, texts: Texts) -> None:
        """Set and delete keys of a scope, and touch it."""
        now = self._core.rules.now()
        await self._debts.write(link, scope, texts, now, touch=now)

    async def live(self, link: Link, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes of an app that hold live state, in order."""
        core = self._core
        await self._repair.ensure(link)
        index = core.index.keys.scopes
        user = scope_member(ScopeKey(app, ""))
        (members,) = await link.commands(
            [("ZRANGEBYLEX", index, b"[" + user, b"(" + user[:-1] + b"\1")]
        )
        scopes = [ScopeKey(app), *map(scope_of_member, members)]
        keys = [core.names.scope(scope).state for scope in scopes]
        replies = await link.commands(
            [command for key in keys for command in (("HGET", key, ""), ("HLEN", key))]
        )
        now = core.rules.now()
        return tuple(
            scope
            for scope, meta, n in zip(scopes, replies[::2], replies[1::2], strict=True)
            if meta is not None and self._is_live(scope, text(meta), n, now)
        )

    def _is_live(self, scope: ScopeKey, meta: str, n: int, now: int) -> bool:
        created, active, _, tombs = map(int, meta.split())
        rule = self._core.rules.scope_rule(scope)
        return n - 1 > tombs and not rule.expired(created, active, now)


class _Reply(NamedTuple):
    stored: Stored
    active: list[RawRow]
    more: str
    archived: list[RawRow]
    more_archived: str
    own: list[tuple[str, str]]
    digests: bytes
    user: Scoped | None
    app: Scoped | None
    owed: list[bytes]
    """What is on its way to the states that stand in other slots."""


class Load(NamedTuple):
    """The arguments of `Journal.load`, and how to do it."""

    core: Core
    debts: Debts
    scopes: Scopes
    key: SessionKey
    window: Window
    refresh: bool
    archived: bool

    async def run(self, link: Link) -> Record:
        """Read a session."""
        reply = await self._read(link)
        if reply.stored.owed or reply.owed:
            paid = await self.debts.finish(link, self.key)
            if await self.debts.finish_all(link, reply.owed) or paid:
                reply = await self._read(link)
        while not await self._rest(link, reply):
            reply = await self._read(link)
        if self.refresh and not link.one_slot:
            await self._index(link, reply)
        head = reply.stored.head
        found = Found(
            head,
            reply.active,
            # The server orders what left one place by its bytes, 17 in front of 8.
            sorted(reply.archived, key=itemgetter(0, 1)),
            _named(reply.own, "state:"),
            _named(reply.own, "provider:"),
            reply.digests,
            reply.user,
            reply.app,
        )
        return record_of(found, self.core.bodies, self.core.values)

    async def _read(self, link: Link) -> _Reply:
        core, key, window = self.core, self.key, self.window
        now = core.rules.now()
        user, app = _rules.user_scope(key), _rules.app_scope(key)
        ops = Operations(core.names.session(key))
        member = member_of(key)
        user_words: tuple[Any, ...] = ("", "", "", "")
        calls: list[Call] = []
        if is_remote(user):
            calls.append(self.scopes.call(link, user, now, refresh=self.refresh))
        else:
            inline = self.refresh and link.one_slot
            user_words = (
                ops.number(core.names.scope(user).state),
                core.timing.terms(core.rules.users, now),
                core.index.scope_number(ops, user) if inline else "",
                scope_member(user),
            )
        activity = ""
        if self.refresh and link.one_slot:
            activity = str(ops.number(core.index.keys.activity))
        args = (
            core.terms(now),
            BODY_VERSION,
            int(self.refresh),
            *[
                "" if number is None else clamp(number)
                for number in (window.last, window.after_seq, window.before_seq)
            ],
            "" if window.after_time is None else to_micros(window.after_time),
            _ROWS,
            _BYTES,
            int(self.archived),
            *user_words,
            activity,
            member,
        )
        calls.append(self.scopes.call(link, app, now, refresh=self.refresh))
        session, *others = await link.run_all([(LOAD, ops.keys, args), *calls])
        owed = [member for other in others for member in other[2:]]
        found = [scoped(*other[:2]) for other in others]
        return self._reply(session, found, now)._replace(owed=owed)

    def _reply(
        self, reply: Sequence[Any], others: Sequence[Scoped | None], now: int
    ) -> _Reply:
        key = self.key
        if text(reply[0]):
            raise refusal(self.core, key, reply, now)
        stored = parse_head(key, reply[1:5])
        *users, app = others
        try:
            digests = bytes.fromhex(text(reply[10]))
            own = read_pairs(reply[9])
            user = users[0] if users else scoped(reply[11], reply[12])
        except ValueError as error:
            detail = f"its states cannot be read: {error}"
            raise SessionDamagedError(key, BACKEND, detail) from error
        return _Reply(
            stored,
            raw_rows(key, reply[5]),
            text(reply[6]),
            raw_rows(key, reply[7]),
            text(reply[8]),
            own,
            digests,
            user,
            app,
            [],
        )

    async def _rest(self, link: Link, reply: _Reply) -> bool:
        """Read what did not fit; tell whether nothing moved meanwhile."""
        head = reply.stored.head
        for number, rows, more in (
            (2, reply.active, reply.more),
            (3, reply.archived, reply.more_archived),
        ):
            left = more
            while left:
                rank, last = left.split(" ")
                args = [head.incarnation, head.spliced_at, number, rank, last]
                keys = self.core.names.session(self.key)
                status, *page = await link.run(
                    PAGE, keys, [*args, _ROWS, _BYTES], write=False
                )
                if text(status):
                    return False
                blob, left = page[0], text(page[1])
                rows.extend(raw_rows(self.key, blob))
        return True

    async def _index(self, link: Link, reply: _Reply) -> None:
        ops = Operations()
        index = self.core.index
        active = to_micros(reply.stored.head.last_active_at)
        index.move(ops, member_of(self.key), active)
        for scope, found in (
            (_rules.user_scope(self.key), reply.user),
            (_rules.app_scope(self.key), reply.app),
        ):
            if found is not None:
                index.enter_scope(ops, scope, found.created_at, found.last_active_at)
        await operate(link, ops)


def _named(own: Sequence[tuple[str, str]], kind: str) -> list[tuple[str, str]]:
    return sorted(
        (name.removeprefix(kind), body) for name, body in own if name.startswith(kind)
    )
