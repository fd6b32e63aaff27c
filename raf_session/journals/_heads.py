"""Heads as rows of tables: their columns, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from raf_session.changes import SessionStatus
from raf_session.clock import from_micros, to_micros
from raf_session.entries import Counts, SessionHead
from raf_session.keys import SessionKey

__all__ = ("COLUMNS", "Stored", "head_of", "head_values", "u64")

_STATUS: Final = {status.value: status for status in SessionStatus}
_made: Callable[[Any, Sequence[Any]], Any] = cast("Any", tuple).__new__
"""Makes a named tuple of all its fields in order, at a third of the cost."""

COLUMNS: Final = (
    "incarnation",
    "revision",
    "created_at",
    "updated_at",
    "last_active_at",
    "pinned",
    "last_seq",
    "spliced_at",
    "active_entries",
    "active_messages",
    "active_conversations",
    "active_tokens",
    "total_entries",
    "total_messages",
    "total_conversations",
    "total_tokens",
    "title",
    "model",
    "status",
    "session_type",
    "forked_from",
    "schema",
    "request_n",
    "request_hash",
    "request_header",
    "request_format",
)
"""What `head_values` gives, in order."""


class Stored(NamedTuple):
    """A head, and what else its row tells."""

    head: SessionHead
    number: int
    """By which the other tables name the session."""
    tail_at: int
    """When the last active entry was stored, 0 where there is none."""


def head_of(key: SessionKey, row: Sequence[Any], labels: frozenset[str]) -> Stored:
    """Return the head of a row: number, tail_at, then `COLUMNS`.

    Any error may come of a damaged one.
    """
    created_at, updated_at, active_at = row[4:7]
    request_hash, header = row[25], row[26]
    updated = from_micros(updated_at)
    head = _made(
        SessionHead,
        (
            key,
            row[2],
            row[3],
            from_micros(created_at),
            updated,
            updated if active_at == updated_at else from_micros(active_at),
            row[7] != 0,
            row[8],
            row[9],
            _made(Counts, row[10:14]),
            _made(Counts, row[14:18]),
            row[18],
            row[19],
            _STATUS[row[20]],
            labels,
            row[21],
            row[22],
            row[23],
            row[24],
            None if request_hash is None else int.from_bytes(request_hash, "big"),
            None if header is None else int.from_bytes(header, "big"),
            row[27],
        ),
    )
    return Stored(head, row[0], row[1])


def head_values(head: SessionHead) -> tuple[Any, ...]:
    """Return what stands in `COLUMNS`."""
    return (
        head.incarnation,
        head.revision,
        to_micros(head.created_at),
        to_micros(head.updated_at),
        to_micros(head.last_active_at),
        int(head.pinned),
        head.last_seq,
        head.spliced_at,
        *head.active,
        *head.total,
        head.title,
        head.model,
        head.status.value,
        head.session_type,
        head.forked_from,
        head.schema,
        head.request_n,
        u64(head.request_hash),
        u64(head.request_header),
        head.request_format,
    )


def u64(value: int | None) -> bytes | None:
    """Return an unsigned 64-bit number as it is stored."""
    return None if value is None else value.to_bytes(8, "big")
