"""What every journal refuses alike, before anything is touched or under its lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from raf_session.clock import to_micros
from raf_session.encoding import BodyFormat, Row
from raf_session.entries import Entry, SessionHead
from raf_session.errors import EntryConflictError, StaleSessionError
from raf_session.keys import SessionKey

__all__ = (
    "check_append",
    "check_ids",
    "check_limit",
    "check_revision",
    "check_scan",
    "check_unique",
    "cursor_text",
    "read_cursor",
    "write_cursor",
)


_FARTHEST_US: Final = 1 << 62
"""No moment is as far from 1970, in microseconds."""


def check_unique(key: SessionKey, entries: Iterable[Entry]) -> None:
    """Raise `EntryConflictError` where an id stands twice."""
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise EntryConflictError(key, entry.id, "repeated")
        seen.add(entry.id)


def check_ids(
    key: SessionKey,
    entries: Sequence[Entry],
    known: Mapping[str, Row],
    bodies: BodyFormat,
) -> bool:
    """Tell whether all entries are stored already.

    Args:
        key: the session.
        entries: those to be written.
        known: the stored rows that carry one of their ids.
        bodies: how to compare.

    Raises:
        EntryConflictError: an id is known with another body, or only some are known.
    """
    for entry in entries:
        row = known.get(entry.id)
        if row is not None and not bodies.same(key, row, entry):
            raise EntryConflictError(key, entry.id, "another body")
    if not known:
        return False
    for entry in entries:
        if entry.id not in known:
            raise EntryConflictError(key, entry.id, "partly known")
    return True


def check_revision(head: SessionHead, expected: int | None) -> None:
    """Raise `StaleSessionError` where the revision is not the expected one."""
    if expected is not None and expected != head.revision:
        raise StaleSessionError(head.key, expected, head.revision)


def check_append(key: SessionKey, entries: Sequence[Entry], trim: int | None) -> None:
    """Check the arguments of an append that need no look at what is stored."""
    if not entries:
        raise ValueError("nothing to append; `update` changes what is not an entry")
    if trim is not None and trim < 0:
        raise ValueError(f"trim={trim} is negative")
    if len(entries) > 1:
        check_unique(key, entries)


# Listings ------------------------------------------------------------------------


def check_limit(limit: int) -> None:
    """Check the limit of an expiry."""
    if limit < 0:
        raise ValueError(f"limit={limit} is negative")


def check_scan(order: str, limit: int) -> None:
    """Check the arguments of a scan."""
    if order not in {"activity", "key"}:
        raise ValueError(f"{order!r} is no order: activity or key")
    if limit < 1:
        raise ValueError(f"limit={limit} is under 1")


def write_cursor(order: str, head: SessionHead) -> str:
    """Return the cursor that stands right behind this session."""
    return cursor_text(order, to_micros(head.last_active_at), head.key)


def cursor_text(order: str, active_us: int, key: SessionKey) -> str:
    """Return the cursor behind a session that was active at that moment."""
    return f"key:{key}" if order == "key" else f"activity:{active_us}:{key}"


def read_cursor(order: str, cursor: str) -> tuple[int, SessionKey]:
    """Return the activity (0 in `key` order) and the key of a cursor.

    Raises:
        ValueError: it is not a cursor of this order.
    """
    try:
        kind, rest = cursor.split(":", 1)
        if kind != order:
            raise ValueError(f"made for the order {kind!r}")  # noqa: TRY301
        if order == "key":
            return 0, SessionKey.parse(rest)
        active, text = rest.split(":", 1)
        active_us = int(active)
        if abs(active_us) > _FARTHEST_US:
            raise ValueError("no moment")  # noqa: TRY301
        return active_us, SessionKey.parse(text)
    except ValueError as error:
        raise ValueError(f"{cursor!r} is no cursor of order {order!r}") from error
