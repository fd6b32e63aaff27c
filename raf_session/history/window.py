"""`HistoryWindow`: the fold that says which part of a growing history is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from raf_session.history.log import HistoryLog
from raf_session.history.policy import HistoryPolicy, HistoryRule, WindowMode
from raf_session.history.selection import Bounds, Selection
from raf_session.history.view import HistoryView, show
from raf_session.messages import ChatMessage
from raf_session.tokens import TokenCounter

__all__ = ("HistoryWindow", "select_history")


class HistoryWindow:
    """A window over a growing history; its state depends on what was read alone.

    Each message is read in turn.  When what is shown exceeds a limit, the oldest turns
    leave, each whole, until at most `HistoryPolicy.low_mark` of the room is left
    (stepped), or no more than it must (sliding).  Where the current turn alone does not
    fit, its oldest groups and messages leave.  At each user's turn the oldest groups of
    calls and results in front of it leave, if more are shown than `keep_tool_calls`.
    What left does not come back.

    No limit takes leading instructions, summaries, messages with ``metadata["pinned"]
    is True``, and groups with a call that waits for its result: it is long-running, or
    no user's turn stands behind it.  These count.  The user's message of the current
    turn stays too, and so does what the last message belongs to.  What does not fit so
    is reported as the overrun.

    Calls and their results, and reasoning and what it led to, stay or leave together.
    Reasoning is shown in the message that it led to, and not before there is one.  A
    result that comes when its call has left is not shown.  What a message says beside
    calls or results that `keep_tool_calls` took stays.  A summary (``metadata["type"]
    == "compaction_summary"``) is shown as a message of the user's.

    Args:
        policy: the limits.
        counter: what counts tokens; asked once for each message.
        long_running: the ids of calls whose tools answer later.
    """

    def __init__(
        self,
        policy: HistoryPolicy,
        counter: TokenCounter,
        *,
        long_running: Collection[str] = (),
    ) -> None:
        self._policy: Final = policy
        self._counter: Final = counter
        self._log: Final = HistoryLog(
            counter, policy.max_tool_result_size, long_running
        )
        sliding = policy.mode is WindowMode.SLIDING
        self._selection: Final = Selection(
            self._log,
            Bounds(policy.max_messages, policy.max_tokens),
            low_mark=1.0 if sliding else policy.low_mark,
            whole_turns=not sliding,
        )

    def extend(self, messages: Iterable[ChatMessage | None]) -> None:
        """Read the next messages of the history, each in turn.

        `None` stands for an event without a message.  Costs these messages; in chunks
        or one by one, the outcome is the same.
        """
        policy, log, selection = self._policy, self._log, self._selection
        keep = policy.keep_tool_calls
        for message in messages:
            place = len(log.messages)
            rule = log.read(message)
            if keep is not None and log.turn == place:
                selection.retain(keep, policy.tool_call_placeholder)
            if selection.add(rule):
                selection.hold()

    def restate(self, place: int, message: ChatMessage) -> bool:
        """Take another message for one that was read, if they are sent alike.

        They may differ in `id`, `created_at` and `source`, as what was said and what is
        stored of it do.

        Returns:
            Whether they do; if not, nothing is changed.
        """
        former = self._log.messages[place]
        if (
            former is None
            or former.metadata != message.metadata
            or former.wire() != message.wire()
        ):
            return False
        self._log.restate(place, message)
        return True

    def view(self, *, limit: int | None = None, close_end: bool = False) -> HistoryView:
        """Return what is shown now; costs the window, with a limit the history.

        Args:
            limit: show the last so many messages exactly, instead of the window: at
                most `max_messages`, no more of the others than fit `max_tokens`, the
                last `keep_tool_calls` groups; what no limit takes counts first.  At
                least 1.
            close_end: whether calls at the very end get placeholders for results.

        Raises:
            ValueError: the limit is below 1.
        """
        if limit is None:
            return show(self._selection, close_end=close_end)
        if limit < 1:
            raise ValueError(f"limit is at least 1, not {limit}")
        return self._last(limit, close_end=close_end)

    def _last(self, limit: int, *, close_end: bool) -> HistoryView:
        policy = self._policy
        most, rule = policy.max_messages, HistoryRule.MAX_MESSAGES
        if most is None or limit < most:
            most, rule = limit, HistoryRule.LIMIT
        log = HistoryLog(
            self._counter, policy.max_tool_result_size, self._log.long_running
        )
        selection = Selection(
            log,
            Bounds(most, policy.max_tokens),
            low_mark=1.0,
            whole_turns=False,
            rule=rule,
        )
        for message in self._log.messages:
            selection.add(log.read(message))
        if policy.keep_tool_calls is not None:
            selection.retain(policy.keep_tool_calls, policy.tool_call_placeholder)
        if selection.shown:
            newest = frozenset(log.unit(selection.shown[-1]))
            selection.hold(keep=newest if len(newest) <= most else frozenset())
        return show(selection, close_end=close_end)


def select_history(
    messages: Sequence[ChatMessage | None],
    policy: HistoryPolicy,
    counter: TokenCounter,
    *,
    limit: int | None = None,
    close_end: bool = False,
    long_running: Collection[str] = (),
) -> HistoryView:
    """Return the view that a `HistoryWindow` gives which has read these messages."""
    window = HistoryWindow(policy, counter, long_running=long_running)
    window.extend(messages)
    return window.view(limit=limit, close_end=close_end)
