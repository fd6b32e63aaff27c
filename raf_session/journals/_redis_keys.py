"""The names of keys in Redis, and how sessions and scopes are called in indexes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from raf_session.keys import ScopeKey, SessionKey

__all__ = (
    "IndexKeys",
    "Names",
    "ScopeKeys",
    "is_remote",
    "member_of",
    "scope_member",
    "scope_of_member",
    "session_of_member",
)

_ESCAPES: Final = str.maketrans({"%": "%25", ":": "%3a", "{": "%7b", "}": "%7d"})


_NO_APP: Final = "%"
"""What stands for the empty app where it is alone: empty braces are no hash tag."""


def _escape(part: str) -> str:
    return part.translate(_ESCAPES)


def _unescape(part: str) -> str:
    for char in ":{}":
        part = part.replace(f"%{ord(char):02x}", char)
    return part.replace("%25", "%")


class ScopeKeys(NamedTuple):
    """The keys of one scope; they share a slot."""

    state: bytes
    owed: bytes
    """The numbers that were drawn and are not known to be applied."""


class IndexKeys(NamedTuple):
    """The keys of the index, which share a slot of their own."""

    keys: bytes
    activity: bytes
    created: bytes
    tokens: bytes
    labels: bytes
    walk: bytes
    scopes: bytes
    app_activity: bytes
    app_created: bytes
    user_activity: bytes
    user_created: bytes
    owing: bytes

    def of_scope(self, scope: ScopeKey) -> tuple[bytes, bytes, bytes]:
        """Return where a scope stands: by name, by activity, by creation."""
        if scope.user is None:
            return self.scopes, self.app_activity, self.app_created
        return self.scopes, self.user_activity, self.user_created


class Names:
    """The keys under one prefix.

    Sessions: ``{prefix}:session:{app:user}:{scope}:{session}``, the braces written as
    they stand: they make a user's sessions and state share a slot.  A session without
    a user stands alone: its braces hold its whole key.  Parts are escaped.

    Args:
        prefix: what stands in front of every key.

    Raises:
        ValueError: the prefix is empty or holds a brace or a NUL.
    """

    def __init__(self, prefix: str) -> None:
        if not prefix or set(prefix) & set("{}\0"):
            raise ValueError(f"{prefix!r} cannot stand in front of keys in Redis")
        self.prefix: Final = prefix
        self.schema: Final = f"{prefix}:schema".encode()
        index = f"{prefix}:{{index}}"
        self.index: Final = IndexKeys(
            *[f"{index}:{name}".encode() for name in IndexKeys._fields]
        )
        self._sessions: Final = tuple(
            f"{prefix}:{kind}:"
            for kind in ("session", "entries", "archive", "ids", "digests")
        )
        self._cached: Final = lru_cache(maxsize=256)(self._session)

    def session(self, key: SessionKey) -> Sequence[bytes]:
        """Return the five keys of a session: its head first."""
        return self._cached(key)

    def _session(self, key: SessionKey) -> Sequence[bytes]:
        app, user, scope, session = map(_escape, key)
        if user:
            rest = f"{{{app}:{user}}}:{scope}:{session}"
        else:
            rest = f"{{{app}::{scope}:{session}}}"
        return tuple([f"{front}{rest}".encode() for front in self._sessions])

    def scope(self, scope: ScopeKey) -> ScopeKeys:
        """Return the keys of a scope."""
        app = _escape(scope.app) or _NO_APP
        if scope.user is None:
            kind, tag = "app", f"{{{app}}}"
        else:
            kind, tag = "user", f"{{{_escape(scope.app)}:{_escape(scope.user)}}}"
        return ScopeKeys(
            f"{self.prefix}:{kind}_state:{tag}".encode(),
            f"{self.prefix}:{kind}_owed:{tag}".encode(),
        )

    # Back ------------------------------------------------------------------------

    def patterns(self) -> tuple[bytes, ...]:
        """Return what `SCAN` matches heads of sessions and states of scopes with."""
        literal = "".join(f"\\{c}" if c in "*?[]^\\" else c for c in self.prefix)
        return tuple(
            f"{literal}:{kind}:{{*".encode()
            for kind in ("session", "user_state", "app_state")
        )

    def parse(self, name: bytes) -> SessionKey | ScopeKey | None:
        """Return whose key this is, `None` where it is no head and no state of ours.

        A journal whose prefix begins with this one has keys that look like ours.
        """
        try:
            found = self._parse(name)
        except ValueError:
            return None
        if isinstance(found, SessionKey):
            own = self.session(found)[0]
        else:
            own = self.scope(found).state
        return found if own == name else None

    def _parse(self, name: bytes) -> SessionKey | ScopeKey:
        text = name.decode().removeprefix(f"{self.prefix}:")
        kind, _, rest = text.partition(":")
        parts = [_unescape(p) for p in rest.translate({123: "", 125: ""}).split(":")]
        if kind == "session" and len(parts) == 4:
            return SessionKey(*parts)
        if kind == "user_state" and len(parts) == 2:
            return ScopeKey(*parts)
        if kind == "app_state" and len(parts) == 1:
            return ScopeKey("" if parts[0] == _NO_APP else parts[0])
        raise ValueError(f"{text!r} names neither a session nor a state")


def is_remote(scope: ScopeKey) -> bool:
    """Tell whether a scope stands in another slot than its sessions."""
    return not scope.user


# Members of indexes --------------------------------------------------------------


def member_of(key: SessionKey) -> bytes:
    """Return what stands for a session: its parts, in an order of exact bytes."""
    return "\0".join(key).encode()


def session_of_member(member: bytes) -> SessionKey:
    """Return the session of a member."""
    return SessionKey(*member.decode().split("\0"))


def scope_member(scope: ScopeKey) -> bytes:
    """Return what stands for a scope."""
    if scope.user is None:
        return b"a\0" + scope.app.encode()
    return f"u\0{scope.app}\0{scope.user}".encode()


def scope_of_member(member: bytes) -> ScopeKey:
    """Return the scope of a member."""
    return ScopeKey(*member.decode().split("\0")[1:])
