"""`fork`: a session of its own that begins with another one's history."""

from __future__ import annotations

from dataclasses import replace

from raf_session.entries import Record
from raf_session.errors import InvalidValueError
from raf_session.journal import Commit, Journal
from raf_session.keys import SessionKey
from raf_session.options import NewSession
from raf_session.transfer.images import change_of

__all__ = ("fork",)


async def fork(
    journal: Journal,
    key: SessionKey,
    new_key: SessionKey,
    upto: int | str | None = None,
) -> Commit:
    """Create a session that begins as another one did, and leave that one as it is.

    The entries keep id, body and `stored_at`; `forked_from` is the key of the first
    session.  State, provider states, title, model, labels, status and type are those
    that it has now, wherever the fork ends.  The request record comes along only where
    every entry does.  The fork is created, and active, now; it is not pinned.

    The archive comes along up to the first active entry that does not.

    Args:
        journal: where both are kept.
        key: the session to begin with.
        new_key: the key of the fork.
        upto: the last entry to take, by its place or its id; an id has to be that of an
            active entry; `None`: all.

    Returns:
        What `create` did.

    Raises:
        SessionNotFoundError: there is no session to begin with.
        SessionExistsError: the new key is taken; nothing changed.
        InvalidValueError: no active entry has this id, or the place is negative.
    """
    record = await journal.load(key, archived=True)
    taken = _taken(record, upto)
    whole = taken == len(record.entries)
    archived = record.archived
    if not whole:
        end = record.entries[taken].seq
        archived = tuple(entry for entry in archived if entry.seq < end)
    change = change_of(record)
    return await journal.create(
        NewSession(
            key=new_key,
            session_type=record.head.session_type,
            forked_from=str(key),
        ),
        record.entries[:taken],
        archived=archived,
        change=change if whole else replace(change, request=None),
    )


def _taken(record: Record, upto: int | str | None) -> int:
    """Return how many of the active entries are to be taken."""
    if upto is None:
        return len(record.entries)
    if isinstance(upto, str):
        for index, entry in enumerate(record.entries):
            if entry.id == upto:
                return index + 1
        raise InvalidValueError("upto", f"no active entry has the id {upto!r}")
    if upto < 0:
        raise InvalidValueError("upto", f"{upto} is negative")
    return sum(entry.seq <= upto for entry in record.entries)
