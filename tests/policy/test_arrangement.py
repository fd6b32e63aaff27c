"""What a request needs of a history: order, completeness, and nothing lost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from call_histories import (
    NAMED,
    STATE,
    THOUGHT,
    Form,
    History,
    Step,
    assistant,
    call,
    histories,
    led_to,
    links,
    messages,
    result,
    said,
    system,
    told,
    user,
)
from hypothesis import given
from hypothesis import strategies as st
from validity_inputs import violations_of_any

from raf_session.messages import ChatMessage
from raf_session.toolcalls import (
    CONTINUED,
    INTERRUPTED,
    OPENING,
    STILL_RUNNING,
    Arrangement,
    Repair,
    RepairRule,
    arrange,
    find_groups,
    is_preamble,
    is_user_turn,
)


def arranged(*steps: Step, form: Form = Form.OPENAI, **options: Any) -> Arrangement:
    return arrange(messages(steps, form), **options)


def outline(arrangement: Arrangement) -> list[str]:
    """Return of each message its role and what it says or answers."""
    return [
        f"{m.role.value}: {m.text}" if m.text else m.role.value
        for m in arrangement.messages
    ]


def repaired(arrangement: Arrangement) -> list[tuple[str, int]]:
    return [(repair.rule.value, repair.message_index) for repair in arrangement.repairs]


# Any history --------------------------------------------------------------------------


@given(histories())
def test_every_provider_accepts_any_history(history: History) -> None:
    sent = arrange(history.messages, long_running=history.long_running, close_end=True)
    assert violations_of_any(sent.messages) == []


@given(histories(), st.booleans())
def test_to_arrange_again_changes_nothing(history: History, close_end: bool) -> None:
    once = arrange(
        history.messages, long_running=history.long_running, close_end=close_end
    )
    again = arrange(
        once.messages, long_running=history.long_running, close_end=close_end
    )
    assert again.repairs == ()
    assert same_objects(again.messages, once.messages)


def same_objects(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(lambda a, b: a is b, one, other))


@given(histories())
def test_without_repairs_the_messages_are_the_same_objects(history: History) -> None:
    given_messages = [m for m in history.messages if m is not None]
    sent = arrange(given_messages, long_running=history.long_running)
    assert (sent.repairs == ()) == same_objects(sent.messages, given_messages)


@given(histories(), st.booleans())
def test_nothing_is_lost_that_was_said(history: History, close_end: bool) -> None:
    sent = arrange(
        history.messages, long_running=history.long_running, close_end=close_end
    )
    wire = [repr(message.to_openai()) for message in sent.messages]
    order: list[int] = []
    for index, step in enumerate(history.steps):
        saying = re.compile(rf"{said(index)}(?!\d)")
        places = [i for i, text in enumerate(wire) if saying.search(text)]
        silent = step.kind in {"call", "result", "state", "silence"}
        if step.kind == "thought":
            silent = step.flawed or led_to(history, index) is None
        elif step.kind == "user":
            silent = step.flawed
        assert len(places) == (not silent or step.also_says)
        order += places
    assert order == sorted(order)
    found = links(history)
    last = {(link.call, link.ident): link for link in found}
    for link in found:
        stays = link.call is not None and last[link.call, link.ident] is link
        text = f"{told(link.place, link.ident)}'"
        assert sum(text in told_in for told_in in wire) == stays


@given(histories(), st.booleans())
def test_results_stand_directly_behind_their_calls(
    history: History, close_end: bool
) -> None:
    sent = arrange(
        history.messages, long_running=history.long_running, close_end=close_end
    )
    groups = find_groups(sent.messages)
    assert not groups.orphans
    for group in groups.groups:
        behind = range(
            group.message_index + 1, group.message_index + 1 + len(group.results)
        )
        assert group.results == tuple(behind)
        at_end = behind.stop == len(sent.messages)
        for made in group.calls:
            assert len(made.results) == 1 or (at_end and not close_end)
    spoken = [m for m in sent.messages if not is_preamble(m)]
    assert not spoken or is_user_turn(spoken[0])


@given(histories())
def test_each_result_that_left_is_named_with_its_rule(history: History) -> None:
    sent = arrange(history.messages, long_running=history.long_running)
    found = links(history)
    last = {(link.call, link.ident): link for link in found}
    orphans = sorted(k.place for k in found if k.call is None)
    superseded = sorted(
        k.place for k in found if k.call is not None and last[k.call, k.ident] is not k
    )
    by_rule: dict[RepairRule, list[int]] = {rule: [] for rule in RepairRule}
    for repair in sent.repairs:
        by_rule[repair.rule].append(repair.message_index)
    assert by_rule[RepairRule.ORPHAN] == orphans
    assert by_rule[RepairRule.SUPERSEDED] == superseded
    assert [r.message_index for r in sent.repairs] == sorted(
        r.message_index for r in sent.repairs
    )


@st.composite
def sound_steps(draw: st.DrawFn) -> list[Step]:
    """Draw a conversation that needs no repair."""
    made: list[Step] = [system()] * draw(st.integers(0, 2))
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        made.append(user())
        for _ in range(draw(st.integers(0, 2))):
            ids = [f"c{number + k}" for k in range(draw(st.integers(1, 3)))]
            number += len(ids)
            made.append(call(*ids))
            made += [result(ident) for ident in draw(st.permutations(ids))]
        made.append(assistant())
    return made


@given(sound_steps(), st.sampled_from([Form.OPENAI, Form.ANTHROPIC, Form.RESPONSES]))
def test_a_sound_history_comes_back_as_it_is(made: list[Step], form: Form) -> None:
    given_messages = messages(made, form)
    sent = arrange(given_messages, close_end=True)
    assert sent.repairs == ()
    assert same_objects(sent.messages, given_messages)


# Named cases --------------------------------------------------------------------------


def test_a_late_result_moves_behind_its_call() -> None:
    sent = arranged(user(), call("c1"), user(), assistant(), result("c1"))
    assert outline(sent) == [
        *("user: said at 0", "assistant", "tool: c1 gave 4"),
        *("user: said at 2", "assistant: said at 3"),
    ]
    assert sent.repairs == (Repair(RepairRule.MOVED, 4, "c1"),)


def test_a_killed_tool_gets_an_interrupted_result() -> None:
    history = [user(), call("c1", "c2"), result("c1")]
    assert arranged(*history).repairs == ()
    sent = arranged(*history, user())
    assert outline(sent)[2:] == [
        *("tool: c1 gave 2", f"tool: {INTERRUPTED}", "user: said at 3")
    ]
    assert sent.repairs == (Repair(RepairRule.INTERRUPTED, 1, "c2"),)
    sent = arranged(*history, close_end=True, interrupted="stopped")
    assert outline(sent)[3:] == ["tool: stopped"]


def test_a_long_running_call_is_said_to_be_running() -> None:
    sent = arranged(user(), call("c1"), user(), long_running={"c1"})
    assert outline(sent)[2] == f"tool: {STILL_RUNNING}"
    sent = arranged(user(), call("c1"), result("c1"), user(), long_running={"c1"})
    assert sent.repairs == ()


def test_of_several_results_the_last_stands() -> None:
    sent = arranged(user(), call("c1"), result("c1"), result("c1"), assistant())
    assert outline(sent)[2:] == ["tool: c1 gave 3", "assistant: said at 4"]
    assert repaired(sent) == [("superseded", 2)]


def test_an_orphan_leaves() -> None:
    sent = arranged(user(), result("c1"), assistant())
    assert outline(sent) == ["user: said at 0", "assistant: said at 2"]
    assert repaired(sent) == [("orphan", 1)]


def test_what_stands_beside_an_orphan_stays() -> None:
    steps = [user(), assistant(), result("c1", also_says=True)]
    sent = arranged(*steps, form=Form.ANTHROPIC)
    assert outline(sent)[2] == "user: said at 2"
    assert repaired(sent) == [("orphan", 2)]


def test_an_instruction_between_call_and_result_goes_behind_them() -> None:
    sent = arranged(user(), call("c1"), system(), result("c1"), assistant())
    assert outline(sent)[2:4] == ["tool: c1 gave 3", "system: said at 2"]


def test_a_user_opens_the_conversation() -> None:
    sent = arranged(system(), assistant(), user())
    assert outline(sent)[:2] == ["system: said at 0", f"user: {OPENING}"]
    assert repaired(sent) == [("opening", 1)]
    assert arranged(system()).repairs == ()
    assert arranged(STATE).messages == ()


def test_the_assistant_is_told_to_go_on_to_its_own_calls() -> None:
    sent = arranged(user(), assistant(), call("c1"), result("c1"))
    assert outline(sent)[2] == f"user: {CONTINUED}"
    assert repaired(sent) == [("continued", 2)]
    sent = arranged(user(), THOUGHT, call("c1"), result("c1"))
    assert repaired(sent) == [("joined", 1)]
    sent = arranged(user(), assistant(), THOUGHT, call("c1"), result("c1"))
    assert repaired(sent) == [("joined", 2), ("continued", 3)]


@pytest.mark.parametrize("form", [form for form in Form if form not in NAMED])
def test_an_id_that_comes_back_is_made_another(form: Form) -> None:
    turn = [user(), call("c1"), result("c1"), assistant()]
    sent = arranged(*turn * 3, form=form)
    calls = [group.calls[0].id for group in find_groups(sent.messages).groups]
    assert calls == ["c1", "c1_2", "c1_3"]
    assert repaired(sent) == [("renamed", 5), ("renamed", 9)]
    assert violations_of_any(sent.messages) == []


def test_a_new_id_is_nobodys() -> None:
    sent = arranged(*[s for i in ("c1", "c1", "c1_2") for s in (call(i), result(i))])
    calls = [group.calls[0].id for group in find_groups(sent.messages).groups]
    assert calls == ["c1", "c1_2", "c1_2_2"]


def test_what_a_tool_says_beside_results_is_the_users() -> None:
    asked, mixed = messages([call("c1"), result("c1", also_says=True)], Form.GEMINI)
    assert asked is not None
    assert mixed is not None
    tool = ChatMessage.from_openai({**mixed.to_openai(), "role": "tool"})
    sent = arrange([*messages([user()]), asked, *messages([user()]), tool])
    assert [m.role.value for m in sent.messages[2:]] == ["tool", "user", "user"]


def test_a_new_id_is_no_longer_than_providers_take() -> None:
    ident = "c" * 40
    sent = arranged(*[user(), call(ident), result(ident)] * 2)
    assert find_groups(sent.messages).groups[1].calls[0].id == "c" * 38 + "_2"


@pytest.mark.parametrize("form", [form for form in Form if form is not Form.FUNCTION])
def test_a_placeholder_has_the_shape_of_its_call(form: Form) -> None:
    sent = arranged(user(), call("c1", "c2"), user(), form=form)
    (group,) = find_groups(sent.messages).groups
    (shape,) = {r.shape for made in group.calls for r in made.results}
    assert shape is group.calls[0].shape
    assert not group.open_calls
    assert repr(sent.messages[2].to_openai()).count(INTERRUPTED) in {1, 2}


def test_an_old_function_call_gets_a_function_message() -> None:
    sent = arranged(user(), call("f"), user(), form=Form.FUNCTION)
    assert sent.messages[2].to_openai() == {
        "role": "function",
        "name": "f",
        "content": INTERRUPTED,
    }


def test_gemini_gets_all_results_in_one_message() -> None:
    steps = [user(), call("c1", "c2"), result("c1"), result("c2"), assistant()]
    sent = arranged(*steps, form=Form.GEMINI)
    assert len(sent.messages) == 4
    assert repaired(sent) == [("moved", 3)]


def test_results_come_before_what_else_the_user_says() -> None:
    part = {"type": "tool_result", "tool_use_id": "c1", "content": "r"}
    text = {"type": "text", "text": "well"}
    asked = messages([user(), call("c1")], Form.ANTHROPIC)
    mixed = ChatMessage.from_openai(
        {"role": "user", "content": [text, part]}, id="m", metadata={"k": 1}
    )
    sent = arrange([*asked, mixed])
    assert [m.to_openai()["content"] for m in sent.messages[2:]] == [[part], [text]]
    assert [m.id for m in sent.messages[2:]] == [None, "m"]
    assert [m.metadata for m in sent.messages[2:]] == [{"k": 1}, {"k": 1}]


@pytest.mark.parametrize(
    "name", ["interrupted", "still_running", "opening", "continued"]
)
def test_a_placeholder_needs_text(name: str) -> None:
    with pytest.raises(ValueError, match="needs text"):
        arrange([], **{name: ""})  # type: ignore[arg-type]
