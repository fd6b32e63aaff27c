"""`Journal.scan`: the index says which sessions may match, their heads say which do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from raf_session.clock import to_micros
from raf_session.errors import SessionDamagedError
from raf_session.journal import Listed, Order, Page
from raf_session.journals import _checks
from raf_session.journals._redis_core import Core, operate, text
from raf_session.journals._redis_heads import Stored
from raf_session.journals._redis_keys import member_of, session_of_member
from raf_session.journals._redis_links import Link
from raf_session.journals._redis_operations import Operations
from raf_session.journals._redis_repair import Repair, read_heads
from raf_session.journals._redis_walks import WALK
from raf_session.keys import SessionKey
from raf_session.options import Query

__all__ = ("Listing",)

_ANY: Final = b"\0"
_ROUNDS: Final = 3
"""After so many tries a page is returned short."""
_EXAMINED: Final = 2000
"""How much of the index one round may look at."""
_FEW: Final = 1000
"""So many sessions are sorted rather than looked for in order of activity."""
_LIMIT: Final = 1 << 20
_BATCH: Final = 300


class _Found(NamedTuple):
    member: bytes
    active: int


class Listing:
    """Lists sessions.

    Args:
        core: what the journal is made of.
        repair: what mends the index.
    """

    def __init__(self, core: Core, repair: Repair) -> None:
        self._core = core
        self._repair = repair

    async def scan(
        self,
        link: Link,
        query: Query,
        after: tuple[int, SessionKey] | None,
        order: Order,
        limit: int,
        *,
        state: bool,
    ) -> Page:
        """Read one page; see `Journal.scan`."""
        limit = min(limit, _LIMIT)
        # By key the index is not asked for times, so that more have to be looked at.
        timed = query.active_since is not None or query.active_before is not None
        least = _BATCH if timed and order == "key" else 1
        chosen: list[Stored] = []
        for _ in range(_ROUNDS):
            room = limit - len(chosen)
            found, last = await self._walk(link, query, after, order, max(room, least))
            for item, stored in await self._matching(link, query, found):
                if stored is not None:
                    chosen.append(stored)
                if len(chosen) == limit and item is not found[-1]:
                    last = item
                    break
            if last is None:
                after = None
                break
            after = last.active, session_of_member(last.member)
            if len(chosen) == limit:
                break
        states = await self._states(link, chosen) if state else [None] * len(chosen)
        return Page(
            tuple(
                Listed(stored.head, one)
                for stored, one in zip(chosen, states, strict=True)
            ),
            None if after is None else _checks.cursor_text(order, *after),
        )

    async def _walk(
        self,
        link: Link,
        query: Query,
        after: tuple[int, SessionKey] | None,
        order: Order,
        limit: int,
    ) -> tuple[list[_Found], _Found | None]:
        index = self._core.index.keys
        since, before = query.active_since, query.active_before
        args: list[Any] = [
            order,
            _prefix(query),
            *[
                _ANY if part is None else part.encode()
                for part in (query.app, query.user, query.scope)
            ],
            "" if since is None or order == "key" else to_micros(since),
            "" if before is None or order == "key" else to_micros(before),
            "" if after is None else after[0],
            "" if after is None else member_of(after[1]),
            limit,
            _EXAMINED,
            _FEW,
            *[label.encode() for label in sorted(query.labels)],
        ]
        while True:
            reply = await link.run(WALK, index[:6], args, write=False)
            if text(reply[0]) != "lost":
                break
            await self._repair.rebuild(link)
        found = [
            _Found(member, _active(score))
            for member, score in zip(reply[4::2], reply[5::2], strict=True)
        ]
        if not reply[1]:
            return found, None
        return found, _Found(reply[2], _active(reply[3] or b"0"))

    async def _matching(
        self, link: Link, query: Query, found: Sequence[_Found]
    ) -> list[tuple[_Found, Stored | None]]:
        """Return what was found, with the heads of those that match."""
        core = self._core
        keys = [session_of_member(item.member) for item in found]
        heads = await read_heads(link, core, keys)
        now = core.rules.now()
        phantoms: list[SessionKey] = []
        moves = Operations()
        matching: list[tuple[_Found, Stored | None]] = []
        for item, key, stored in zip(found, keys, heads, strict=True):
            if stored is None:
                # What a rule may have let go is for `expire` to report.
                if not core.rules.sessions.enabled and self._repair.settled(
                    link, item.active, now
                ):
                    phantoms.append(key)
                matching.append((item, None))
                continue
            if isinstance(stored, SessionDamagedError):
                raise stored
            active = to_micros(stored.head.last_active_at)
            if active > item.active and float(active) != float(item.active):
                core.index.move(moves, item.member, active)
            fits = core.rules.matches(stored.head, query, now)
            matching.append((item, stored if fits else None))
        await operate(link, moves)
        await self._repair.forget(link, phantoms)
        return matching

    async def _states(self, link: Link, some: Sequence[Stored]) -> list[Any]:
        core = self._core
        replies = await link.commands(
            [("HGETALL", core.names.session(s.head.key)[0]) for s in some]
        )
        states: list[Any] = []
        for stored, fields in zip(some, replies, strict=True):
            pairs = [(text(name), text(value)) for name, value in fields.items()]
            states.append(
                core.values.decode(
                    stored.head.key,
                    sorted(
                        (name.removeprefix("state:"), value)
                        for name, value in pairs
                        if name.startswith("state:")
                    ),
                )
            )
        return states


def _active(score: bytes | str) -> int:
    return -int(float(score))


def _prefix(query: Query) -> bytes:
    prefix = ""
    for part in (query.app, query.user, query.scope):
        if part is None:
            break
        prefix += f"{part}\0"
    return prefix.encode()
