"""A file's bytes as lines, and lines as the batches in which they were written.

Every line of one write carries ``[i, n]``.  A batch at the end that is not whole was
being written when its writer died: it is to be cut.  Damage anywhere else is skipped
and told with its line; what can still be read beside it is kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias, cast

from raf_session.journals._jsonl_lines import Line
from raf_session.json_text import load_written

__all__ = ("Damage", "Ending", "batches", "parse")

_BLOCK: Final = 1 << 20
_GUESSES: Final = 100
"""How many places of a damaged line are tried as the beginning of a record."""
_EXCERPT: Final = 60
_DECODER: Final = json.JSONDecoder()
_BEHIND: Final = re.compile(r"[ \t\r]*(?:\Z|[{\0])")
"""What stands behind a record: nothing, another record, or zeros."""


class Damage(NamedTuple):
    """A line that could not be read, or not as a whole."""

    number: int
    detail: str


class Ending(NamedTuple):
    """How a file ends, the last of what `batches` gives."""

    end: int
    """The offset behind the last whole batch."""
    lines: int
    """How many lines stand in front of it."""
    torn: int
    """How many bytes stand behind it: a batch that is not whole."""
    open: bool
    """Whether the last line wants its newline."""


Batch: TypeAlias = list[Line]


class _Raw(NamedTuple):
    number: int
    offset: int
    data: bytes
    ended: bool


def parse(data: bytes) -> dict[str, Any]:
    """Return the object of a line.

    Raises:
        ValueError: it is none.
    """
    fields = load_written(data)
    if not isinstance(fields, dict):
        raise ValueError("no object")  # noqa: TRY004  (bad data, not a bad argument)
    return cast("dict[str, Any]", fields)


def _raw_lines(fd: int, start: int, end: int, number: int) -> Iterator[_Raw]:
    parts: list[bytes] = []  # of the line that did not end yet
    size = 0
    while start < end:
        block = os.pread(fd, min(_BLOCK, end - start), start)
        if not block:
            break
        at = start - size
        start += len(block)
        part, *others = block.split(b"\n")
        for other in others:
            data = b"".join([*parts, part])
            yield _Raw(number, at, data, True)
            number += 1
            at += len(data) + 1
            parts, part = [], other
        parts.append(part)
        size = start - at
    if size:
        yield _Raw(number, start - size, b"".join(parts), False)


def batches(
    fd: int, start: int, end: int, lines: int = 0
) -> Iterator[Batch | Damage | Ending]:
    """Read a part of a file that begins with a batch.

    Args:
        fd: the file.
        start: where to begin.
        end: where to stop reading.
        lines: how many lines stand in front.
    """
    reader = _Reader(start, lines)
    for raw in _raw_lines(fd, start, end, lines + 1):
        yield from reader.feed(raw)
    yield from reader.finish(end)


class _Reader:
    """Puts lines together to batches."""

    def __init__(self, start: int, lines: int) -> None:
        self._batch: Batch = []
        self._damage: list[Damage] = []  # inside the batch that is not whole yet
        self._size = 0
        self._start = start
        self._end, self._lines, self._open = start, lines, False
        self._last: _Raw | None = None

    def feed(self, raw: _Raw) -> Iterator[Batch | Damage]:
        self._last = raw
        try:
            found = [Line(raw.number, raw.offset, len(raw.data), parse(raw.data))]
        except ValueError as error:
            if not raw.ended:
                return  # torn: `finish` decides
            found = _salvage(raw)
            damage = Damage(raw.number, f"{error}: {_excerpt(raw.data)}")
            if self._batch and not found:
                self._damage.append(damage)
                return
            yield from self._give_up()
            yield damage
            for line in found:
                yield [line]
            self._whole(raw)
            return
        yield from self._put(found[0], raw)

    def _put(self, line: Line, raw: _Raw) -> Iterator[Batch | Damage]:
        i, n = _mark(line)
        batch = self._batch
        if (
            not self._damage
            and n > 1
            and i == len(batch)
            and (not i or n == self._size)
        ):
            batch.append(line)
            self._size = n
            if i == n - 1:
                self._batch = []
                self._whole(raw)
                yield batch
            return
        yield from self._give_up()
        if (i, n) == (0, 1):
            self._whole(raw)
            yield [line]
        elif i == 0:
            self._batch, self._size = [line], n
        else:
            yield Damage(line.number, f"part {i + 1} of {n} without those in front")
            yield [line]
            self._whole(raw)

    def _give_up(self) -> Iterator[Batch | Damage]:
        """Give what there is of a batch that will not be whole."""
        batch, self._batch = self._batch, []
        damage, self._damage = self._damage, []
        if not batch:
            return
        yield from damage or [
            Damage(batch[-1].number, f"{len(batch)} lines of {self._size}")
        ]
        for line in batch:
            yield [line]

    def _whole(self, raw: _Raw) -> None:
        self._end = raw.offset + len(raw.data) + raw.ended
        self._lines = raw.number
        self._open = not raw.ended

    def finish(self, end: int) -> Iterator[Batch | Damage | Ending]:
        last, batch = self._last, self._batch
        if batch and last is not None:
            ended = last.number - (not last.ended)
            if ended - batch[0].number + 1 >= self._size or batch[0].offset == 0:
                # All of it was written, and damaged later; or it begins the file, and
                # files are made whole.
                readable = last.ended or batch[-1].number == last.number
                yield from self._give_up()
                self._end, self._lines, self._open = last.offset, ended, False
                if readable:
                    self._whole(last)
        yield Ending(self._end, self._lines, end - self._end, self._open)


def _mark(line: Line) -> tuple[int, int]:
    mark = line.ours.get("batch")
    if (
        isinstance(mark, list)
        and len(mark) == 2  # pyright: ignore[reportUnknownArgumentType]
        and all(isinstance(x, int) for x in mark)  # pyright: ignore[reportUnknownVariableType]
    ):
        i, n = cast("list[int]", mark)
        if 0 <= i < n:
            return i, n
    return 0, 1


def _salvage(raw: _Raw) -> Batch:
    """Return the records that can be told inside a line that is not one.

    What stands inside another value is none, whatever it looks like.
    """
    text = raw.data.decode("latin-1")  # a character is a byte: offsets stay
    found: Batch = []
    at = text.find('{"')
    for _ in range(_GUESSES):
        if at < 0:
            break
        try:
            _, end = _DECODER.raw_decode(text, at)
            fields = parse(raw.data[at:end])
        except (ValueError, RecursionError):
            end = at + 1
        else:
            ours = "raf" in fields or ("id" in fields and "role" in fields)
            if ours and _BEHIND.match(text, end):
                found.append(Line(raw.number, raw.offset + at, end - at, fields))
            else:
                end = at + 1
        at = text.find('{"', end)
    return found


def _excerpt(data: bytes) -> str:
    return repr(data[:_EXCERPT])[1:]
