"""`Selection`: which messages are shown, and how the limits take the oldest."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from raf_session.history.log import HistoryLog, Kind
from raf_session.history.policy import HistoryRule
from raf_session.messages import ChatMessage
from raf_session.toolcalls import CONTINUED, OPENING, arrange

__all__ = ("Bounds", "Selection")


_ASIDE: Final = frozenset((Kind.INSTRUCTION, Kind.SILENT))
"""What stands between others without being a turn."""


class Bounds(NamedTuple):
    """How much may be shown; `None`: any."""

    messages: int | None
    tokens: int | None


class Selection:
    """What is shown of a log: all that was added, but for what limits took.

    Args:
        log: what was read.
        limits: what is shown is held within these.
        low_mark: how much of the room is left where one is exceeded.
        whole_turns: the oldest turns leave, each whole, and parts of the current one
            only where that is not enough; else the oldest groups and messages do.
        rule: what is named where more messages are shown than the limit.
    """

    def __init__(
        self,
        log: HistoryLog,
        limits: Bounds,
        *,
        low_mark: float,
        whole_turns: bool,
        rule: HistoryRule = HistoryRule.MAX_MESSAGES,
    ) -> None:
        self.shown: list[int] = []
        """Ascending."""
        self.dropped: Final[dict[int, HistoryRule]] = {}
        self.moves: int = 0
        """How many times something was changed that had been shown."""
        self.log: Final = log
        self.limits: Final = limits
        self.low_mark: Final = low_mark
        self.whole_turns: Final = whole_turns
        self.rule: Final = rule
        self.continued: Final = log.tokens.once(ChatMessage.user(CONTINUED))
        self._opening = log.tokens.once(ChatMessage.user(OPENING))
        self.costs: int = 0
        """The tokens of what is shown, but for what `arrange` puts between."""
        self._joints = 0
        self._former: Kind | None = None
        self._calls = 0

    def add(self, rule: HistoryRule | None) -> bool:
        """Show the message that was read last, where no rule takes it.

        Returns:
            Whether it is shown.
        """
        place = len(self.log.messages) - 1
        self.costs -= self.log.freed
        self.dropped.update(dict.fromkeys(self.log.led_nowhere, HistoryRule.ORPHAN))
        if rule is not None:
            self.dropped[place] = rule
            return False
        kind = self.log.kinds[place]
        if self.log.forms[place] is None or kind is Kind.SILENT:
            return False
        if kind is not Kind.RESULTS and self._ends_unanswered():
            self.moves += 1
        for thought in self.log.led_here:
            insort(self.shown, thought)
        self.shown.append(place)
        self.costs += self.log.costs[place]
        self._joints += self._joint(self._former, kind)
        self._calls += kind is Kind.CALL
        if kind not in _ASIDE:
            self._former = kind
        return True

    def _ends_unanswered(self) -> bool:
        """Tell whether calls stand at the end, with results for some of them at most.

        What stands for the others comes in between when something follows.
        """
        for place in reversed(self.shown):
            kind = self.log.kinds[place]
            if kind is not Kind.RESULTS and kind is not Kind.SILENT:
                return kind is Kind.CALL and not self.log.is_answered(place)
        return False

    # Sizes ------------------------------------------------------------------------

    def tokens(self, shown: Sequence[int], *, irregular: bool) -> int:
        """Return the tokens of these messages, arranged, calls at the end closed.

        Args:
            shown: their places.
            irregular: whether some are of bundles that are irregular.
        """
        log = self.log
        if irregular:
            forms = [log.forms[place] for place in shown]
            sent = arrange(forms, long_running=log.long_running, close_end=True)
            return sum(map(log.tokens.once, sent.messages))
        return sum([log.costs[place] for place in shown]) + self._joints_of(shown)[0]

    def _joint(self, former: Kind | None, kind: Kind) -> int:
        """Return the tokens of what has to stand between two messages."""
        if former is None:
            between = kind not in _ASIDE and kind is not Kind.USER
            return self._opening if between else 0
        return self.continued if former is Kind.SAID and kind is Kind.CALL else 0

    def _joints_of(self, shown: Iterable[int]) -> tuple[int, Kind | None]:
        total = 0
        former: Kind | None = None
        for place in shown:
            kind = self.log.kinds[place]
            if former is None or kind is Kind.CALL:
                total += self._joint(former, kind)
            if kind not in _ASIDE:
                former = kind
        return total, former

    def _exceeds(self, limit: int) -> bool:
        base = self.costs + self._joints
        if not self.log.irregular:
            return base > limit
        # No message becomes more than two, each with a placeholder in front of it.
        for bundle in self.log.irregular:
            places = bundle.places
            base += sum(self.log.costs[p] + self.continued for p in places)
        return base > limit and self.tokens(self.shown, irregular=True) > limit

    def _measure(self) -> None:
        self.costs = sum([self.log.costs[place] for place in self.shown])
        self._joints, self._former = self._joints_of(self.shown)
        kinds = self.log.kinds
        self._calls = sum(kinds[place] is Kind.CALL for place in self.shown)

    # What leaves ------------------------------------------------------------------

    def retain(self, keep: int, placeholder: str | None) -> None:
        """Take the oldest groups in front of the last user's turn, if more are shown.

        Args:
            keep: how many are shown at most.
            placeholder: text that stands for each that leaves; `None`: none.
        """
        if self._calls <= keep:
            return
        log = self.log
        callers = [
            place
            for place in self.shown
            if place < log.turn and log.kinds[place] is Kind.CALL
        ]
        left = len(callers)
        if left <= keep:
            return
        target = math.ceil(keep * self.low_mark)
        gone: set[int] = set()
        before = left
        for place in callers:
            if left <= target:
                break
            bundle = log.bundles.get(place)
            if bundle is None or bundle.places[-1] > log.turn or log.stays(place):
                continue
            left -= len(bundle.callers)
            gone.update(log.strip(bundle, placeholder))
        if left == before:
            return
        self.dropped.update(dict.fromkeys(sorted(gone), HistoryRule.TOOL_CALLS))
        self._leave(gone)

    def hold(self, *, keep: frozenset[int] | None = None) -> None:
        """Take the oldest messages where a limit is exceeded.

        Args:
            keep: what stays of those that would leave; by default the user's message
                of the current turn, and what the last message belongs to.
        """
        limits = self.limits
        many = limits.messages is not None and len(self.shown) > limits.messages
        if not many and (limits.tokens is None or not self._exceeds(limits.tokens)):
            return
        large = limits.tokens is not None and self._exceeds(limits.tokens)
        head = -1
        if keep is None:
            head = self.log.turn
            keep = frozenset(self.log.unit(self.shown[-1]))
        step = _Step(self, keep, self._target(many=many, large=large))
        if not step.take_turns(head):
            step.take_parts(head)
        if step.leaving:
            self.dropped.update(sorted(step.leaving.items()))
            self.log.leave(step.leaving)
            self._leave(step.leaving)

    def _leave(self, places: Iterable[int]) -> None:
        gone = frozenset(places)
        self.shown = [place for place in self.shown if place not in gone]
        self.moves += 1
        self._measure()

    def _target(self, *, many: bool, large: bool) -> Bounds:
        """Return what is to be left after a step."""
        messages, tokens = self.limits
        if self.low_mark >= 1:
            return self.limits
        fixed = [place for place in self.shown if self.log.stays(place)]
        if many and messages is not None:
            messages = self._low(messages, len(fixed))
        if large and tokens is not None:
            costs = self.log.costs
            tokens = self._low(tokens, sum(costs[place] for place in fixed))
        return Bounds(messages, tokens)

    def _low(self, limit: int, fixed: int) -> int:
        room = max(limit - fixed, 0)
        return limit - room + int(room * self.low_mark)


class _Step:
    """Takes the oldest messages, one unit after the other."""

    def __init__(
        self, selection: Selection, keep: frozenset[int], target: Bounds
    ) -> None:
        self.leaving: Final[dict[int, HistoryRule]] = {}
        self._selection = selection
        self._log = selection.log
        self._keep = keep
        self._target = target
        self._count = len(selection.shown)
        self._certain = selection.costs
        """The least tokens that what is left can be."""
        for bundle in self._log.irregular:
            self._certain -= sum(self._log.costs[place] for place in bundle.places)

    def take_turns(self, head: int) -> bool:
        """Take what is in front of the current turn until the target is met.

        Args:
            head: the user's message of the current turn; -1: there is none.

        Returns:
            Whether what is left is within the limits.
        """
        met = False
        for place in self._selection.shown:
            if place >= head:
                break
            if place in self.leaving:
                continue
            if met and self._begins(place):
                self._sever(place)
                return True
            if place in self._keep or self._log.stays(place):
                continue
            self._take(place, HistoryRule.TURN if met else self._demand())
            met = met or self._within(self._target)
        self._sever(head)
        return met or self._within(self._selection.limits)

    def take_parts(self, head: int) -> None:
        """Take what is behind this place until the target is met."""
        for place in self._selection.shown:
            if place <= head or place in self.leaving or place in self._keep:
                continue
            if self._log.stays(place):
                continue
            self._take(place, self._demand())
            if self._within(self._target):
                return

    def _begins(self, place: int) -> bool:
        if not self._selection.whole_turns:
            return True
        return self._log.kinds[place] is Kind.USER and place not in self._log.always

    def _sever(self, start: int) -> None:
        """Name what leaves though it stands behind the new start."""
        for place in self.leaving:
            if place >= start:
                self.leaving[place] = HistoryRule.GROUP

    def _demand(self) -> HistoryRule:
        most = self._target.messages
        many = most is not None and self._count > most
        return self._selection.rule if many else HistoryRule.MAX_TOKENS

    def _take(self, place: int, rule: HistoryRule) -> None:
        unit = self._log.unit(place)
        self.leaving.update(dict.fromkeys(unit, rule))
        self._count -= len(unit)
        if self._log.bundles.get(place) not in self._log.irregular:
            self._certain -= sum([self._log.costs[place] for place in unit])

    def _within(self, bounds: Bounds) -> bool:
        if bounds.messages is not None and self._count > bounds.messages:
            return False
        if bounds.tokens is None:
            return True
        if self._certain > bounds.tokens:
            return False
        rest = [p for p in self._selection.shown if p not in self.leaving]
        irregular = any(b.places[0] not in self.leaving for b in self._log.irregular)
        return self._selection.tokens(rest, irregular=irregular) <= bounds.tokens
