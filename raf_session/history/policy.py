"""`HistoryPolicy`: how much of a history is shown, and the rules that take the rest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ("DEFAULT_LOW_MARK", "HistoryPolicy", "HistoryRule", "WindowMode")

DEFAULT_LOW_MARK: Final = 0.55
"""Measured by ``benches/windows.py``: a lower one moves less often and shows less."""


class WindowMode(StrEnum):
    """How far the window's start moves when a limit is exceeded."""

    STEPPED = "stepped"
    """Whole turns leave, to the low mark: seldom, and many, so that the prompt cache is
    of use in between."""
    SLIDING = "sliding"
    """The oldest groups and messages leave, no more than must: often."""


class HistoryRule(StrEnum):
    """Why a message is not shown; the first that took it is named."""

    ORPHAN = "orphan"
    """It is nothing but results whose calls are nowhere in the history, or reasoning
    that led to nothing."""
    MAX_MESSAGES = "max_messages"
    """More messages were shown than the limit, and this was among the oldest."""
    LIMIT = "limit"
    """More messages than the limit that this view was asked for, and this was among the
    oldest."""
    MAX_TOKENS = "max_tokens"
    """They were more tokens than the limit, and this was among the oldest."""
    TOOL_CALLS = "tool_calls"
    """It is calls or results of a group that `keep_tool_calls` took."""
    TURN = "turn"
    """It is what a limit left of a turn, in front of the one that the window starts
    with."""
    GROUP = "group"
    """It belongs to calls and results of which another rule took a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPolicy:
    """The limits of a view; `None`: there is none.

    Raises:
        ValueError: a limit is not a whole number, or below its least; the low mark is
            out of its range; the placeholder is blank; there is no such mode.
    """

    max_messages: int | None = None
    """Of the history's messages, at least 1; placeholders are none."""
    max_tokens: int | None = None
    """Of the whole view by the counter, after arrangement, at least 1."""
    keep_tool_calls: int | None = None
    """Groups in front of the current turn, at least 0."""
    max_tool_result_size: int | None = None
    """Characters of one result, at least 1."""
    tool_call_placeholder: str | None = None
    """Text that stands for a group that `keep_tool_calls` took; `None`: it leaves."""
    mode: WindowMode = WindowMode.STEPPED
    low_mark: float = DEFAULT_LOW_MARK
    """How much of the room is left after a step, above 0 and at most 1; the room is
    the limit less what always stays."""

    def __post_init__(self) -> None:
        """Check the limits."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is at least {least}, not {value!r}")
        if not 0 < self.low_mark <= 1:
            raise ValueError(f"low_mark is above 0 and at most 1, not {self.low_mark}")
        text = self.tool_call_placeholder
        if text is not None and not text.strip():
            raise ValueError("tool_call_placeholder needs text")
        object.__setattr__(self, "mode", WindowMode(self.mode))


_LEAST: Final = {
    "max_messages": 1,
    "max_tokens": 1,
    "keep_tool_calls": 0,
    "max_tool_result_size": 1,
}
