"""A load in one statement, which reads one moment by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from raf_session.clock import to_micros
from raf_session.encoding import RawRow
from raf_session.journals._heads import Stored
from raf_session.journals._records import Found
from raf_session.journals._rules import Rules
from raf_session.journals._sql_dialect import Row, Value
from raf_session.journals._sql_entries import LARGEST, clamp
from raf_session.journals._sql_heads import read_head
from raf_session.journals._sql_reads import (
    DIGESTS,
    PROVIDERS,
    SCOPED,
    SCOPES,
    SESSION,
    Reads,
)
from raf_session.journals._sql_tables import HEAD_COLUMNS
from raf_session.keys import SessionKey
from raf_session.options import Window

__all__ = ("found_in", "statement")

_HEAD, _ACTIVE, _ARCHIVED = 8, 9, 10
_BYTES: Final = ("request_hash", "request_header")
_VALUES: Final = ", ".join(
    f"encode({name}, 'hex')" if name in _BYTES else name for name in HEAD_COLUMNS
)
_NUMBER: Final = "session = (SELECT number FROM h)"
_SCOPE: Final = """
    app = (SELECT app FROM h)
    AND (of_user = 0 AND usr = '' OR of_user = 1 AND usr = (SELECT usr FROM h))
"""
_ENTRIES: Final = "seq, left_at, stored_at, id, kind, body, NULL FROM ~entries"
_BESIDE: Final = f"""
    WITH h AS MATERIALIZED (
        SELECT * FROM ~heads WHERE app = ? AND usr = ? AND scope = ? AND session = ?
    )
    SELECT {DIGESTS}, chunk, 0, 0, NULL, NULL, NULL, digests FROM ~request_digests
    WHERE {_NUMBER}
    UNION ALL
    SELECT {_HEAD}, 0, 0, 0, NULL, NULL,
        json_build_array(number, tail_at, {_VALUES}, labels)::text, NULL
    FROM h
    UNION ALL
    SELECT {SESSION}, 0, 0, 0, name, NULL, value, NULL FROM ~session_state
    WHERE {_NUMBER}
    UNION ALL
    SELECT {PROVIDERS}, 0, 0, 0, name, NULL, value, NULL FROM ~provider_states
    WHERE {_NUMBER}
    UNION ALL
    SELECT {SCOPES} + of_user, created_at, last_active_at, 0, NULL, NULL, NULL, NULL
    FROM ~scopes WHERE {_SCOPE}
    UNION ALL
    SELECT {SCOPED} + of_user, 0, 0, 0, name, NULL, value, NULL
    FROM ~scopes JOIN ~scoped_state ON scope = number WHERE {_SCOPE}
"""  # noqa: S608  (columns of our own)


@lru_cache
def _sql(*, active: bool, timed: bool, last: bool, archived: bool) -> str:
    """Return the statement for windows of a form."""
    sql = _BESIDE
    if active:
        low = "?"
        if timed:
            # Times grow with the places, so that this reads no more than the window.
            low = f"""coalesce((
                SELECT seq FROM ~entries WHERE {_NUMBER} AND left_at = 0 AND seq > ?
                    AND seq < ? AND stored_at <= ? ORDER BY seq DESC LIMIT 1
            ), ?)"""  # noqa: S608
        end = "ORDER BY seq DESC LIMIT ?" if last else ""
        sql += f"""UNION ALL (
            SELECT {_ACTIVE}, {_ENTRIES}
            WHERE {_NUMBER} AND left_at = 0 AND seq > {low} AND seq < ? {end}
        )"""
    if archived:
        sql += f"""UNION ALL
            SELECT {_ARCHIVED}, {_ENTRIES} WHERE {_NUMBER} AND left_at > 0
        """
    return sql


def statement(
    key: SessionKey, window: Window, *, archived: bool
) -> tuple[str, Sequence[Value]]:
    """Return the statement that reads a session, and its values."""
    low = -1 if window.after_seq is None else clamp(window.after_seq)
    high = LARGEST if window.before_seq is None else clamp(window.before_seq)
    values: list[Value] = [*key]
    active, timed = window.last != 0, window.after_time is not None
    if active:
        if window.after_time is not None:
            values += (low, high, to_micros(window.after_time))
        values += (low, high)
        if window.last is not None:
            values.append(clamp(window.last))
    last = window.last is not None
    return _sql(active=active, timed=timed, last=last, archived=archived), values


def found_in(
    rows: Sequence[Row], rules: Rules, reads: Reads, key: SessionKey, window: Window
) -> Found:
    """Return what the statement has read.

    Raises:
        SessionNotFoundError: missing or expired.
        SessionDamagedError: its head cannot be read, or a part is missing.
    """
    now = rules.now()
    beside: list[Row] = []
    active: list[RawRow] = []
    old: list[RawRow] = []
    stored: Stored | None = None
    for part, a, b, c, name, kind, value, digests in rows:
        if part == _ACTIVE:
            active.append((a, b, name, kind, c, value, 0))
        elif part == _ARCHIVED:
            old.append((a, b, name, kind, c, value, 0))
        elif part == _HEAD:
            stored = read_head(rules, key, _head(value))
        else:
            beside.append((part, a, b, name, value, digests))
    head = rules.live(key, None if stored is None else stored.head, now)
    active.sort()
    old.sort()
    return reads.found(head, window, active=active, old=old, beside=beside, now=now)


def _head(text: str) -> list[Any]:
    row: list[Any] = json.loads(text)
    for name in _BYTES:
        place = 2 + HEAD_COLUMNS.index(name)
        if row[place] is not None:
            row[place] = bytes.fromhex(row[place])
    return row
