"""Entries as JSON text: the body that every backend stores as it is."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from raf_session._stored_py import (
    EVENT_FIELDS,
    NO_EVENT,
    RawRow,
    Row,
    WholeRow,
    entry_of,
    whole_row,
)
from raf_session.entries import Entry
from raf_session.errors import EntryTooLargeError, SessionDamagedError
from raf_session.journal import Codec
from raf_session.json_text import dump_json, load_written
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.raf_json import format_time

__all__ = (
    "BODY_VERSION",
    "BodyFormat",
    "RawRow",
    "Row",
    "WholeRow",
    "row_of",
    "rows_of",
    "stored_entries",
)

BODY_VERSION: Final = 1
"""The version of the JSON that `BodyFormat` writes."""

_NO_FIELDS: Final = (None,) * 4

if TYPE_CHECKING or os.environ.get("RAF_SESSION_PURE") == "1":
    from raf_session._stored_py import (
        plain_text,
        read_entries,
        row_of,
        rows_of,
        stored_entries,
    )
else:
    try:
        from raf_session._stored import (
            plain_text,
            read_entries,
            row_of,
            rows_of,
            stored_entries,
        )
    except ModuleNotFoundError:  # a pure build; a broken one still raises
        from raf_session._stored_py import (
            plain_text,
            read_entries,
            row_of,
            rows_of,
            stored_entries,
        )


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
        text = plain_text(entry)  # most messages, at a tenth of the cost
        if text is None:
            text = dump_json(_event_to_json(entry))
        if self._codec is not None:
            coded = self._codec.encode(text.encode())
            text = f'"{base64.b64encode(coded).decode()}"'
        if 4 * len(text) > self._limit:  # as many bytes as it may have at most
            self._check_size(entry, text)
        return text

    def _check_size(self, entry: Entry, text: str) -> None:
        size = len(text) if text.isascii() else len(text.encode())
        if size > self._limit:
            raise EntryTooLargeError(entry.id, size, self._limit)

    def same(self, key: SessionKey, row: Row, entry: Entry) -> bool:
        """Tell whether a stored row holds this very event.

        Raises:
            SessionDamagedError: the codec cannot read its body; it names the place.
        """
        try:
            stored = self._json(row.body)
        except Exception as error:
            raise self._damage(key, (row,), error) from error
        return row.kind == entry.kind.value and stored == _event_text(entry)

    def decode(self, key: SessionKey, rows: Sequence[RawRow]) -> tuple[Entry, ...]:
        """Return the entries of these rows, read in one pass.

        Raises:
            SessionDamagedError: a body cannot be read; it names the place.
        """
        if not rows:
            return ()
        try:
            return read_entries(rows, None if self._codec is None else self._json)
        except Exception as error:
            raise self._damage(key, rows, error) from error

    def _json(self, body: str) -> str:
        if self._codec is None:
            return body
        return self._codec.decode(base64.b64decode(body.strip('"'))).decode()

    def _damage(
        self, key: SessionKey, rows: Iterable[RawRow], error: Exception
    ) -> SessionDamagedError:
        for row in map(whole_row, rows):
            try:
                entry_of(row, load_written(self._json(row[5])))
            except Exception as fault:  # noqa: BLE001  (a codec may raise anything)
                detail = f"entry {row[2]!r} at {row[0]}: {fault}"
                return SessionDamagedError(key, self._backend, detail)
        return SessionDamagedError(key, self._backend, str(error))


# Entry to JSON -------------------------------------------------------------------


def _event_text(entry: Entry) -> str:
    text = plain_text(entry)
    return dump_json(_event_to_json(entry)) if text is None else text


def _event_to_json(entry: Entry) -> dict[str, Any]:
    event: dict[str, Any] = {}
    message = entry.message
    if message is not None:
        event["message"] = message.wire()
        own = _own_to_json(message)
        if own:
            event["own"] = own
    if entry[3:11] == NO_EVENT:
        return event
    if entry[3:7] != _NO_FIELDS:
        fields = zip(EVENT_FIELDS, entry[3:7], strict=True)
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
