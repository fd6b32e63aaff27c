"""What both twins of the prefix hash share: its constants, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

__all__ = (
    "EXCLUDED",
    "FORMAT_VERSION",
    "ROOT",
    "ZERO_SUBSTITUTE",
    "PrefixMatch",
    "as_hash",
    "as_sequence",
    "revive",
)

FORMAT_VERSION: Final = 1
"""The version of the encoding and of the chain; the first byte of each encoding."""

ROOT: Final = 0xB0645159665B712B
"""The hash of no messages: XXH64 of ``raf_session prefix v1``."""

ZERO_SUBSTITUTE: Final = 0x9E7381CE219C5C68
"""What stands for a link of zero: XXH64 of ``raf_session prefix v1 zero``.

So a hash is never zero, and who stores zero for "none yet" is not misunderstood.
"""

EXCLUDED: Final = frozenset(("cache_control", "cachePoint", "prompt_cache_breakpoint"))
"""Marks for the provider's cache: moving one does not change what the model reads."""

_T = TypeVar("_T")


class PrefixMatch(NamedTuple):
    """How much of a request was in its session's previous request, by messages.

    Tools are rendered before the first message, so under another header nothing is
    shared, and the messages have no first difference.
    """

    shared_messages: int
    """The messages that both requests begin with."""

    shared_bytes: int
    """The bytes of those, as encoded with large strings in full."""

    messages: int
    """The messages of this request."""

    bytes: int
    """The bytes of this request's messages."""

    append_only: bool
    """Whether the whole previous request, header included, begins this one.

    True for the first request of a session.
    """

    first_different: int | None
    """The index at which this request leaves the previous one.

    The number of its messages where it only ends sooner; `None` where it appends, and
    under another header.
    """

    previous_messages: int | None
    """The messages of the previous request; `None` where there was none."""

    header_changed: bool
    """Whether the previous request had another header, or only one had any."""

    hash: int
    """The last link of the chain; `ROOT` for no messages."""

    @property
    def first(self) -> bool:
        """Whether no request of this session was seen before."""
        return self.previous_messages is None

    @property
    def reuse(self) -> float | None:
        """The shared part of this request's bytes, 0.0 to 1.0.

        `None` for a session's first request and for one without messages: leave it
        out of means.
        """
        if self.previous_messages is None or not self.bytes:
            return None
        return self.shared_bytes / self.bytes


def as_hash(value: object, name: str) -> int:
    """Return the value, an unsigned 64-bit integer.

    Raises:
        TypeError: it is no integer.
        ValueError: it does not fit 64 bits.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    number = int.__int__(value)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"{name} is no unsigned 64-bit integer: {number}")
    return number


def as_sequence(messages: Sequence[_T]) -> Sequence[_T]:
    """Return the messages as a list or a tuple.

    Raises:
        TypeError: it is one message, text, or nothing that holds messages.
    """
    kind = type(messages)
    if kind is list or kind is tuple:
        return messages
    if isinstance(messages, Mapping | str | bytes | bytearray):
        raise TypeError(f"messages are a sequence of messages, not {kind.__name__}")
    return tuple(messages)


def revive(digests: bytes | None, header_digest: int | None, hash: int) -> Any:  # noqa: A002
    """Return the tracker of a pickle, of whichever twin answers here."""
    from raf_session.prefix import PrefixTracker  # noqa: PLC0415  (imports the twins)

    tracker = cast("Any", PrefixTracker)
    if digests is None:
        return tracker()
    return tracker.restore(digests, header_digest, hash)
