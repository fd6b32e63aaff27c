"""`HistoryWindows`: the views of a live session, each folded on as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from raf_session.history import HistoryPolicy, HistoryView, HistoryWindow
from raf_session.messages import ChatMessage
from raf_session.tokens import TokenCounter

__all__ = ("LONG_RUNNING", "HistoryWindows", "long_running_calls")

LONG_RUNNING: Final = "long_running_tool_ids"
"""Where a message's metadata names those of its calls whose tools answer later."""

_KEPT: Final = 4
"""For how many policies windows are kept."""


def long_running_calls(messages: Sequence[ChatMessage | None]) -> frozenset[str]:
    """Return the ids of the calls whose tools answer later, as their messages say."""
    return frozenset(
        name
        for message in messages
        if message is not None and message.metadata
        for name in _names(message.metadata.get(LONG_RUNNING))
        if isinstance(name, str)
    )


def _names(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, tuple) else ()


class _Folded:
    """A window and the messages that it has read."""

    def __init__(
        self, policy: HistoryPolicy, counter: TokenCounter, long_running: frozenset[str]
    ) -> None:
        self.window = HistoryWindow(policy, counter, long_running=long_running)
        self.long_running = long_running
        self.messages: list[ChatMessage] = []

    def extend(self, messages: Sequence[ChatMessage]) -> bool:
        """Read what is new; `False`: what was read is not how these begin."""
        known = len(self.messages)
        if len(messages) < known:
            return False
        for place, (one, other) in enumerate(
            zip(self.messages, messages, strict=False)
        ):
            if one is other or one == other:
                continue
            if not self.window.restate(place, other):
                return False
            self.messages[place] = other
        fresh = messages[known:]
        self.window.extend(fresh)
        self.messages += fresh
        return True


class HistoryWindows:
    """Shows a history that mostly grows, at the cost of what is new and is shown.

    Args:
        counter: counts tokens.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._windows: dict[HistoryPolicy, _Folded] = {}

    def view(
        self,
        messages: Sequence[ChatMessage],
        policy: HistoryPolicy,
        *,
        limit: int | None = None,
    ) -> HistoryView:
        """Return the same as `select_history`, with calls at the very end closed.

        Args:
            messages: the whole history.
            policy: how much of it is shown.
            limit: the last so many, exactly.
        """
        long_running = long_running_calls(messages)
        folded = self._windows.pop(policy, None)
        if (
            folded is None
            or folded.long_running != long_running
            or not folded.extend(messages)
        ):
            folded = _Folded(policy, self._counter, long_running)
            folded.extend(messages)
        self._windows[policy] = folded
        while len(self._windows) > _KEPT:
            del self._windows[next(iter(self._windows))]
        return folded.window.view(limit=limit, close_end=True)
