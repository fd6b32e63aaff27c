"""The view of a session's events: what stays under limits, and by which rule."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import pytest
from call_histories import (
    STATE,
    THOUGHT,
    Form,
    History,
    Step,
    assistant,
    call,
    histories,
    messages,
    result,
    system,
    user,
)
from hypothesis import given
from hypothesis import strategies as st
from view_rules import Judge

from raf_session.filtering import DropRule, View, select
from raf_session.toolcalls import arrange, find_groups
from raf_session.validity import (
    Rule,
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

NOW = 10_000_000
SECOND = 1_000_000


class Case(NamedTuple):
    """A history under limits; seconds are counted back from now."""

    history: History
    ages: list[int]
    ttl: int
    max_events: int
    summaries: frozenset[int]

    @property
    def times_us(self) -> list[int]:
        return [NOW - age * SECOND for age in self.ages]

    def select(self) -> View:
        return self.select_again(range(len(self.ages)))

    def select_again(self, places: Sequence[int]) -> View:
        """Select from these events only."""
        return select(
            [self.history.messages[i] for i in places],
            [self.times_us[i] for i in places],
            now_us=NOW,
            event_ttl_seconds=self.ttl,
            max_events=self.max_events,
            summaries={n for n, i in enumerate(places) if i in self.summaries},
            long_running=self.history.long_running,
        )


@st.composite
def cases(draw: st.DrawFn, forms: Sequence[Form] = tuple(Form)) -> Case:
    """Draw a history and limits, most of them near its size and its times."""
    history = draw(histories(forms))
    size = len(history.steps)
    ages = draw(st.lists(st.integers(-1, 4), min_size=size, max_size=size))
    if draw(st.booleans()):
        ages.sort(reverse=True)
    first = [i for i, step in enumerate(history.steps) if step.kind == "user"][:1]
    some = st.frozensets(st.integers(0, max(0, size - 1)), max_size=2)
    some = st.just(frozenset(first)) | some
    return Case(
        history,
        ages,
        draw(st.integers(0, 4)),
        draw(st.integers(0, size + 1)),
        draw(some) if size else frozenset(),
    )


def view(*steps: Step, ages: Sequence[int] = (), **options: Any) -> View:
    seconds = ages or [0] * len(steps)
    times = [NOW - age * SECOND for age in seconds]
    return select(messages(steps), times, now_us=NOW, **options)


# Any history under any limits ---------------------------------------------------------


@given(cases())
def test_each_event_stays_or_leaves_by_the_one_rule_that_demands_it(
    case: Case,
) -> None:
    oldest = NOW - case.ttl * SECOND if case.ttl else None
    judge = Judge(case.history, case.times_us, oldest, case.max_events, case.summaries)
    places = range(len(case.ages))
    expected = {i: rule for i in places if (rule := judge.verdict(i)) is not None}
    seen = case.select()
    assert seen.dropped == expected
    assert seen.kept == tuple(i for i in places if i not in expected)


@given(cases())
def test_the_number_is_held_or_the_overrun_says_by_how_much_not(case: Case) -> None:
    seen = case.select()
    over = len(seen.kept) - case.max_events if case.max_events else 0
    assert seen.overrun == max(0, over)
    if not seen.overrun:
        return
    judge = Judge(case.history, case.times_us, None, case.max_events, case.summaries)
    excused = len(judge.fixed) + len(judge.newest | judge.waiting) + 1
    assert len(seen.kept) <= case.max_events + excused


@given(cases())
def test_to_select_again_changes_nothing(case: Case) -> None:
    kept = case.select().kept
    again = case.select_again(kept)
    assert again.dropped == {}


@given(cases())
def test_groups_stay_whole(case: Case) -> None:
    kept = set(case.select().kept)
    groups = find_groups(case.history.messages, case.history.long_running)
    for bundle in groups.bundles():
        assert kept.isdisjoint(bundle) or kept.issuperset(bundle)


@given(cases())
def test_a_session_with_a_user_shows_one(case: Case) -> None:
    turns = [i for i, step in enumerate(case.history.steps) if step.kind == "user"]
    if any(i not in case.summaries for i in turns):
        assert not set(turns).isdisjoint(case.select().kept)


@given(cases())
def test_without_limits_only_orphans_leave(case: Case) -> None:
    free = case._replace(ttl=0, max_events=0).select()
    assert set(free.dropped.values()) <= {DropRule.ORPHAN}


@given(histories(), st.integers(0, 3))
def test_what_is_within_its_limits_is_left_as_it_is(
    history: History, more: int
) -> None:
    free = select(history.messages, [NOW] * len(history.steps), now_us=NOW)
    kept = [history.messages[i] for i in free.kept]
    seen = select(
        kept,
        [NOW - SECOND] * len(kept),
        now_us=NOW,
        event_ttl_seconds=1,
        max_events=len(kept) + more or 1,
    )
    assert seen == (tuple(range(len(kept))), {}, 0)


@given(cases())
def test_every_provider_accepts_the_arranged_view(case: Case) -> None:
    shown = [case.history.messages[i] for i in case.select().kept]
    sent = arrange(shown, long_running=case.history.long_running, close_end=True)
    found = [
        violation
        for check in (openai_violations, anthropic_violations, gemini_violations)
        for violation in check(sent.messages)
        if violation.rule is not Rule.EMPTY_REQUEST
    ]
    assert found == []


# Named cases --------------------------------------------------------------------------

TURN = (user(), call("c1"), result("c1"), assistant())


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (0, (0, 1, 2, 3)),
        (1, (0,)),
        (2, (0, 3)),
        (3, (0, 1, 2, 3)),
        (4, (0, 1, 2, 3)),
        (5, (0, 1, 2, 3)),
    ],
)
def test_the_last_n_never_begin_with_a_result(
    limit: int, kept: tuple[int, ...]
) -> None:
    assert view(*TURN, max_events=limit).kept == kept


@pytest.mark.parametrize("limit", range(1, 7))
def test_interleaved_results_stay_with_their_calls(limit: int) -> None:
    steps = [user(), call("c1"), call("c2", "c3"), *map(result, ("c2", "c1", "c3"))]
    kept = set(view(*steps, user(), max_events=limit).kept)
    assert len(kept & {1, 4}) in {0, 2}
    assert len(kept & {2, 3, 5}) in {0, 3}
    assert 6 in kept


@pytest.mark.parametrize("limit", range(1, 9))
def test_results_in_users_messages_are_no_turns(limit: int) -> None:
    steps = [user(), call("c1"), result("c1"), assistant()] * 2
    history = messages(steps, Form.GEMINI)
    seen = select(history, [NOW] * 8, now_us=NOW, max_events=limit)
    assert {4} <= set(seen.kept) or {0} <= set(seen.kept)
    assert len(set(seen.kept) & {1, 2}) in {0, 2}
    assert len(set(seen.kept) & {5, 6}) in {0, 2}


@pytest.mark.parametrize("limit", range(1, 8))
def test_reasoning_stays_with_what_it_led_to(limit: int) -> None:
    steps = [user(), THOUGHT, assistant(), THOUGHT, call("c1"), result("c1")]
    kept = set(view(*steps, assistant(), max_events=limit).kept)
    assert len(kept & {1, 2}) in {0, 2}
    assert len(kept & {3, 4, 5}) in {0, 3}


def test_an_old_pending_call_leaves_and_a_long_running_one_stays() -> None:
    steps = [user(), call("c1"), result("c1"), *[user(), assistant()] * 6]
    assert view(*steps, max_events=4).kept == (11, 12, 13, 14)
    seen = view(*steps, max_events=4, long_running={"c1"})
    assert seen.kept == (1, 2, 11, 12, 13, 14)
    assert seen.overrun == 2
    seen = view(*steps, result("c1"), max_events=4, long_running={"c1"})
    assert seen.kept == (1, 2, 13, 14, 15)
    seen = view(
        *steps,
        *(result("c1"), user(), assistant()),
        max_events=4,
        long_running={"c1"},
    )
    assert seen.kept == (16, 17)


def test_a_long_running_call_ages_as_any_other() -> None:
    steps = [user(), call("c1"), user(), assistant()]
    seen = view(*steps, ages=[9, 9, 0, 0], event_ttl_seconds=5, long_running={"c1"})
    assert seen.kept == (2, 3)


def test_twenty_calls_without_a_turn_hold_the_number() -> None:
    steps = [step for n in range(20) for step in (call(f"c{n}"), result(f"c{n}"))]
    seen = view(*steps, max_events=12)
    assert seen.kept == tuple(range(28, 40))
    assert seen.overrun == 0
    seen = view(*steps, max_events=11)
    assert seen.kept == tuple(range(30, 40))
    assert seen.dropped[29] is DropRule.GROUP


def test_a_group_larger_than_the_number_is_whole_while_it_is_the_newest() -> None:
    ids = [f"c{n}" for n in range(300)]
    steps = [user(), call(*ids), *map(result, ids)]
    seen = view(*steps, max_events=12)
    assert seen.kept == tuple(range(302))
    assert seen.overrun == 290
    seen = view(*steps, assistant(), user(), max_events=12)
    assert seen.kept == (303,)


def test_a_tool_that_ran_longer_than_events_live_is_not_called_again() -> None:
    seen = view(*TURN[:3], ages=[9, 9, 0], event_ttl_seconds=5)
    assert seen.kept == (0, 1, 2)


def test_the_first_user_message_stays_in_front_and_counts() -> None:
    steps = [user(), *[assistant()] * 10]
    seen = view(*steps, max_events=3)
    assert seen.kept == (0, 9, 10)
    assert view(system(), *steps, max_events=3).kept == (0, 1, 11)
    again = view(user(), *[assistant()] * 12, max_events=3)
    assert again.kept == (0, 11, 12)


def test_the_first_user_message_stays_though_it_is_too_old() -> None:
    steps = [user(), assistant(), user(), assistant()]
    seen = view(*steps, ages=[9, 9, 8, 8], event_ttl_seconds=5)
    assert seen.kept == (0,)
    assert view(*steps, ages=[9, 9, 0, 0], event_ttl_seconds=5).kept == (2, 3)
    seen = view(*steps, ages=[9] * 4, event_ttl_seconds=5, summaries={0})
    assert seen.kept == (2,)


def test_the_edge_of_age_is_kept() -> None:
    steps = [user(), user(), user(), user()]
    seen = view(*steps, ages=[6, 5, 5, 4], event_ttl_seconds=5)
    assert seen.dropped == {0: DropRule.AGE}


def test_times_of_the_future_or_the_past_move_nothing() -> None:
    steps = [user()] * 4
    seen = select(
        messages(steps),
        [NOW + 5 * 3600 * SECOND, NOW, -1, 0],
        now_us=NOW,
        event_ttl_seconds=1,
    )
    assert seen.kept == (0, 1)


def test_what_is_left_of_a_turn_leaves_with_its_beginning() -> None:
    seen = view(*TURN, user(), assistant(), max_events=3)
    assert seen.kept == (4, 5)
    assert seen.dropped[3] is DropRule.TURN
    assert view(assistant(), *TURN, max_events=5).dropped == {}


def test_what_is_left_behind_a_leading_summary_leaves_too() -> None:
    steps = [user(), assistant(), assistant(), user(), assistant()]
    seen = view(*steps, max_events=4, summaries={0})
    assert seen.dropped == {1: DropRule.COUNT, 2: DropRule.TURN}
    assert view(*steps, max_events=5, summaries={0}).dropped == {}
    steps = [user(), user(), assistant(), assistant(), assistant()]
    limits = {"event_ttl_seconds": 5, "max_events": 4}
    seen = view(*steps, ages=[9, 0, 0, 0, 0], summaries={0}, **limits)
    assert seen.kept == (1, 2, 3, 4)


def test_what_is_left_of_a_turn_stays_where_no_later_turn_does() -> None:
    steps = [user(), user(), assistant(), user(), assistant()]
    seen = view(*steps, ages=[0, 9, 0, 9, 0], event_ttl_seconds=5)
    assert seen.kept == (0, 2, 4)


def test_leading_instructions_and_a_summary_stay_and_count() -> None:
    steps = [system(), user(), assistant(), user(), assistant()]
    seen = view(*steps, max_events=4, summaries={1})
    assert seen.kept == (0, 1, 3, 4)
    seen = view(*steps, max_events=2)
    assert seen.kept == (0, 1)
    seen = view(*steps, ages=[9] * 3 + [0, 0], event_ttl_seconds=5, summaries={1})
    assert seen.kept == (0, 3, 4)
    assert view(*steps[:2], max_events=1).kept == (0, 1)
    steps = [STATE, result("c1"), system(), user()]
    assert view(*steps, ages=[0, 9, 9, 0], event_ttl_seconds=5).kept == (0, 2, 3)


def test_orphans_leave_without_any_limit() -> None:
    seen = view(user(), result("c1"), STATE, assistant())
    assert seen.dropped == {1: DropRule.ORPHAN}


@pytest.mark.parametrize(
    "limits",
    [
        {"event_ttl_seconds": -1},
        {"event_ttl_seconds": math.nan},
        {"event_ttl_seconds": math.inf},
        {"event_ttl_seconds": True},
        {"event_ttl_seconds": "1"},
        {"max_events": -1},
        {"max_events": 1.5},
        {"max_events": math.nan},
        {"max_events": math.inf},
        {"max_events": False},
    ],
)
def test_limits_are_numbers_that_limit(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        view(user(), **limits)


@pytest.mark.parametrize("summaries", [{1}, {-1}])
def test_places_and_times_are_of_the_history(summaries: Collection[int]) -> None:
    with pytest.raises(ValueError, match="summary"):
        view(user(), summaries=summaries)
    with pytest.raises(ValueError, match="2 times for 1 messages"):
        select(messages([user()]), [0, 0], now_us=NOW)
