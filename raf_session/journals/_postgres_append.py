"""An append in one call to the server: the statement and its values."""

from __future__ import annotations

import re
from functools import cache
from itertools import compress
from typing import Any, Final

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import to_micros
from raf_session.encoding import BODY_VERSION
from raf_session.entries import Counts, SessionHead
from raf_session.journals._heads import grown_head, u64
from raf_session.journals._postgres_functions import BY_KEY, BY_VERSION, GUARDS, RAISED
from raf_session.journals._postgres_known import KnownHead
from raf_session.journals._rules import Rules
from raf_session.journals._sql_heads import HEADS
from raf_session.journals._sql_writes import Append
from raf_session.journals._texts import Texts

__all__ = ("call", "call_by_version", "is_plain", "is_single")

_KEY: Final = ("app", "usr", "scope", "session")
_VERSION: Final = ("number", "xmin", "incarnation", "revision")
_VALUES: Final = ("now", "messages", "conversations", "tokens", "id", "kind", "body")
_CONSTANTS: Final = {"n": "1", "version": str(BODY_VERSION)}
_SAME: Final = {"updated": "now", "touch": "now"}
_NO_GUARDS: Final = (None,) * len(GUARDS)
_CALL: Final = f"SELECT {HEADS} FROM ~append_entries({', '.join('?' * 26)})"  # noqa: S608
_CALL_CHANGED: Final = f"SELECT {HEADS} FROM ~append_changed({', '.join('?' * 49)})"  # noqa: S608
_NOTHING: Final = (None, None, None)
_MOST: Final = 2**26
"""Characters of bodies in one call; a message of the protocol holds 1 GiB."""
_SYNCED: Final = (
    " CROSS JOIN (SELECT set_config('synchronous_commit', 'on', true)) AS synced"
)
"""Lets the transaction of the call wait for the log."""


@cache
def _one(
    guards: tuple[bool, ...] = (), *, synced: bool, by_version: bool = False
) -> str:
    """Return what the function does with a single entry, as one statement.

    It looks at nothing but the row that it locks, and so sees what others committed
    while it waited; a look elsewhere would see what was there before.

    Args:
        guards: which of `GUARDS` are asked for; their values come last.
        synced: whether it has to say that its commit waits for the log.
        by_version: whether the row is known, so that it need not be told.
    """
    asked = list(compress(GUARDS, guards))
    conditions = "".join(f" AND ({GUARDS[name]})" for name in asked)
    told = "number, last_seq, tail_at" if by_version else HEADS
    where = BY_VERSION if by_version else BY_KEY
    sql = f"""
        WITH h AS ({RAISED} {where} {conditions} RETURNING {told}, xmin),
        e AS (
            INSERT INTO ~entries (session, left_at, seq, stored_at, tokens, messages,
                conversations, kind, id, body)
            SELECT number, 0, last_seq, tail_at, p_tokens, p_messages, p_conversations,
                p_kind, p_id, p_body
            FROM h
        )
        SELECT {told}, xmin FROM h {_SYNCED if synced else ""}
    """  # noqa: S608  (columns of our own)
    values = (*(_VERSION if by_version else _KEY), *_VALUES, *asked)

    def text(match: re.Match[str]) -> str:
        name = _SAME.get(match[1], match[1])
        return _CONSTANTS.get(name) or f"${values.index(name) + 1}"

    return re.sub(r"\bp_(\w+)", text, sql)


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


def is_single(append: Append) -> bool:
    """Tell whether one statement without a function does it."""
    return append.texts.change is NO_CHANGE and len(append.entries) == 1


def call_by_version(
    append: Append, known: KnownHead, rules: Rules, *, synced: bool
) -> tuple[str, tuple[Any, ...], SessionHead]:
    """Return the statement for a single entry, its values, and the head that it makes.

    It gives `number`, `last_seq`, `tail_at` and `xmin` of the head; no row where it did
    nothing, as the row is of another version or may not be written.
    """
    entry, head, now = append.entries[0], known.head, rules.now()
    counts = Counts.of((entry,))
    asked, guards = _asked(None, None, append.trim, *rules.sessions.cutoffs(now))
    values = (
        *(known.number, known.xmin, head.incarnation, head.revision),
        *(now, *counts[1:], entry.id, entry.kind, append.bodies[0], *guards),
    )
    sql = _one(asked, synced=synced, by_version=True)
    return sql, values, grown_head(head, counts, now)


def call(
    append: Append, rules: Rules, *, synced: bool, single: bool
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that does it, and its values.

    It gives the head, and of a single entry `xmin` behind it; or where it did nothing
    no row, or one of NULLs.

    Args:
        append: what is to be done.
        rules: limits and clock of the journal.
        synced: whether it has to say that its commit waits for the log.
        single: whether to do it without a function: it `is_single`, and the connection
            keeps statements. Else planning one costs more than the call of a function,
            whose plans the server keeps.
    """
    change, entries = append.texts.change, append.entries
    now = rules.now()
    idle, lifetime = rules.sessions.cutoffs(now)
    n, messages, conversations, tokens = Counts.of(entries)
    counts = (messages, conversations, tokens)
    only = (entries[0].id, entries[0].kind, append.bodies[0])
    if single:
        asked, guards = _asked(
            *(append.incarnation, append.expected_revision, append.trim),
            *(idle, lifetime),
        )
        values = (*append.key, now, *counts, *only, *guards)
        return _one(asked, synced=synced), values
    end = _SYNCED if synced else ""
    updated = touch = now
    if change is not NO_CHANGE:
        updated = now if change.updated_at is None else to_micros(change.updated_at)
        touch = now if change.touch is None else to_micros(change.touch)
    values = (
        *append.key,
        append.incarnation,
        append.expected_revision,
        BODY_VERSION,
        now,
        idle,
        lifetime,
        append.trim,
        updated,
        touch,
        n,
        *counts,
        *(only if n == 1 else _NOTHING),
        *_arrays(append),
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


def _asked(*guards: Any) -> tuple[tuple[bool, ...], tuple[Any, ...]]:
    """Return which of `GUARDS` are asked for, and the values of those."""
    if guards == _NO_GUARDS:
        return (), ()
    asked = tuple([value is not None for value in guards])
    return asked, tuple(compress(guards, asked))


def _arrays(append: Append) -> tuple[Any, ...]:
    """Return what is told of each entry; a single one needs no arrays."""
    entries = append.entries
    if len(entries) == 1:
        return (*_NOTHING, *_NOTHING)
    counts = [Counts.of((entry,)) for entry in entries]
    return (
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
