"""`dump` and `restore`: one session as lines of JSON, and back.

Format, version 1: one JSON object on each line, UTF-8, the lines in this order.

1. ``{"raf_session_dump": 1, "key": …, "session": {…}, "state": {…},
   "provider_states": {…}, "request": {…} or null}``; ``session`` holds type, times (RFC
   3339 in UTC), pin, title, model, status, labels and the key that it was forked from;
   ``request`` the digests of the messages in hexadecimal, the hash, the header's digest
   and the version of the encoding.
2. ``{"archived": {"id", "kind", "stored_at", "body"}}`` for each entry that left the
   window, in order; ``stored_at`` is in microseconds since 1970, ``body`` the event.
3. ``{"active": {…}}`` for each entry of the window, the same.
4. ``{"end": {"archived": n, "active": n}}``.

State of the user and of the app is not the session's, and not in its dump.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from dataclasses import replace
from typing import Any

from raf_session.clock import to_micros, utc
from raf_session.entries import Record
from raf_session.errors import SessionNotFoundError
from raf_session.expiry import ExpiryRule
from raf_session.journal import Commit, Journal
from raf_session.json_text import dump_json
from raf_session.keys import SessionKey
from raf_session.raf_json import format_time
from raf_session.transfer.dump_reader import DUMP_VERSION, DumpReader
from raf_session.transfer.images import BODIES

__all__ = ("dump", "restore")


async def dump(journal: Journal, key: SessionKey) -> AsyncGenerator[str]:
    """Yield the lines of a session's dump, each with its line feed at the end.

    All of one moment: the session is read before the first line is made.  Moves no
    time.

    Args:
        journal: where it is kept.
        key: the session.

    Raises:
        SessionNotFoundError: missing or expired.
        SessionDamagedError: it cannot be read.
    """
    record = await journal.load(key, archived=True)
    yield f"{dump_json(_head_to_json(record))}\n"
    for part, entries in (("archived", record.archived), ("active", record.entries)):
        for entry in entries:
            # The body stands as every journal keeps it, key order and all.
            place = dump_json(
                {"id": entry.id, "kind": entry.kind, "stored_at": entry.stored_us}
            )
            body = BODIES.encode(entry)
            yield f'{{"{part}":{place[:-1]},"body":{body}}}}}\n'
    end = {"archived": len(record.archived), "active": len(record.entries)}
    yield f"{dump_json({'end': end})}\n"


async def restore(
    journal: Journal,
    lines: AsyncIterable[str | bytes] | Iterable[str | bytes],
    *,
    key: SessionKey | None = None,
) -> Commit:
    """Create the session of a dump, whole or not at all.

    All lines are read and checked before anything is stored; blank ones are passed
    over.  A field that this version does not know is refused, as it would be lost.

    Args:
        journal: where to.
        lines: what `dump` yielded, or a file of it.
        key: under which key; `None`: that of the dump.

    Returns:
        What `create` did.

    Raises:
        DumpDamagedError: the dump is torn or no dump; it names the line.
        SchemaVersionError: a newer version wrote it.
        SessionExistsError: the key is taken; nothing changed.
        SessionNotFoundError: by the limits of the journal it has expired already.
        EntryTooLargeError: an entry is over the limit of the journal.
        TypeError: `lines` is one text.
    """
    if isinstance(lines, str | bytes | bytearray):
        raise TypeError(
            f"lines is one {type(lines).__name__}, not the lines of a dump: "
            "pass the open file, or io.StringIO or io.BytesIO of it"
        )
    reader = DumpReader()
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            reader.take(line)
    else:
        for line in lines:
            reader.take(line)
    head, archived, entries = reader.finish()
    new = head.new if key is None else replace(head.new, key=key)
    rule = ExpiryRule(journal.limits.sessions)
    now = to_micros(utc(journal.clock()))
    if not new.pinned and rule.expired(head.created_at, head.last_active_at, now):
        raise SessionNotFoundError(new.key, "expired")
    return await journal.create(new, entries, archived=archived, change=head.change)


# Writing -------------------------------------------------------------------------


def _head_to_json(record: Record) -> dict[str, Any]:
    head, request = record.head, record.request
    return {
        "raf_session_dump": DUMP_VERSION,
        "key": str(head.key),
        "session": {
            "type": head.session_type,
            "created_at": format_time(head.created_at),
            "updated_at": format_time(head.updated_at),
            "last_active_at": format_time(head.last_active_at),
            "pinned": head.pinned,
            "title": head.title,
            "model": head.model,
            "status": head.status,
            "labels": sorted(head.labels),
            "forked_from": head.forked_from,
        },
        "state": record.state,
        "provider_states": record.provider_states,
        "request": None
        if request is None
        else {
            "digests": request.digests.hex(),
            "hash": request.hash,
            "header": request.header,
            "format": request.format,
        },
    }
