"""Heads as rows of tables: their columns, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.keys import SessionKey

__all__ = ("COLUMNS", "Stored", "grown_head", "head_of", "head_values", "u64")

if TYPE_CHECKING or os.environ.get("RAF_SESSION_PURE") == "1":
    from raf_session._stored_heads_py import grown_head, read_head
else:
    try:
        from raf_session._stored_heads import grown_head, read_head
    except ModuleNotFoundError:  # a pure build; a broken one still raises
        from raf_session._stored_heads_py import grown_head, read_head

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
    return Stored(read_head(key, row, labels), row[0], row[1])


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
