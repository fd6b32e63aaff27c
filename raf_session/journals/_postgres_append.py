"""An append in one call to the server: the statement and its values."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import to_micros
from raf_session.encoding import BODY_VERSION
from raf_session.entries import Counts
from raf_session.journals._heads import u64
from raf_session.journals._rules import Rules
from raf_session.journals._sql_heads import HEADS
from raf_session.journals._sql_writes import Append
from raf_session.journals._texts import Texts

__all__ = ("call", "is_plain")

_CALL: Final = f"SELECT {HEADS} FROM ~append_entries({', '.join('?' * 26)})"  # noqa: S608
_CALL_CHANGED: Final = f"SELECT {HEADS} FROM ~append_changed({', '.join('?' * 49)})"  # noqa: S608
_MOST: Final = 2**26
"""Characters of bodies in one call; a message of the protocol holds 1 GiB."""
_SYNCED: Final = (
    " CROSS JOIN (SELECT set_config('synchronous_commit', 'on', true)) AS synced"
)
"""Lets the transaction of the call wait for the log."""


def is_plain(append: Append) -> bool:
    """Tell whether a function can do it.

    Labels are left to statements, and so are batches too large for one message and
    arguments that no column can hold.
    """
    return (
        append.storable
        and not append.texts.change.labels
        and sum(map(len, append.bodies)) <= _MOST
    )


def call(append: Append, rules: Rules, *, synced: bool) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that calls the function, and its values.

    Args:
        append: what is to be done.
        rules: limits and clock of the journal.
        synced: whether it has to say that its commit waits for the log.
    """
    end = _SYNCED if synced else ""
    change = append.texts.change
    now = rules.now()
    counts, entries = _entries(append)
    values = (
        *append.key,
        append.incarnation,
        append.expected_revision,
        BODY_VERSION,
        now,
        *rules.sessions.cutoffs(now),
        append.trim,
        now if change.updated_at is None else to_micros(change.updated_at),
        now if change.touch is None else to_micros(change.touch),
        *counts,
        *entries,
    )
    if change is NO_CHANGE:
        return _CALL + end, values
    texts = append.texts
    return _CALL_CHANGED + end, (
        *values,
        change.title,
        change.model,
        None if change.status is None else change.status.value,
        None if change.pin is None else int(change.pin),
        *_request(change),
        *_pairs(texts.session),
        *_pairs(texts.providers),
        *_pairs(texts.user),
        *rules.users.cutoffs(now),
        *_pairs(texts.app),
        *rules.apps.cutoffs(now),
    )


def _entries(append: Append) -> tuple[Counts, tuple[Any, ...]]:
    """Return their counts and what is told of each; a single one needs no arrays."""
    entries = append.entries
    if len(entries) == 1:
        (entry,) = entries
        told = (entry.id, entry.kind.value, append.bodies[0], *(None,) * 6)
        return Counts.of(entries), told
    counts = [Counts.of((entry,)) for entry in entries]
    return reduce(Counts.plus, counts), (
        *(None,) * 3,
        [entry.id for entry in entries],
        [entry.kind.value for entry in entries],
        append.bodies,
        [count.messages for count in counts],
        [count.conversations for count in counts],
        [count.tokens for count in counts],
    )


def _request(change: Change) -> tuple[Any, ...]:
    request = change.request
    if request is None:
        return (None,) * 7
    return (
        request.keep,
        u64(request.base),
        request.n,
        u64(request.hash),
        u64(request.header),
        request.format,
        request.digests,
    )


def _pairs(texts: Texts) -> tuple[list[str] | None, list[str | None] | None]:
    if not texts.set and not texts.deleted:
        return None, None
    names = [*texts.deleted, *(name for name, _ in texts.set)]
    values = [*(None for _ in texts.deleted), *(text for _, text in texts.set)]
    return names, values
