"""The part of a history that a request takes: windows, tool calls, long results.

`HistoryWindow` is a fold over the messages of a session; `select_history` is the same
from scratch.  Both are pure: they read messages and change nothing.
"""

from __future__ import annotations

from raf_session.history.log import SUMMARY_TYPE
from raf_session.history.policy import HistoryPolicy, HistoryRule, WindowMode
from raf_session.history.truncation import Truncation
from raf_session.history.view import DroppedMessage, HistoryView, Overrun
from raf_session.history.window import HistoryWindow, select_history

__all__ = (
    "SUMMARY_TYPE",
    "DroppedMessage",
    "HistoryPolicy",
    "HistoryRule",
    "HistoryView",
    "HistoryWindow",
    "Overrun",
    "Truncation",
    "WindowMode",
    "select_history",
)
