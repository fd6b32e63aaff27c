"""How much of a conversation's requests was the request before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

from typing_extensions import override

from raf_session.changes import RequestRecord
from raf_session.cli.faults import Place
from raf_session.defaults import record_of
from raf_session.messages import ChatMessage
from raf_session.prefix_history import HistoryEntry, PrefixHistory
from raf_session.prefix_match import Cause, PrefixMatch

__all__ = ("Break", "Figures", "Locate", "Meter", "Played", "Totals")

Locate = Callable[[PrefixMatch], PrefixMatch]
"""Returns a match with its path as it leads through what was sent."""


def _as_it_is(match: PrefixMatch) -> PrefixMatch:
    return match


class Break(NamedTuple):
    """A request that did not go on from the one before."""

    request: int
    """Counted from 1."""
    at: str
    """``messages[3]``, the first that differs, or the path in the header."""
    cause: Cause
    path: str
    """To the first value that differs: ``messages[3].content``."""
    before: str | None
    """What stood there, as JSON, shortened; `None`: nothing."""
    after: str | None
    lost_bytes: int
    """What it would have reused, had it only appended."""

    @classmethod
    def of(cls, entry: HistoryEntry, located: Locate) -> Self:
        """Return the break of a request.

        Args:
            entry: the request; not one that appends.
            located: see `Locate`.
        """
        match = entry.match
        difference = located(match).first_difference
        if difference is None:
            raise ValueError(f"request {entry.number} goes on from the one before")
        at = difference
        if not match.header_changed:
            message = replace(difference, path=f"messages[{match.first_different}]")
            whole = located(match._replace(first_difference=message))
            at = whole.first_difference or message
        return cls(
            entry.number,
            str(at),
            match.cause,
            str(difference),
            difference.before,
            difference.after,
            entry.lost_bytes,
        )

    @override
    def __str__(self) -> str:
        return f"request {self.request}: {self.at}"


class Figures(NamedTuple):
    """What the requests of one conversation, or of all, add up to."""

    messages: int
    requests: int
    bytes: int
    """Of all requests, as encoded for the prefix hash."""
    shared_bytes: int
    compared_bytes: int
    """Of all requests but the first, which has none before it."""
    lost_bytes: int
    """What breaks kept from being reused, headers included."""
    causes: Mapping[Cause, int]
    """How many breaks had which cause, the most frequent first."""

    @property
    def breaks(self) -> int:
        """How many requests did not go on from the one before."""
        return sum(self.causes.values())

    @property
    def reuse(self) -> float | None:
        """The shared part of the bytes that had a request before, 0.0 to 1.0.

        A mean weighted by bytes: what is paid for goes by size, and a short request
        says little.  `None` where no request had one before it.
        """
        if not self.compared_bytes:
            return None
        return self.shared_bytes / self.compared_bytes

    @classmethod
    def total(cls, all_of_them: Iterable[Self]) -> Self:
        """Add up."""
        rows = list(all_of_them)
        causes: Counter[Cause] = Counter()
        for row in rows:
            causes.update(row.causes)
        return cls(
            sum(row.messages for row in rows),
            sum(row.requests for row in rows),
            sum(row.bytes for row in rows),
            sum(row.shared_bytes for row in rows),
            sum(row.compared_bytes for row in rows),
            sum(row.lost_bytes for row in rows),
            dict(causes.most_common()),
        )


class Meter:
    """Measures the requests of one conversation, in order."""

    def __init__(self) -> None:
        self.first_break: Break | None = None
        self.worst_break: Break | None = None
        """The one that lost most; of equals the first."""
        self._history = PrefixHistory(limit=1)

    def measure(
        self,
        messages: Sequence[ChatMessage],
        header: Any = None,
        located: Locate = _as_it_is,
    ) -> None:
        """Compare a request with the one before."""
        history = self._history
        history.touch(messages, header)
        worst = history.worst_break
        if worst is None or worst.number != history.requests:
            return
        self.worst_break = Break.of(worst, located)
        if history.first_break is worst:
            self.first_break = self.worst_break

    def figures(self, messages: int) -> Figures:
        """Return what the requests add up to, of a conversation of so many messages."""
        history = self._history
        return Figures(
            messages,
            history.requests,
            history.bytes,
            history.shared_bytes,
            history.compared_bytes,
            history.lost_bytes,
            history.causes,
        )

    @property
    def record(self) -> RequestRecord | None:
        """What a store keeps of the last request."""
        return record_of(self._history.tracker)


class Played(NamedTuple):
    """One conversation, played."""

    id: str
    place: Place
    figures: Figures
    first_break: Break | None
    worst_break: Break | None
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
            meter.figures(messages),
            meter.first_break,
            meter.worst_break,
            written,
            writes,
        )


class Totals(NamedTuple):
    """All conversations of a run."""

    conversations: int
    figures: Figures
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
            Figures.total(row.figures for row in rows),
            sum(row.first_break is not None for row in rows),
            sum(row.written for row in rows),
            sum(row.writes for row in rows),
        )
