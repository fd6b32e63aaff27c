"""`Arrangement`: what a request needs of a history, and what was done for it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from raf_session.messages import ChatMessage

__all__ = (
    "BLANK",
    "CONTINUED",
    "INTERRUPTED",
    "OPENING",
    "STILL_RUNNING",
    "Arrangement",
    "Repair",
    "RepairRule",
)

INTERRUPTED: Final = "[interrupted: this call has no result]"
STILL_RUNNING: Final = "[still running: the result will follow]"
OPENING: Final = "[the beginning of this conversation is not shown]"
CONTINUED: Final = "[go on]"
BLANK: Final = "[nothing]"


class RepairRule(StrEnum):
    """Why a request differs from the history."""

    MOVED = "moved"
    """A result now stands with its call, in another place or message than before."""
    SUPERSEDED = "superseded"
    """A result left because a later one of the same call stands."""
    ORPHAN = "orphan"
    """A result left because its call is nowhere in the history."""
    INTERRUPTED = "interrupted"
    """A placeholder stands for a result that never came."""
    STILL_RUNNING = "still_running"
    """A placeholder stands for the result of a long-running call."""
    RESHAPED = "reshaped"
    """A result is written as Gemini's, because others of the same message's calls
    are."""
    RENAMED = "renamed"
    """A call has another id, because an earlier one has the same."""
    JOINED = "joined"
    """Reasoning that had a message of its own, or stood at the end of another, is in
    the one that it led to."""
    SILENT = "silent"
    """A message of the assistant's left that says nothing, or reasoning that led to
    nothing."""
    EMPTY = "empty"
    """An empty list of calls left, or an empty text beside other parts."""
    UNSIGNED = "unsigned"
    """Anthropic's thinking left that has no signature, or no data where it is
    redacted."""
    BLANK = "blank"
    """A placeholder stands for what the user says, which is nothing."""
    OPENING = "opening"
    """A placeholder stands in front for the user's turn that is missing."""
    CONTINUED = "continued"
    """A placeholder of the user's stands between the assistant and its own calls."""


class Repair(NamedTuple):
    """One thing that `arrange` did."""

    rule: RepairRule
    message_index: int
    """In what was given: the message that carried the result; for a placeholder, the
    message with the call, or the one that it stands in front of."""
    call_id: str | None = None
    """The id that the call or the result has there."""


class Arrangement(NamedTuple):
    """What `arrange` returns."""

    messages: tuple[ChatMessage, ...]
    repairs: tuple[Repair, ...]
    """By index; empty iff the messages are those that were given."""
