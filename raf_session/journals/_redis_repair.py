"""What mends the index: sessions that are gone, and an index that is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from raf_session.errors import SessionDamagedError
from raf_session.journals._redis_core import Core, operate, text
from raf_session.journals._redis_heads import Stored, parse_head
from raf_session.journals._redis_keys import member_of
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_read_scripts import HEADS
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Repair", "read_heads")

_FIELDS: Final = ("incarnation", "facts", "about", "request")
_TOGETHER: Final = 200
"""So many heads one script may read: a server does nothing else meanwhile."""
_YOUNG_US: Final = 3_600_000_000
"""Where the index stands elsewhere, one that was entered so lately may come yet."""


async def read_heads(
    link: Link, core: Core, keys: Sequence[SessionKey]
) -> list[Stored | SessionDamagedError | None]:
    """Return the heads of sessions, `None` where there is none, an error for damage."""
    names = [core.names.session(key)[0] for key in keys]
    if link.one_slot and 0 < len(names) <= _TOGETHER:
        told = (await link.run(HEADS, names, (), write=False)).split(b"\0")
        # A part that is damaged may hold a NUL: then they are read one by one.
        if len(told) == 4 * len(names):
            return [
                _head(key, (told[i][1:], *told[i + 1 : i + 4]))
                if told[i][:1] == b"1"
                else None
                for i, key in zip(range(0, len(told), 4), keys, strict=True)
            ]
    replies = await link.commands([("HMGET", name, *_FIELDS) for name in names])
    return [
        None if reply[1] is None else _head(key, [field or b"" for field in reply])
        for key, reply in zip(keys, replies, strict=True)
    ]


def _head(key: SessionKey, fields: Sequence[bytes]) -> Stored | SessionDamagedError:
    try:
        return parse_head(key, fields)
    except SessionDamagedError as error:
        return error


class Repair:
    """Mends the index.

    Args:
        core: what the journal is made of.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    async def begin(self, link: Link) -> None:
        """Mark a new index."""
        ops = Operations()
        self._core.index.begin(ops)
        await operate(link, ops)

    async def ensure(self, link: Link) -> None:
        """Make the index anew where a part of it was lost."""
        index = self._core.index
        marks = await link.commands(
            [
                *[("ZSCORE", key, "") for key in index.sorted_sets],
                ("HGET", index.keys.tokens, ""),
            ]
        )
        if None in marks:
            await self.rebuild(link)

    def settled(self, link: Link, active: int, now: int) -> bool:
        """Tell whether a session that is not there is not one that is being made."""
        return link.one_slot or now - active > _YOUNG_US

    async def tokens(self, link: Link, keys: Sequence[SessionKey]) -> list[str]:
        """Return under which incarnations sessions stand in the index."""
        if not keys:
            return []
        members = [member_of(key) for key in keys]
        (found,) = await link.commands(
            [("HMGET", self._core.index.keys.tokens, *members)]
        )
        return [text(token or b"").partition("\0")[0] for token in found]

    async def forget(
        self, link: Link, keys: Sequence[SessionKey], *, again: bool = True
    ) -> list[SessionKey]:
        """Take sessions that are gone out of the index; return those taken out.

        Their tokens are read before it is made sure that they are gone, so that one
        that is created meanwhile stays.

        Args:
            link: where.
            keys: the sessions.
            again: whether it does not matter who took them out.
        """
        if not keys:
            return []
        core = self._core
        tokens = await self.tokens(link, keys)
        there = await link.commands(
            [("EXISTS", core.names.session(key)[0]) for key in keys]
        )
        taken: list[SessionKey] = []
        for key, token, exists in zip(keys, tokens, there, strict=True):
            if exists or not token:
                continue
            ops = Operations()
            core.index.forget(ops, member_of(key), token)
            if await operate(link, ops, again=again) == ["1"]:
                taken.append(key)
        return taken

    async def rebuild(self, link: Link) -> None:
        """Make the index anew, of all that is stored under the prefix."""
        names = self._core.names
        sessions, users, apps = names.patterns()
        async for found in _scan(link, sessions):
            await self._enter(link, found)
        for pattern in (users, apps):
            async for found in _scan(link, pattern):
                await self._enter_scopes(link, found)
        await self.begin(link)

    async def _enter(self, link: Link, found: Sequence[bytes]) -> None:
        core = self._core
        keys = [
            key for key in map(core.names.parse, found) if isinstance(key, SessionKey)
        ]
        ops = Operations()
        heads = await read_heads(link, core, keys)
        for key, stored in zip(keys, heads, strict=True):
            if isinstance(stored, SessionDamagedError):
                core.index.enter_damaged(ops, key)
            elif stored is not None:
                core.index.enter(ops, stored.head, anew=False)
        await operate(link, ops)

    async def _enter_scopes(self, link: Link, found: Sequence[bytes]) -> None:
        core = self._core
        scopes = [
            scope
            for scope in map(core.names.parse, found)
            if isinstance(scope, ScopeKey)
        ]
        replies = await link.commands(
            [("HGET", core.names.scope(scope).state, "") for scope in scopes]
        )
        ops = Operations()
        for scope, reply in zip(scopes, replies, strict=True):
            if reply is not None:
                created, active, *_ = map(int, text(reply).split())
                core.index.enter_scope(ops, scope, created, active)
        await operate(link, ops)


async def _scan(link: Link, pattern: bytes) -> AsyncIterator[Sequence[bytes]]:
    for node in await link.nodes():
        cursor: Any = 0
        while True:
            cursor, found = await link.on_node(
                node, "SCAN", cursor, "MATCH", pattern, "COUNT", 1000
            )
            if found:
                yield [n if isinstance(n, bytes) else n.encode() for n in found]
            if not int(cursor):
                break
