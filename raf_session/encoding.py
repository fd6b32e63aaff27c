"""Entries as JSON text: the body that every backend stores as it is."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias, cast

from raf_session.changes import StateDelta
from raf_session.entries import Counts, Entry, EntryKind, raw_entry
from raf_session.errors import EntryTooLargeError, SessionDamagedError
from raf_session.frozen import EMPTY, freeze_json
from raf_session.journal import Codec
from raf_session.json_text import dump_json, load_written
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage, MessageSource, Usage
from raf_session.raf_json import format_time

__all__ = ("BODY_VERSION", "BodyFormat", "RawRow", "Row")

BODY_VERSION: Final = 1
"""The version of the JSON that `BodyFormat` writes."""

_KINDS: Final = {kind.value: kind for kind in EntryKind}
_EVENT_FIELDS: Final = ("author", "invocation_id", "branch", "timestamp")


class Row(NamedTuple):
    """An entry as it is stored."""

    seq: int
    left_at: int
    """0 while it is active, else the revision that archived it."""
    id: str
    kind: str
    stored_at: int
    """Microseconds since the epoch."""
    body: str
    counts: Counts


RawRow: TypeAlias = tuple[int, int, str, str, int, str, Any]
"""A `Row`, or a tuple of the same fields; reading looks at no counts."""


class BodyFormat:
    """Turns entries into bodies and back.

    Args:
        backend: the journal's name, for errors.
        codec: what stands between JSON and storage.
        max_entry_bytes: the most that an encoded body may have.
    """

    def __init__(self, backend: str, codec: Codec | None, max_entry_bytes: int) -> None:
        self._backend = backend
        self._codec = codec
        self._limit = max_entry_bytes

    def encode(self, entry: Entry) -> str:
        """Return the body: the caller's event as JSON text.

        Raises:
            EntryTooLargeError: it is over the limit.
        """
        text = dump_json(_event_to_json(entry))
        if self._codec is not None:
            coded = self._codec.encode(text.encode())
            text = f'"{base64.b64encode(coded).decode()}"'
        size = len(text) if text.isascii() else len(text.encode())
        if size > self._limit:
            raise EntryTooLargeError(entry.id, size, self._limit)
        return text

    def same(self, key: SessionKey, row: Row, entry: Entry) -> bool:
        """Tell whether a stored row holds this very event.

        Raises:
            SessionDamagedError: the codec cannot read its body; it names the place.
        """
        try:
            stored = self._json(row.body)
        except Exception as error:
            raise self._damage(key, (row,), error) from error
        return row.kind == entry.kind.value and stored == dump_json(
            _event_to_json(entry)
        )

    def decode(self, key: SessionKey, rows: Sequence[RawRow]) -> tuple[Entry, ...]:
        """Return the entries of these rows, read in one pass.

        Raises:
            SessionDamagedError: a body cannot be read; it names the place.
        """
        if not rows:
            return ()
        try:
            bodies = [row[5] for row in rows]
            if self._codec is not None:
                bodies = [self._json(body) for body in bodies]
            events = load_written(f"[{','.join(bodies)}]")
            if len(events) != len(rows):
                raise ValueError("a body holds more than one value")  # noqa: TRY301
            return tuple(map(_entry, rows, events))
        except Exception as error:
            raise self._damage(key, rows, error) from error

    def _json(self, body: str) -> str:
        if self._codec is None:
            return body
        return self._codec.decode(base64.b64decode(body.strip('"'))).decode()

    def _damage(
        self, key: SessionKey, rows: Iterable[RawRow], error: Exception
    ) -> SessionDamagedError:
        for row in rows:
            try:
                _entry(row, load_written(self._json(row[5])))
            except Exception as fault:  # noqa: BLE001  (a codec may raise anything)
                detail = f"entry {row[2]!r} at {row[0]}: {fault}"
                return SessionDamagedError(key, self._backend, detail)
        return SessionDamagedError(key, self._backend, str(error))


# Entry to JSON -------------------------------------------------------------------


def _event_to_json(entry: Entry) -> dict[str, Any]:
    event: dict[str, Any] = {}
    message = entry.message
    if message is not None:
        event["message"] = message.wire()
        own = _own_to_json(message)
        if own:
            event["own"] = own
    if entry[3:11] == _NO_EVENT:
        return event
    if entry[3:7] != _NO_FIELDS:
        fields = zip(_EVENT_FIELDS, entry[3:7], strict=True)
        event.update((name, value) for name, value in fields if value is not None)
    if entry.state_delta is not None:
        event["state_delta"] = {
            "set": entry.state_delta.set,
            "deleted": sorted(entry.state_delta.deleted),
        }
    if entry.usage is not None:
        event["usage"] = entry.usage.model_dump(exclude_none=True)
    if entry.metadata:
        event["metadata"] = entry.metadata
    if entry.extra:
        event["extra"] = entry.extra
    return event


def _own_to_json(message: ChatMessage) -> dict[str, Any]:
    own: dict[str, Any] = {}
    if message.id is not None:
        own["id"] = message.id
    if message.created_at is not None:
        own["created_at"] = format_time(message.created_at)
    if message.metadata:
        own["metadata"] = message.metadata
    if message.source is not None:
        own["source"] = message.source.value
    return own


# JSON to entry -------------------------------------------------------------------


def _entry(row: RawRow, event: dict[str, Any]) -> Entry:
    seq, left_at, entry_id, kind, stored_us, _, _ = row
    if len(event) == 1 and "message" in event:
        message = ChatMessage.from_stored(event["message"], EMPTY)
        plain = _NO_EVENT
    else:
        fields, own = event.pop("message", None), event.pop("own", None)
        message = fields and ChatMessage.from_stored(fields, _own(own))
        plain = _event(event) if event else _NO_EVENT
    return raw_entry((entry_id, _KINDS[kind], message, *plain, seq, stored_us, left_at))


def _event(event: dict[str, Any]) -> tuple[Any, ...]:
    get = event.get
    delta, usage = get("state_delta"), get("usage")
    return (
        *[get(name) for name in _EVENT_FIELDS],
        None if delta is None else StateDelta(delta["set"], delta["deleted"]),
        None if usage is None else Usage(**usage),
        freeze_json(_an_object(get("metadata", EMPTY))),
        freeze_json(_an_object(get("extra", EMPTY))),
    )


_NO_FIELDS: Final = (None,) * 4
_NO_EVENT: Final = (*(None,) * 6, EMPTY, EMPTY)


def _an_object(value: object) -> object:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where an object is expected")
    return value  # pyright: ignore[reportUnknownVariableType]


def _own(fields: dict[str, Any] | None) -> Mapping[str, Any]:
    if fields is None:
        return EMPTY
    if "created_at" in fields:
        fields["created_at"] = datetime.fromisoformat(fields["created_at"])
    if "metadata" in fields:
        fields["metadata"] = freeze_json(fields["metadata"])
    if "source" in fields:
        fields["source"] = MessageSource(fields["source"])
    return cast("Mapping[str, Any]", fields)
