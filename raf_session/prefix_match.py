"""What both twins of the prefix hash share: its constants, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar, cast

from typing_extensions import override

__all__ = (
    "EXCLUDED",
    "FORMAT_VERSION",
    "ROOT",
    "ZERO_SUBSTITUTE",
    "CacheHints",
    "Cause",
    "Difference",
    "PrefixMatch",
    "as_hash",
    "as_sequence",
    "count_shared",
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


class Cause(StrEnum):
    """Why a request does not go on from the one before.

    A request may differ in several places: the cause is that of the first of them, in
    the order in which the provider reads.  The rules are in `prefix_cause`,
    `message_cause` and `tools_cause`.
    """

    NONE = "none"
    MODEL = "model"
    PARAMETERS = "parameters"
    TOOLS_ADDED = "tools_added"
    TOOLS_REMOVED = "tools_removed"
    TOOLS_ORDER = "tools_order"
    TOOLS_CHANGED = "tools_changed"
    SYSTEM_CHANGED = "system_changed"
    MESSAGE_EDITED = "message_edited"
    MESSAGE_REMOVED = "message_removed"
    MESSAGE_REORDERED = "message_reordered"
    KEY_ORDER = "key_order"
    WHITESPACE = "whitespace"
    UNICODE = "unicode"
    NUMBER_FORM = "number_form"
    CALL_ID = "call_id"
    IMAGE_CHANGED = "image_changed"
    REASONING_DROPPED = "reasoning_dropped"
    TRUNCATED_HEAD = "truncated_head"
    COMPACTED = "compacted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a request leaves the one before; `str()` is its path."""

    section: str
    """``model``, ``tools``, ``parameters``, ``system`` or ``messages``.

    ``header`` where one of these differs and only its digest is known.
    """

    index: int | None
    """Of the message or the tool; `None` in the other sections."""

    path: str
    """To the leaf, from the request: ``messages[3].tool_calls[0].id``."""

    before: str | None = None
    """What stood there, as JSON, shortened; `None`: nothing, or it is not known."""

    after: str | None = None
    """What stands there now, likewise."""

    wire: tuple[int, int] | None = None
    """The digests of the message or the header field, before and now.

    They decide that there is a difference.  `None` where one side is not there, or not
    known.
    """

    canonical: tuple[int, int] | None = None
    """The digests of the same two without key order, white space and written form.

    They explain: equal ones mean that nothing but the form differs.
    """

    only_form: bool = False
    """Whether the requests agree but for forms that some providers render alike.

    A text as a string or as the only text part, and null or nothing: whether the cache
    sees that depends on the provider.  Looked at over the whole former request.
    """

    @override
    def __str__(self) -> str:
        return self.path


class CacheHints(NamedTuple):
    """What two request bodies tell of caching beside the prompt itself.

    Positions count the blocks of the messages: a text is one, and each part is one, but
    consecutive calls count as one, and so do consecutive results.  Position 0 is the
    end of what stands in front of the messages, -1 the end of the tools.
    """

    model: str | None
    """The model of this request."""

    shared: int
    """The positions that both requests begin with."""

    total: int
    """The positions of this request."""

    written: tuple[int, ...] | None
    """Where the former request's cache marks end prefixes within it.

    `None` where its shape knows no marks: the provider chooses.
    """

    read: tuple[int, ...] | None
    """The same of this request's marks."""

    tools_bytes: int
    """The bytes of this request's header up to the end of its tools; 0 without any."""

    keys: Mapping[str, tuple[str | None, str | None]]
    """What partitions the cache, by the field that says it: before, and now.

    ``prompt_cache_key``, ``cache_salt``, DeepSeek's ``user_id``; those of either body.
    """

    ttl_seconds: int | None
    """How long the former request asked for its prefix to be kept; `None`: not said."""

    written_ttls: tuple[int | None, ...] = ()
    """The same of each of its marks, as in `written`."""

    explicit: tuple[bool, bool] = (False, False)
    """Whether the requests, before and now, have nothing cached but at their marks."""

    toggled: frozenset[str] = frozenset()
    """Which of ``images`` and ``citations`` came or went somewhere in the messages.

    Looked for where marks are needed, that is at Anthropic and Bedrock; ``web_search``
    stands for the tool of that kind.
    """


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

    header_bytes: int = 0
    """The bytes of this request's header, likewise; 0 where it has none."""

    cause: Cause = Cause.NONE
    """Why it does not append; `NONE` where it does, and for a session's first."""

    first_difference: Difference | None = None
    """Where it leaves the previous one; `None` where it appends."""

    caching: CacheHints | None = None
    """What the bodies tell beside; `None` where only messages and header were given."""

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


def count_shared(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many items both begin with."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


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
    from raf_session.prefix import PrefixTracker

    tracker = cast("Any", PrefixTracker)
    if digests is None:
        return tracker()
    return tracker.restore(digests, header_digest, hash)
