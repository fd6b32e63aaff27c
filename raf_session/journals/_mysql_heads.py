"""Heads in one column: a driver spends more on 30 columns than a server on joining."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from raf_session.journals._sql_tables import HEAD_COLUMNS

__all__ = ("PACKED", "is_whole", "unpacked")

_COLUMNS: Final = ("number", "tail_at", *HEAD_COLUMNS, "labels")
_TEXTS: Final = {"title", "model", "session_type", "forked_from", "labels"}
_BYTES: Final = {"request_hash", "request_header"}
_TITLE: Final = _COLUMNS.index("title")
"""What describes a session begins here, behind numbers."""
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
    text = head if isinstance(head, str) else head.decode()
    number, tail_at, incarnation, *numbers, rest = text.split(",", _TITLE)
    read = _known if len(rest) <= _SHORT else _described
    return (int(number), int(tail_at), incarnation, *map(int, numbers), *read(rest))


def _described(rest: str) -> tuple[Any, ...]:
    """Return what stands behind the numbers: most writes leave it as it is."""
    title, model, status, session_type, forked_from, version, *request, labels = (
        rest.split(",")
    )
    n, last, header, form = request
    return (
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


_known: Final = lru_cache(maxsize=1024)(_described)
_SHORT: Final = 1024
"""Characters of what is kept."""


def _text(part: str) -> str:
    return part and bytes.fromhex(part).decode(errors="surrogateescape")
