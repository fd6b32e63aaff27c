"""`ShownHistory`: what requests showed of a history, to know why one breaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self, cast

from raf_session.entries import SessionHead
from raf_session.history import HistoryRule, HistoryView
from raf_session.manager.summary_messages import is_summary
from raf_session.prefix_match import Cause, PrefixMatch
from raf_session.session_view import MessageLog

__all__ = ("SHOWN", "ShownHistory")

SHOWN: Final = "raf_session.shown"
"""The provider state that holds the `ShownHistory` of the last request."""

_LIMITS: Final = frozenset(
    (HistoryRule.MAX_MESSAGES, HistoryRule.MAX_TOKENS, HistoryRule.TURN)
)


class ShownHistory(NamedTuple):
    """What became of a history when a request was made of it."""

    spliced_at: int = 0
    """The revision of the last change of what had been stored."""
    summary: str | None = None
    """The entry of its summary; `None`: it has none."""
    left: int = 0
    """The messages that limits on messages and tokens left out."""
    calls: int = 0
    """The messages that `keep_tool_calls` took, or took something of."""

    @classmethod
    def of(cls, head: SessionHead, log: MessageLog, view: HistoryView) -> Self:
        """Return what a view shows of the messages of a session."""
        summary = next(
            (
                name
                for name, message in zip(log.ids, log.messages, strict=False)
                if is_summary(message)
            ),
            None,
        )
        rules = list(view.dropped.values())
        return cls(
            head.spliced_at,
            summary,
            sum(rule in _LIMITS for rule in rules),
            rules.count(HistoryRule.TOOL_CALLS) + len(view.stripped),
        )

    @classmethod
    def of_state(cls, state: Any) -> Self:
        """Return what the `SHOWN` state of a session says."""
        if not isinstance(state, Mapping):
            return cls()
        return cls(**cast("Mapping[str, Any]", state))

    def state(self) -> Mapping[str, Any]:
        """Return the `SHOWN` state."""
        return self._asdict()

    def explain(
        self, match: PrefixMatch, former: ShownHistory, instructions: int
    ) -> PrefixMatch:
        """Return a match with the cause of the break, where it is known.

        It is known that the history was compacted, or that messages or calls left the
        window.  Otherwise what a comparison of the messages tells stays; so it does
        where header or instructions differ, which stand in front of the history.

        Args:
            match: how a request compares with the one before.
            former: what that one showed.
            instructions: the messages in front of the history.
        """
        first = match.first_different
        if first is None or first < instructions:
            return match
        if self.summary is not None and self.summary != former.summary:
            return match._replace(cause=Cause.COMPACTED)
        if self.spliced_at != former.spliced_at:
            return match
        if self.left != former.left:
            return match._replace(cause=Cause.TRUNCATED_HEAD)
        if self.calls != former.calls:
            return match._replace(cause=Cause.MESSAGE_REMOVED)
        return match
