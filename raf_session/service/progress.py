"""What has happened in a session since its last summary."""

from __future__ import annotations

import time
from typing import NamedTuple

from raf_session.service.sessions import Session

__all__ = ("SummaryProgress", "summary_progress")


class SummaryProgress(NamedTuple):
    """How much there is that no summary stands for."""

    conversations: int
    """Messages of the user's."""
    events: int
    tokens: int
    """The sum of the total tokens that model calls reported."""
    content_length: int
    """Characters of text in the events that the session holds."""
    longest_text: int
    """Characters of the longest text among them."""
    seconds: float
    """Since the last summary, or the first event where there is none."""


def summary_progress(session: Session, now: float | None = None) -> SummaryProgress:
    """Return what has happened in a session since its last summary.

    Of a session that a service read, events that were trimmed away count as well.

    Args:
        session: the session.
        now: seconds since the epoch; `None`: when the session was read, or this
            machine's time.
    """
    summary = session.summary
    events = [event for event in session.events if event is not summary]
    lengths = [len(event.text) for event in events]
    counts = session.since_summary
    begun = (
        min((e.timestamp for e in events), default=None)
        if summary is None
        else summary.timestamp
    )
    if now is None:
        now = time.time() if session.read_at is None else session.read_at
    usages = [event.usage_metadata for event in events]
    return SummaryProgress(
        sum(e.is_user_turn for e in events) if counts is None else counts.conversations,
        len(events) if counts is None else counts.entries,
        sum(u.total_tokens for u in usages if u is not None)
        if counts is None
        else counts.tokens,
        sum(lengths),
        max(lengths, default=0),
        0.0 if begun is None else max(0.0, now - begun),
    )
