"""Heads of stored rows and of appends; ``ext/_stored_heads.pyx`` makes the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from raf_session.changes import SessionStatus
from raf_session.clock import from_micros
from raf_session.entries import Counts, SessionHead
from raf_session.keys import SessionKey

__all__ = ("grown_head", "read_head")

_STATUS: Final = {status.value: status for status in SessionStatus}


def read_head(
    key: SessionKey, row: Sequence[Any], labels: frozenset[str]
) -> SessionHead:
    """Return the head of a row: two columns that are not looked at, then its own.

    These are `raf_session.journals._heads.COLUMNS`; what follows is not looked at.

    Raises:
        Exception: the row was written by something else.
    """
    request_hash, header = row[25], row[26]
    return SessionHead(
        key,
        row[2],
        row[3],
        from_micros(row[4]),
        from_micros(row[5]),
        from_micros(row[6]),
        row[7] != 0,
        row[8],
        row[9],
        Counts(*row[10:14]),
        Counts(*row[14:18]),
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
    )


def grown_head(
    head: SessionHead,
    counts: Counts,
    now: int,
    updated_at: datetime | None = None,
    active_at: datetime | None = None,
) -> SessionHead:
    """Return the head after an append; neither of its times goes back.

    Args:
        head: the session before it.
        counts: those of the new entries, each of which takes a new place.
        now: the journal's time, in microseconds since the epoch.
        updated_at: when the change was made, `None`: now.
        active_at: when there was activity, `None`: now.
    """
    moment = from_micros(now)
    active = head.active.plus(counts)
    return head._replace(
        revision=head.revision + 1,
        updated_at=max(head.updated_at, updated_at or moment),
        last_active_at=max(head.last_active_at, active_at or moment),
        last_seq=head.last_seq + counts.entries,
        active=active,
        total=active if head.active == head.total else head.total.plus(counts),
    )
