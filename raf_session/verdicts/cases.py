"""What a verdict is about, and what it comes to."""

from __future__ import annotations

from typing import Final, NamedTuple

from raf_session.prefix_match import PrefixMatch
from raf_session.provider_rules import ProviderRules, WriteRule
from raf_session.verdicts.outcomes import Outcome, Reason

__all__ = ("BEGINS", "MARKED", "NOTHING", "Case", "Expected", "SharedPrefix", "missed")

MARKED: Final = frozenset((WriteRule.MARKS, WriteRule.REQUEST_END))
"""The rules by which prefixes end where a request marks them, or ends."""

NOTHING: Final = -2
"""The position in front of everything."""

BEGINS: Final = "The former request begins this one."


class Case(NamedTuple):
    """A request, and all that is known about how it was sent."""

    match: PrefixMatch
    rules: ProviderRules
    tokens: int
    """Of its prompt."""
    given: int | None
    """The shared tokens, where the caller counted them."""
    minimum: tuple[int, int]
    """The tokens of the shortest cached prefix: at least, at most."""
    block: int
    """The step of rounding, in tokens."""
    age: float | None
    """The seconds since the former request."""
    ttl: int | None
    """The seconds for which its prefix is kept."""

    @property
    def time_left(self) -> float | None:
        """The seconds until the last of its prefixes expires; 0 afterwards."""
        hints = self.match.caching
        times = [self.ttl]
        if self.rules.writes in MARKED and hints is not None and hints.written:
            times = [self.ttl if t is None else t for t in hints.written_ttls] or times
        if self.age is None or None in times or self.match.first:
            return None
        return max(0.0, *(time - self.age for time in times if time is not None))

    def expired(self, ttl: int | None = None) -> bool:
        """Whether a prefix that is kept so long, by default `ttl`, is gone."""
        time = self.ttl if ttl is None else ttl
        return self.age is not None and time is not None and self.age > time

    def share(self, size: int) -> int:
        """Return the tokens of so many bytes from the start."""
        whole = self.match.header_bytes + self.match.bytes
        return self.tokens * size // whole if whole else 0

    def until(self, position: int) -> tuple[int, int]:
        """Return the tokens up to a place in front of the messages: at least, at most.

        Args:
            position: 0, `TOOLS_END` or `NOTHING`.
        """
        front = self.share(self.match.header_bytes)
        if position == 0:
            return front, front
        if position == NOTHING:
            return 0, 0
        hints = self.match.caching
        if hints is None:
            return 0, front
        tools = min(front, self.share(hints.tools_bytes))
        return tools, tools

    def rounded(self, tokens: int) -> int:
        """Return how many of so many shared tokens are reused."""
        full = tokens // self.block - self.rules.last_block_withheld
        return max(0, full) * self.block


class SharedPrefix(NamedTuple):
    """What both requests begin with: at least and at most, by the rules."""

    low: int
    high: int
    end: int
    """The last shared position at most; `NOTHING`: there is none."""
    sure: int
    """The same at least."""
    former: int | None
    """The position of the former request's end, where that may be shared."""
    whole: bool
    """Whether it is the whole former request."""


class Expected(NamedTuple):
    """What the cache is expected to do, before it is told."""

    outcome: Outcome
    reason: Reason
    low: int
    """The reused tokens at least, and at most."""
    high: int
    text: str

    @property
    def amount(self) -> str:
        """The reused tokens in words."""
        if self.low == self.high:
            return f"{self.low:,}"
        return f"{self.low:,} to {self.high:,}"


def missed(reason: Reason, text: str) -> Expected:
    """Return that nothing is reused."""
    return Expected(Outcome.MISS, reason, 0, 0, text)
