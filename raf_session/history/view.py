"""`HistoryView`: the messages that a request takes, and what became of the others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from raf_session.history.policy import HistoryRule
from raf_session.history.selection import Selection
from raf_session.history.truncation import Truncation
from raf_session.messages import ChatMessage
from raf_session.toolcalls import Repair, arrange

__all__ = ("DroppedMessage", "HistoryView", "Overrun", "show")


class DroppedMessage(NamedTuple):
    """A message of the history that a request leaves out."""

    message: ChatMessage
    rule: HistoryRule
    """The rule that demanded it."""


class Overrun(NamedTuple):
    """By how much a view exceeds its limits; false where it holds them."""

    messages: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        """Whether a limit is exceeded."""
        return self.messages > 0 or self.tokens > 0


class HistoryView(NamedTuple):
    """A view of a history; places count in the history that was given."""

    messages: tuple[ChatMessage, ...]
    """As a request takes them: long results made short, summaries as the user's,
    reasoning in the message that it led to, arranged so that any provider accepts
    them."""
    kept: tuple[int, ...]
    """The places of the messages that are shown, ascending."""
    dropped: Mapping[int, HistoryRule]
    """The places of all others, ascending, each with the rule that took it; an event
    without a message is in neither.  Reasoning at the end is here until there is what
    it led to."""
    stripped: tuple[int, ...]
    """Which of the kept are shown without their calls or results, which left."""
    truncated: Mapping[int, Truncation]
    """Which of the kept have results that were made short."""
    repairs: tuple[Repair, ...]
    """What was done to the kept, as `arrange` does it, by place."""
    tokens: int
    """Of `messages`, by the counter."""
    overrun: Overrun
    """By how much the limits are exceeded, because what has to stay does not fit."""
    moves: int
    """How many times so far what had been shown was changed: something left, or a
    result came late, twice, or not at all.  While this stays the same, a later view
    only appends (where `close_end` is not asked for)."""
    history: tuple[ChatMessage | None, ...]
    """The history that was given."""

    @property
    def dropped_messages(self) -> tuple[DroppedMessage, ...]:
        """The messages of `dropped`, in order, as they were given."""
        found = [(self.history[place], rule) for place, rule in self.dropped.items()]
        return tuple(DroppedMessage(m, rule) for m, rule in found if m is not None)


def show(selection: Selection, *, close_end: bool) -> HistoryView:
    """Return the view of what is selected.

    Args:
        selection: what is shown.
        close_end: whether calls at the very end get placeholders for results.
    """
    log, shown = selection.log, selection.shown
    dropped = selection.dropped | dict.fromkeys(log.thoughts, HistoryRule.ORPHAN)
    forms = [log.forms[place] for place in shown]
    sent = arrange(forms, long_running=log.long_running, close_end=close_end)
    repairs = [Repair(rule, p) for p in shown for rule in log.tidied.get(p, ())]
    repairs += [r._replace(message_index=shown[r.message_index]) for r in sent.repairs]
    tokens = sum(map(log.tokens.once, sent.messages))
    most, large = selection.limits
    return HistoryView(
        sent.messages,
        tuple(shown),
        MappingProxyType(dict(sorted(dropped.items()))),
        tuple(place for place in shown if place in log.stripped),
        {p: log.truncated[p] for p in shown if p in log.truncated},
        tuple(sorted(repairs, key=lambda repair: repair.message_index)),
        tokens,
        Overrun(
            0 if most is None else max(0, len(shown) - most),
            0 if large is None else max(0, tokens - large),
        ),
        selection.moves + log.rewrites,
        tuple(log.messages),
    )
