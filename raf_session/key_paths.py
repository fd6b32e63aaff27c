"""The TPCLAW face's keys, and the file that each session's key names.

Every function is pure and every mapping injective: no two keys share a text or a file.
"""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Final, NamedTuple, TypeVar, cast

from raf_session.errors import InvalidValueError
from raf_session.keys import (
    SessionKey,
    check_name,
    check_part,
    escape,
    text_of,
    unescape,
)

__all__ = (
    "DEFAULT_NAME",
    "AgentParts",
    "SessionScope",
    "agent_key",
    "agent_parts",
    "check_agent_key",
    "enum_member",
    "format_agent_key",
    "join_scope_id",
    "parse_agent_key",
    "safe_component",
    "session_path",
)

DEFAULT_NAME: Final = "default"
"""The agent or the channel of a key that names none."""


class SessionScope(StrEnum):
    """What keeps the sessions of one agent and channel apart."""

    MAIN = "main"
    PER_PEER = "per_peer"
    PER_CHANNEL_PEER = "per_channel_peer"
    PER_ACCOUNT_CHANNEL = "per_account_channel"
    THREAD = "thread"
    TASK = "task"


_E = TypeVar("_E", bound=StrEnum)


def enum_member(kind: type[_E], value: object, path: str) -> _E:
    """Return the member that a value is or names.

    Raises:
        InvalidValueError: it is none; the reason lists them.
    """
    try:
        return kind(cast("str", value))
    except ValueError:
        known = f"{', '.join(kind)} ({kind.__name__})"
        reason = f"expected one of {known}, not {value!r:.60}"
        raise InvalidValueError(path, reason) from None


class AgentParts(NamedTuple):
    """The four parts of a TPCLAW key."""

    agent: str
    channel: str
    scope: SessionScope
    scope_id: str


_FIELDS: Final[dict[SessionScope, tuple[str, ...]]] = {
    SessionScope.MAIN: (),
    SessionScope.PER_PEER: ("peer",),
    SessionScope.PER_CHANNEL_PEER: ("chat", "peer"),
    SessionScope.PER_ACCOUNT_CHANNEL: ("account", "chat", "peer"),
    SessionScope.THREAD: ("chat", "thread"),
    SessionScope.TASK: ("task",),
}
_SCOPES: Final = {scope.value: scope for scope in SessionScope}
_MAIN_ID: Final = "main"
_AGENT_FORM: Final = "'agent:{agent}:channel:{channel}:scope:{scope}:{scope id}'"
_AGENT_KEY: Final = re.compile(
    r"agent:([^:]+):channel:([^:]+):scope:([a-z_]+):(.+)", re.DOTALL
)


def join_scope_id(
    scope: SessionScope | str,
    *,
    account: str | None = None,
    chat: str | None = None,
    peer: str | None = None,
    thread: str | None = None,
    task: str | None = None,
) -> str:
    """Return the scope id of the fields that the scope names, and of no other.

    =====================  ===================
    scope                  id
    =====================  ===================
    main                   ``main``
    per_peer               peer
    per_channel_peer       chat/peer
    per_account_channel    account/chat/peer
    thread                 chat/thread
    task                   task
    =====================  ===================

    ``%`` and ``/`` in a field are written ``%25`` and ``%2f``. An absent chat is an
    empty part.

    Raises:
        InvalidValueError: there is no such scope, another field that it names is
            missing or empty, a field is no name, or the id is too long to be one.
    """
    scope = enum_member(SessionScope, scope, "scope")
    if scope is SessionScope.MAIN:
        return _MAIN_ID
    given = {
        "account": account,
        "chat": "" if chat is None else chat,
        "peer": peer,
        "thread": thread,
        "task": task,
    }
    parts: list[str] = []
    for field in _FIELDS[scope]:
        value = given[field]
        if value is None:
            raise InvalidValueError(field, f"is missing, and {scope} names it")
        check = check_part if field == "chat" else check_name
        parts.append(escape(check(value, field)))
    return check_name("/".join(parts), "scope_id")


def agent_key(
    scope: SessionScope | str,
    *,
    agent: str | None = None,
    channel: str | None = None,
    scope_id: str | None = None,
    account: str | None = None,
    chat: str | None = None,
    peer: str | None = None,
    thread: str | None = None,
    task: str | None = None,
) -> SessionKey:
    """Return the session key of a TPCLAW session.

    Its `app` is the agent, its `scope` the channel and the scope type
    (``discord:per_peer``), its `session` the scope id. Its `user` follows from these:
    the id's last part, unescaped, where the scope names a peer and the id has as many
    parts as the scope names; else empty.

    Args:
        scope: which fields count.
        agent: its id; ``default`` where it is absent or empty.
        channel: its name, likewise; the main scope has no other than ``default``,
            whatever is given.
        scope_id: an id made elsewhere, taken as it is; the fields below then do not
            count.
        account: see `join_scope_id`, as for all that follow.
        chat: may be absent.
        peer: the person.
        thread: the topic.
        task: the task.

    Raises:
        InvalidValueError: there is no such scope; a part is missing, no name or too
            long; channel and scope type share the 512 bytes of one name; the id of main
            is not ``main``.
    """
    scope = enum_member(SessionScope, scope, "scope")
    if scope_id is None:
        scope_id = join_scope_id(
            scope, account=account, chat=chat, peer=peer, thread=thread, task=task
        )
    scope_id = check_name(scope_id, "scope_id")
    if scope is SessionScope.MAIN:
        channel = None
        if scope_id != _MAIN_ID:
            raise InvalidValueError("scope_id", "the main session has the id 'main'")
    channel = _named(channel, "channel")
    return SessionKey(
        app=_named(agent, "agent"),
        user=_peer_of(scope, scope_id),
        scope=check_name(f"{channel}:{scope}", "channel"),
        session=scope_id,
    )


def _named(value: str | None, field: str) -> str:
    return DEFAULT_NAME if value is None else check_part(value, field) or DEFAULT_NAME


def _peer_of(scope: SessionScope, scope_id: str) -> str:
    fields = _FIELDS[scope]
    if "peer" not in fields:
        return ""
    parts = scope_id.split("/")
    return unescape(parts[-1]) if len(parts) == len(fields) else ""


def agent_parts(key: SessionKey) -> AgentParts | None:
    """Return the parts of a key that `agent_key` could have made, else `None`.

    The `scope` of such a key is a channel, a colon and a scope type; its `app` is not
    empty, and its `user` is the one that follows from scope and id.
    """
    channel, _, kind = key.scope.rpartition(":")
    scope = _SCOPES.get(kind)
    if not channel or not key.app or scope is None:
        return None
    ours = (DEFAULT_NAME, _MAIN_ID)
    if scope is SessionScope.MAIN and (channel, key.session) != ours:
        return None
    if key.user != _peer_of(scope, key.session):
        return None
    return AgentParts(key.app, channel, scope, key.session)


def check_agent_key(key: SessionKey) -> AgentParts:
    """Return the parts of a TPCLAW session's key.

    Raises:
        InvalidValueError: the key is not a TPCLAW session's.
    """
    parts = agent_parts(key)
    if parts is None:
        reason = f"{_cited(str(key))} is not the key of an agent's session"
        raise InvalidValueError("key", reason)
    return parts


def format_agent_key(key: SessionKey) -> str:
    """Return ``agent:{agent}:channel:{channel}:scope:{scope}:{scope id}``.

    ``%`` and ``:`` in agent and channel are written ``%25`` and ``%3a``; the id comes
    last and stands as it is.

    Raises:
        InvalidValueError: the key is not a TPCLAW session's.
    """
    parts = check_agent_key(key)
    agent, channel = escape(parts.agent, ":"), escape(parts.channel, ":")
    return f"agent:{agent}:channel:{channel}:scope:{parts.scope}:{parts.scope_id}"


def parse_agent_key(text: str) -> SessionKey:
    """Return the key that `format_agent_key` writes as this text.

    Raises:
        InvalidValueError: it writes no key so.
    """
    text = text_of(text, "key")
    match = _AGENT_KEY.fullmatch(text)
    if match is None:
        raise InvalidValueError("key", f"expected {_AGENT_FORM}, not {_cited(text)}")
    key = agent_key(
        match[3],
        agent=unescape(match[1], ":"),
        channel=unescape(match[2], ":"),
        scope_id=match[4],
    )
    if (written := format_agent_key(key)) != text:
        reason = f"{_cited(text)} is written {_cited(written)}"
        raise InvalidValueError("key", reason)
    return key


def _cited(text: str) -> str:
    return f"{text!r:.100}"


# Files -------------------------------------------------------------------------

_MAX_STEM: Final = 200
_DIGEST_BYTES: Final = 32
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-@+")
_ENCODED: Final = tuple(
    chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in range(256)
)
_DEVICE: Final = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")
_CUT_CODE: Final = re.compile(r"%[0-9a-f]?\Z")
_AGENT_STEM: Final = re.compile(f"({'|'.join(_SCOPES)})_")


def session_path(key: SessionKey) -> PurePosixPath:
    """Return where a session's file is, relative to the base directory.

    * TPCLAW: ``{agent}/{channel}/{scope}_{scope id}.jsonl``;
    * others: ``{app}/{user}/{session}.jsonl``, and
      ``{app}/{user}/{scope}/{session}.jsonl`` where the key has a scope.

    Each part is written as `safe_component` has it; in a session's name that begins
    like a TPCLAW file's, as ``task_``, that underscore is written ``%5f``. So no two
    keys share a file, none has the other's file for a directory, and no key leaves
    the base directory.
    """
    parts = agent_parts(key)
    if parts is not None:
        stem = f"{parts.scope}_{_encode(parts.scope_id)}"
        folders = [parts.agent, parts.channel]
    else:
        stem = _encode_whole(key.session)
        if (kind := _AGENT_STEM.match(stem)) is not None:
            stem = f"{kind[1]}%5f{stem[kind.end() :]}"
        folders = [key.app, key.user, *([key.scope] if key.scope else ())]
    return PurePosixPath(*map(safe_component, folders), f"{_shorten(stem)}.jsonl")


def safe_component(part: str) -> str:
    """Return the part as the name of one folder or, with a suffix, of one file.

    Lower-case ASCII letters, digits and ``_-@+`` stand as they are; every other byte
    of the UTF-8 is written ``%`` and two lower-case hex digits, the dot too: so the
    name is the same under any case folding and Unicode normalisation, is neither
    ``.`` nor ``..``, and never ends like a file. The empty part is ``_``, and ``_``
    itself ``%5f``. A Windows device (``con``) has its first letter written so. What
    would be longer than 200 bytes is cut, and ends in ``~`` and the 64 hex digits of
    the BLAKE2b of the whole.
    """
    return _shorten(_encode_whole(part))


def _encode_whole(part: str) -> str:
    if part in {"", "_"}:
        return "%5f" if part else "_"
    name = _encode(part)
    return f"%{ord(name[0]):02x}{name[1:]}" if _DEVICE.fullmatch(name) else name


def _encode(part: str) -> str:
    return "".join([_ENCODED[byte] for byte in part.encode()])


def _shorten(name: str) -> str:
    if len(name) <= _MAX_STEM:
        return name
    digest = blake2b(name.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    head = name[: _MAX_STEM - len(digest) - 1]
    return f"{_CUT_CODE.sub('', head)}~{digest}"
