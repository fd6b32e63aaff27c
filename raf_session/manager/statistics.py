"""`SessionStatistics`: what is known of a session without reading its messages."""

from __future__ import annotations

from typing import NamedTuple

from raf_session.entries import Counts
from raf_session.manager.compaction_report import CompactionReport
from raf_session.manager.reuse import CacheReuse

__all__ = ("SessionStatistics",)


class SessionStatistics(NamedTuple):
    """A session in numbers."""

    active: Counts
    """The active window: its messages, those of the user's, its tokens."""
    total: Counts
    """All that was ever stored, cleared entries left out."""
    reuse: CacheReuse = CacheReuse()
    """The requests that this manager made since it was opened; not stored."""
    compactions: int = 0
    """How often the session was compacted, by whomever; stored with it."""
    failures: int = 0
    """How many attempts to compact it have failed since the last success; stored."""
    last: CompactionReport | None = None
    """This manager's last attempt to compact it, since it was opened; not stored."""
