"""Encodings of the prefix hash, read back into the values that they stand for."""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from typing_extensions import override

__all__ = ("LargeText", "decode")

_CONSTANTS: Final = {b"n": None, b"f": False, b"t": True}


class LargeText(NamedTuple):
    """A string of which an encoding holds the length and the hash alone."""

    size: int
    """Bytes of UTF-8."""
    digest: int
    """Its XXH64."""

    @override
    def __str__(self) -> str:
        return f"<{self.size:,} bytes, xxh64 {self.digest:016x}>"


def decode(encoding: bytes) -> Any:
    """Return the value of an encoding that this library made.

    Objects have their keys in the order in which they were encoded; of a large string
    a `LargeText` is left.

    Args:
        encoding: as `encode_message` and `encode_header` return it.
    """
    return _Reader(encoding, 1).value()


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def value(self) -> Any:
        tag = self._take(1)
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag == b"d":
            return struct.unpack("<d", self._take(8))[0]
        count = self._count()
        if tag == b"i":
            return int.from_bytes(self._take(count), "little", signed=True)
        if tag == b"s":
            return self._take(count).decode("utf-8", "surrogatepass")
        if tag == b"S":
            return LargeText(count, int.from_bytes(self._take(8), "little"))
        if tag == b"l":
            return [self.value() for _ in range(count)]
        return {self.value(): self.value() for _ in range(count)}

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _count(self) -> int:
        total = shift = 0
        while True:
            (byte,) = self._take(1)
            total |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return total
