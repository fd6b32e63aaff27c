"""`CompactionRule`: from how many tokens on a session is due to be compacted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from raf_session.attempts import is_waiting
from raf_session.entries import SessionHead
from raf_session.frozen import EMPTY
from raf_session.manager.config import AgentsConfig, CompactionMode
from raf_session.manager.reported_tokens import CALIBRATION, stored_calibration

__all__ = ("COMPACTION", "CompactionRule", "compaction_state")

COMPACTION: Final = "raf_session.compaction"
"""The provider state of compaction: how often (``compactions``), how many tokens the
last one left (``left``) and at which revision (``spliced_at``), and which attempts have
failed since, as `raf_session.attempts` has it."""

_GROWTH: Final = 8
"""A compacted session has to grow by this part of the target to be due again."""


class CompactionRule:
    """Says when, of what the configuration says.

    Args:
        config: mode, window, target, reserve and the least number of messages.
    """

    def __init__(self, config: AgentsConfig) -> None:
        compaction, session = config.compaction, config.session
        window = session.window_tokens
        target = compaction.target(window)
        self.mode: Final = compaction.mode
        self._least_messages = compaction.min_messages_to_compact
        self._window = window
        self._reserve = session.reserve_tokens
        self._target = target if window is None else min(target, window)

    def allows(self, head: SessionHead) -> bool:
        """Tell whether a session has enough messages to be compacted."""
        return head.active.messages >= self._least_messages

    def least_tokens(
        self,
        head: SessionHead,
        states: Mapping[str, Any],
        now: float,
        more: int,
    ) -> int | None:
        """Return from how many tokens of history on a session is due.

        In mode ``auto`` from the target on, in mode ``safeguard`` where the window is
        exceeded; and once it was compacted, not before it has grown by an eighth of the
        target.  Where the provider counts more tokens than we do, target and window are
        fewer of ours.

        Args:
            head: the session.
            states: its provider states.
            now: the journal's time, in seconds since the epoch.
            more: the tokens of what a request holds beside the history.

        Returns:
            The tokens; `None`: it is not due, however many there are.
        """
        state = compaction_state(states)
        calibration = stored_calibration(states.get(CALIBRATION))
        target = calibration.narrowed(self._target)
        if is_waiting(state, now, head.total.messages):
            return None
        if self.mode is CompactionMode.AUTO:
            least = target if self.allows(head) else None
        elif self.mode is CompactionMode.SAFEGUARD and self._window is not None:
            room = calibration.narrowed(self._window - self._reserve)
            least = room - more + 1
        else:
            least = None
        if least is None or state.get("spliced_at") != head.spliced_at:
            return least
        left: int = state.get("left", 0)
        return max(least, left + max(target // _GROWTH, 1))


def compaction_state(states: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the `COMPACTION` state among a session's provider states holds."""
    given = states.get(COMPACTION)
    if not isinstance(given, Mapping):
        return EMPTY
    return cast("Mapping[str, Any]", given)
