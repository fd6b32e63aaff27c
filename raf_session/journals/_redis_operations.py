"""Operations that Python decides on and a script carries out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.expiry import ExpiryRule
from raf_session.journals._redis_keys import IndexKeys, Names, member_of, scope_member
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Index", "Operations", "Timing", "chunks")

_CHUNK: Final = 500
"""How many arguments a command inside a script may have: Lua's stack has an end."""
_LATEST_MS: Final = 10**14
_UNKNOWN: Final = "?"
"""Stands for an incarnation that cannot be read; no session has it."""


def chunks(words: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Cut the words of a long command; the pieces are even."""
    for start in range(0, len(words), _CHUNK):
        yield words[start : start + _CHUNK]


class Operations:
    """Keys, and what is to be done to them.

    Args:
        keys: the first keys, which the script knows by their places.

    Attributes:
        keys: all keys.
        words: the operations.
        plain: whether they are commands, and no more.
    """

    __slots__ = ("keys", "plain", "words")

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self.keys: list[bytes] = list(keys)
        self.words: list[Any] = []
        self.plain = True

    def number(self, *keys: bytes) -> int:
        """Return the number of the first of these keys; they stand together."""
        first = keys[0]
        if first in self.keys:
            place = self.keys.index(first)
            if tuple(self.keys[place : place + len(keys)]) == keys:
                return place + 1
        self.keys += keys
        return len(self.keys) - len(keys) + 1

    def add(self, name: str, key: bytes, *args: Any) -> None:
        """Add a command on one key."""
        self.words += (2 + len(args), name, self.number(key), *args)

    def special(self, name: str, *args: Any) -> None:
        """Add an operation of the scripts' own."""
        self.words += (1 + len(args), name, *args)
        self.plain = False


class Timing:
    """What the scripts are told of a rule of expiry.

    Args:
        grace_secs: how long after the rule the server may collect by itself.
    """

    def __init__(self, grace_secs: float) -> None:
        self._grace_ms = round(grace_secs * 1000)

    def terms(self, rule: ExpiryRule, now: int) -> str:
        """Return now, both cutoffs, both limits and the grace, ``-`` for off."""
        if not rule.enabled:
            return f"{now} - - - - {self._grace_ms}"
        numbers = (*rule.cutoffs(now), rule.max_idle, rule.max_lifetime)
        words = " ".join(["-" if n is None else str(n) for n in numbers])
        return f"{now} {words} {self._grace_ms}"

    def ttl(self, rule: ExpiryRule, head: SessionHead, owed: int, now: int) -> Any:
        """Return after how many milliseconds the server may collect, ``""``: never."""
        if head.pinned or owed or not rule.enabled:
            return ""
        ends: list[int] = []
        for limit, moment in (
            (rule.max_idle, to_micros(head.last_active_at)),
            (rule.max_lifetime, to_micros(head.created_at)),
        ):
            if limit is not None and moment:
                ends.append(moment + limit - now)
        if not ends:
            return ""
        return max(1, min(min(ends) // 1000 + self._grace_ms, _LATEST_MS))


class Index:
    """The operations that keep the index; they fit into any script's list.

    Args:
        names: the keys of the journal.
    """

    def __init__(self, names: Names) -> None:
        self.keys: IndexKeys = names.index

    @property
    def sorted_sets(self) -> list[bytes]:
        """The keys whose loss would hide something."""
        no_sets = {"tokens", "walk", "owing"}
        names = [name for name in IndexKeys._fields if name not in no_sets]
        return [getattr(self.keys, name) for name in names]

    def begin(self, ops: Operations) -> None:
        """Mark the index as being there, so that its loss is noticed."""
        for key in self.sorted_sets:
            ops.add("ZADD", key, 0, "")
        ops.add("HSET", self.keys.tokens, "", "")

    def enter(self, ops: Operations, head: SessionHead, *, anew: bool = True) -> None:
        """Add a session, as it is.

        Args:
            ops: the list to add to.
            head: the session.
            anew: whether it was created now; else it may have moved on meanwhile.
        """
        keys = self.keys
        member = member_of(head.key)
        active = -to_micros(head.last_active_at)
        ops.add("ZADD", keys.keys, 0, member)
        if anew:
            ops.special(
                "@unlabel", ops.number(keys.tokens), ops.number(keys.labels), member
            )
            ops.add("ZADD", keys.activity, active, member)
        else:
            ops.add("ZADD", keys.activity, "LT", active, member)
        ops.add("ZADD", keys.created, to_micros(head.created_at), member)
        labels = sorted(head.labels)
        token = "\0".join((head.incarnation, *labels)).encode()
        ops.add("HSET", keys.tokens, member, token)
        for label in labels:
            ops.add("ZADD", keys.labels, 0, label.encode() + b"\0" + member)

    def enter_damaged(self, ops: Operations, key: SessionKey) -> None:
        """Add a session of which nothing can be read, so that a listing names it."""
        keys = self.keys
        member = member_of(key)
        for name in (keys.keys, keys.activity, keys.created):
            ops.add("ZADD", name, "NX", 0, member)
        ops.add("HSETNX", keys.tokens, member, _UNKNOWN)

    def move(self, ops: Operations, member: bytes, last_active_us: int) -> None:
        """Move a session forward to its activity."""
        ops.add("ZADD", self.keys.activity, "LT", -last_active_us, member)

    def label(
        self,
        ops: Operations,
        member: bytes,
        added: Iterable[str],
        removed: Sequence[str],
    ) -> None:
        """Let a session be found under these labels, and no longer under those."""
        keys = self.keys
        found = sorted(added)
        ops.special(
            "@label",
            ops.number(keys.tokens),
            ops.number(keys.labels),
            member,
            len(found),
            *[label.encode() for label in (*found, *removed)],
        )

    def forget(self, ops: Operations, member: bytes, incarnation: str) -> None:
        """Take out a session of that incarnation; the result says whether it was in."""
        keys = self.keys
        sets = [ops.number(key) for key in (keys.keys, keys.activity, keys.created)]
        ops.special(
            "@forget",
            ops.number(keys.tokens),
            ops.number(keys.labels),
            member,
            incarnation,
            len(sets),
            *sets,
        )

    # Scopes ----------------------------------------------------------------------

    def scope_number(self, ops: Operations, scope: ScopeKey) -> int:
        """Return the number of the first key of a scope's index."""
        return ops.number(*self.keys.of_scope(scope))

    def announce_scope(self, ops: Operations, scope: ScopeKey, now: int) -> None:
        """Add a scope that is going to have state."""
        by_name, by_activity, by_creation = self.keys.of_scope(scope)
        member = scope_member(scope)
        ops.add("ZADD", by_name, 0, member)
        ops.add("ZADD", by_activity, "GT", now, member)
        ops.add("ZADD", by_creation, "NX", now, member)

    def enter_scope(
        self, ops: Operations, scope: ScopeKey, created: int, active: int
    ) -> None:
        """Add a scope, or move it forward."""
        by_name, by_activity, by_creation = self.keys.of_scope(scope)
        member = scope_member(scope)
        ops.add("ZADD", by_name, 0, member)
        ops.add("ZADD", by_activity, "GT", active, member)
        ops.add("ZADD", by_creation, created, member)
