"""Statements, values and rows between the core's SQL and the server's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from raf_session.journals._sql_dialect import Row, Translation, Value

__all__ = ("batch", "expanded", "read_rows", "translated", "written")

_BATCHES: Final = (64, 16, 4, 1)
"""How many rows one statement inserts: few different statements are prepared."""
_BYTES: Final = {"request_hash", "request_header", "digests"}
_DECIMALS: Final = {0, 246}

translated: Final = Translation(
    table=lambda name: f"raf_{name}", mark=lambda _: "?", many=lambda _: "IN ??"
)
"""Turns SQL of the core into SQL of this backend; lists are written out later."""


def expanded(text: str, values: Sequence[Value]) -> tuple[str, tuple[Any, ...]]:
    """Return a statement with its lists written out, and texts as bytes.

    A list is filled up to a power of two, so that few statements are prepared.
    """
    args: list[Any] = []
    lengths: list[int] = []
    for value in values:
        if type(value) is str:
            args.append(value.encode())
        elif isinstance(value, list | tuple):
            items = [item.encode() if type(item) is str else item for item in value]
            items += items[-1:] * ((1 << (len(items) - 1).bit_length()) - len(items))
            args += items
            lengths.append(len(items))
        else:
            args.append(value)
    if lengths:
        first, *rest = text.split("IN ??")
        text = first + "".join(
            f"IN ({', '.join('?' * n)}){part}"
            for n, part in zip(lengths, rest, strict=True)
        )
    return text, tuple(args)


def written(text: str, values: Sequence[Value]) -> str:
    """Return a statement with its values written into it."""
    text, args = expanded(text, values)
    first, *rest = text.split("?")
    return first + "".join(
        f"{_literal(arg)}{part}" for arg, part in zip(args, rest, strict=True)
    )


def _literal(value: bytes | int | None) -> str:
    if value is None:
        return "NULL"
    return str(int(value)) if isinstance(value, int) else f"x'{value.hex()}'"


def batch(rows: Sequence[Sequence[Any]], first: int, max_bytes: int) -> int:
    """Return how many rows from this one on are inserted by one statement.

    Args:
        rows: their texts are bytes already.
        first: the row to begin with.
        max_bytes: how much one statement may carry, if it has more than one row.
    """
    fits, size = 0, 0
    for row in rows[first : first + _BATCHES[0]]:
        size += sum([len(value) if type(value) is bytes else 16 for value in row])
        if size > max_bytes and fits:
            break
        fits += 1
    return next(n for n in _BATCHES if n <= fits)


def read_rows(
    rows: Sequence[Row] | None, description: Sequence[Sequence[Any]] | None
) -> Sequence[Row]:
    """Return the rows of a result: texts as `str`, numbers as `int`.

    Bytes that are no UTF-8 become surrogates, which no reader of the core accepts.

    Args:
        rows: as the driver read them, `None` where the statement gives none.
        description: of the columns, as the driver has it.
    """
    if not rows or description is None:
        return ()
    texts = [
        column[0] not in _BYTES and column[1] not in _DECIMALS for column in description
    ]
    whole = [column[1] in _DECIMALS for column in description]
    return [
        tuple(
            [
                value.decode(errors="surrogateescape")
                if is_text and type(value) is bytes
                else int(value)
                if is_whole and value is not None
                else value
                for value, is_text, is_whole in zip(row, texts, whole, strict=True)
            ]
        )
        for row in rows
    ]
