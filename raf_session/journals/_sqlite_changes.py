"""What a `Change` alters outside the head: state, request digests and scopes."""

from __future__ import annotations

import sqlite3
from typing import Final

from raf_session.changes import NO_CHANGE, RequestDelta
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals import _rules
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_faults import BACKEND
from raf_session.journals._sqlite_heads import Stored, update_head
from raf_session.journals._sqlite_scopes import write_scope
from raf_session.journals._sqlite_texts import PROVIDER_STATES, SESSION_STATE
from raf_session.journals._texts import ChangeTexts, Values
from raf_session.keys import SessionKey

__all__ = (
    "NO_ALTERATION",
    "Alteration",
    "change_alone",
    "drop_digests",
    "read_digests",
)

_CHUNK: Final = 64
"""How many digests stand in one row."""
_CHUNK_BYTES: Final = 8 * _CHUNK


class Alteration(ChangeTexts):
    """A `Change`, encoded before the file is locked."""

    __slots__ = ()

    def apply(
        self,
        cursor: sqlite3.Cursor,
        rules: Rules,
        key: SessionKey,
        number: int,
        *,
        former_n: int | None,
        now: int,
    ) -> None:
        """Store what does not stand in the head.

        Args:
            cursor: in a transaction.
            rules: the limits of the journal.
            key: the session.
            number: its number.
            former_n: the messages of the request that is stored.
            now: the journal's time.

        Raises:
            SessionDamagedError: digests that are to be kept are not there.
        """
        change = self.change
        if change is NO_CHANGE:
            return
        SESSION_STATE.write(cursor, number, self.session)
        PROVIDER_STATES.write(cursor, number, self.providers)
        if change.request is not None:
            _write_digests(cursor, key, number, former_n or 0, change.request)
        if change.user:
            write_scope(cursor, rules, _rules.user_scope(key), self.user, now)
        if change.app:
            write_scope(cursor, rules, _rules.app_scope(key), self.app, now)


NO_ALTERATION: Final = Alteration(NO_CHANGE, Values(BACKEND, None))


def change_alone(
    cursor: sqlite3.Cursor,
    rules: Rules,
    stored: Stored,
    alteration: Alteration,
    now: int,
) -> SessionHead:
    """Store a change without entries; return the head after it."""
    head = stored.head
    after = rules.updated(head, alteration.change, now)
    update_head(cursor, stored, after, stored.tail_at)
    alteration.apply(
        cursor, rules, head.key, stored.number, former_n=head.request_n, now=now
    )
    return after


# Digests -------------------------------------------------------------------------


def read_digests(
    cursor: sqlite3.Cursor, key: SessionKey, number: int, n: int | None
) -> bytes:
    """Return the digests of a request of so many messages.

    Raises:
        SessionDamagedError: there are fewer, or more.
    """
    if not n:
        return b""
    chunks = cursor.execute(
        "SELECT digests FROM request_digests WHERE session = ? ORDER BY chunk",
        (number,),
    ).fetchall()
    digests = b"".join([chunk for (chunk,) in chunks])
    if len(digests) != 8 * n:
        detail = f"its request has {n} messages, {len(digests)} bytes of digests"
        raise SessionDamagedError(key, BACKEND, detail)
    return digests


def _write_digests(
    cursor: sqlite3.Cursor,
    key: SessionKey,
    number: int,
    former_n: int,
    request: RequestDelta,
) -> None:
    first, inside = divmod(request.keep, _CHUNK)
    digests = request.digests
    if inside:
        row = cursor.execute(
            "SELECT digests FROM request_digests WHERE session = ? AND chunk = ?",
            (number, first),
        ).fetchone()
        kept: bytes = b"" if row is None else row[0][: 8 * inside]
        if len(kept) != 8 * inside:
            raise SessionDamagedError(key, BACKEND, "digests of its request are gone")
        digests = kept + digests
    chunks = [
        (number, first + place // _CHUNK_BYTES, digests[place : place + _CHUNK_BYTES])
        for place in range(0, len(digests), _CHUNK_BYTES)
    ]
    cursor.executemany(
        "REPLACE INTO request_digests (session, chunk, digests) VALUES (?, ?, ?)",
        chunks,
    )
    if former_n > (first + len(chunks)) * _CHUNK:
        drop_digests(cursor, number, first + len(chunks))


def drop_digests(cursor: sqlite3.Cursor, number: int, first: int = 0) -> None:
    """Delete the digests of a request from this chunk on."""
    cursor.execute(
        "DELETE FROM request_digests WHERE session = ? AND chunk >= ?", (number, first)
    )
