"""Which results belong to which calls, in any shape and any order."""

from __future__ import annotations

from typing import Any

import pytest
from call_histories import (
    NAMED,
    THOUGHT,
    Form,
    History,
    Step,
    assistant,
    call,
    histories,
    linked,
    links,
    messages,
    result,
    steps,
    user,
)
from hypothesis import given
from hypothesis import strategies as st

from raf_session.messages import ChatMessage
from raf_session.toolcalls import (
    CallGroups,
    CallShape,
    calls_in,
    find_groups,
    is_user_turn,
    results_in,
)


def ask(*ids: str) -> ChatMessage:
    message = messages([call(*ids)])[0]
    assert message is not None
    return message


def openai(wire: dict[str, Any]) -> ChatMessage:
    return ChatMessage.from_openai(wire)


def found(groups: CallGroups) -> set[tuple[int, str | None, int | None, bool]]:
    """Return each result, by message and id or name, with its call and if interim."""
    matched = {
        (r.message_index, r.id or r.name, group.message_index, r.interim)
        for group in groups.groups
        for made in group.calls
        for r in made.results
    }
    return matched | {
        (r.message_index, r.id or r.name, None, False) for r in groups.orphans
    }


# Any history ----------------------------------------------------------------------


@given(histories())
def test_every_result_belongs_to_the_nearest_open_call_or_to_none(
    history: History,
) -> None:
    groups = find_groups(history.messages, history.long_running)
    expected = {tuple(link) for link in links(history)}
    assert {(i, ident, c, n) for i, ident, c, n in found(groups)} == expected


@given(histories())
def test_a_call_is_closed_by_a_final_result_only(history: History) -> None:
    closed = {(link.call, link.ident) for link in links(history) if not link.interim}
    for group in find_groups(history.messages, history.long_running).groups:
        assert [made.id or made.name for made in group.calls] == [
            *history.steps[group.message_index].ids[: len(group.calls)]
        ]
        for made in group.calls:
            assert made.is_open == (
                (group.message_index, made.id or made.name) not in closed
            )
            assert (made in group.open_calls) == made.is_open


@given(histories())
def test_bundles_are_disjoint_and_hold_whole_groups(history: History) -> None:
    groups = find_groups(history.messages, history.long_running)
    bundles = groups.bundles()
    members = [index for bundle in bundles for index in bundle]
    assert len(members) == len(set(members))
    assert [b[0] for b in bundles] == sorted(b[0] for b in bundles)
    tied = [{group.message_index, *group.results} for group in groups.groups]
    tied += linked(history)
    for bundle in bundles:
        assert bundle == tuple(sorted(bundle))
        inside = [group for group in tied if group <= {*bundle}]
        assert set().union(*inside) == {*bundle}
        for group in inside[1:]:
            assert any(group & other for other in inside if other is not group)
    assert all(any(group <= {*bundle} for bundle in bundles) for group in tied)


@given(steps(Form.OPENAI), st.sampled_from(sorted({*Form} - NAMED, key=str)))
def test_the_shape_changes_nothing(given_steps: list[Step], form: Form) -> None:
    written = find_groups(messages(given_steps, form))
    assert found(written) == found(find_groups(messages(given_steps)))


@given(histories())
def test_a_users_turn_is_of_a_user_and_carries_no_results(history: History) -> None:
    for step, message in zip(history.steps, history.messages, strict=True):
        assert is_user_turn(message) == (step.kind == "user")


@given(histories())
def test_groups_are_the_same_among_messages_of_other_groups_taken_away(
    history: History,
) -> None:
    whole = find_groups(history.messages)
    bundles = whole.bundles()
    gone = {index for bundle in bundles[::2] for index in bundle}
    kept = [i for i in range(len(history.steps)) if i not in gone]
    part = find_groups([history.messages[i] for i in kept])
    places = {
        (kept[group.message_index], tuple(kept[i] for i in group.results))
        for group in part.groups
    }
    assert places == {
        (group.message_index, group.results)
        for group in whole.groups
        if group.message_index not in gone
    }


# Named cases ----------------------------------------------------------------------


def test_parallel_calls_take_interleaved_results() -> None:
    history = messages(
        [user(), call("c1"), call("c2", "c3"), result("c2"), result("c1"), result("c3")]
    )
    first, second = find_groups(history).groups
    assert (first.message_index, first.results) == (1, (4,))
    assert (second.message_index, second.results) == (2, (3, 5))
    assert find_groups(history).bundles() == ((1, 4), (2, 3, 5))


def test_a_message_with_results_of_two_groups_makes_one_bundle() -> None:
    steps_ = [call("c1"), call("c2"), user(), result("c1", "c2")]
    groups = find_groups(messages(steps_, Form.ANTHROPIC))
    assert len(groups.groups) == 2
    assert groups.bundles() == ((0, 1, 3),)


def test_reasoning_and_what_it_led_to_are_one_bundle() -> None:
    steps_ = [user(), THOUGHT, assistant(), THOUGHT, call("c1"), result("c1"), THOUGHT]
    groups = find_groups(messages([*steps_, user()]))
    assert groups.bundles() == ((1, 2), (3, 4, 5))


def test_an_id_that_comes_back_each_turn_is_another_call() -> None:
    turn = [user(), call("c0"), result("c0"), assistant()]
    groups = find_groups(messages(turn * 3)).groups
    assert [(g.message_index, g.results) for g in groups] == [
        (1, (2,)),
        (5, (6,)),
        (9, (10,)),
    ]


def test_a_second_result_belongs_to_the_call_that_has_one() -> None:
    history = messages([user(), call("c0"), result("c0"), assistant(), result("c0")])
    (group,) = find_groups(history).groups
    assert group.results == (2, 4)
    assert not group.open_calls


def test_the_first_result_of_a_long_running_call_is_interim() -> None:
    steps_ = [user(), call("c1"), result("c1"), user(), assistant()]
    (group,) = find_groups(messages(steps_), {"c1"}).groups
    assert [r.message_index for r in group.interim_results] == [2]
    assert [made.id for made in group.open_calls] == ["c1"]
    (group,) = find_groups(messages([*steps_, result("c1")]), {"c1"}).groups
    assert group.results == (2, 5)
    assert not group.open_calls


def test_an_answer_that_comes_late_closes_a_long_running_call() -> None:
    steps_ = [user(), call("c1"), user(), assistant(), result("c1")]
    (group,) = find_groups(messages(steps_), {"c1"}).groups
    assert not group.interim_results
    assert not group.open_calls


def test_gemini_says_itself_that_a_result_is_interim() -> None:
    def response(**more: Any) -> ChatMessage:
        part = {"functionResponse": {"id": "c1", "name": "f", "response": {}, **more}}
        return openai({"role": "user", "content": [part]})

    asked = messages([call("c1")], Form.GEMINI)
    going_on = [*asked, response(willContinue=True), response(willContinue=True)]
    (group,) = find_groups(going_on).groups
    assert [r.message_index for r in group.interim_results] == [1, 2]
    assert group.calls[0].long_running
    (group,) = find_groups([*going_on, response()]).groups
    assert not group.open_calls


def test_calls_of_one_name_are_answered_in_order() -> None:
    part = {"functionCall": {"name": "f", "args": {}}}
    answer = {"functionResponse": {"name": "f", "response": {}}}
    asked = openai({"role": "assistant", "content": [part, part]})
    one = openai({"role": "user", "content": [answer]})
    (group,) = find_groups([asked, one, one]).groups
    assert [[r.message_index for r in made.results] for made in group.calls] == [
        [1],
        [2],
    ]
    (group,) = find_groups([asked, one]).groups
    assert [made.number for made in group.open_calls] == [1]


def test_a_call_in_two_shapes_is_one_call() -> None:
    asked = openai(
        {
            **ask("c1").to_openai(),
            "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}],
        }
    )
    assert [mark.shape for mark in calls_in(asked)] == [CallShape.OPENAI]


@pytest.mark.parametrize(
    "wire",
    [
        {"role": "user", "content": [{"type": "text", "text": "functionCall"}]},
        {"role": "user", "content": [{"type": "tool_use", "id": "c", "name": "f"}]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s"}]},
        {"role": "assistant", "content": [{"function_call": None, "text": "x"}]},
        {"role": "assistant", "content": [{"type": "web_search_call", "id": "w"}]},
        {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
        {"role": "system", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
        {"role": "assistant", "content": "x", "tool_calls": []},
    ],
)
def test_what_is_neither_call_nor_result(wire: dict[str, Any]) -> None:
    message = openai(wire)
    assert not calls_in(message)
    assert not results_in(message)


def test_a_tool_message_may_carry_parts_instead_of_an_id() -> None:
    part = {"functionResponse": {"id": "c1", "name": "f", "response": {}}}
    for role in ("function", "tool"):
        (mark,) = results_in(openai({"role": role, "content": [part]}))
        assert (mark.id, mark.part) == ("c1", 0)


def test_a_result_that_names_nothing_is_an_orphan() -> None:
    history = [ask("c1"), openai({"role": "tool", "content": "x"})]
    assert [r.message_index for r in find_groups(history).orphans] == [1]


def test_many_events_are_read_in_little_time() -> None:
    turn = messages([user(), call("c0", "c1"), result("c1"), result("c0"), assistant()])
    groups = find_groups(turn * 4000)
    assert len(groups.groups) == 4000
    assert len(groups.bundles()) == 4000
