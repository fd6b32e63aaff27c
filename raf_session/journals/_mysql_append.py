"""The append in one call of the stored procedure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import to_micros
from raf_session.encoding import BODY_VERSION
from raf_session.entries import Counts
from raf_session.journal import Commit
from raf_session.journals._mysql_heads import unpacked
from raf_session.journals._sql_dialect import Value
from raf_session.journals._sql_heads import read_head
from raf_session.journals._sql_writes import Append

__all__ = ("arguments", "commit_of", "is_plain")

_MANY: Final = 1000
"""More entries are left to the core, which spreads them over several packets."""


def is_plain(append: Append, max_bytes: int) -> bool:
    """Tell whether the procedure can do it: entries, and nothing but times beside.

    Args:
        append: what to do.
        max_bytes: how much the server takes at once.
    """
    change = append.texts.change
    if not append.storable:
        return False
    if change is not NO_CHANGE and change != Change(
        touch=change.touch, updated_at=change.updated_at
    ):
        return False
    # In characters of up to four bytes; ids are written in hexadecimal.
    size = sum([len(body) for body in append.bodies])
    size += sum([2 * len(entry.id) + 32 for entry in append.entries])
    return len(append.entries) <= _MANY and 4 * size <= max_bytes


def arguments(append: Append) -> Sequence[Value]:
    """Return the arguments of the procedure, in its order."""
    rules, change = append.rules, append.texts.change
    now = rules.now()
    idle_since, made_since = rules.sessions.cutoffs(now)
    counts = Counts.of(append.entries)
    times = [
        now if moment is None else to_micros(moment)
        for moment in (change.updated_at, change.touch)
    ]
    shared = (
        *append.key,
        append.incarnation,
        append.expected_revision,
        idle_since,
        made_since,
        BODY_VERSION,
        append.trim,
        now,
        *times,
        *counts,
    )
    if len(append.entries) == 1:
        entry = append.entries[0]
        return (*shared, entry.id, entry.kind.value, append.bodies[0], None)
    rows: list[tuple[object, ...]] = []
    bodies = [body.encode() for body in append.bodies]
    start = 1
    for entry, body in zip(append.entries, bodies, strict=True):
        _, messages, conversations, tokens = Counts.of((entry,))
        name = entry.id.encode().hex()
        rows.append(
            (
                name,
                entry.kind.value,
                messages,
                conversations,
                tokens,
                start,
                len(body),
            )
        )
        start += len(body)
    return (*shared, None, None, b"".join(bodies), json.dumps(rows))


def commit_of(append: Append, head: bytes) -> Commit:
    """Return what the procedure has done, by the head that it answered."""
    stored = read_head(append.rules, append.key, unpacked(head))
    first = stored.head.last_seq - len(append.entries) + 1
    return Commit(
        stored.head,
        tuple(
            [
                entry.stored(seq, stored.tail_at)
                for seq, entry in enumerate(append.entries, first)
            ]
        ),
    )
