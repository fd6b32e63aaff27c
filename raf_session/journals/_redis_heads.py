"""Heads and rows as texts in Redis.

Three fields of a session's hash make its head: ``facts`` (numbers, which scripts read
and write), ``about`` (JSON, which they pass on) and ``request``.  A row is seven texts
joined by NUL, the body last; no row holds two NULs in a row, so two part one from the
next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from raf_session.changes import SessionStatus
from raf_session.clock import from_micros, to_micros
from raf_session.encoding import RawRow, Row
from raf_session.entries import Counts, SessionHead
from raf_session.errors import SessionDamagedError
from raf_session.journals._redis_faults import BACKEND
from raf_session.json_text import dump_json, load_written
from raf_session.keys import SessionKey

__all__ = (
    "Stored",
    "about_text",
    "facts_text",
    "parse_head",
    "parse_rows",
    "raw_rows",
    "request_text",
    "rest_of_row",
    "row_text",
)

_GAP: Final = "\0\0"


class Stored(NamedTuple):
    """A head, and what else Redis keeps beside it."""

    head: SessionHead
    version: int
    """Grows with every write, those too that are no revision."""
    tail_at: int
    """When the last active entry was stored, 0 where there is none."""
    archived: int
    """How many entries stand in the archive."""
    owed: int
    """How many deltas of other slots its record carries."""

    @property
    def seen(self) -> str:
        """What `COMMIT` compares."""
        return f"{self.head.incarnation} {self.version}"


def parse_head(key: SessionKey, fields: Sequence[bytes]) -> Stored:
    """Return the head of the fields incarnation, facts, about and request.

    Raises:
        SessionDamagedError: they cannot be read.
    """
    incarnation, facts, about, request = fields
    try:
        f = [int(word) for word in facts.split()]
        title, model, status, labels, session_type, forked_from = _about(about)
        n, last, header, version = _request(request)
        updated = from_micros(f[3])
        head = SessionHead(
            key,
            incarnation.decode(),
            f[1],
            from_micros(f[2]),
            updated,
            updated if f[3] == f[4] else from_micros(f[4]),
            f[5] != 0,
            f[6],
            f[7],
            Counts(*f[8:12]),
            Counts(*f[12:16]),
            title,
            model,
            status,
            labels,
            session_type,
            forked_from,
            f[19],
            n,
            last,
            header,
            version,
        )
        return Stored(head, f[0], f[16], f[17], f[18])
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        detail = f"its head cannot be read: {error}"
        raise SessionDamagedError(key, BACKEND, detail) from error


@lru_cache(maxsize=1024)
def _about(
    text: bytes,
) -> tuple[str, str, SessionStatus, frozenset[str], str, str | None]:
    title, model, status, labels, session_type, forked_from = load_written(text)
    return (
        title,
        model,
        SessionStatus(status),
        frozenset(labels),
        session_type,
        forked_from,
    )


def _request(text: bytes) -> tuple[int | None, int | None, int | None, int | None]:
    if not text:
        return None, None, None, None
    n, last, header, version = text.decode().split(" ")
    return int(n), int(last), None if header == "-" else int(header), int(version)


def facts_text(stored: Stored) -> str:
    """Return the field ``facts``."""
    head = stored.head
    numbers = [
        stored.version,
        head.revision,
        to_micros(head.created_at),
        to_micros(head.updated_at),
        to_micros(head.last_active_at),
        int(head.pinned),
        head.last_seq,
        head.spliced_at,
        *head.active,
        *head.total,
        stored.tail_at,
        stored.archived,
        stored.owed,
        head.schema,
    ]
    return " ".join(map(str, numbers))


def about_text(head: SessionHead) -> str:
    """Return the field ``about``."""
    return dump_json(
        [
            head.title,
            head.model,
            head.status.value,
            sorted(head.labels),
            head.session_type,
            head.forked_from,
        ]
    )


def request_text(
    n: int | None, last: int | None, header: int | None, version: int | None
) -> str:
    """Return the field ``request``."""
    return f"{n} {last} {'-' if header is None else header} {version}"


# Rows ----------------------------------------------------------------------------


def rest_of_row(kind: str, entry_id: str, counts: Counts, body: str) -> bytes:
    """Return a row from its counts on: what is known before it has a place."""
    _, messages, conversations, tokens = counts
    return "\0".join(
        (f"{messages} {conversations} {tokens}", entry_id, kind, body)
    ).encode()


def row_text(row: Row) -> bytes:
    """Return the whole of a row."""
    front = f"{row.seq}\0{row.left_at}\0{row.stored_at}\0".encode()
    return front + rest_of_row(row.kind, row.id, row.counts, row.body)


def parse_rows(key: SessionKey, blob: bytes) -> list[Row]:
    """Return rows that stand in one text.

    Raises:
        SessionDamagedError: one cannot be read; it names it.
    """
    if not blob:
        return []
    try:
        texts = blob.decode().split(_GAP)
        return [_row(text) for text in texts]
    except ValueError as error:
        raise _damage(key, blob, error) from error


def _row(text: str) -> Row:
    seq, left_at, stored_at, counts, entry_id, kind, body = text.split("\0", 6)
    messages, conversations, tokens = counts.split(" ")
    return Row(
        int(seq),
        int(left_at),
        entry_id,
        kind,
        int(stored_at),
        body,
        Counts(1, int(messages), int(conversations), int(tokens)),
    )


def raw_rows(key: SessionKey, blob: bytes) -> list[RawRow]:
    """Return rows without their counts, for reading.

    Raises:
        SessionDamagedError: one cannot be read; it names it.
    """
    if not blob:
        return []
    rows: list[Any] = []
    try:
        for text in blob.decode().split(_GAP):
            seq, left_at, stored_at, _, entry_id, kind, body = text.split("\0", 6)
            rows.append(
                (int(seq), int(left_at), entry_id, kind, int(stored_at), body, 0)
            )
    except ValueError as error:
        raise _damage(key, blob, error) from error
    return rows


def _damage(key: SessionKey, blob: bytes, error: Exception) -> SessionDamagedError:
    for text in blob.split(_GAP.encode()):
        try:
            _row(text.decode())
        except ValueError as fault:
            words = text.split(b"\0", 6)
            name = words[4].decode(errors="replace") if len(words) > 4 else "?"
            place = words[0].decode(errors="replace")
            detail = f"entry {name!r} at {place}: {fault}"
            return SessionDamagedError(key, BACKEND, detail)
    return SessionDamagedError(key, BACKEND, str(error))
