"""The prefix hash in pure Python, over the `xxhash` package.

A message is encoded, the encoding is hashed to its *digest*, and the digests are
chained: link ``i`` is the hash of a request's first ``i`` messages.  The compiled twin
gives the same values and raises the same errors.  The format, version 1, is in
``docs/prefix-format.md``.

The hash finds accidental change inside one session.  It is not cryptographic: anybody
can make two messages with one digest, so never let it decide what two users share.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, cast

from typing_extensions import override
from xxhash import xxh64_intdigest

from raf_session._prefix_encoding import Writer, encode, encode_value, rendered_header
from raf_session.errors import InvalidValueError
from raf_session.frozen import freeze
from raf_session.messages import ChatMessage
from raf_session.prefix_evidence import Evidence, Header
from raf_session.prefix_explanation import explain
from raf_session.prefix_match import (
    FORMAT_VERSION,
    ROOT,
    ZERO_SUBSTITUTE,
    PrefixMatch,
    as_hash,
    as_sequence,
    count_shared,
    revive,
)

__all__ = (
    "FORMAT_VERSION",
    "ROOT",
    "ZERO_SUBSTITUTE",
    "PrefixTracker",
    "encode_header",
    "encode_message",
    "header_digest",
    "message_digest",
    "message_size",
    "prefix_hashes",
    "value_digest",
)

_pair = struct.Struct("<QQ")
_slot = ChatMessage.__dict__["_digest"]


# Digests ----------------------------------------------------------------------


def encode_message(message: ChatMessage | Mapping[str, Any]) -> bytes:
    """Return the encoding of a message, version 1.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    return bytes(encode(message).data)


class _Measure(NamedTuple):
    digest: int
    size: int
    kept: ChatMessage | bytes


def _measure(message: ChatMessage | Mapping[str, Any]) -> _Measure:
    """Return a message's digest and size, from its slot where it has been filled."""
    if not isinstance(message, ChatMessage):
        writer = encode(message)
        encoding = bytes(writer.data)
        return _Measure(xxh64_intdigest(encoding), writer.size, encoding)
    packed = _read_slot(message)
    if packed is None:
        writer = encode(message)
        packed = _pair.pack(writer.digest(), writer.size)
        _slot.__set__(message, packed)
    digest, size = _pair.unpack(packed)
    return _Measure(digest, size, message)


def _read_slot(message: ChatMessage) -> bytes | None:
    try:
        packed = _slot.__get__(message)
    except AttributeError:
        return None
    return packed if type(packed) is bytes and len(packed) == _pair.size else None


def _measure_all(
    messages: Sequence[ChatMessage | Mapping[str, Any]],
) -> list[_Measure]:
    measures: list[_Measure] = []
    for index, message in enumerate(as_sequence(messages)):
        try:
            measures.append(_measure(message))
        except InvalidValueError as error:
            raise error.within(f"messages[{index}]") from error
    return measures


def message_digest(message: ChatMessage | Mapping[str, Any]) -> int:
    """Return the XXH64 of a message's encoding.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    return _measure(message).digest


def message_size(message: ChatMessage | Mapping[str, Any]) -> int:
    """Return the length of a message's encoding with large strings in full.

    Raises:
        InvalidValueError: it is no message, with the path to what is wrong.
    """
    return _measure(message).size


def value_digest(value: object) -> int:
    """Return the digest of any JSON value.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    return encode_value(freeze(value)).digest()


def encode_header(header: object) -> bytes:
    """Return the encoding of a request's header, version 1, without cache marks.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    return bytes(_header(header).data)


def header_digest(header: object) -> int:
    """Return the XXH64 of a header's encoding.

    Raises:
        InvalidValueError: it is no JSON value, with the path to what is wrong.
    """
    return _header(header).digest()


def _header(header: object) -> Writer:
    return encode_value(rendered_header(freeze(header)))


# The chain ---------------------------------------------------------------------


def _link(previous: int, digest: int) -> int:
    return xxh64_intdigest(_pair.pack(previous, digest)) or ZERO_SUBSTITUTE


def prefix_hashes(
    messages: Sequence[ChatMessage | Mapping[str, Any]], seed: int = ROOT
) -> list[int]:
    """Return the chain: the hash of the first message, of the first two, and so on.

    Args:
        messages: a request, or what follows the messages that `seed` is the hash of.
        seed: the link to go on from.

    Raises:
        InvalidValueError: one is no message, with the path to what is wrong.
    """
    link = as_hash(seed, "seed")
    return [link := _link(link, measure.digest) for measure in _measure_all(messages)]


class _Request(NamedTuple):
    """What is known of a request."""

    digests: tuple[int, ...] = ()
    links: tuple[int, ...] = ()
    kept: tuple[ChatMessage | bytes | None, ...] = ()
    hash: int = ROOT
    header: int | None = None
    header_data: bytes | None = None
    """The encoding of the header; `None` without one, and where only `header` is known.
    """

    def packed(self) -> bytes:
        return struct.pack(f"<{len(self.digests)}Q", *self.digests)

    def evidence(self) -> Evidence:
        header = Header(there=self.header is not None, source=self.header_data)
        return Evidence(self.digests, self.kept, header)


class PrefixTracker:
    """Compares each request of a session with the one before.

    It holds the `ChatMessage` objects of the last request, and of dicts their encoding:
    a dict changed in place is noticed.
    A copy or a pickle knows the digests of the last request and not its messages.
    """

    __slots__ = ("__weakref__", "_former", "_last", "_request")

    def __init__(self) -> None:
        self._request: _Request | None = None
        self._former: _Request | None = None
        self._last: PrefixMatch | None = None

    @classmethod
    def restore(cls, digests: bytes, header_digest: int | None, hash: int) -> Self:  # noqa: A002
        """Return a tracker as a former one stood, from what was stored of it.

        Args:
            digests: 8 bytes for each message of the last request, as in `digests`.
            header_digest: the digest of its header, or `None`.
            hash: its last link, which must follow from the digests.

        Raises:
            ValueError: the digests are not those of this hash.
        """
        if not isinstance(cast("object", digests), bytes):
            raise TypeError(f"digests are bytes, not {type(digests).__name__}")
        if len(digests) % 8:
            raise ValueError(f"{len(digests)} bytes of digests, no multiple of 8")
        header = (
            None if header_digest is None else as_hash(header_digest, "header_digest")
        )
        wanted = as_hash(hash, "hash")
        numbers = struct.unpack(f"<{len(digests) // 8}Q", digests)
        link = ROOT
        links = tuple([link := _link(link, number) for number in numbers])
        if link != wanted:
            raise ValueError(
                f"the digests chain to {link:#018x}, not to {wanted:#018x}"
            )
        tracker = cls()
        tracker._former = tracker._last = None  # a subclass may have touched it
        tracker._request = _Request(numbers, links, (None,) * len(links), link, header)
        return tracker

    def touch(
        self, messages: Sequence[ChatMessage | Mapping[str, Any]], header: object = None
    ) -> PrefixMatch:
        """Record a request, and return how much of it was the previous one.

        Args:
            messages: the whole request, in order.
            header: what is rendered before the messages, or changes how: tools, model,
                parameters; any JSON value, or `None` for none.

        Raises:
            InvalidValueError: one is no message, or the header is no JSON value; the
                tracker is as it was.
        """
        head = None if header is None else _header(header)
        new_header = None if head is None else head.digest()
        measures = _measure_all(messages)
        digests = tuple([measure.digest for measure in measures])
        before = self._request or _Request()
        same = count_shared(before.digests, digests)
        link = before.links[same - 1] if same else ROOT
        links = list(before.links[:same])
        for digest in digests[same:]:
            link = _link(link, digest)
            links.append(link)
        kept = tuple([measure.kept for measure in measures])
        data = None if head is None else bytes(head.data)
        request = _Request(digests, tuple(links), kept, link, new_header, data)
        header_changed = self._request is not None and new_header != before.header
        shared = 0 if header_changed else same
        appends = same == len(before.digests)
        match = PrefixMatch(
            shared_messages=shared,
            shared_bytes=sum([measure.size for measure in measures[:shared]]),
            messages=len(measures),
            bytes=sum([measure.size for measure in measures]),
            append_only=appends and not header_changed,
            first_different=None if appends or header_changed else same,
            previous_messages=None if self._request is None else len(before.digests),
            header_changed=header_changed,
            hash=link,
            header_bytes=0 if head is None else head.size,
        )
        self._former = None if appends else before
        self._request = request
        if not match.append_only:
            match = explain(match, before.evidence(), request.evidence())
        self._last = match
        return match

    @property
    def last(self) -> PrefixMatch | None:
        """The answer of the last `touch`; `None` where there was none."""
        return self._last

    @property
    def hash(self) -> int | None:
        """The last link of the last request; `None` before the first."""
        return None if self._request is None else self._request.hash

    @property
    def count(self) -> int:
        """The messages of the last request; 0 before the first."""
        return 0 if self._request is None else len(self._request.digests)

    @property
    def digests(self) -> bytes:
        """The digests of the last request's messages, 8 bytes each, little-endian."""
        return b"" if self._request is None else self._request.packed()

    @property
    def header_digest(self) -> int | None:
        """The digest of the last request's header; `None` where it had none."""
        return None if self._request is None else self._request.header

    @property
    def kept(self) -> tuple[ChatMessage | bytes | None, ...]:
        """The messages of the last request: the object, or the encoding of a dict.

        `None` for a message that is known from a stored record alone.
        """
        return () if self._request is None else self._request.kept

    @property
    def former_kept(self) -> tuple[ChatMessage | bytes | None, ...] | None:
        """As `kept`, of the request before the last, where the last one left it.

        `None` where the last one appended: then nothing of the former is lost.
        """
        return None if self._former is None else self._former.kept

    @property
    def former_digests(self) -> bytes | None:
        """As `digests`, of the request before the last, where the last one left it."""
        return None if self._former is None else self._former.packed()

    def __copy__(self) -> Self:
        if self._request is None:
            return type(self)()
        return self.restore(self.digests, self._request.header, self._request.hash)

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        if self._request is None:
            return (revive, (None, None, ROOT))
        return (revive, (self.digests, self._request.header, self._request.hash))
