"""`DumpReader`: the lines of a dump, checked one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from raf_session.changes import (
    Change,
    LabelDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.clock import to_micros
from raf_session.encoding import RawRow
from raf_session.entries import Entry, EntryKind
from raf_session.errors import DumpDamagedError, SchemaVersionError, SessionDamagedError
from raf_session.json_text import dump_json, load_json
from raf_session.keys import SessionKey, check_name
from raf_session.messages import ChatMessage
from raf_session.options import NewSession
from raf_session.raf_json import parse_time
from raf_session.transfer.images import BODIES

__all__ = ("DUMP_VERSION", "DumpHead", "DumpReader")

DUMP_VERSION: Final = 1
"""The version of the format that `dump` writes."""

_Part = Literal["archived", "active"]


@dataclass(frozen=True, slots=True)
class DumpHead:
    """The first line of a dump."""

    new: NewSession
    created_at: int
    """In microseconds, as is the next."""
    last_active_at: int
    change: Change


class DumpReader:
    """Takes the lines of a dump, one after another."""

    def __init__(self) -> None:
        self._line = 0
        self._head: DumpHead | None = None
        self._entries: dict[_Part, list[Entry]] = {"archived": [], "active": []}
        self._ids: set[str] = set()
        self._ended = False

    def take(self, text: str | bytes) -> None:
        """Read one line.

        Raises:
            DumpDamagedError: it does not belong here.
            SchemaVersionError: a newer version wrote it.
        """
        self._line += 1
        if not text.strip():
            return
        try:
            self._take(load_json(text))
        except (DumpDamagedError, SchemaVersionError):
            raise
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            reason = f"{type(error).__name__}: {error}"
            raise DumpDamagedError(self._line, reason) from error
        except SessionDamagedError as error:
            raise DumpDamagedError(self._line, error.detail) from error

    def _take(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise DumpDamagedError(self._line, "not a JSON object")
        fields = cast("dict[str, Any]", value)
        if self._ended:
            raise DumpDamagedError(self._line, "a line behind the end")
        if self._head is None:
            self._head = self._read_head(fields)
            return
        match list(fields):
            case ["archived"] if not self._entries["active"]:
                self._take_entry("archived", fields["archived"])
            case ["active"]:
                self._take_entry("active", fields["active"])
            case ["end"]:
                self._end(fields["end"])
            case names:
                raise DumpDamagedError(self._line, f"{names} do not belong here")

    def _end(self, written: Any) -> None:
        found = {part: len(entries) for part, entries in self._entries.items()}
        if written != found:
            raise DumpDamagedError(
                self._line, f"{written} were written, {found} are there"
            )
        self._ended = True

    def _read_head(self, value: dict[str, Any]) -> DumpHead:
        version = value.get("raf_session_dump")
        if type(version) is not int or version < 1:
            raise DumpDamagedError(self._line, "not the head of a dump")
        if version > DUMP_VERSION:
            raise SchemaVersionError("dump", version, DUMP_VERSION)
        _no_more(value, _HEAD)
        session = _object(value["session"], "session")
        _no_more(session, _SESSION)
        times = {
            name: parse_time(session[name], name)
            for name in ("created_at", "updated_at", "last_active_at")
        }
        new = NewSession(
            key=SessionKey.parse(value["key"]),
            session_type=_text(session["type"]),
            pinned=_flag(session["pinned"]),
            forked_from=_text_or_none(session["forked_from"]),
            **times,
        )
        request = value["request"]
        change = Change(
            session=StateDelta(_object(value["state"], "state")),
            providers=StateDelta(_object(value["provider_states"], "provider_states")),
            request=None if request is None else _request(request).after(None),
            title=_text(session["title"]),
            model=_text(session["model"]),
            status=SessionStatus(session["status"]),
            labels=LabelDelta(_names(session["labels"], "labels")),
        )
        return DumpHead(
            new,
            to_micros(times["created_at"]),
            to_micros(times["last_active_at"]),
            change,
        )

    def _take_entry(self, part: _Part, entry: object) -> None:
        value = _object(entry, part)
        _no_more(value, _ENTRY)
        _check_event(_object(value["body"], "body"))
        entry_id = check_name(value["id"], "id")
        if entry_id in self._ids:
            raise DumpDamagedError(self._line, f"the id {entry_id!r} comes twice")
        self._ids.add(entry_id)
        stored_us = _whole(value["stored_at"], "stored_at")
        kind = EntryKind(value["kind"]).value
        row: RawRow = (0, 0, entry_id, kind, stored_us, dump_json(value["body"]), None)
        (decoded,) = BODIES.decode(SessionKey(session="dump"), [row])
        self._entries[part].append(_checked(decoded))

    def finish(self) -> tuple[DumpHead, list[Entry], list[Entry]]:
        """Return head, archived and active entries.

        Raises:
            DumpDamagedError: the end is missing.
        """
        if self._head is None or not self._ended:
            raise DumpDamagedError(self._line + 1, "the dump ends before its end")
        return self._head, self._entries["archived"], self._entries["active"]


def _checked(entry: Entry) -> Entry:
    """Check what a journal would take on trust from its own storage."""
    message = entry.message
    if message is not None:
        message = ChatMessage.from_openai(
            message.wire(),
            id=message.id,
            created_at=message.created_at,
            metadata=message.metadata,
            source=message.source,
        )
    return Entry(
        entry.id,
        entry.kind,
        message,
        *entry[3:7],
        entry.state_delta,
        entry.usage,
        entry.metadata,
        entry.extra,
        stored_at=entry.stored_at,
    )


# Kinds ---------------------------------------------------------------------------

_HEAD: Final = frozenset(
    ("raf_session_dump", "key", "session", "state", "provider_states", "request")
)
_SESSION: Final = frozenset(
    (
        *("type", "created_at", "updated_at", "last_active_at", "pinned"),
        *("title", "model", "status", "labels", "forked_from"),
    )
)
_REQUEST: Final = frozenset(("digests", "hash", "header", "format"))
_ENTRY: Final = frozenset(("id", "kind", "stored_at", "body"))
_TEXTS: Final = ("author", "invocation_id", "branch")
_OBJECTS: Final = ("message", "own", "usage", "metadata", "extra")
_EVENT: Final = frozenset((*_TEXTS, *_OBJECTS, "timestamp", "state_delta"))
_DELTA: Final = frozenset(("set", "deleted"))
_MAX_FORMAT: Final = (1 << 31) - 1


def _no_more(value: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse fields that would be lost: another version may give them a meaning."""
    others = sorted(value.keys() - known)
    if others:
        raise ValueError(f"{others} do not belong here")


def _check_event(body: Mapping[str, Any]) -> None:
    _no_more(body, _EVENT)
    for name in _TEXTS:
        _text_or_none(body.get(name))
    for name in _OBJECTS:
        if name in body:
            _object(body[name], name)
    if "timestamp" in body and type(body["timestamp"]) not in {int, float}:
        raise TypeError("timestamp is not a number")
    if "state_delta" in body:
        delta = _object(body["state_delta"], "state_delta")
        _no_more(delta, _DELTA)
        _object(delta["set"], "set")
        _names(delta["deleted"], "deleted")


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {type(value).__name__}, not an object")
    return cast("dict[str, Any]", value)


def _names(value: object, name: str) -> list[str]:
    if not isinstance(value, list):
        raise TypeError(f"{name} is {type(value).__name__}, not a list")
    return [_text(one) for one in cast("list[object]", value)]


def _whole(value: object, name: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{name} is not a whole number")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{type(value).__name__} where true or false is expected")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text is expected")
    return value


def _request(value: object) -> RequestRecord:
    fields = _object(value, "request")
    _no_more(fields, _REQUEST)
    header = fields["header"]
    version = _whole(fields["format"], "format")
    if not 1 <= version <= _MAX_FORMAT:
        raise ValueError(f"format {version} is none")
    return RequestRecord(
        bytes.fromhex(_text(fields["digests"])),
        _whole(fields["hash"], "hash"),
        None if header is None else _whole(header, "header"),
        version,
    )
