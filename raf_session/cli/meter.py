"""How much of a conversation's requests was the request before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from typing_extensions import override

from raf_session.changes import RequestRecord
from raf_session.cli.faults import Place
from raf_session.defaults import record_of
from raf_session.messages import ChatMessage
from raf_session.prefix import PrefixTracker

__all__ = ("Break", "Meter", "Played", "Totals", "reuse")


class Break(NamedTuple):
    """The first request that did not go on from the one before."""

    request: int
    """Counted from 1."""
    at: str
    """``messages[3]``, the first that differs, or ``header``."""

    @override
    def __str__(self) -> str:
        return f"request {self.request}: {self.at}"


class Meter:
    """Measures the requests of one conversation, in order."""

    def __init__(self) -> None:
        self.requests: int = 0
        self.bytes: int = 0
        """Of all requests, as encoded for the prefix hash."""
        self.shared_bytes: int = 0
        self.compared_bytes: int = 0
        """Of all requests but the first, which has none before it."""
        self.first_break: Break | None = None
        self._tracker = PrefixTracker()

    def measure(self, messages: Sequence[ChatMessage], header: Any = None) -> None:
        """Compare a request with the one before."""
        match = self._tracker.touch(messages, header)
        self.requests += 1
        self.bytes += match.bytes
        if match.first:
            return
        self.shared_bytes += match.shared_bytes
        self.compared_bytes += match.bytes
        if self.first_break is None and not match.append_only:
            place = f"messages[{match.first_different}]"
            self.first_break = Break(
                self.requests, "header" if match.header_changed else place
            )

    @property
    def record(self) -> RequestRecord | None:
        """What a store keeps of the last request."""
        return record_of(self._tracker)


class Played(NamedTuple):
    """One conversation, played."""

    id: str
    place: Place
    messages: int
    requests: int
    bytes: int
    shared_bytes: int
    compared_bytes: int
    first_break: Break | None
    written: int
    """Messages that were written by this run."""
    writes: int
    """Calls that changed what is stored."""

    @classmethod
    def of(
        cls,
        session: str,
        place: Place,
        messages: int,
        meter: Meter,
        *,
        written: int,
        writes: int,
    ) -> Self:
        """Return what a meter says of a conversation."""
        return cls(
            session,
            place,
            messages,
            meter.requests,
            meter.bytes,
            meter.shared_bytes,
            meter.compared_bytes,
            meter.first_break,
            written,
            writes,
        )


class Totals(NamedTuple):
    """All conversations of a run."""

    conversations: int
    messages: int
    requests: int
    bytes: int
    shared_bytes: int
    compared_bytes: int
    broken: int
    """Conversations with a break."""
    written: int
    writes: int

    @classmethod
    def of(cls, played: Iterable[Played]) -> Self:
        """Add up."""
        rows = list(played)
        return cls(
            len(rows),
            sum(row.messages for row in rows),
            sum(row.requests for row in rows),
            sum(row.bytes for row in rows),
            sum(row.shared_bytes for row in rows),
            sum(row.compared_bytes for row in rows),
            sum(row.first_break is not None for row in rows),
            sum(row.written for row in rows),
            sum(row.writes for row in rows),
        )


def reuse(row: Played | Totals) -> float | None:
    """Return the shared part of the bytes that had a request before, 0.0 to 1.0.

    A mean weighted by bytes: what is paid for goes by size, and a short request says
    little.  `None` where no request had one before it.
    """
    if not row.compared_bytes:
        return None
    return row.shared_bytes / row.compared_bytes
