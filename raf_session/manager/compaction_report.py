"""`CompactionReport`: what became of one attempt to compact a session."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from raf_session.compaction import CompactionOutcome

__all__ = ("CompactionReport", "CompactionTrigger")


class CompactionTrigger(StrEnum):
    """Why a session was to be compacted."""

    MANUAL = "manual"
    """Somebody called `SessionManager.compact`."""
    SAFEGUARD = "safeguard"
    """History, input and reserve were more than the window."""
    AUTO = "auto"
    """A save reached the target."""


class CompactionReport(NamedTuple):
    """How one attempt to compact a session ended; unless compacted, nothing changed."""

    outcome: CompactionOutcome
    trigger: CompactionTrigger
    covered: int = 0
    """The messages that a summary was asked for; the former summary is not counted."""
    tokens_before: int = 0
    """The history's tokens, as a request without limits takes it."""
    tokens_after: int = 0
    """The same afterwards; `tokens_before` where nothing changed."""
    reason: str | None = None
    """Why it failed: a `SummaryFailedError.reason`, or ``cannot_shrink``."""
    failures: int = 0
    """How many attempts have failed in a row, this one included."""
    retry_at: datetime | None = None
    """When the next attempt may come that nobody calls for; `None`: at any time."""
