"""The rule that each message leaves by, judged by a second, slow reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from call_histories import Form, History, histories, is_silent
from hypothesis import given
from hypothesis import strategies as st

from raf_session.history import HistoryPolicy, HistoryRule, WindowMode, select_history
from raf_session.messages import ChatMessage
from raf_session.tokens import EstimatingTokenCounter, count_tokens
from raf_session.toolcalls import CONTINUED, OPENING, arrange, find_groups

COUNTER = EstimatingTokenCounter()
POLICIES = st.builds(
    HistoryPolicy,
    max_messages=st.none() | st.integers(1, 10),
    max_tokens=st.none() | st.integers(20, 150),
    mode=st.sampled_from(WindowMode),
    low_mark=st.sampled_from([0.3, 0.5, 0.8]),
)


@dataclass
class Judge:
    """Reads a history message by message, with everything looked up afresh."""

    history: History
    policy: HistoryPolicy
    shown: list[int] = field(default_factory=list[int])
    dropped: dict[int, HistoryRule] = field(default_factory=dict[int, HistoryRule])
    size: int = 0

    @cached_property
    def sliding(self) -> bool:
        return self.policy.mode is WindowMode.SLIDING

    def read(self) -> None:
        place = self.size
        step = self.history.steps[place]
        thoughts = self.thinking()
        self.size += 1
        if step.kind == "state" or is_silent(step):
            return
        if step.kind == "result" and not step.also_says:
            thoughts.clear()
        elif step.kind not in {"assistant", "call"}:
            self.dropped |= dict.fromkeys(thoughts, HistoryRule.ORPHAN)
            thoughts.clear()
        if step.kind == "result":
            unit = self.unit(place)
            if len(unit) == 1:
                self.dropped[place] = HistoryRule.ORPHAN
                return
            if not self.dropped.keys().isdisjoint(unit):
                self.dropped[place] = HistoryRule.GROUP
                return
        self.shown = sorted([*self.shown, *thoughts, place])
        many, large = self.exceeded()
        if many or large:
            self.move(many=many, large=large)

    def move(self, *, many: bool, large: bool) -> None:
        target = self.policy.max_messages, self.policy.max_tokens
        stays = {i for i in self.shown if self.stays(i)}
        if not self.sliding:
            size = self.cost(stays, between=False)
            target = (
                self.low(target[0], len(stays)) if many else target[0],
                self.low(target[1], size) if large else target[1],
            )
        turn = self.turn
        stays |= {turn, *self.unit(self.shown[-1])}
        leaving: dict[int, HistoryRule] = {}
        start = turn
        for place in self.shown:
            if place >= turn:
                break
            met = leaving and self.within(leaving, target)
            if met and (self.sliding or self.history.steps[place].kind == "user"):
                if place not in leaving:
                    start = place
                    break
            elif place not in stays and place not in leaving:
                rule = HistoryRule.TURN if met else self.limit(leaving, target)
                leaving |= dict.fromkeys(self.unit(place), rule)
        for place in leaving:
            if place >= start:
                leaving[place] = HistoryRule.GROUP
        if start == turn and not self.within(
            leaving, (self.policy.max_messages, self.policy.max_tokens)
        ):
            for place in self.shown:
                if place <= turn or place in stays or place in leaving:
                    continue
                if leaving and self.within(leaving, target):
                    break
                rule = self.limit(leaving, target)
                leaving |= dict.fromkeys(self.unit(place), rule)
        self.dropped |= leaving
        self.shown = [i for i in self.shown if i not in leaving]

    # Sizes ------------------------------------------------------------------------

    def cost(self, places: Iterable[int], *, between: bool = True) -> int:
        """Return the tokens of these, of the placeholders between them too or not."""
        shown = [self.history.messages[i] for i in sorted(places)]
        long_running = self.history.long_running
        sent = arrange(shown, long_running=long_running, close_end=True)
        joints = set[str]() if between else {OPENING, CONTINUED}
        return count_tokens([m for m in sent.messages if m.text not in joints], COUNTER)

    def exceeded(self) -> tuple[bool, bool]:
        most, tokens = self.policy.max_messages, self.policy.max_tokens
        return (
            most is not None and len(self.shown) > most,
            tokens is not None and self.cost(self.shown) > tokens,
        )

    def within(
        self, leaving: Iterable[int], bounds: tuple[int | None, int | None]
    ) -> bool:
        left = set(self.shown) - set(leaving)
        most, tokens = bounds
        return (most is None or len(left) <= most) and (
            tokens is None or self.cost(left) <= tokens
        )

    def limit(
        self, leaving: Iterable[int], bounds: tuple[int | None, int | None]
    ) -> HistoryRule:
        fits = self.within(leaving, (bounds[0], None))
        return HistoryRule.MAX_TOKENS if fits else HistoryRule.MAX_MESSAGES

    def low(self, limit: int | None, fixed: int) -> int:
        assert limit is not None
        room = max(limit - fixed, 0)
        return limit - room + int(room * self.policy.low_mark)

    # What the messages are ----------------------------------------------------------

    @property
    def turn(self) -> int:
        kinds = [step.kind for step in self.history.steps[: self.size]]
        return max((i for i, kind in enumerate(kinds) if kind == "user"), default=-1)

    def unit(self, place: int) -> Sequence[int]:
        groups = find_groups(self.read_so_far, self.history.long_running)
        return next((b for b in groups.bundles() if place in b), (place,))

    @property
    def read_so_far(self) -> list[ChatMessage | None]:
        return [*self.history.messages[: self.size]]

    def thinking(self) -> set[int]:
        """Return the reasoning at the end."""
        found: set[int] = set()
        for place in reversed(range(self.size)):
            step = self.history.steps[place]
            if step.kind == "state" or (step.kind == "result" and not step.also_says):
                continue
            if not is_silent(step):
                break
            found.add(place)
        return found

    def stays(self, place: int) -> bool:
        steps = self.history.steps
        before = {
            step.kind
            for i, step in enumerate(steps[:place])
            if step.kind != "result" or self.dropped.get(i) is not HistoryRule.ORPHAN
        }
        if steps[place].kind == "system" and before <= {"system", "state"}:
            return True
        groups = find_groups(self.read_so_far, self.history.long_running)
        return any(
            group.message_index in self.unit(place)
            and any(c.long_running or c.message_index > self.turn for c in open_calls)
            for group in groups.groups
            if (open_calls := group.open_calls)
        )


def plain(history: History) -> History:
    """Return the history with one result in a message, and nothing said beside it."""
    steps = [
        step._replace(ids=step.ids[:1], also_says=False)
        if step.kind == "result"
        else step
        for step in history.steps
    ]
    return history._replace(steps=steps)


@given(histories(tuple(Form)).map(plain), POLICIES)
def test_each_message_leaves_by_the_rule_that_demands_it(
    history: History, policy: HistoryPolicy
) -> None:
    judge = Judge(history, policy)
    for _ in history.steps:
        judge.read()
    view = select_history(
        history.messages, policy, COUNTER, long_running=history.long_running
    )
    open_thoughts = dict.fromkeys(judge.thinking(), HistoryRule.ORPHAN)
    assert [*view.dropped.items()] == sorted((judge.dropped | open_thoughts).items())
    assert [*view.kept] == judge.shown
