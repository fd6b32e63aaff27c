"""Heads in one column: a driver spends more on 30 columns than a server on joining."""

from __future__ import annotations

from typing import Any, Final

from raf_session.journals._sql_tables import HEAD_COLUMNS

__all__ = ("PACKED", "is_whole", "unpacked")

_COLUMNS: Final = ("number", "tail_at", *HEAD_COLUMNS, "labels")
_TEXTS: Final = {"title", "model", "session_type", "forked_from", "labels"}
_BYTES: Final = {"request_hash", "request_header"}
_REVISION, _TITLE, _REQUEST = map(_COLUMNS.index, ("revision", "title", "request_n"))
"""Where numbers begin, what describes a session, and the record of its request."""
_NULLABLE: Final = {"forked_from", "request_n", "request_format", *_BYTES}


def _written(name: str) -> str:
    value = f"HEX({name})" if name in _TEXTS | _BYTES else name
    return f"COALESCE({value}, '-')" if name in _NULLABLE else value


PACKED: Final = f"CONCAT_WS(',', {', '.join(map(_written, _COLUMNS))})"
"""What a row of ``raf_heads`` holds, as one text."""


def is_whole(head: str) -> bool:
    """Tell whether the server wrote all of a head: it leaves out what is too large."""
    return head.count(",") == len(_COLUMNS) - 1


def unpacked(head: bytes | str) -> tuple[Any, ...]:
    """Return the row of a head, as the core reads it from the table."""
    parts = (head if isinstance(head, str) else head.decode()).split(",")
    number, tail_at, incarnation = parts[:_REVISION]
    title, model, status, session_type, forked_from, version = parts[_TITLE:_REQUEST]
    n, last, header, form, labels = parts[_REQUEST:]
    return (
        int(number),
        int(tail_at),
        incarnation,
        *map(int, parts[_REVISION:_TITLE]),
        _text(title),
        _text(model),
        status,
        _text(session_type),
        None if forked_from == "-" else _text(forked_from),
        int(version),
        None if n == "-" else int(n),
        None if last == "-" else bytes.fromhex(last),
        None if header == "-" else bytes.fromhex(header),
        None if form == "-" else int(form),
        _text(labels),
    )


def _text(part: str) -> str:
    return part and bytes.fromhex(part).decode(errors="surrogateescape")
