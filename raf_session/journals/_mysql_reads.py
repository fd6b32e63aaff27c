"""A load in one statement, and so in one round trip and of one moment."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any, Final

from raf_session.clock import to_micros
from raf_session.encoding import RawRow
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_heads import PACKED, is_whole, unpacked
from raf_session.journals._records import Found
from raf_session.journals._rules import Rules
from raf_session.journals._sql_entries import LARGEST, clamp
from raf_session.journals._sql_heads import read_head
from raf_session.journals._sql_reads import Reads
from raf_session.keys import SessionKey
from raf_session.options import Window

__all__ = ("load",)

_HEAD, _ACTIVE, _OLD = 10, 11, 12
"""Parts of the answer; those up to 7 are numbered as in the core's ``BESIDE``."""

_KEY: Final = "h.app = ? AND h.usr = ? AND h.scope = ? AND h.session = ?"
_SCOPE: Final = (
    "x.app = ? AND (x.of_user = 0 AND x.usr = ? OR x.of_user = 1 AND x.usr = ?)"
)
_ENTRY: Final = "e.seq, e.left_at, e.stored_at, e.id, e.kind, e.body, NULL"


def _of_session(table: str) -> str:
    return f"raf_heads AS h JOIN raf_{table} AS e ON e.session = h.number WHERE {_KEY}"


@cache
def _statement(*, timed: bool, archived: bool) -> str:
    """Return the statement: rows of a part, three numbers, three texts and bytes."""
    entries = _of_session("entries")
    low = "?"
    if timed:
        # Times grow with the places, so that this reads no more than the window.
        low = f"""COALESCE((
            SELECT e.seq FROM {entries} AND e.left_at = 0
                AND e.seq > ? AND e.seq < ? AND e.stored_at <= ?
            ORDER BY e.seq DESC LIMIT 1
        ), ?)"""  # noqa: S608  (names of our own)
    old = f"UNION ALL SELECT {_OLD}, {_ENTRY} FROM {entries} AND e.left_at > 0"  # noqa: S608
    return f"""
        SELECT {_HEAD}, 0, 0, 0, NULL, NULL, {PACKED}, NULL AS digests
        FROM raf_heads AS h WHERE {_KEY}
        UNION ALL
        (
            SELECT {_ACTIVE}, {_ENTRY} FROM {entries}
                AND e.left_at = 0 AND e.seq > {low} AND e.seq < ?
            ORDER BY e.seq DESC LIMIT ?
        )
        UNION ALL
        SELECT 1, e.chunk, 0, 0, NULL, NULL, NULL, e.digests
        FROM {_of_session("request_digests")}
        UNION ALL
        SELECT 2, 0, 0, 0, e.name, NULL, e.value, NULL
        FROM {_of_session("session_state")}
        UNION ALL
        SELECT 3, 0, 0, 0, e.name, NULL, e.value, NULL
        FROM {_of_session("provider_states")}
        UNION ALL
        SELECT 4 + x.of_user, x.created_at, x.last_active_at, 0, NULL, NULL, NULL, NULL
        FROM raf_scopes AS x WHERE {_SCOPE}
        UNION ALL
        SELECT 6 + x.of_user, 0, 0, 0, s.name, NULL, s.value, NULL
        FROM raf_scopes AS x JOIN raf_scoped_state AS s ON s.scope = x.number
        WHERE {_SCOPE}
        {old if archived else ""}
    """  # noqa: S608


async def load(
    connection: MysqlConnection,
    rules: Rules,
    reads: Reads,
    key: SessionKey,
    window: Window,
    *,
    archived: bool,
) -> Found | None:
    """Read the rows of a session, all of one moment.

    `None`: its head is too large to be read so.

    Raises:
        SessionNotFoundError: missing or expired.
        SessionDamagedError: rows are missing, or cannot be read.
    """
    now = rules.now()
    low = -1 if window.after_seq is None else clamp(window.after_seq)
    high = LARGEST if window.before_seq is None else clamp(window.before_seq)
    last = LARGEST if window.last is None else clamp(window.last)
    timed = window.after_time
    scopes = (key.app, "", key.user)
    rows = await connection.texts(
        _statement(timed=timed is not None, archived=archived),
        *key,  # of the head
        *key,  # of the entries
        *(() if timed is None else (*key, low, high, to_micros(timed))),
        *(low, high, last),
        *key * 3,  # of digests and states
        *scopes * 2,
        *(key if archived else ()),
    )
    if not connection.driver.get_autocommit():
        await connection.commit()
    parts: defaultdict[int, list[Any]] = defaultdict(list)
    for part, *values in rows:
        parts[part].append(values)
    heads = parts.pop(_HEAD, None)
    if heads is not None and not is_whole(heads[0][5]):
        return None
    stored = None if heads is None else read_head(rules, key, unpacked(heads[0][5]))
    return reads.found(
        rules.live(key, None if stored is None else stored.head, now),
        window,
        active=_entries(parts.pop(_ACTIVE, [])),
        old=_entries(parts.pop(_OLD, [])),
        beside=[
            (part, a, b, name, value, digests)
            for part, values in parts.items()
            for a, b, _, name, _, value, digests in values
        ],
        now=now,
    )


def _entries(values: list[Any]) -> list[RawRow]:
    return sorted(
        (seq, left_at, name, kind, stored_at, body, 0)
        for seq, left_at, stored_at, name, kind, body, _ in values
    )
