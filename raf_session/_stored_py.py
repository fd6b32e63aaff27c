"""Stored rows as entries, in pure Python; ``ext/_stored.pyx`` does the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, cast

from raf_session.changes import StateDelta
from raf_session.entries import Entry, EntryKind, raw_entry
from raf_session.frozen import EMPTY, freeze_json
from raf_session.json_text import load_written
from raf_session.messages import ChatMessage, MessageSource, Usage

__all__ = ("EVENT_FIELDS", "NO_EVENT", "RawRow", "entry_of", "read_entries")

RawRow: TypeAlias = tuple[int, int, str, str, int, str, Any]
"""The fields of `encoding.Row`; reading does not look at the counts."""

EVENT_FIELDS: Final = ("author", "invocation_id", "branch", "timestamp")
"""What stands in an event as it stands in an entry, from place 3 on."""

NO_EVENT: Final = (*(None,) * 6, EMPTY, EMPTY)
"""What stands in an entry that is a message alone, from place 3 on."""

_KINDS: Final = {kind.value: kind for kind in EntryKind}


def read_entries(
    rows: Iterable[RawRow], decode: Callable[[str], str] | None = None
) -> tuple[Entry, ...]:
    """Return the entries of these rows; what `decode` makes of a body is JSON text.

    Raises:
        Exception: a row or a body was written by something else, or cannot be read.
    """
    return tuple(
        [
            entry_of(row, load_written(row[5] if decode is None else decode(row[5])))
            for row in rows
        ]
    )


def entry_of(row: RawRow, event: dict[str, Any]) -> Entry:
    """Return the entry of a row and of the JSON value of its body.

    The value is used up: what is no longer needed is taken out of it.
    """
    seq, left_at, entry_id, kind, stored_us, _, _ = row
    message: ChatMessage | None = None
    if len(event) == 1 and "message" in event:
        message = ChatMessage.from_stored(event["message"], EMPTY)
        plain = NO_EVENT
    else:
        fields, own = event.pop("message", None), event.pop("own", None)
        if fields is not None:
            message = ChatMessage.from_stored(fields, _own(own))
        plain = _event(event) if event else NO_EVENT
    return raw_entry((entry_id, _KINDS[kind], message, *plain, seq, stored_us, left_at))


def _event(event: dict[str, Any]) -> tuple[Any, ...]:
    get = event.get
    delta, usage = get("state_delta"), get("usage")
    return (
        *[get(name) for name in EVENT_FIELDS],
        None if delta is None else StateDelta(delta["set"], delta["deleted"]),
        None if usage is None else Usage(**usage),
        freeze_json(_an_object(event["metadata"])) if "metadata" in event else EMPTY,
        freeze_json(_an_object(event["extra"])) if "extra" in event else EMPTY,
    )


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
