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
from raf_session.journals._sql_entries import LARGEST
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


def arguments(append: Append) -> Sequence[bytes | int | None]:
    """Return the arguments of the procedure, in its order, texts as bytes."""
    entries, change = append.entries, append.texts.change
    now = append.rules.now()
    idle_since, made_since = append.rules.sessions.cutoffs(now)
    updated_at = active_at = now
    if change is not NO_CHANGE:
        updated_at = now if change.updated_at is None else to_micros(change.updated_at)
        active_at = now if change.touch is None else to_micros(change.touch)
    app, usr, scope, session = append.key
    incarnation = append.incarnation
    n, messages, conversations, tokens = Counts.of(entries)
    shared = (
        app.encode(),
        usr.encode(),
        scope.encode(),
        session.encode(),
        None if incarnation is None else incarnation.encode(),
        append.expected_revision,
        -LARGEST if idle_since is None else idle_since,
        -LARGEST if made_since is None else made_since,
        BODY_VERSION,
        LARGEST if append.trim is None else append.trim - n,
        now,
        updated_at,
        active_at,
        n,
        messages,
        conversations,
        tokens,
    )
    if n == 1:
        name, kind = entries[0].id.encode(), entries[0].kind.encode()
        return (*shared, name, kind, append.bodies[0].encode(), None)
    rows: list[tuple[object, ...]] = []
    bodies = [body.encode() for body in append.bodies]
    start = 1
    for entry, body in zip(entries, bodies, strict=True):
        _, messages, conversations, tokens = Counts.of((entry,))
        rows.append(
            (
                entry.id.encode().hex(),
                entry.kind.value,
                messages,
                conversations,
                tokens,
                start,
                len(body),
            )
        )
        start += len(body)
    return (*shared, None, None, b"".join(bodies), json.dumps(rows).encode())


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
