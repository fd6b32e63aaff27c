"""The encoding of the prefix hash, in pure Python; see ``docs/prefix-format.md``."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from xxhash import xxh64_intdigest

from raf_session.messages import ChatMessage
from raf_session.parts import PART_TYPES
from raf_session.prefix_decoding import LargeText
from raf_session.prefix_match import EXCLUDED, FORMAT_VERSION

__all__ = (
    "NotJsonError",
    "Writer",
    "encode",
    "encode_value",
    "rendered_header",
    "rendered_message",
)

_LARGE: Final = 4096
_VERSION: Final = bytes((FORMAT_VERSION,))
_MESSAGE: Final = (
    "role", "content", "name", "tool_calls", "tool_call_id", "refusal",
)  # fmt: skip
_CALL: Final = ("id", "type", "function")
_FUNCTION: Final = ("name", "arguments")
_TYPE: Final = ("type",)
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

    def value(self, value: object) -> None:
        """Write any JSON value.

        Raises:
            NotJsonError: it is none.
        """
        if isinstance(value, str | LargeText):
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
            self._map(cast("Mapping[str | LargeText, object]", value))
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

    def _text(self, value: str | LargeText) -> None:
        if isinstance(value, LargeText):
            self._large(*value)
            return
        raw = str.encode(value, "utf-8", "surrogatepass")
        if len(raw) < _LARGE:
            self._tag(b"s", len(raw))
            self.data += raw
        else:
            self._large(len(raw), xxh64_intdigest(raw))

    def _large(self, size: int, digest: int) -> None:
        self._tag(b"S", size)
        self.data += digest.to_bytes(8, "little")
        self.saved += size - 8

    def _map(self, value: Mapping[str | LargeText, object]) -> None:
        self._tag(b"m", len(value))
        for name, item in value.items():
            self._text(name)
            self.value(item)


# What of a message and a header is hashed ---------------------------------------------


def rendered_message(wire: Mapping[str, object]) -> dict[str, object]:
    """Return a message's wire fields in their order and without cache marks."""
    message = _ordered(wire, _MESSAGE, EXCLUDED)
    content = message.get("content")
    if _all_objects(content):
        message["content"] = [
            _rendered_part(part)
            for part in cast("Sequence[Mapping[str, object]]", content)
            if not _only_marks(part)
        ]
    calls = message.get("tool_calls")
    if _all_objects(calls):
        message["tool_calls"] = [
            _rendered_call(call)
            for call in cast("Sequence[Mapping[str, object]]", calls)
        ]
    return message


def rendered_header(value: object) -> object:
    """Return a header without cache marks."""
    if not isinstance(value, dict):
        return value
    return {
        name: _unmarked(item) if name in _HEADER_LISTS else item
        for name, item in cast("Mapping[str, object]", value).items()
        if name not in EXCLUDED
    }


def _rendered_part(part: Mapping[str, object]) -> dict[str, object]:
    kind = part.get("type")
    known = PART_TYPES.get(kind) if isinstance(kind, str) else None
    return _ordered(part, ("type", known.payload_name) if known else _TYPE, EXCLUDED)


def _rendered_call(call: Mapping[str, object]) -> dict[str, object]:
    rendered = _ordered(call, _CALL)
    function = rendered.get("function")
    if isinstance(function, dict):
        fields = cast("Mapping[str, object]", function)
        rendered["function"] = _ordered(fields, _FUNCTION)
    return rendered


def _ordered(
    value: Mapping[str, object],
    declared: Sequence[str],
    excluded: frozenset[str] = frozenset(),
) -> dict[str, object]:
    """Return the fields with the declared ones in front, without the excluded."""
    ordered = {name: value[name] for name in declared if name in value}
    for name, item in value.items():
        if name not in excluded:
            ordered.setdefault(name, item)
    return ordered


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
        writer.value(rendered_message(wire))
    except NotJsonError:  # a message whose inside was tampered with
        writer = Writer()
        writer.value(rendered_message(ChatMessage.from_openai(wire).wire()))
    return writer


def encode_value(value: object) -> Writer:
    """Return the encoding of a frozen JSON value, or of one that was decoded."""
    writer = Writer()
    writer.value(value)
    return writer
