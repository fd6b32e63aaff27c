"""Triggers: when a session is due for a summary. tRPC-Agent: ``set_summarizer_*``.

Each function is called in the document's form, with the manager first, or in the
package's, without; it returns the trigger, and registers it with the manager if there
is one.  Reached means at least; what counts is what came since the last summary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from raf_session.service.progress import SummaryProgress, summary_progress
from raf_session.service.sessions import Session
from raf_session.service.summary_manager import SummarizerSessionManager

__all__ = (
    "CheckSummarizerFunction",
    "set_summarizer_check_functions_by_and",
    "set_summarizer_check_functions_by_or",
    "set_summarizer_content_length_threshold",
    "set_summarizer_conversation_threshold",
    "set_summarizer_events_count_threshold",
    "set_summarizer_important_content_threshold",
    "set_summarizer_time_interval_threshold",
    "set_summarizer_token_threshold",
)

CheckSummarizerFunction: TypeAlias = Callable[[Session], bool]
"""Tells of a session with its events whether it is due for a summary."""

_Manager: TypeAlias = SummarizerSessionManager | float | None
"""A manager; a number in its place is the threshold."""


def set_summarizer_conversation_threshold(
    manager: _Manager = None,
    threshold: int | None = None,
    *,
    conversation_count: int = 100,
) -> CheckSummarizerFunction:
    """Summarise after that many messages of the user's."""
    return _threshold(
        manager, threshold, conversation_count, lambda done: done.conversations
    )


def set_summarizer_events_count_threshold(
    manager: _Manager = None, threshold: int | None = None, *, event_count: int = 30
) -> CheckSummarizerFunction:
    """Summarise after that many events."""
    return _threshold(manager, threshold, event_count, lambda done: done.events)


def set_summarizer_time_interval_threshold(
    manager: _Manager = None,
    threshold: float | None = None,
    *,
    time_interval: float = 300.0,
) -> CheckSummarizerFunction:
    """Summarise that many seconds after the last summary, or the first event."""
    return _threshold(manager, threshold, time_interval, lambda done: done.seconds)


def set_summarizer_content_length_threshold(
    manager: _Manager = None,
    threshold: int | None = None,
    *,
    content_length: int = 10_000,
) -> CheckSummarizerFunction:
    """Summarise when the events hold that many characters of text."""
    return _threshold(
        manager, threshold, content_length, lambda done: done.content_length
    )


def set_summarizer_important_content_threshold(
    manager: _Manager = None,
    threshold: int | None = None,
    *,
    important_content_count: int = 10,
) -> CheckSummarizerFunction:
    """Summarise when one of the events holds that many characters of text."""
    return _threshold(
        manager, threshold, important_content_count, lambda done: done.longest_text
    )


def set_summarizer_token_threshold(
    manager: _Manager = None,
    threshold: int | None = None,
    *,
    token_count: int = 100_000,
) -> CheckSummarizerFunction:
    """Summarise after that many tokens, as the model calls reported them."""
    return _threshold(manager, threshold, token_count, lambda done: done.tokens)


def set_summarizer_check_functions_by_and(
    manager: SummarizerSessionManager | Sequence[CheckSummarizerFunction],
    functions: Sequence[CheckSummarizerFunction] | None = None,
) -> CheckSummarizerFunction:
    """Summarise when all of these triggers fire."""
    return _combined(manager, functions, all)


def set_summarizer_check_functions_by_or(
    manager: SummarizerSessionManager | Sequence[CheckSummarizerFunction],
    functions: Sequence[CheckSummarizerFunction] | None = None,
) -> CheckSummarizerFunction:
    """Summarise when one of these triggers fires."""
    return _combined(manager, functions, any)


def _threshold(
    manager: _Manager,
    threshold: float | None,
    default: float,
    measure: Callable[[SummaryProgress], float],
) -> CheckSummarizerFunction:
    limit: float
    if isinstance(manager, SummarizerSessionManager) or manager is None:
        limit = default if threshold is None else threshold
    elif threshold is None:
        limit = manager
    else:
        raise TypeError(f"the first argument is a manager, not {manager!r:.60}")
    if isinstance(limit, bool) or not 0 < limit < float("inf"):
        raise ValueError(f"a threshold of {limit} is not positive and finite")

    def check(session: Session) -> bool:
        return measure(summary_progress(session)) >= limit

    if isinstance(manager, SummarizerSessionManager):
        manager.add_check_function(check)
    return check


def _combined(
    manager: SummarizerSessionManager | Sequence[CheckSummarizerFunction],
    functions: Sequence[CheckSummarizerFunction] | None,
    join: Callable[[Sequence[bool]], bool],
) -> CheckSummarizerFunction:
    registers = isinstance(manager, SummarizerSessionManager)
    chosen = tuple((functions if registers else manager) or ())  # type: ignore[arg-type]
    if not chosen:
        raise ValueError("there is no trigger to combine")

    def check(session: Session) -> bool:
        return join([function(session) for function in chosen])

    if isinstance(manager, SummarizerSessionManager):
        manager.set_check_functions((check,))
    return check
