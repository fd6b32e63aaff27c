"""The encoding of the prefix hash, in pure Python; its format is in `_prefix_py`."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from xxhash import xxh64_intdigest

from raf_session.messages import ChatMessage
from raf_session.parts import PART_TYPES
from raf_session.prefix_match import EXCLUDED, FORMAT_VERSION

__all__ = ("NotJsonError", "Writer", "encode")

_LARGE: Final = 4096
_VERSION: Final = bytes((FORMAT_VERSION,))
_MESSAGE: Final = (
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal",
)  # fmt: skip
_CALL: Final = ("id", "type", "function")
_FUNCTION: Final = ("name", "arguments")
_HEADER_LISTS: Final = frozenset(("tools", "system"))


class NotJsonError(Exception):
    """A value that no message made in the open can hold."""


class Writer:
    """An encoding as it grows, and how much longer it would be with all strings."""

    __slots__ = ("data", "saved")

    def __init__(self) -> None:
        self.data = bytearray(_VERSION)
        self.saved = 0

    @property
    def size(self) -> int:
        """The length of the encoding with large strings in full."""
        return len(self.data) + self.saved

    def digest(self) -> int:
        """Return the XXH64 of what is written."""
        return xxh64_intdigest(bytes(self.data))

    def message(self, wire: Mapping[str, object]) -> None:
        """Write a message's wire fields."""
        self._map(wire, _MESSAGE, EXCLUDED)

    def header(self, value: object) -> None:
        """Write a request's header, without cache marks."""
        if isinstance(value, dict):
            fields = cast("Mapping[str, object]", value)
            value = {
                name: _unmarked(item) if name in _HEADER_LISTS else item
                for name, item in fields.items()
                if name not in EXCLUDED
            }
        self.value(value)

    def value(self, value: object) -> None:
        """Write any JSON value.

        Raises:
            NotJsonError: it is none.
        """
        if isinstance(value, str):
            self._text(value)
        elif value is None:
            self.data += b"n"
        elif isinstance(value, bool):
            self.data += b"t" if value else b"f"
        elif isinstance(value, int):
            length = (value if value >= 0 else ~value).bit_length() // 8 + 1
            self._tag(b"i", length)
            self.data += value.to_bytes(length, "little", signed=True)
        elif isinstance(value, float) and math.isfinite(value):
            self.data += b"d" + struct.pack("<d", value)
        elif isinstance(value, dict):
            self._map(cast("Mapping[str, object]", value))
        elif isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            self._tag(b"l", len(items))
            for item in items:
                self.value(item)
        else:
            raise NotJsonError

    def _tag(self, letter: bytes, count: int) -> None:
        self.data += letter
        while count > 0x7F:
            self.data.append(count & 0x7F | 0x80)
            count >>= 7
        self.data.append(count)

    def _text(self, value: str) -> None:
        raw = str.encode(value, "utf-8", "surrogatepass")
        if len(raw) < _LARGE:
            self._tag(b"s", len(raw))
            self.data += raw
        else:
            self._tag(b"S", len(raw))
            self.data += xxh64_intdigest(raw).to_bytes(8, "little")
            self.saved += len(raw) - 8

    def _map(
        self,
        value: Mapping[str, object],
        declared: Sequence[str] = (),
        excluded: frozenset[str] = frozenset(),
    ) -> None:
        """Write a map with the declared fields in front and without the excluded."""
        names = [name for name in declared if name in value]
        names += [n for n in value if n not in declared and n not in excluded]
        self._tag(b"m", len(names))
        for name in names:
            self._text(name)
            self._field(declared, name, value[name])

    def _field(self, declared: Sequence[str], name: str, value: object) -> None:
        """Write the value of a field, which may hold objects with declared fields."""
        if declared is _MESSAGE and name == "content" and _all_objects(value):
            self._parts(cast("Sequence[Mapping[str, object]]", value))
        elif declared is _MESSAGE and name == "tool_calls" and _all_objects(value):
            calls = cast("Sequence[Mapping[str, object]]", value)
            self._tag(b"l", len(calls))
            for call in calls:
                self._map(call, _CALL)
        elif declared is _CALL and name == "function" and isinstance(value, dict):
            self._map(cast("Mapping[str, object]", value), _FUNCTION)
        else:
            self.value(value)

    def _parts(self, parts: Sequence[Mapping[str, object]]) -> None:
        kept = [part for part in parts if not _only_marks(part)]
        self._tag(b"l", len(kept))
        for part in kept:
            kind = part.get("type")
            known = PART_TYPES.get(kind) if isinstance(kind, str) else None
            names = ("type", known.payload_name) if known else ("type",)
            self._map(part, names, EXCLUDED)


def _all_objects(value: object) -> bool:
    """Whether the value is a list or a tuple of objects only."""
    return isinstance(value, list | tuple) and all(
        isinstance(item, dict) for item in cast("Iterable[object]", value)
    )


def _only_marks(value: Mapping[str, object]) -> bool:
    """Whether the object holds something, and all of it is excluded."""
    return bool(value) and EXCLUDED.issuperset(value)


def _unmarked(value: object) -> object:
    if not _all_objects(value):
        return value
    return [
        {name: item for name, item in element.items() if name not in EXCLUDED}
        for element in cast("Sequence[Mapping[str, object]]", value)
        if not _only_marks(element)
    ]


def encode(message: ChatMessage | Mapping[str, Any]) -> Writer:
    """Return the encoding of a message.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    if isinstance(message, ChatMessage):
        wire = message.wire()
    else:
        wire = ChatMessage.from_openai(message).wire()
    writer = Writer()
    try:
        writer.message(wire)
    except NotJsonError:  # a message whose inside was tampered with
        writer = Writer()
        writer.message(ChatMessage.from_openai(wire).wire())
    return writer
