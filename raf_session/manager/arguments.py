"""What a manager is made of, checked when it is made and not when it is used."""

from __future__ import annotations

from inspect import iscoroutinefunction, isfunction, ismethod, unwrap

from raf_session.manager.config import AgentsConfig
from raf_session.summarizers import Summarizer
from raf_session.tokens import TokenCounter

__all__ = ("check_config", "check_counter", "check_journal", "check_summarizer")


def check_journal(given: object) -> None:
    """Raise `TypeError` where this is no journal."""
    calls = [getattr(given, name, None) for name in ("load", "append", "splice")]
    if isinstance(given, type) or not all(map(callable, calls)):
        raise TypeError(
            f"a manager's journal is a Journal, not {given!r:.100}; "
            "SessionManager.from_config opens one, a store has one as `journal`"
        )


def check_config(given: AgentsConfig) -> AgentsConfig:
    """Return the configuration.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(given, AgentsConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"a manager's config is an AgentsConfig, not {given!r:.100}; "
            "AgentsConfig.from_mapping and from_yaml make one"
        )
    return given


def check_counter(given: TokenCounter) -> TokenCounter:
    """Return the counter.

    Raises:
        TypeError: it is something else.
    """
    count = getattr(given, "count", None)
    if isinstance(given, type | str) or not callable(count):
        raise TypeError(f"a counter is an object with count(message), not {given!r}")
    return given


def check_summarizer(given: Summarizer | None) -> None:
    """Raise `TypeError` where this is no summarizer, and not `None`."""
    if given is None:
        return
    summarize = getattr(given, "summarize", None)
    if isinstance(given, type) or not callable(summarize) or _is_sync(summarize):
        raise TypeError(
            "a summarizer is an object with async summarize(messages, previous), "
            f"not {given!r}"
        )


def _is_sync(function: object) -> bool:
    if not isfunction(function) and not ismethod(function):
        return False  # callable otherwise, and only a call would tell
    return not iscoroutinefunction(unwrap(function))
