"""`CacheReuse`: how much of a session's requests was in the request before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from raf_session.prefix_match import Cause, PrefixMatch

__all__ = ("CacheReuse",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReuse:
    """The requests of one session that this manager made, added up."""

    requests: int = 0
    bytes: int = 0
    """Of the messages of all requests, as encoded for the prefix hash."""
    shared_bytes: int = 0
    """Of these, how many the request before began with."""
    compared_bytes: int = 0
    """Of all requests but those of a session that had none before."""
    breaks: int = 0
    """How many requests did not go on from the one before."""
    causes: Mapping[Cause, int] = field(default_factory=dict[Cause, int])
    """How many breaks had which cause."""

    @property
    def reuse(self) -> float | None:
        """The shared part of the compared bytes, 0.0 to 1.0; `None`: there are none."""
        if not self.compared_bytes:
            return None
        return self.shared_bytes / self.compared_bytes

    def after(self, match: PrefixMatch) -> CacheReuse:
        """Return the sum with one more request."""
        added = replace(
            self, requests=self.requests + 1, bytes=self.bytes + match.bytes
        )
        if match.first:
            return added
        added = replace(
            added,
            shared_bytes=self.shared_bytes + match.shared_bytes,
            compared_bytes=self.compared_bytes + match.bytes,
        )
        if match.append_only:
            return added
        causes = {**self.causes, match.cause: self.causes.get(match.cause, 0) + 1}
        return replace(added, breaks=self.breaks + 1, causes=causes)
