"""Windows over any history: valid, append-only, whole, and the same however read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

import pytest
from call_histories import (
    History,
    Step,
    call,
    histories,
    is_silent,
    messages,
    result,
    user,
)
from hypothesis import given
from hypothesis import strategies as st
from validity_inputs import violations_of_any

from raf_session.history import (
    HistoryPolicy,
    HistoryRule,
    HistoryView,
    HistoryWindow,
    WindowMode,
    select_history,
)
from raf_session.messages import ChatMessage
from raf_session.tokens import EstimatingTokenCounter, count_tokens
from raf_session.toolcalls import CONTINUED, OPENING, find_groups

COUNTER = EstimatingTokenCounter()
LIMITS = {
    "max_messages": st.none() | st.integers(1, 12),
    "max_tokens": st.none() | st.integers(1, 200),
    "keep_tool_calls": st.none() | st.integers(0, 3),
    "max_tool_result_size": st.none() | st.integers(1, 12),
    "tool_call_placeholder": st.none() | st.just("[left out]"),
    "mode": st.sampled_from(WindowMode),
    "low_mark": st.sampled_from([0.3, 0.5, 0.8, 1.0]),
}
POLICIES = st.builds(HistoryPolicy, **LIMITS)
LAST = st.none() | st.integers(1, 12)


def view_of(
    history: History,
    policy: HistoryPolicy,
    *,
    close_end: bool = False,
    limit: int | None = None,
) -> HistoryView:
    return select_history(
        history.messages,
        policy,
        COUNTER,
        close_end=close_end,
        long_running=history.long_running,
        limit=limit,
    )


@given(histories(), POLICIES, LAST, st.booleans())
def test_every_provider_accepts_any_view(
    history: History, policy: HistoryPolicy, last: int | None, close_end: bool
) -> None:
    view = view_of(history, policy, close_end=close_end, limit=last)
    assert violations_of_any(view.messages, pending=not close_end) == []


@given(histories(), POLICIES, st.lists(st.integers(0, 14), max_size=3))
def test_read_in_any_chunks_it_is_the_view_from_scratch(
    history: History, policy: HistoryPolicy, cuts: list[int]
) -> None:
    window = HistoryWindow(policy, COUNTER, long_running=history.long_running)
    start = 0
    for end in [*sorted(cuts), len(history.steps)]:
        window.extend(history.messages[start:end])
        window.view()
        start = max(start, end)
    assert window.view() == view_of(history, policy)


@given(histories(), POLICIES)
def test_a_view_only_appends_while_nothing_moved(
    history: History, policy: HistoryPolicy
) -> None:
    window = HistoryWindow(policy, COUNTER, long_running=history.long_running)
    former = window.view()
    for message in history.messages:
        window.extend([message])
        view = window.view()
        assert view.moves >= former.moves
        if view.moves == former.moves:
            assert view.messages[: len(former.messages)] == former.messages
            assert {*former.kept} <= {*view.kept}
        former = view


@given(histories(), POLICIES)
def test_what_left_does_not_come_back_and_keeps_its_rule(
    history: History, policy: HistoryPolicy
) -> None:
    window = HistoryWindow(policy, COUNTER, long_running=history.long_running)
    former = window.view()
    for place, message in enumerate(history.messages):
        thoughts = former.dropped.items() & {
            (i, HistoryRule.ORPHAN) for i in open_thoughts(history, place)
        }
        window.extend([message])
        view = window.view()
        assert former.dropped.items() - thoughts <= view.dropped.items()
        assert set(former.stripped) <= {*view.stripped, *view.dropped}
        former = view


def open_thoughts(history: History, size: int) -> set[int]:
    """Return the reasoning at the end of the first so many steps."""
    before = [
        (i, step)
        for i, step in enumerate(history.steps[:size])
        if step.kind != "state" and (step.kind != "result" or step.also_says)
    ]
    return {i for i, _ in takewhile(lambda at: is_silent(at[1]), reversed(before))}


@given(histories(), POLICIES, LAST)
def test_each_message_is_kept_or_dropped_by_a_rule_that_is_asked_for(
    history: History, policy: HistoryPolicy, last: int | None
) -> None:
    view = view_of(history, policy, limit=last)
    there = {i for i, m in enumerate(history.messages) if m is not None}
    assert {*view.kept} | {*view.dropped} == there
    assert {*view.kept}.isdisjoint(view.dropped)
    asked = {HistoryRule.ORPHAN, HistoryRule.GROUP, HistoryRule.TURN}
    most = policy.max_messages
    if last is not None and (most is None or last < most):
        asked.add(HistoryRule.LIMIT)
    elif most is not None:
        asked.add(HistoryRule.MAX_MESSAGES)
    if policy.max_tokens is not None:
        asked.add(HistoryRule.MAX_TOKENS)
    if policy.keep_tool_calls is not None:
        asked.add(HistoryRule.TOOL_CALLS)
    assert {*view.dropped.values()} <= asked


@given(histories(), POLICIES, LAST)
def test_groups_stay_whole_but_for_what_is_said_beside_them(
    history: History, policy: HistoryPolicy, last: int | None
) -> None:
    view = view_of(history, policy, limit=last)
    whole = {*view.kept} - {*view.stripped}
    groups = find_groups(history.messages, history.long_running)
    ties = [(g.message_index, r) for g in groups.groups for r in g.results]
    for tied in (*ties, *groups.linked):
        if whole.intersection(tied):
            assert {*tied} <= {*view.kept}


@given(histories(), POLICIES, LAST)
def test_the_limits_are_held_or_the_overrun_says_by_how_much_not(
    history: History, policy: HistoryPolicy, last: int | None
) -> None:
    view = view_of(history, policy, close_end=True, limit=last)
    assert view.tokens == count_tokens(view.messages, COUNTER)
    most = [n for n in (policy.max_messages, last) if n is not None]
    over = len(view.kept) - min(most) if most else 0
    assert view.overrun.messages == max(0, over)
    tokens = view.tokens - policy.max_tokens if policy.max_tokens else 0
    assert view.overrun.tokens == max(0, tokens)
    assert bool(view.overrun) == (over > 0 or tokens > 0)


@given(histories(), POLICIES)
def test_where_a_limit_is_exceeded_nothing_is_left_that_could_leave(
    history: History, policy: HistoryPolicy
) -> None:
    view = view_of(history, policy, close_end=True)
    if not view.overrun:
        return
    groups = find_groups(history.messages, history.long_running)
    turn = max((i for i, s in enumerate(history.steps) if s.kind == "user"), default=-1)
    stays = {turn, *view.kept[-2:], *view.stripped}
    for bundle in groups.bundles():
        waits = [
            c
            for g in groups.groups
            for c in g.open_calls
            if g.message_index in bundle and (c.long_running or c.message_index > turn)
        ]
        if waits or view.kept[-1] in bundle:
            stays.update(bundle)
    for place in view.kept:
        step = history.steps[place]
        assert place in stays or step.kind == "system" or is_silent(step)


@given(histories(), POLICIES)
def test_without_limits_only_orphans_leave(
    history: History, policy: HistoryPolicy
) -> None:
    view = view_of(history, HistoryPolicy(mode=policy.mode))
    assert {*view.dropped.values()} <= {HistoryRule.ORPHAN}
    assert view.overrun == (0, 0)


@given(histories(), POLICIES, LAST)
def test_the_history_is_not_changed(
    history: History, policy: HistoryPolicy, last: int | None
) -> None:
    given_messages = history.messages
    wire = [m and m.to_openai() for m in given_messages]
    select_history(given_messages, policy, COUNTER, limit=last)
    assert [m and m.to_openai() for m in given_messages] == wire


@given(histories(), POLICIES, st.integers(1, 12))
def test_the_last_n_are_at_most_n_and_the_newest(
    history: History, policy: HistoryPolicy, last: int
) -> None:
    free = HistoryPolicy(max_tool_result_size=policy.max_tool_result_size)
    view = view_of(history, free, limit=last)
    fixed = [i for i in view.kept if i < min(view.kept[-last:], default=0)]
    assert len(view.kept) - len(fixed) <= last
    taken = [i for i, r in view.dropped.items() if r is HistoryRule.LIMIT]
    assert not taken or len(view.kept) + len(_unit(history, max(taken))) > last


def _unit(history: History, place: int) -> Sequence[int]:
    bundles = find_groups(history.messages, history.long_running).bundles()
    return next((b for b in bundles if place in b), (place,))


@given(histories(), POLICIES, st.integers(0, 14))
def test_a_message_may_get_its_id_after_it_was_read(
    history: History, policy: HistoryPolicy, since: int
) -> None:
    named = [
        m and m.model_copy(update={"id": f"m{place}"}) if place >= since else m
        for place, m in enumerate(history.messages)
    ]
    window = HistoryWindow(policy, COUNTER, long_running=history.long_running)
    window.extend(history.messages)
    for place, message in enumerate(named):
        if message is not None:
            assert window.restate(place, message)
    expected = select_history(named, policy, COUNTER, long_running=history.long_running)
    assert window.view() == expected


def test_a_message_that_says_something_else_is_another() -> None:
    window = HistoryWindow(HistoryPolicy(), COUNTER)
    said = ChatMessage.user("hello")
    window.extend([said, None])
    assert not window.restate(0, ChatMessage.user("hello!"))
    assert not window.restate(0, said.model_copy(update={"metadata": {"pinned": True}}))
    assert not window.restate(1, said)
    assert window.view().messages == (said,)


def test_each_message_is_counted_once() -> None:
    seen: Counter[int] = Counter()

    class Spy:
        def count(self, message: ChatMessage, /) -> int:
            seen[id(message)] += 1
            return COUNTER.count(message)

    steps: list[Step] = []
    for n in range(200):
        steps += [user(), call(f"c{n}"), result(f"c{n}")]
    history = messages(steps)
    window = HistoryWindow(HistoryPolicy(max_tokens=500, keep_tool_calls=2), Spy())
    for message in history:
        window.extend([message])
        window.view()
    assert {seen[id(message)] for message in history} == {1}
    assert not {OPENING, CONTINUED} & {m.text for m in window.view().messages}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_messages", 0),
        ("max_messages", True),
        ("max_tokens", -1),
        ("max_tokens", 1.5),
        ("keep_tool_calls", -1),
        ("max_tool_result_size", 0),
        ("tool_call_placeholder", " "),
        ("low_mark", 0),
        ("low_mark", 1.1),
        ("low_mark", float("nan")),
        ("mode", "jumping"),
    ],
)
def test_limits_are_numbers_that_limit(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=str(value)):
        HistoryPolicy(**{name: value})  # type: ignore[arg-type]


def test_the_last_none_are_no_view() -> None:
    with pytest.raises(ValueError, match="not 0"):
        select_history([], HistoryPolicy(), COUNTER, limit=0)
