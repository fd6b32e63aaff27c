"""Which messages a summary may stand for."""

from __future__ import annotations

import pytest
from call_histories import (
    History,
    Step,
    assistant,
    call,
    histories,
    linked,
    messages,
    result,
    system,
    user,
)
from hypothesis import given
from hypothesis import strategies as st

from raf_session.compaction import CompactionPlan, has_open_calls, plan_compaction
from raf_session.messages import ChatMessage
from raf_session.toolcalls import arrange, is_preamble, is_user_turn
from raf_session.validity import (
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

RECENT = st.integers(0, 8)


def plan(
    *steps: Step,
    keep_recent: int = 0,
    from_user_turn: bool = True,
    long_running: tuple[str, ...] = (),
) -> CompactionPlan:
    return plan_compaction(
        messages(steps),
        keep_recent=keep_recent,
        from_user_turn=from_user_turn,
        long_running=long_running,
    )


def planned(history: History, keep_recent: int, *, turns: bool) -> CompactionPlan:
    return plan_compaction(
        history.messages,
        keep_recent=keep_recent,
        from_user_turn=turns,
        long_running=history.long_running,
    )


# Properties ----------------------------------------------------------------------


@given(histories(), RECENT, st.booleans())
def test_what_is_recent_and_what_instructs_stays(
    history: History, keep_recent: int, turns: bool
) -> None:
    covered, kept = planned(history, keep_recent, turns=turns)
    size = len(history.messages)
    assert list(covered) == sorted(set(covered))
    assert not set(covered) & set(kept)
    assert all(0 <= index < size - keep_recent for index in covered)
    for index, message in enumerate(history.messages):
        if message is None or not is_preamble(message):
            break
        assert index not in covered
    if covered:
        between = set(range(covered[0], covered[-1])) - set(covered)
        assert between == {index for index in kept if index > covered[0]}
        assert max(kept, default=-1) < covered[-1]
    else:
        assert not kept


@given(histories(), RECENT, st.booleans())
def test_no_group_is_covered_in_part(
    history: History, keep_recent: int, turns: bool
) -> None:
    covered = set(planned(history, keep_recent, turns=turns).covered)
    for together in linked(history):
        assert together <= covered or not together & covered


@given(histories(), RECENT, st.booleans())
def test_every_provider_accepts_what_is_left_behind_a_summary(
    history: History, keep_recent: int, turns: bool
) -> None:
    covered = planned(history, keep_recent, turns=turns).covered
    if not covered:
        return
    left: list[ChatMessage | None] = [
        message
        for index, message in enumerate(history.messages)
        if index not in covered or index == covered[0]
    ]
    left[covered[0]] = ChatMessage.user("summary")
    arranged = arrange(left, long_running=history.long_running, close_end=True)
    for violations in (openai_violations, anthropic_violations, gemini_violations):
        assert violations(arranged.messages) == ()


@given(histories(), RECENT)
def test_what_stays_begins_with_a_turn_where_one_can_be_had(
    history: History, keep_recent: int
) -> None:
    covered, kept = planned(history, keep_recent, turns=True)
    without = planned(history, keep_recent, turns=False).covered
    assert set(covered) <= set(without)
    calls = any(step.kind == "call" for step in history.steps)
    if keep_recent and covered and not calls and not kept and not linked(history):
        behind = covered[-1] + 1
        end = len(history.messages) - keep_recent
        turns = [
            i
            for i in range(covered[0] + 1, end + 1)
            if is_user_turn(history.messages[i])
        ]
        assert behind == (turns[-1] if turns else end)


# By name -------------------------------------------------------------------------


def test_all_but_the_recent_is_covered() -> None:
    steps = [user(), assistant(), user(), assistant(), user(), assistant()]
    assert plan(*steps, keep_recent=2) == ((0, 1, 2, 3), ())
    assert plan(*steps, keep_recent=3) == ((0, 1), ())
    assert plan(*steps, keep_recent=3, from_user_turn=False) == ((0, 1, 2), ())
    assert plan(*steps) == ((0, 1, 2, 3, 4, 5), ())
    assert plan(*steps, keep_recent=6) == plan(keep_recent=1) == ((), ())


def test_instructions_stay_in_front() -> None:
    assert plan(system(), system(), user(), assistant()) == ((2, 3), ())
    assert plan(system()) == ((), ())


def test_one_long_turn_is_cut_between_its_groups() -> None:
    steps = [user(), call("c0"), result("c0"), call("c1"), result("c1"), assistant()]
    assert plan(*steps, keep_recent=1) == ((0, 1, 2, 3, 4), ())
    assert plan(*steps, keep_recent=2) == ((0, 1, 2), ())
    assert plan(*steps, keep_recent=5) == ((0,), ())


def test_a_call_that_waits_stays_with_what_it_has() -> None:
    steps = [user(), assistant(), user(), call("c0", "c1"), result("c0")]
    assert plan(*steps) == ((0, 1, 2), ())
    assert has_open_calls(messages(steps))


def test_a_call_that_was_left_behind_is_covered() -> None:
    steps = [user(), call("c0"), user(), assistant(), user(), assistant()]
    assert plan(*steps, keep_recent=2) == ((0, 1, 2, 3), ())
    assert not has_open_calls(messages(steps))


def test_a_long_running_call_stays_among_what_is_covered() -> None:
    steps = [user(), call("c0"), result("c0"), user(), assistant(), user(), assistant()]
    assert plan(*steps, keep_recent=2, long_running=("c0",)) == ((0, 3, 4), (1, 2))
    late = [*steps, result("c0")]
    assert plan(*late, long_running=("c0",)) == (tuple(range(8)), ())


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="keep_recent"):
        plan(user(), keep_recent=-1)
