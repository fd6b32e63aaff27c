"""Named histories: late results, pending calls, summaries, pins, calls that leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from call_histories import (
    STATE,
    THOUGHT,
    Form,
    Step,
    assistant,
    call,
    messages,
    result,
    system,
    user,
)

from raf_session.history import (
    SUMMARY_TYPE,
    HistoryPolicy,
    HistoryRule,
    HistoryView,
    HistoryWindow,
    WindowMode,
    select_history,
)
from raf_session.messages import ChatMessage, MessageRole
from raf_session.tokens import EstimatingTokenCounter
from raf_session.toolcalls import INTERRUPTED, OPENING, STILL_RUNNING
from raf_session.validity import (
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

COUNTER = EstimatingTokenCounter()
SLIDING = WindowMode.SLIDING
TURN = (user(), call("c1"), result("c1"), assistant())


def view(
    *steps: Step,
    limit: int | None = None,
    long_running: Sequence[str] = (),
    form: Form = Form.OPENAI,
    **limits: Any,
) -> HistoryView:
    seen = select_history(
        messages(steps, form),
        HistoryPolicy(**limits),
        COUNTER,
        limit=limit,
        long_running=long_running,
    )
    checks = (openai_violations, anthropic_violations, gemini_violations)
    assert [v for check in checks for v in check(seen.messages, pending=True)] == []
    return seen


# Cuts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(1, (3,)), (2, (3,)), (3, (1, 2, 3)), (4, (0, 1, 2, 3)), (5, (0, 1, 2, 3))],
)
def test_the_last_n_never_begin_with_a_result(
    limit: int, kept: tuple[int, ...]
) -> None:
    assert view(*TURN, limit=limit).kept == kept
    assert view(*TURN, limit=9, max_messages=limit).kept == kept


@pytest.mark.parametrize("limit", range(1, 7))
@pytest.mark.parametrize("mode", WindowMode)
def test_interleaved_results_stay_with_their_calls(
    limit: int, mode: WindowMode
) -> None:
    steps = [user(), call("c1"), call("c2", "c3"), *map(result, ("c2", "c1", "c3"))]
    for seen in (
        view(*steps, assistant(), max_messages=limit, mode=mode),
        view(*steps, assistant(), limit=limit),
    ):
        assert len({*seen.kept} & {1, 4}) in {0, 2}
        assert len({*seen.kept} & {2, 3, 5}) in {0, 3}
        assert 6 in seen.kept


@pytest.mark.parametrize("limit", range(1, 9))
def test_results_in_users_messages_are_no_turns(limit: int) -> None:
    steps = [user(), call("c1"), result("c1"), assistant()] * 2
    seen = view(*steps, form=Form.GEMINI, max_messages=limit)
    assert 4 in seen.kept
    assert len({*seen.kept} & {5, 6}) in {0, 2}


@pytest.mark.parametrize("keep", [0, 1, None])
def test_reasoning_leaves_with_the_calls_that_it_led_to(keep: int | None) -> None:
    steps = [user(), THOUGHT, call("c1"), result("c1"), assistant(), user()]
    history = messages(steps)
    seen = select_history(history, HistoryPolicy(keep_tool_calls=keep), COUNTER)
    assert {1, 2, 3} <= {*seen.kept} or seen.kept == (0, 4, 5)
    assert (keep == 0) == (seen.kept == (0, 4, 5))


def test_twenty_calls_without_a_turn_hold_the_number() -> None:
    steps = [step for n in range(20) for step in (call(f"c{n}"), result(f"c{n}"))]
    seen = view(*steps, max_messages=12, mode=SLIDING)
    assert seen.kept == tuple(range(28, 40))
    assert not seen.overrun
    assert seen.messages[0].text == OPENING
    seen = view(*steps, max_messages=12)
    assert len(seen.kept) <= 12
    assert 39 in seen.kept


def test_a_group_larger_than_the_number_is_whole_while_it_is_the_newest() -> None:
    ids = [f"c{n}" for n in range(300)]
    steps = [user(), call(*ids), *map(result, ids)]
    seen = view(*steps, max_messages=12)
    assert seen.kept == tuple(range(302))
    assert seen.overrun.messages == 290
    seen = view(*steps, assistant(), user(), max_messages=12)
    assert not seen.overrun
    assert seen.kept[-1] == 303


def test_the_users_message_of_a_long_turn_stays_in_front() -> None:
    steps = [user(), *[assistant()] * 10]
    window = HistoryWindow(HistoryPolicy(max_messages=3), COUNTER)
    for message in messages(steps):
        window.extend([message])
        assert window.view().kept[0] == 0
        assert len(window.view().kept) <= 3
    assert view(*steps, max_messages=3, mode=SLIDING).kept == (0, 9, 10)


def test_what_is_left_of_a_turn_leaves_by_name() -> None:
    seen = view(*TURN, *TURN, user(), max_messages=8, low_mark=0.9)
    assert seen.kept == (4, 5, 6, 7, 8)
    assert dict(seen.dropped) == {
        0: HistoryRule.MAX_MESSAGES,
        1: HistoryRule.MAX_MESSAGES,
        2: HistoryRule.MAX_MESSAGES,
        3: HistoryRule.TURN,
    }


def test_a_step_leaves_the_low_mark_and_sliding_no_more_than_it_must() -> None:
    turns = [user(), assistant()] * 20
    stepped = HistoryWindow(HistoryPolicy(max_messages=20, low_mark=0.5), COUNTER)
    sliding = HistoryWindow(HistoryPolicy(max_messages=20, mode=SLIDING), COUNTER)
    sizes: list[int] = []
    for message in messages(turns):
        stepped.extend([message])
        sliding.extend([message])
        sizes.append(len(stepped.view().kept))
    assert sizes[20:31] == [9, *range(10, 20)]
    assert stepped.view().moves == 2
    assert sliding.view().moves == 20
    assert len(sliding.view().kept) == 20


# Calls that wait ----------------------------------------------------------------------


def test_a_pending_call_stays_until_its_result_came() -> None:
    chat = [user(), assistant()] * 12
    steps = [user(), call("c1"), *chat]
    limits: dict[str, Any] = {"max_messages": 6, "long_running": ["c1"]}
    seen = view(*steps, **limits)
    assert 1 in seen.kept
    assert STILL_RUNNING in {m.text for m in seen.messages}
    seen = view(*steps, result("c1"), **limits)
    assert {1, 26} <= {*seen.kept}
    assert STILL_RUNNING not in {m.text for m in seen.messages}
    seen = view(*steps, result("c1"), *chat, **limits)
    assert {1, 26}.isdisjoint(seen.kept)
    assert seen.dropped[1] is HistoryRule.MAX_MESSAGES


def test_an_interim_result_does_not_end_the_waiting() -> None:
    steps = [user(), call("c1"), result("c1"), *[user(), assistant()] * 12]
    limits: dict[str, Any] = {"max_messages": 6, "long_running": ["c1"]}
    assert {1, 2} <= {*view(*steps, **limits).kept}
    seen = view(*steps, result("c1"), **limits)
    assert {1, 2, 27} <= {*seen.kept}
    assert sum(m.role is MessageRole.TOOL for m in seen.messages) == 1


def test_an_abandoned_call_is_closed_and_leaves_with_its_turn() -> None:
    start = [user(), call("c1", "c2"), result("c1")]
    seen = view(*start, user(), max_messages=10)
    assert INTERRUPTED in {m.text for m in seen.messages}
    assert seen.kept[-1] == 3
    seen = view(*start, *[user(), assistant()] * 5, result("c2"), max_messages=6)
    assert {0, 1, 2}.isdisjoint(seen.kept)
    assert seen.dropped[13] is HistoryRule.GROUP


def test_the_last_of_several_results_is_sent() -> None:
    seen = view(user(), call("c1"), result("c1"), result("c1"), result("c1"))
    assert [m.text for m in seen.messages[2:]] == ["c1 gave 4"]
    assert seen.kept == (0, 1, 2, 3, 4)


def test_orphans_and_events_without_a_message_are_not_shown() -> None:
    seen = view(user(), result("c1"), STATE, assistant())
    assert seen.kept == (0, 3)
    assert dict(seen.dropped) == {1: HistoryRule.ORPHAN}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize(
    "next_said", [ChatMessage.user("go on"), ChatMessage.tool("late", "c1"), None]
)
def test_reasoning_that_led_to_nothing_is_not_shown(
    next_said: ChatMessage | None,
) -> None:
    thought = ChatMessage.from_openai({"role": "assistant", "content": [THINKING]})
    history = [ChatMessage.user("ask"), thought, *([next_said] if next_said else ())]
    seen = select_history(history, HistoryPolicy(), COUNTER, close_end=True)
    assert seen.dropped[1] is HistoryRule.ORPHAN
    assert thought not in seen.messages
    for check in (openai_violations, anthropic_violations, gemini_violations):
        assert not check(seen.messages)


def test_reasoning_is_shown_in_what_it_led_to() -> None:
    for steps, kept in (
        ((user(), THOUGHT), (0,)),
        ((user(), THOUGHT, assistant()), (0, 1, 2)),
        ((user(), THOUGHT, THOUGHT, user()), (0, 3)),
    ):
        seen = select_history(messages(steps), HistoryPolicy(), COUNTER)
        assert seen.kept == kept


# What always stays --------------------------------------------------------------------


def summary(text: str = "[历史摘要] so far") -> ChatMessage:
    return ChatMessage(
        role=MessageRole.ASSISTANT, content=text, metadata={"type": SUMMARY_TYPE}
    )


def pinned(text: str) -> ChatMessage:
    return ChatMessage(
        role=MessageRole.USER, content=text, metadata={"pinned": True}, id="p"
    )


@pytest.mark.parametrize("mode", WindowMode)
def test_instructions_summary_and_pins_stay_and_count(mode: WindowMode) -> None:
    chat = messages([user(), assistant()] * 10)
    history = [*messages([system()]), summary(), *chat[:4], pinned("note"), *chat]
    policy = HistoryPolicy(max_messages=7, mode=mode)
    window = HistoryWindow(policy, COUNTER)
    for message in history:
        window.extend([message])
    seen = window.view()
    assert {0, 1, 6} <= {*seen.kept}
    assert len(seen.kept) <= 7
    assert seen.messages[1].role is MessageRole.USER
    assert seen.messages[1].text == "[历史摘要] so far"
    assert seen.messages[1].metadata == {"type": SUMMARY_TYPE}
    last = window.view(limit=5)
    assert last.kept == (0, 1, 6, 25, 26)


def test_a_pinned_group_stays_whole() -> None:
    turn = messages(TURN)
    assert turn[2] is not None
    turn[2] = turn[2].model_copy(update={"metadata": {"pinned": True}})
    history = [*turn, *messages([user(), assistant()] * 9)]
    policy = HistoryPolicy(max_messages=6, keep_tool_calls=0)
    seen = select_history(history, policy, COUNTER)
    assert {1, 2} <= {*seen.kept}
    assert {0, 3}.isdisjoint(seen.kept)


def test_what_always_stays_and_does_not_fit_is_the_overrun() -> None:
    history = [pinned("a " * 50), *messages([user()])]
    seen = select_history(history, HistoryPolicy(max_tokens=20), COUNTER)
    assert seen.kept == (0, 1)
    assert seen.overrun.tokens == seen.tokens - 20 > 0


# Tool calls that leave ----------------------------------------------------------------


def groups_shown(seen: HistoryView) -> int:
    return sum(bool(m.tool_calls) for m in seen.messages)


def test_groups_leave_in_steps_at_users_turns() -> None:
    window = HistoryWindow(HistoryPolicy(keep_tool_calls=4, low_mark=0.5), COUNTER)
    shown: list[int] = []
    for n in range(9):
        window.extend(messages([user()]))
        shown.append(groups_shown(window.view()))
        window.extend(messages([call(f"c{n}"), result(f"c{n}"), assistant()]))
    assert shown == [0, 1, 2, 3, 4, 2, 3, 4, 2]
    assert {*window.view().dropped.values()} == {HistoryRule.TOOL_CALLS}


def test_groups_of_the_current_turn_are_not_counted_out() -> None:
    calls = [s for n in range(6) for s in (call(f"c{n}"), result(f"c{n}"))]
    assert groups_shown(view(user(), *calls, keep_tool_calls=0)) == 6
    assert groups_shown(view(user(), *calls, user(), keep_tool_calls=0)) == 0
    seen = view(user(), *calls, user(), keep_tool_calls=3, mode=SLIDING)
    assert groups_shown(seen) == 3
    assert groups_shown(view(user(), *calls, user(), keep_tool_calls=None)) == 6


BESIDE: list[tuple[Any, bool]] = [
    ("I look it up.", True),
    ([{"type": "text", "text": "I look it up."}], True),
    (
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look it up."},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        ],
        False,
    ),
]


@pytest.mark.parametrize("placeholder", [None, "[a call was left out]"])
@pytest.mark.parametrize(("content", "called"), BESIDE)
def test_what_is_said_beside_a_call_stays(
    content: Any, called: bool, placeholder: str | None
) -> None:
    asks: dict[str, Any] = {"role": "assistant", "content": content}
    answer: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
    }
    if called:
        function = {"name": "f", "arguments": "{}"}
        asks["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        answer = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    wire = [{"role": "user", "content": "hi"}, asks, answer]
    wire += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "?"}]
    history = [*map(ChatMessage.from_openai, wire)]
    policy = HistoryPolicy(keep_tool_calls=0, tool_call_placeholder=placeholder)
    seen = select_history(history, policy, COUNTER)
    assert seen.kept == (0, 1, 3, 4)
    assert seen.stripped == (1,)
    assert dict(seen.dropped) == {2: HistoryRule.TOOL_CALLS}
    said = seen.messages[1]
    assert said.text.startswith("I look it up.")
    assert (placeholder or "done") in said.text + seen.messages[2].text
    assert "tool_use" not in repr(said.to_openai())
    assert "thinking" not in repr(said.to_openai())
    assert said.tool_calls is None
    assert not anthropic_violations(seen.messages)


def test_a_placeholder_stands_where_a_silent_call_was() -> None:
    seen = view(*TURN, user(), keep_tool_calls=0, tool_call_placeholder="[left out]")
    assert [m.text for m in seen.messages[:2]] == ["said at 0", "[left out]"]
    assert seen.kept == (0, 1, 3, 4)


def test_what_a_user_says_beside_a_late_result_stays() -> None:
    steps = [user(), call("c1"), user(), result("c1", also_says=True)]
    seen = view(*steps, form=Form.ANTHROPIC, keep_tool_calls=0)
    assert seen.kept == (0, 2, 3)
    assert seen.stripped == (3,)
    assert seen.messages[-1].text == "said at 3"
