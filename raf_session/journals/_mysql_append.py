"""The append in one call of a stored procedure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import to_micros
from raf_session.encoding import BODY_VERSION
from raf_session.entries import Counts
from raf_session.journals._mysql_routine import APPEND, APPEND_ONE, Routine
from raf_session.journals._sql_entries import LARGEST
from raf_session.journals._sql_writes import Append

__all__ = ("arguments", "routine_for")

_MANY: Final = 1000
"""More entries are left to the core, which spreads them over several packets."""


def routine_for(append: Append, max_bytes: int) -> Routine | None:
    """Return the procedure that can do it: entries, and nothing but times beside.

    Args:
        append: what to do.
        max_bytes: how much the server takes at once.
    """
    change, entries = append.texts.change, append.entries
    if not append.storable:
        return None
    # In characters of up to four bytes; ids are written in hexadecimal.
    size = sum([len(body) for body in append.bodies])
    size += sum([2 * len(entry.id) + 32 for entry in entries])
    if len(entries) > _MANY or 4 * size > max_bytes:
        return None
    if change is NO_CHANGE:
        usual = (
            len(entries) == 1
            and append.expected_revision is None
            and append.trim is None
            and not append.rules.sessions.enabled
        )
        return APPEND_ONE if usual else APPEND
    times = Change(touch=change.touch, updated_at=change.updated_at)
    return APPEND if change == times else None


def arguments(append: Append, routine: Routine) -> Sequence[bytes | int | None]:
    """Return the arguments of the procedure, in its order, texts as bytes."""
    entries, change = append.entries, append.texts.change
    now = append.rules.now()
    app, usr, scope, session = append.key
    incarnation = append.incarnation
    of_session = (
        app.encode(),
        usr.encode(),
        scope.encode(),
        session.encode(),
        None if incarnation is None else incarnation.encode(),
    )
    n, *counts = Counts.of(entries)
    body = append.bodies[0].encode() if n == 1 else b""
    of_one = (entries[0].id.encode(), entries[0].kind.encode(), body)
    if routine is APPEND_ONE:
        return (*of_session, now, *counts, *of_one)
    idle_since, made_since = append.rules.sessions.cutoffs(now)
    updated_at = active_at = now
    if change is not NO_CHANGE:
        updated_at = now if change.updated_at is None else to_micros(change.updated_at)
        active_at = now if change.touch is None else to_micros(change.touch)
    shared = (
        *of_session,
        append.expected_revision,
        -LARGEST if idle_since is None else idle_since,
        -LARGEST if made_since is None else made_since,
        BODY_VERSION,
        LARGEST if append.trim is None else append.trim - n,
        now,
        updated_at,
        active_at,
        n,
        *counts,
    )
    if n == 1:
        return (*shared, *of_one, None)
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
