"""`PrefixHistory`: the requests of one session, and what their breaks cost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from raf_session.body_paths import in_body, touch_body
from raf_session.cache_positions import CacheLayout, cache_hints
from raf_session.messages import ChatMessage
from raf_session.prefix import PrefixMatch, PrefixTracker
from raf_session.prefix_match import Cause
from raf_session.request_shapes import RequestShape, read_request, shape_named, shape_of

__all__ = ("HistoryEntry", "PrefixHistory")

DEFAULT_LIMIT: Final = 1000


class HistoryEntry(NamedTuple):
    """One request of a session."""

    number: int
    """Counted from 1."""

    n: int
    """Its messages."""

    hash: int
    """The last link of its chain."""

    header_digest: int | None
    """The digest of its header; `None` without one."""

    match: PrefixMatch
    """How it compares with the request before."""

    lost_bytes: int
    """The bytes, header included, that it would have reused, had it only appended."""


class PrefixHistory:
    """Compares the requests of a session in turn, and adds up.

    Totals are of all requests; entries are kept of the last ones.

    Args:
        limit: how many entries are kept, at least 1.
        provider: the API of the bodies, as for `compare_requests`; by default each
            body tells, and one that could be of several is of the last certain one's.

    Raises:
        ValueError: the limit is below 1, or the provider is not known.
    """

    def __init__(
        self,
        *,
        limit: int = DEFAULT_LIMIT,
        provider: RequestShape | str | None = None,
    ) -> None:
        if limit < 1:
            raise ValueError(f"limit is at least 1, not {limit}")
        self.requests: int = 0
        """How many were seen."""
        self.bytes: int = 0
        """Of the messages of all requests, as encoded for the prefix hash."""
        self.shared_bytes: int = 0
        """Of these, how many the request before began with."""
        self.compared_bytes: int = 0
        """Of all requests but the first, which has none before it."""
        self.lost_bytes: int = 0
        """The bytes, headers included, that breaks kept from being reused."""
        self.breaks: int = 0
        """How many requests did not go on from the one before."""
        self.first_break: HistoryEntry | None = None
        """The first of these."""
        self.worst_break: HistoryEntry | None = None
        """The one that lost most; of equals the first."""
        self._causes: Counter[Cause] = Counter()
        self._entries: deque[HistoryEntry] = deque(maxlen=limit)
        self._tracker = PrefixTracker()
        self._shape = None if provider is None else shape_named(provider)
        self._seen: RequestShape | None = None
        self._layout: CacheLayout | None = None
        self._last_bytes = 0

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """The last requests, in order."""
        return tuple(self._entries)

    @property
    def causes(self) -> Mapping[Cause, int]:
        """How many breaks had which cause, the most frequent first."""
        return dict(self._causes.most_common())

    @property
    def reuse(self) -> float | None:
        """The shared part of the bytes of all requests but the first, 0.0 to 1.0.

        `None` where there is no such request, or they have no messages.
        """
        if not self.compared_bytes:
            return None
        return self.shared_bytes / self.compared_bytes

    @property
    def tracker(self) -> PrefixTracker:
        """What compares; its record is that of the last request."""
        return self._tracker

    def touch(
        self, messages: Sequence[ChatMessage | Mapping[str, Any]], header: Any = None
    ) -> PrefixMatch:
        """Record a request, and return how much of it was the one before.

        Raises:
            InvalidValueError: as `PrefixTracker.touch`; nothing is recorded.
        """
        match = self._tracker.touch(messages, header)
        self._layout = None
        return self._record(match)

    def touch_request(self, body: Mapping[str, Any]) -> PrefixMatch:
        """Record a request body, and return how much of it was the one before.

        The body may change afterwards.

        Raises:
            InvalidValueError: it is no body of its API, with the path to what is
                wrong; nothing is recorded.
        """
        shape = self._shape
        if shape is None:
            told, certain = shape_of(body)
            shape = told if certain or self._seen is None else self._seen
        request = read_request(body, shape)
        layout = CacheLayout.of(request)
        match = touch_body(self._tracker, request, body)
        former, self._layout = self._layout, layout
        if former is None:
            match = in_body(match, request, body)
        else:
            hints = cache_hints(former, layout, request, match)
            match = match._replace(caching=hints)
            match = in_body(match, request, body, former.names)
        self._seen = request.shape
        return self._record(match)

    def _record(self, match: PrefixMatch) -> PrefixMatch:
        self.requests += 1
        self.bytes += match.bytes
        lost = 0
        if not match.first:
            self.compared_bytes += match.bytes
            self.shared_bytes += match.shared_bytes
            if not match.append_only:
                kept = 0 if match.header_changed else match.header_bytes
                lost = self._last_bytes - kept - match.shared_bytes
        entry = HistoryEntry(
            self.requests,
            match.messages,
            match.hash,
            self._tracker.header_digest,
            match,
            lost,
        )
        self._entries.append(entry)
        self._last_bytes = match.header_bytes + match.bytes
        if not match.append_only:
            self.breaks += 1
            self.lost_bytes += lost
            self._causes[match.cause] += 1
            self.first_break = self.first_break or entry
            if self.worst_break is None or lost > self.worst_break.lost_bytes:
                self.worst_break = entry
        return match
