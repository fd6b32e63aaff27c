"""What of a session goes into another journal, and whether two are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from raf_session.changes import Change, LabelDelta, StateDelta
from raf_session.encoding import BodyFormat
from raf_session.entries import Counts, Entry, Record, SessionHead
from raf_session.errors import CopyMismatchError
from raf_session.journal import Commit
from raf_session.json_text import dump_json
from raf_session.keys import SessionKey
from raf_session.options import NewSession

__all__ = (
    "BODIES",
    "EntryImage",
    "change_of",
    "check_counts",
    "entry_images",
    "new_session",
    "record_image",
)

BODIES: Final = BodyFormat("transfer", None, 1 << 62)
"""Bodies without a codec, of any size."""

EntryImage: TypeAlias = tuple[str, str, int | None, str]
"""Id, kind, time and body of an entry."""


def new_session(head: SessionHead, key: SessionKey | None = None) -> NewSession:
    """Return what `create` is told of a session that existed before.

    Args:
        head: the session.
        key: its new key; `None`: its own.
    """
    return NewSession(
        key=head.key if key is None else key,
        session_type=head.session_type,
        created_at=head.created_at,
        updated_at=head.updated_at,
        last_active_at=head.last_active_at,
        pinned=head.pinned,
        forked_from=head.forked_from,
    )


def change_of(record: Record) -> Change:
    """Return the change that gives a new session the states and description of one."""
    head, request = record.head, record.request
    return Change(
        session=StateDelta(record.state),
        providers=StateDelta(record.provider_states),
        request=None if request is None else request.after(None),
        title=head.title,
        model=head.model,
        labels=LabelDelta(head.labels),
        status=head.status,
    )


def entry_images(entries: Iterable[Entry]) -> list[EntryImage]:
    """Return what makes entries the same wherever they are."""
    return [
        (entry.id, entry.kind.value, entry.stored_us, BODIES.encode(entry))
        for entry in entries
    ]


def record_image(record: Record) -> dict[str, Any]:
    """Return everything of a session that a copy keeps.

    States are JSON text, which tells 1 from 1.0 and true.
    """
    head = record.head
    return {
        "created_at": head.created_at,
        "updated_at": head.updated_at,
        "last_active_at": head.last_active_at,
        "pinned": head.pinned,
        "forked_from": head.forked_from,
        "session_type": head.session_type,
        "title": head.title,
        "model": head.model,
        "status": head.status,
        "labels": head.labels,
        "request": record.request,
        "state": dump_json(record.state),
        "provider_states": dump_json(record.provider_states),
        "entries": entry_images(record.entries),
        "archived": entry_images(record.archived),
    }


def check_counts(record: Record, commit: Commit) -> Counts:
    """Return the counts of all entries of a session that was just created from another.

    Raises:
        CopyMismatchError: the journal counts other entries than it was given.
    """
    active = Counts.of(record.entries)
    total = active.plus(Counts.of(record.archived))
    head = commit.head
    if head.active != active or head.total != total:
        raise CopyMismatchError(
            head.key,
            f"{active} active, {total} in all",
            f"{head.active} active, {head.total} in all",
        )
    return total
