"""Heads as rows of a server's tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals._heads import Stored, head_of, head_values
from raf_session.journals._rules import Rules
from raf_session.journals._sql_dialect import Transaction, lists
from raf_session.journals._sql_tables import HEAD_COLUMNS, KEY
from raf_session.keys import SessionKey

__all__ = (
    "HEADS",
    "find_head",
    "find_live",
    "insert_head",
    "read_head",
    "update_counts",
    "update_head",
)

HEADS: Final = f"number, tail_at, {', '.join(HEAD_COLUMNS)}, labels"
"""What `read_head` reads."""

_FIND: Final = f"""
    SELECT {HEADS} FROM ~heads WHERE app = ? AND usr = ? AND scope = ? AND session = ?
"""  # noqa: S608  (columns of our own)
_LOCK: Final = f"{_FIND} FOR UPDATE"
_INSERT: Final = f"""
    INSERT INTO ~heads (tail_at, {", ".join(HEAD_COLUMNS)}, labels, {", ".join(KEY)})
    VALUES (?{", ?" * (len(HEAD_COLUMNS) + 5)})
"""  # noqa: S608
_UPDATE: Final = f"""
    UPDATE ~heads SET tail_at = ?, {", ".join(f"{name} = ?" for name in HEAD_COLUMNS)},
        labels = ?
    WHERE number = ?
"""  # noqa: S608
_UPDATE_COUNTS: Final = """
    UPDATE ~heads SET tail_at = ?, revision = ?, updated_at = ?, last_active_at = ?,
        last_seq = ?, spliced_at = ?, active_entries = ?, active_messages = ?,
        active_conversations = ?, active_tokens = ?, total_entries = ?,
        total_messages = ?, total_conversations = ?, total_tokens = ?
    WHERE number = ?
"""
_NO_LABELS: Final[frozenset[str]] = frozenset()


async def find_head(
    tx: Transaction, rules: Rules, key: SessionKey, *, lock: bool
) -> Stored | None:
    """Return what is stored under this key, live or expired.

    Args:
        tx: the transaction.
        rules: limits and clock of the journal.
        key: the session.
        lock: whether it is going to be written.

    Raises:
        SessionDamagedError: the row cannot be read.
    """
    found = await tx.rows(_LOCK if lock else _FIND, *key)
    return read_head(rules, key, found[0]) if found else None


async def find_live(
    tx: Transaction,
    rules: Rules,
    key: SessionKey,
    now: int,
    incarnation: str | None = None,
    *,
    lock: bool,
) -> Stored:
    """Return the live session of this key.

    Raises:
        SessionNotFoundError: missing, expired or another incarnation.
        SessionDamagedError: its head cannot be read.
        SchemaVersionError: a newer library wrote it.
    """
    stored = await find_head(tx, rules, key, lock=lock)
    rules.live(key, None if stored is None else stored.head, now, incarnation)
    assert stored is not None  # noqa: S101  (`live` raised otherwise)
    return stored


def read_head(rules: Rules, key: SessionKey, row: Sequence[Any]) -> Stored:
    """Return the head of a row of `HEADS`.

    Raises:
        SessionDamagedError: it cannot be read.
    """
    try:
        labels = row[28]
        return head_of(
            key, row, frozenset(json.loads(labels)) if labels else _NO_LABELS
        )
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        detail = f"its head cannot be read: {error}"
        raise SessionDamagedError(key, rules.backend, detail) from error


# Writing -------------------------------------------------------------------------


async def insert_head(tx: Transaction, head: SessionHead, tail_at: int) -> int | None:
    """Store a new head; return its number, `None` where the key is taken."""
    number = await tx.insert(
        _INSERT, tail_at, *head_values(head), labels_text(head.labels), *head.key
    )
    if number is not None:
        await _write_labels(tx, number, _NO_LABELS, head.labels)
    return number


async def update_head(
    tx: Transaction, stored: Stored, head: SessionHead, tail_at: int
) -> None:
    """Store all of a head that was read and locked before."""
    if head is stored.head and tail_at == stored.tail_at:
        return
    await tx.execute(
        _UPDATE, tail_at, *head_values(head), labels_text(head.labels), stored.number
    )
    await _write_labels(tx, stored.number, stored.head.labels, head.labels)


async def update_counts(
    tx: Transaction, number: int, head: SessionHead, tail_at: int
) -> None:
    """Store what an append alters."""
    await tx.execute(
        _UPDATE_COUNTS,
        tail_at,
        head.revision,
        to_micros(head.updated_at),
        to_micros(head.last_active_at),
        head.last_seq,
        head.spliced_at,
        *head.active,
        *head.total,
        number,
    )


def labels_text(labels: frozenset[str]) -> str:
    """Return what stands in the head for its labels, which are looked up elsewhere."""
    return json.dumps(sorted(labels)) if labels else ""


async def _write_labels(
    tx: Transaction, number: int, old: frozenset[str], new: frozenset[str]
) -> None:
    for some in lists(sorted(old - new)):
        await tx.execute(
            "DELETE FROM ~labels WHERE session = ? AND label IN ??", number, some
        )
    if added := sorted(new - old):
        await tx.execute_many(
            "INSERT INTO ~labels (session, label) VALUES (?, ?)",
            [(number, label) for label in added],
        )
