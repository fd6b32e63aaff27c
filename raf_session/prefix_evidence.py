"""What is known of a request when the next one has come."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from raf_session._prefix_encoding import encode, rendered_header, rendered_message
from raf_session.frozen import freeze
from raf_session.messages import ChatMessage
from raf_session.prefix_decoding import decode

__all__ = ("REASONING_TYPES", "Evidence", "Header", "paired")

REASONING_TYPES: Final = frozenset(("reasoning", "thinking", "redacted_thinking"))
"""The ``type`` of what a model thought, as a part or as an item of its own."""

Kept = ChatMessage | Mapping[str, Any] | bytes | None
"""A message, its encoding, or nothing where only its digest is known."""


class Header(NamedTuple):
    """A request's header, read only when it is asked for."""

    there: bool
    """Whether the request has one."""
    source: Any
    """Its encoding or any JSON value; `None` where only its digest is known."""

    @property
    def known(self) -> bool:
        """Whether more than a digest is known of it."""
        return not self.there or self.source is not None

    def value(self) -> Any:
        """Return it as a JSON value without cache marks; `None` for none."""
        if self.source is None:
            return None
        if isinstance(self.source, bytes):
            return decode(self.source)
        return rendered_header(freeze(self.source))


class Evidence(NamedTuple):
    """A request: digests for certain, messages and header as far as they are known."""

    digests: Sequence[int]
    messages: Sequence[Kept]
    header: Header

    @classmethod
    def packed(cls, digests: bytes, messages: Sequence[Kept], header: Header) -> Self:
        """Return a request whose digests are packed, as `PrefixTracker.digests`."""
        numbers = struct.unpack(f"<{len(digests) // 8}Q", digests)
        return cls(numbers, messages, header)

    def role(self, index: int) -> str | None:
        """Return who speaks in that message, `None` where that is not known."""
        return self._field(index, "role")

    def is_reasoning(self, index: int) -> bool:
        """Whether that message is nothing but reasoning, as items of OpenAI's are."""
        return self._field(index, "type") in REASONING_TYPES

    def _field(self, index: int, name: str) -> str | None:
        message = self.messages[index]
        if message is None:
            return None
        if isinstance(message, ChatMessage):
            value = message.role if name == "role" else message.extra.get(name)
        elif isinstance(message, bytes):
            value = decode(message).get(name)
        else:
            value = message.get(name)
        return str(value) if isinstance(value, str) else None


def paired(one: Kept, other: Kept) -> tuple[Any, Any]:
    """Return two messages as values that can be compared, as they are hashed.

    Where one is known by its encoding alone, large strings are so in both.
    """
    if isinstance(one, bytes) or isinstance(other, bytes):
        return _decoded(one), _decoded(other)
    return _rendered(one), _rendered(other)


def _decoded(message: Kept) -> Any:
    if message is None:
        return None
    if isinstance(message, bytes):
        return decode(message)
    return decode(bytes(encode(message).data))


def _rendered(message: Kept) -> Any:
    if message is None or isinstance(message, bytes):
        return None
    if not isinstance(message, ChatMessage):
        message = ChatMessage.from_openai(message)
    return rendered_message(message.wire())
