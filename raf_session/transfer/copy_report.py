"""`CopyReport`: what a copy did, and what stands against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raf_session.errors import SessionError
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Conflict", "CopyReport", "Failure")


@dataclass(frozen=True, slots=True)
class Conflict:
    """What stands in the target in place of what would be copied; it was left so."""

    key: SessionKey | ScopeKey
    reason: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A session, or the state of a user or app, that cannot be read or copied."""

    key: SessionKey | ScopeKey
    error: SessionError


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What a copy did.

    `copied`, `completed` and `unchanged` sessions are the same in both journals.
    """

    copied: int
    """Sessions that the target did not have."""
    completed: int
    """Earlier copies that were brought up to date."""
    unchanged: int
    """Sessions that were the same already."""
    skipped: int
    """Sessions that the target had, and that were not looked at."""
    expired: int
    """Sessions that have expired by the limits of the target."""
    entries: int
    """How many entries were written, archived ones included."""
    state_keys: int
    """How many keys of app and user states were written."""
    conflicts: tuple[Conflict, ...]
    failures: tuple[Failure, ...]

    @property
    def complete(self) -> bool:
        """Whether there was neither a conflict nor a failure."""
        return not (self.conflicts or self.failures)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "copied": self.copied,
            "completed": self.completed,
            "unchanged": self.unchanged,
            "skipped": self.skipped,
            "expired": self.expired,
            "entries": self.entries,
            "state_keys": self.state_keys,
            "conflicts": [
                {"key": str(conflict.key), "reason": conflict.reason}
                for conflict in self.conflicts
            ],
            "failures": [
                {"key": str(failure.key), "error": str(failure.error)}
                for failure in self.failures
            ],
        }
