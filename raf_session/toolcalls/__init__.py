"""Calls of tools and their results, whatever API a history was made for.

`find_groups` recognises which results belong to which calls; `arrange` makes of a
history what a request needs.  Both are pure functions over messages.
"""

from __future__ import annotations

from raf_session.toolcalls.arrangement import arrange
from raf_session.toolcalls.groups import Call, CallGroup, CallGroups, Result
from raf_session.toolcalls.matching import find_groups
from raf_session.toolcalls.repairs import (
    BLANK,
    CONTINUED,
    INTERRUPTED,
    OPENING,
    STILL_RUNNING,
    Arrangement,
    Repair,
    RepairRule,
)
from raf_session.toolcalls.shapes import (
    CallShape,
    Mark,
    calls_in,
    has_more_than,
    is_preamble,
    is_user_turn,
    results_in,
)

__all__ = (
    "BLANK",
    "CONTINUED",
    "INTERRUPTED",
    "OPENING",
    "STILL_RUNNING",
    "Arrangement",
    "Call",
    "CallGroup",
    "CallGroups",
    "CallShape",
    "Mark",
    "Repair",
    "RepairRule",
    "Result",
    "arrange",
    "calls_in",
    "find_groups",
    "has_more_than",
    "is_preamble",
    "is_user_turn",
    "results_in",
)
