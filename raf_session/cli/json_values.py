"""JSON values of a file, one after the other, each with the line on which it begins.

JSON Lines are read as a stream; a list, or an object over several lines, as a whole.
A list's elements still come one by one, so those in front of a fault are seen.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from raf_session.cli.faults import Fault, Place
from raf_session.json_text import load_json

__all__ = ("JsonValues", "Numbered", "open_values")

Numbered = tuple[int, Any]
"""A value and its line."""

STDIN: Final = "-"
_PIECE: Final = 1 << 20
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BLANKS: Final = b" \t\r\n"


class JsonValues:
    """The values of one open file; iterate once.

    Args:
        name: the file, for faults.
        stream: its bytes; need not be seekable.
    """

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self.listed: bool = False
        """Whether the values are the elements of one list; known with the first."""
        self.consumed: int = 0
        """How many bytes were read so far."""
        self._stream = stream
        self._number = 0
        self._ahead: tuple[int, bytes] | None = None
        self._former: Numbered | None = None

    def __iter__(self) -> Iterator[Numbered]:
        """Yield each value with its line.

        Raises:
            Fault: what comes next is no JSON; everything before it was yielded.
        """
        line = self._line()
        if line is not None and _begins_list(line[1]):
            self.listed = True
            yield from self._elements(line[0], self._rest(*line))
            return
        first = True
        while line is not None:
            yield line[0], self._value(*line, first=first)
            first = False
            line = self._line()

    def _value(self, number: int, data: bytes, *, first: bool) -> Any:
        """Return the value of a line, or of the whole file where that is one object."""
        text = self._decode(number, data)
        try:
            return load_json(text)
        except (ValueError, RecursionError) as error:
            if not (first and _unfinished(error, text)):
                self._refuse(number, error)
        try:
            return load_json(self._rest(number, data))
        except (ValueError, RecursionError) as error:
            self._refuse(number, error)

    def at(self, number: int) -> Numbered:
        """Return the value that begins on a line, counted from 1; no other is parsed.

        Instead of iterating; of a list the lines before it are parsed, though.

        Raises:
            Fault: none begins there, or what does is no JSON.
        """
        first = line = self._line()
        if line is not None and _begins_list(line[1]):
            for element in self._elements(line[0], self._rest(*line)):
                if element[0] == number:
                    return element
                self._former = element
        else:
            while line is not None and line[0] < number:
                self._former = line
                line = self._line()
            if line is not None and line[0] == number:
                return number, self._value(*line, first=line is first)
        raise Fault(Place(self.name, number), "no value begins on this line")

    def before(self) -> Numbered | None:
        """Return the value in front of that which `at` returned, if there is one."""
        if self._former is None:
            return None
        line, value = self._former
        if isinstance(value, bytes):  # a line, and not parsed yet
            value = self._value(line, value, first=False)
        return line, value

    def more(self) -> bool:
        """Tell whether another value, or a fault, follows the one just yielded."""
        self._ahead = self._line()
        return self._ahead is not None

    # Bytes -----------------------------------------------------------------------

    def _line(self) -> tuple[int, bytes] | None:
        """Return the next line that is not blank, and its number."""
        if self._ahead is not None:
            line, self._ahead = self._ahead, None
            return line
        while True:
            data = self._read()
            if not data:
                return None
            self._number += 1
            if self._number == 1:
                data = data.removeprefix(codecs.BOM_UTF8)
            data = data.rstrip(_BLANKS)
            if data:
                return self._number, data

    def _read(self) -> bytes:
        """Return a line, or the beginning of something that is not text."""
        pieces: list[bytes] = []
        try:
            while True:
                piece = self._stream.readline(_PIECE)
                pieces.append(piece)
                self.consumed += len(piece)
                if len(piece) < _PIECE or piece.endswith(b"\n") or b"\0" in piece:
                    return b"".join(pieces)
        except OSError as error:
            raise Fault(Place(self.name), error.strerror or str(error)) from error

    def _rest(self, number: int, data: bytes) -> str:
        """Return the text from this line on to the end of the file."""
        pieces = [data, b"\n"]
        while b"\0" not in pieces[-1] and (piece := self._read()):
            pieces.append(piece)
        return self._decode(number, b"".join(pieces).rstrip(_BLANKS))

    def _decode(self, number: int, data: bytes) -> str:
        end = data.find(b"\0")
        if end < 0:
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                end, reason = error.start, "not UTF-8 text"
        else:
            reason = "binary data, not UTF-8 text"
        place = Place(self.name, number + data.count(b"\n", 0, end))
        raise Fault(place, reason)

    # Text ------------------------------------------------------------------------

    def _elements(self, number: int, text: str) -> Iterator[Numbered]:
        seen = 0
        at = _skip(text, text.index("[") + 1)
        if text[at : at + 1] != "]":
            while True:
                number += text.count("\n", seen, at)
                seen = at
                try:
                    value, at = _decoder.raw_decode(text, at)
                except (ValueError, RecursionError) as error:
                    first = text.count("\n", 0, seen)
                    self._refuse(number - first, error, number)
                yield number, value
                at = _skip(text, at)
                mark = text[at : at + 1]
                if mark == "]":
                    break
                if mark != ",":
                    self._misplaced(number, text, seen, at, "',' or ']' expected")
                at = _skip(text, at + 1)
        at = _skip(text, at + 1)
        if at < len(text):
            self._misplaced(number, text, seen, at, "text after the end of the list")

    def _misplaced(
        self, number: int, text: str, seen: int, at: int, what: str
    ) -> NoReturn:
        place = Place(self.name, number + text.count("\n", seen, at))
        raise Fault(place, f"not JSON: {what}")

    def _refuse(
        self, number: int, error: Exception, value_line: int | None = None
    ) -> NoReturn:
        """Raise the fault of an error in text that begins on this line."""
        if isinstance(error, JSONDecodeError):
            place = Place(self.name, number + error.lineno - 1)
            reason = f"not JSON: {error.msg} (column {error.colno})"
            raise Fault(place, reason) from error
        place = Place(self.name, value_line or number)
        if isinstance(error, RecursionError):
            raise Fault(place, "nested too deeply") from error
        raise Fault(place, f"not JSON: {str(error).partition(';')[0]}") from error


def _begins_list(data: bytes) -> bool:
    return data.lstrip(_BLANKS).startswith(b"[")


def _unfinished(error: Exception, text: str) -> bool:
    return isinstance(error, JSONDecodeError) and error.pos >= len(text)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_decoder: Final = JSONDecoder(parse_constant=_refuse_constant)


@contextmanager
def open_values(path: str) -> Generator[JsonValues]:
    """Open a file, or standard input where the path is ``-``.

    Raises:
        Fault: it cannot be opened.
    """
    if path == STDIN:
        yield JsonValues("<stdin>", sys.stdin.buffer)
        return
    try:
        stream = Path(path).open("rb")  # noqa: SIM115  (closed below)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Fault(Place(path), reason) from error
    with stream:
        yield JsonValues(path, stream)
