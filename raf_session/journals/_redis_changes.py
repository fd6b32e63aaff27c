"""What a `Change` alters outside the head, as operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raf_session.changes import RequestDelta
from raf_session.clock import to_micros
from raf_session.entries import SessionHead
from raf_session.journals import _rules
from raf_session.journals._redis_core import Core
from raf_session.journals._redis_debts import Debt
from raf_session.journals._redis_heads import (
    Stored,
    about_text,
    facts_text,
    request_text,
)
from raf_session.journals._redis_keys import is_remote, member_of
from raf_session.journals._redis_operations import Operations, chunks
from raf_session.journals._texts import ChangeTexts
from raf_session.keys import SessionKey

__all__ = (
    "add_index",
    "add_labels",
    "add_states",
    "add_user",
    "request_texts",
    "write_head",
)


def add_states(
    ops: Operations, head_key: bytes, texts: ChangeTexts, debts: Sequence[Debt]
) -> None:
    """Set and delete fields of the session's hash."""
    if not texts.size and not debts and not _deletes(texts):
        return
    pairs: list[Any] = []
    names: list[Any] = []
    for kind, delta in (("state", texts.session), ("provider", texts.providers)):
        for name, value in delta.set:
            pairs += (f"{kind}:{name}".encode(), value.encode())
        names += [f"{kind}:{name}".encode() for name in delta.deleted]
    for debt in debts:
        pairs += (debt.field, debt.body)
    for words in chunks(pairs):
        ops.add("HSET", head_key, *words)
    for words in chunks(names):
        ops.add("HDEL", head_key, *words)


def _deletes(texts: ChangeTexts) -> bool:
    return bool(texts.session.deleted or texts.providers.deleted)


def add_user(
    core: Core,
    ops: Operations,
    key: SessionKey,
    texts: ChangeTexts,
    now: int,
    *,
    one_slot: bool,
) -> bool:
    """Write the user's state where it shares the session's slot; tell whether so."""
    scope = _rules.user_scope(key)
    if not texts.change.user or is_remote(scope):
        return False
    core.write_scope(ops, scope, texts.user, now, touch=now, one_slot=one_slot)
    return True


def request_texts(request: RequestDelta | None) -> tuple[str, str]:
    """Return a request record as it is stored, and its new digests."""
    if request is None:
        return "", ""
    return (
        request_text(request.n, request.hash, request.header, request.format),
        request.digests.hex(),
    )


def write_head(
    ops: Operations, head_key: bytes, before: SessionHead | None, after: Stored
) -> None:
    """Write the fields of a head that differ."""
    head = after.head
    pairs: list[Any] = ["facts", facts_text(after)]
    if before is None:
        pairs += ("incarnation", head.incarnation)
    if before is None or before[11:17] != head[11:17]:
        pairs += ("about", about_text(head).encode())
    ops.add("HSET", head_key, *pairs)
    if before is None or before[18:] != head[18:]:
        if head.request_n is not None:
            words = request_text(*head[18:])
            ops.add("HSET", head_key, "request", words)
        elif before is not None:
            ops.add("HDEL", head_key, "request")


def add_index(
    core: Core,
    ops: Operations,
    before: SessionHead,
    after: SessionHead,
    *,
    one_slot: bool,
) -> None:
    """Keep the index of a session that changed."""
    if after.last_active_at != before.last_active_at:
        active = to_micros(after.last_active_at)
        core.index.move(ops, member_of(after.key), active)
    add_labels(core, ops, before, after, one_slot=one_slot)


def add_labels(
    core: Core,
    ops: Operations,
    before: SessionHead,
    after: SessionHead,
    *,
    one_slot: bool,
) -> None:
    """Let a session be found under its labels.

    Where the index is not written in the same step, no label is taken out of it: a
    writer in between might have set it again.  What heads say decides in any case.
    """
    if after.labels != before.labels:
        removed = sorted(before.labels - after.labels) if one_slot else ()
        core.index.label(ops, member_of(after.key), after.labels, removed)
