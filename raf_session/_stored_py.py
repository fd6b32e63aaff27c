"""Stored rows as entries, and back, in pure Python; ``ext/_stored.pyx`` does it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias, cast

from raf_session.changes import StateDelta
from raf_session.entries import Counts, Entry, EntryKind, raw_entry, raw_tuple
from raf_session.frozen import EMPTY, freeze_json
from raf_session.json_text import dump_text, load_written
from raf_session.messages import ChatMessage, MessageRole, MessageSource, Usage

__all__ = (
    "EVENT_FIELDS",
    "NO_EVENT",
    "RawRow",
    "Row",
    "WholeRow",
    "entry_of",
    "plain_text",
    "read_entries",
    "row_of",
    "rows_of",
    "stored_entries",
    "whole_row",
)


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


WholeRow: TypeAlias = tuple[int, int, str, str, int, str, Any]
"""The fields of `Row`; reading does not look at the counts."""
ShortRow: TypeAlias = tuple[int, str, str | None, int, str]
"""`seq`, `id`, `kind`, `stored_at` and `body` of an active entry.

The kind may be `None`: a message.
"""
RawRow: TypeAlias = WholeRow | ShortRow

SAID: Final = Counts(entries=1, messages=1)
"""The counts of a message."""
ASKED: Final = Counts(entries=1, messages=1, conversations=1)
"""The counts of a message of the user's."""

EVENT_FIELDS: Final = ("author", "invocation_id", "branch", "timestamp")
"""What stands in an event as it stands in an entry, from place 3 on."""

NO_EVENT: Final = (*(None,) * 6, EMPTY, EMPTY)
"""What stands in an entry that is a message alone, from place 3 on."""

_KINDS: Final = {kind.value: kind for kind in EntryKind}
_KIND_NAMES: Final = {kind: kind.value for kind in EntryKind}
_USER: Final = MessageRole.USER  # a member of an enumeration is looked up slowly
_TEXT_ALONE: Final = {"role", "content"}
_BEGINNINGS: Final = {
    role: f'{{"message":{{"role":"{role.value}","content":' for role in MessageRole
}


def plain_text(entry: Entry) -> str | None:
    """Return the body of an entry that is a message of role and text alone.

    `None`: there is more to it.
    """
    message = entry.message
    if type(message) is ChatMessage and entry[3:11] == NO_EVENT:
        role, content = message.role, message.content
        if type(content) is str and message.__pydantic_fields_set__ == _TEXT_ALONE:
            return f"{_BEGINNINGS[role]}{dump_text(content)}}}}}"
    return None


def row_of(body: str, entry: Entry, seq: int, stored_at: int, left_at: int = 0) -> Row:
    """Return the row of an entry at its place; its counts are the entry's own."""
    message = entry.message
    if message is None or entry.usage is not None:
        counts = Counts.of((entry,))
    else:
        counts = ASKED if message.role is _USER else SAID
    kind = _KIND_NAMES[entry.kind]
    row: Row = raw_tuple(Row, (seq, left_at, entry.id, kind, stored_at, body, counts))
    return row


def rows_of(
    bodies: Iterable[str],
    entries: Iterable[Entry],
    places: Iterable[int],
    stored_at: int,
) -> list[Row]:
    """Return the rows of entries that are active at these places since that moment.

    The shortest of the three says how many.
    """
    return list(map(row_of, bodies, entries, places, repeat(stored_at)))


def stored_entries(
    entries: Sequence[Entry], rows: Sequence[WholeRow]
) -> tuple[Entry, ...]:
    """Return the entries with the places and times of their rows.

    Raises:
        ValueError: they are not as many.
    """
    if len(entries) != len(rows):
        raise ValueError(f"{len(entries)} entries for {len(rows)} rows")
    return tuple(
        entry.stored(row[0], row[4], row[1])
        for entry, row in zip(entries, rows, strict=True)
    )


def whole_row(row: RawRow) -> WholeRow:
    """Return the row with what a short one leaves out."""
    if len(row) == 7:
        return row
    seq, entry_id, kind, stored_us, body = row
    return seq, 0, entry_id, "message" if kind is None else kind, stored_us, body, None


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
            for row in map(whole_row, rows)
        ]
    )


def entry_of(row: RawRow, event: dict[str, Any]) -> Entry:
    """Return the entry of a row and of the JSON value of its body.

    The value is used up: what is no longer needed is taken out of it.
    """
    seq, left_at, entry_id, kind, stored_us, _, _ = whole_row(row)
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
