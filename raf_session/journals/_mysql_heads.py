"""Heads in one column: a driver spends more on 30 columns than a server on joining."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from raf_session.journals._sql_tables import HEAD_COLUMNS

__all__ = ("PACKED", "is_whole", "unpacked")

_COLUMNS: Final = ("number", "tail_at", *HEAD_COLUMNS, "labels")
_WORDS: Final = {"incarnation", "status"}
"""Written by this library, of letters and digits."""
_TEXTS: Final = {"title", "model", "session_type", "forked_from", "labels"}
_BYTES: Final = {"request_hash", "request_header"}
_NULLABLE: Final = {"forked_from", "request_n", "request_format", *_BYTES}


def _written(name: str) -> str:
    value = f"HEX({name})" if name in _TEXTS | _BYTES else name
    return f"COALESCE({value}, '-')" if name in _NULLABLE else value


PACKED: Final = f"CONCAT_WS(',', {', '.join(map(_written, _COLUMNS))})"
"""What a row of ``raf_heads`` holds, as one text."""


def _reader(name: str) -> Callable[[str], Any]:
    if name in _WORDS:
        return str
    read = _text if name in _TEXTS else bytes.fromhex if name in _BYTES else int
    if name not in _NULLABLE:
        return read
    return lambda part: None if part == "-" else read(part)


def _text(part: str) -> str:
    return part and bytes.fromhex(part).decode(errors="surrogateescape")


_READERS: Final = tuple(map(_reader, _COLUMNS))


def is_whole(head: str) -> bool:
    """Tell whether the server wrote all of a head: it leaves out what is too large."""
    return head.count(",") == len(_COLUMNS) - 1


def unpacked(head: bytes | str) -> tuple[Any, ...]:
    """Return the row of a head, as the core reads it from the table."""
    parts = (head if isinstance(head, str) else head.decode()).split(",")
    return tuple([read(part) for read, part in zip(_READERS, parts, strict=True)])
