"""Entries as rows of a server's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from raf_session.clock import to_micros
from raf_session.encoding import RawRow, Row
from raf_session.entries import Counts
from raf_session.journals._sql_dialect import Transaction, lists
from raf_session.options import Window

__all__ = (
    "LARGEST",
    "active_rows",
    "archive_oldest",
    "archived_rows",
    "clamp",
    "entry_values",
    "insert_rows",
    "neighbours",
    "read_archive",
    "read_window",
    "rows_by_id",
    "take_out",
)

LARGEST: Final = (1 << 62) - 1

_INSERT: Final = """
    INSERT INTO ~entries (session, left_at, seq, id, kind, stored_at, messages,
        conversations, tokens, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_FULL: Final = """
    SELECT seq, left_at, id, kind, stored_at, body, messages, conversations, tokens
    FROM ~entries
"""
_BODILESS: Final = _FULL.replace(" body,", "")
_ACTIVE: Final = (
    "WHERE session = ? AND left_at = 0 AND seq >= ? AND seq <= ? ORDER BY seq"
)


def clamp(number: int) -> int:
    """Return a place or a limit that a server can compare, as far as it tells it."""
    return max(-1, min(number, LARGEST))


# Writing -------------------------------------------------------------------------


def entry_values(number: int, row: Row) -> tuple[str | int, ...]:
    """Return what stands in the table: session to body, in the order of its columns."""
    seq, left_at, entry_id, kind, stored_at, body, counts = row
    return (number, left_at, seq, entry_id, kind, stored_at, *counts[1:], body)


async def insert_rows(tx: Transaction, number: int, rows: Sequence[Row]) -> None:
    """Store entries whose ids are known to be new."""
    if len(rows) == 1:
        await tx.execute(_INSERT, *entry_values(number, rows[0]))
    elif rows:
        await tx.execute_many(_INSERT, [entry_values(number, row) for row in rows])


async def archive_oldest(
    tx: Transaction, number: int, limit: int, revision: int
) -> Counts:
    """Archive so many active entries, if there are; return what they count."""
    found = await tx.rows(
        """
        SELECT seq, messages, conversations, tokens FROM ~entries
        WHERE session = ? AND left_at = 0 ORDER BY seq LIMIT ?
        """,
        number,
        limit,
    )
    if found:
        await tx.execute(
            """
            UPDATE ~entries SET left_at = ?
            WHERE session = ? AND left_at = 0 AND seq <= ?
            """,
            revision,
            number,
            found[-1][0],
        )
    return Counts(len(found), *(sum(row[i] for row in found) for i in (1, 2, 3)))


async def take_out(
    tx: Transaction, number: int, rows: Sequence[Row], revision: int
) -> None:
    """Archive active entries under this revision; 0: delete them, active or not."""
    if revision:
        for some in lists([row.seq for row in rows]):
            await tx.execute(
                """
                UPDATE ~entries SET left_at = ?
                WHERE session = ? AND left_at = 0 AND seq IN ??
                """,
                revision,
                number,
                some,
            )
        return
    for some in lists([row.seq for row in rows if not row.left_at]):
        await tx.execute(
            "DELETE FROM ~entries WHERE session = ? AND left_at = 0 AND seq IN ??",
            number,
            some,
        )
    if archived := [(number, row.left_at, row.seq) for row in rows if row.left_at]:
        await tx.execute_many(
            "DELETE FROM ~entries WHERE session = ? AND left_at = ? AND seq = ?",
            archived,
        )


# Reading for a write -------------------------------------------------------------


async def rows_by_id(
    tx: Transaction, number: int, ids: Sequence[str]
) -> dict[str, Row]:
    """Return the stored rows that carry one of these ids."""
    rows: dict[str, Row] = {}
    for some in lists(ids):
        found = await tx.rows(f"{_FULL} WHERE session = ? AND id IN ??", number, some)
        rows.update((row[2], _row(row)) for row in found)
    return rows


async def active_rows(
    tx: Transaction, number: int, first: int, last: int, *, bodies: bool
) -> list[Row]:
    """Return the active entries of a run; without `bodies` these are empty."""
    if bodies:
        return [
            _row(row)
            for row in await tx.rows(f"{_FULL} {_ACTIVE}", number, first, last)
        ]
    return [
        _bodiless(row)
        for row in await tx.rows(f"{_BODILESS} {_ACTIVE}", number, first, last)
    ]


async def archived_rows(
    tx: Transaction, number: int, first: int, last: int
) -> tuple[list[Row], int]:
    """Return the archived entries of a run, without bodies, and how many there are."""
    found = await tx.rows(
        f"{_BODILESS} WHERE session = ? AND left_at > 0 AND seq >= ? AND seq <= ?",
        number,
        first,
        last,
    )
    ((n,),) = await tx.rows(
        "SELECT count(*) FROM ~entries WHERE session = ? AND left_at > 0", number
    )
    return [_bodiless(row) for row in found], int(n)


def _row(row: Sequence[Any]) -> Row:
    seq, left_at, name, kind, stored_at, body, *counts = row
    return Row(seq, left_at, name, kind, stored_at, body, Counts(1, *counts))


def _bodiless(row: Sequence[Any]) -> Row:
    seq, left_at, name, kind, stored_at, *counts = row
    return Row(seq, left_at, name, kind, stored_at, "", Counts(1, *counts))


async def neighbours(
    tx: Transaction, number: int, first: int, last: int
) -> tuple[int | None, int | None]:
    """Return when the active entries in front of and behind a run were stored."""
    front = await tx.rows(
        """
        SELECT stored_at FROM ~entries WHERE session = ? AND left_at = 0 AND seq < ?
        ORDER BY seq DESC LIMIT 1
        """,
        number,
        first,
    )
    behind = await tx.rows(
        """
        SELECT stored_at FROM ~entries WHERE session = ? AND left_at = 0 AND seq > ?
        ORDER BY seq LIMIT 1
        """,
        number,
        last,
    )
    return front[0][0] if front else None, behind[0][0] if behind else None


# Reading for a load --------------------------------------------------------------

# Counts are not needed to read: the last column fills their place.
_READ: Final = "SELECT seq, left_at, id, kind, stored_at, body, 0 FROM ~entries"
_WITHIN: Final = f"{_READ} WHERE session = ? AND left_at = 0 AND seq > ? AND seq < ?"


async def read_window(tx: Transaction, number: int, window: Window) -> Sequence[RawRow]:
    """Return the active entries of a window, in order."""
    low = -1 if window.after_seq is None else clamp(window.after_seq)
    high = LARGEST if window.before_seq is None else clamp(window.before_seq)
    if window.last == 0:
        return []
    if window.after_time is not None:
        # Times grow with the places, so that this reads no more than the window.
        found = await tx.rows(
            """
            SELECT seq FROM ~entries
            WHERE session = ? AND left_at = 0 AND seq > ? AND seq < ?
                AND stored_at <= ?
            ORDER BY seq DESC LIMIT 1
            """,
            number,
            low,
            high,
            to_micros(window.after_time),
        )
        low = found[0][0] if found else low
    if window.last is None:
        return _raw(await tx.rows(f"{_WITHIN} ORDER BY seq", number, low, high))
    rows = await tx.rows(
        f"{_WITHIN} ORDER BY seq DESC LIMIT ?", number, low, high, clamp(window.last)
    )
    return _raw(rows)[::-1]


async def read_archive(tx: Transaction, number: int) -> Sequence[RawRow]:
    """Return what left the window, in order."""
    return _raw(
        await tx.rows(
            f"{_READ} WHERE session = ? AND left_at > 0 ORDER BY seq, left_at", number
        )
    )


def _raw(rows: Sequence[Sequence[Any]]) -> list[RawRow]:
    return [tuple(row) for row in rows]
