"""Reasoning in messages of its own: joined with what it led to, in any shapes."""

from __future__ import annotations

from typing import Any

import pytest
from call_histories import STATE, THOUGHT, Form, assistant, call, message, result, user
from hypothesis import given
from hypothesis import strategies as st
from validity_inputs import Wire

from raf_session.history import (
    SUMMARY_TYPE,
    HistoryPolicy,
    HistoryRule,
    HistoryWindow,
    select_history,
)
from raf_session.messages import ChatMessage, MessageRole
from raf_session.tokens import EstimatingTokenCounter
from raf_session.toolcalls import Repair, RepairRule, arrange
from raf_session.toolcalls.reasoning import is_silent, with_thoughts
from raf_session.validity import (
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

VALIDATORS = (openai_violations, anthropic_violations, gemini_violations)
THINKING = {"type": "thinking", "thinking": "so", "signature": "s"}
OF_GEMINI = {"text": "so", "thought": True}
REASONING = {"type": "reasoning", "text": "so"}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
CALLS = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]
GEMINI_CALL = {"functionCall": {"name": "f"}}

FORMS = st.sampled_from(Form)
NEXT = st.sampled_from([assistant(), call("c1")])


def said(**fields: Any) -> ChatMessage:
    return ChatMessage.from_openai({"role": "assistant", **fields})


def joined(*messages: ChatMessage) -> Wire:
    *thoughts, led_to = messages
    return with_thoughts(thoughts, led_to).to_openai()


@given(st.lists(FORMS, max_size=3), FORMS, NEXT, st.booleans())
def test_a_thought_in_any_form_is_sent_in_what_it_led_to(
    thoughts: list[Form], form: Form, step: Any, state: bool
) -> None:
    thinking = [message(THOUGHT, n + 1, f) for n, f in enumerate(thoughts)]
    between = [message(STATE, 0, form)] if state else []
    spoken = message(step, 9, form)
    history = [message(user(), 0, form), *thinking, *between, spoken]
    sent = arrange(history, close_end=True)
    assert not any(check(sent.messages) for check in VALIDATORS)
    wire = repr(sent.messages[1].to_openai())
    assert all(f"said at {n + 1}" in wire for n in range(len(thoughts)))
    assert spoken is not None
    assert sent.messages[1].id == spoken.id
    rules = [repair for repair in sent.repairs if repair.rule is RepairRule.JOINED]
    assert rules == [Repair(RepairRule.JOINED, n + 1) for n in range(len(thoughts))]


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        (
            [said(content=[THINKING]), said(content="hi")],
            {"content": [THINKING, {"type": "text", "text": "hi"}]},
        ),
        (
            [said(content=[REASONING]), said(content=[ITEM]), said(tool_calls=CALLS)],
            {"content": [REASONING, ITEM], "tool_calls": CALLS},
        ),
        (
            [said(content=None, **ITEM), said(content="hi")],
            {"content": [ITEM, {"type": "text", "text": "hi"}]},
        ),
        (
            [
                said(parts=[OF_GEMINI]),
                said(parts=[{"functionCall": {"name": "f"}}]),
            ],
            {"parts": [OF_GEMINI, {"functionCall": {"name": "f"}}]},
        ),
        (
            [
                said(content=None, reasoning_content="a"),
                said(content=None, reasoning_content="b"),
                said(content="hi", reasoning_content="c"),
            ],
            {"content": "hi", "reasoning_content": "a\n\nb\n\nc"},
        ),
        (
            [
                said(content="", reasoning_details=[{"text": "a"}]),
                said(content="hi", reasoning_details=[{"text": "b"}]),
            ],
            {"content": "hi", "reasoning_details": [{"text": "a"}, {"text": "b"}]},
        ),
        (
            [said(content=None, reasoning="a"), said(content="hi", reasoning=["b"])],
            {
                "content": [
                    {"type": "reasoning", "reasoning": "a"},
                    {"type": "text", "text": "hi"},
                ],
                "reasoning": ["b"],
            },
        ),
        (
            [said(content=[THINKING]), said(content="hi", parts=[GEMINI_CALL])],
            {"content": "hi", "parts": [THINKING, GEMINI_CALL]},
        ),
        (
            [
                said(content=[], parts=[OF_GEMINI]),
                said(content=[], parts=[GEMINI_CALL]),
            ],
            {"content": [], "parts": [OF_GEMINI, GEMINI_CALL]},
        ),
        (
            [said(content=None, thinking="so"), said(content="hi")],
            {"content": "hi", "thinking": "so"},
        ),
        (
            [said(content=None, reasoning={"a": 1}), said(content="hi")],
            {"content": "hi", "reasoning": {"a": 1}},
        ),
        (
            [said(content=[THINKING, {"type": "text", "text": " "}]), said(content="")],
            {"content": [THINKING]},
        ),
    ],
)
def test_parts_stand_in_front_and_fields_are_put_together(
    messages: list[ChatMessage], sent: Wire
) -> None:
    assert joined(*messages) == {"role": "assistant", **sent}


def test_what_is_ours_of_the_message_stays() -> None:
    spoken = ChatMessage.from_openai(
        {"role": "assistant", "content": "hi", "name": "n"}, id="m", metadata={"k": 1}
    )
    found = with_thoughts([said(content=[THINKING])], spoken)
    assert (found.id, found.metadata, found.name) == ("m", {"k": 1}, "n")
    assert with_thoughts([said(content="")], spoken) is spoken


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None},
        {"content": " \n"},
        {"content": []},
        {"content": None, "tool_calls": []},
        {"content": [THINKING]},
        {"content": [{"type": "redacted_thinking", "data": "d"}, REASONING]},
        {"content": None, **ITEM},
        {"content": None, "reasoning_content": "so"},
        {"content": None, "parts": [{"text": "so", "thought": True}]},
        {"content": None, "parts": [{"text": " "}]},
        {"content": None, "parts": [{"text": "", "thoughtSignature": "s"}]},
        {"content": None, "audio": None, "function_call": None},
        {"content": [{"reasoningContent": {"reasoningText": {"text": "so"}}}]},
        {"content": "", "thinking_blocks": [THINKING]},
        {"content": [], "type": "message", "id": "msg_1", "status": "incomplete"},
        {"content": [THINKING], "parts": [OF_GEMINI]},
    ],
)
def test_the_assistant_is_silent(fields: Wire) -> None:
    assert is_silent(said(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "hi", "reasoning_content": "so"},
        {"content": None, "tool_calls": CALLS},
        {"content": None, "refusal": "no"},
        {"content": None, "audio": {"id": "a"}},
        {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"content": [THINKING, {"type": "text", "text": "hi"}]},
        {"content": [{"type": "image_url", "image_url": {"url": "u"}}]},
        {"content": [{"type": "server_tool_use", "id": "s"}]},
        {"content": None, "parts": [{"functionCall": {"name": "f"}}]},
        {"content": None, "parts": [{"text": "hi", "thoughtSignature": "s"}]},
        {"content": 7},
        {"content": "", "images": [{"type": "image_url"}]},
        {"content": None, "type": "function_call", "call_id": "c", "name": "f"},
        {"content": None, "type": "web_search_call", "id": "ws_1"},
        {"content": [], "parts": [{"functionCall": {"name": "f"}}]},
        {"content": [THINKING], "parts": [{"text": "hi"}]},
        {"content": [{"thought": True, "functionCall": {"name": "f"}}]},
    ],
)
def test_the_assistant_says_something(fields: Wire) -> None:
    assert not is_silent(said(**fields))


def test_nobody_else_is_silent() -> None:
    assert not is_silent(ChatMessage.user(""))
    assert not is_silent(ChatMessage.tool("", "c"))


@pytest.mark.parametrize(
    "behind", [[], [ChatMessage.user("and?")], [ChatMessage.system("be brief")]]
)
def test_a_thought_that_led_to_nothing_leaves_by_name(
    behind: list[ChatMessage],
) -> None:
    asked = ChatMessage.user("hi")
    sent = arrange([asked, said(content=[THINKING]), said(content=""), *behind])
    assert sent.messages == (asked, *behind)
    assert sent.repairs == (
        Repair(RepairRule.SILENT, 1),
        Repair(RepairRule.SILENT, 2),
    )


RESULT = ChatMessage.tool("found", "c")
ORPHAN = ChatMessage.tool("late", "x")
ASKED = ChatMessage.user("hi")


@pytest.mark.parametrize("form", [f for f in Form if f is not Form.FUNCTION])
def test_results_do_not_part_a_thought_from_what_it_led_to(form: Form) -> None:
    steps = [user(), call("c1"), THOUGHT, result("c1"), result("c9"), assistant()]
    history = [message(step, index, form) for index, step in enumerate(steps)]
    seen = select_history(history, HistoryPolicy(), EstimatingTokenCounter())
    assert seen.messages == arrange(history).messages
    assert "said at 2" in repr(seen.messages[-1].to_openai())
    assert seen.kept == (0, 1, 2, 3, 5)


@pytest.mark.parametrize("text", ["", "hm"])
def test_a_signature_stays_a_part_and_a_typed_text_stays_a_text(text: str) -> None:
    signed = said(content=[{"type": "text", "text": text, "thought_signature": "s"}])
    sent = arrange([ASKED, signed, said(content="well")])
    assert not any(check(sent.messages) for check in VALIDATORS)
    assert len(sent.messages) == (3 if text else 2)


@pytest.mark.parametrize(
    ("behind", "rules"),
    [
        ([], ["silent"]),
        ([ChatMessage.user("and?")], ["silent"]),
        ([said(content="more")], ["joined"]),
        ([said(tool_calls=CALLS), RESULT], ["joined", "continued"]),
    ],
)
def test_reasoning_at_the_end_of_a_message_goes_to_the_next(
    behind: list[ChatMessage], rules: list[str]
) -> None:
    first = said(content=[{"type": "text", "text": "hi"}, THINKING])
    sent = arrange([ASKED, first, *behind])
    assert not any(check(sent.messages) for check in VALIDATORS)
    assert sent.messages[1].to_openai()["content"] == [{"type": "text", "text": "hi"}]
    assert [repair.rule.value for repair in sent.repairs] == rules
    contents = [m.to_openai()["content"] for m in sent.messages[2:]]
    found = [c for c in contents if isinstance(c, list) and THINKING in c]
    assert len(found) == ("joined" in rules)
    assert arrange(sent.messages).repairs == ()


def test_reasoning_behind_a_call_goes_to_what_comes_behind_the_result() -> None:
    use = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    found = {"type": "tool_result", "tool_use_id": "c", "content": "found"}
    results = ChatMessage.from_openai({"role": "user", "content": [found]})
    sent = arrange([ASKED, said(content=[use, THINKING]), results, said(content="so")])
    assert not any(check(sent.messages) for check in VALIDATORS)
    assert sent.messages[3].to_openai()["content"][0] == THINKING


@pytest.mark.parametrize(
    "spoken",
    [
        {"content": "hi", "tool_calls": []},
        {"content": [{"type": "text", "text": ""}, {"type": "text", "text": "hi"}]},
        {"content": [{"text": ""}, {"text": "hi"}]},
        {"content": [{"type": "text", "text": ""}], "refusal": "no"},
        {
            "content": [
                {"type": "refusal", "refusal": ""},
                {"type": "text", "text": "a"},
            ]
        },
    ],
)
def test_what_is_empty_beside_what_is_said_leaves(spoken: Wire) -> None:
    sent = arrange([ASKED, said(**spoken)])
    assert not any(check(sent.messages) for check in VALIDATORS)
    assert sent.repairs == (Repair(RepairRule.EMPTY, 1),)
    assert arrange(sent.messages).repairs == ()


def test_a_summary_of_the_assistants_is_led_to_by_nothing() -> None:
    summary = ChatMessage(
        role=MessageRole.ASSISTANT, content="so far", metadata={"type": SUMMARY_TYPE}
    )
    history = [said(content=[THINKING]), summary, ASKED]
    seen = select_history(history, HistoryPolicy(), EstimatingTokenCounter())
    assert dict(seen.dropped) == {0: HistoryRule.ORPHAN}
    assert [m.text for m in seen.messages] == ["so far", "hi"]


def test_thinking_that_no_one_signs_is_not_anthropics() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}
    sent = arrange([ASKED, said(content=[thinking, {"type": "text", "text": "hi"}])])
    assert not any(check(sent.messages) for check in VALIDATORS)


@pytest.mark.parametrize("container", ["content", "parts"])
def test_what_stands_beside_calls_and_is_refused_leaves(container: str) -> None:
    empty = said(content=[{"type": "text", "text": ""}], tool_calls=CALLS)
    ending = said(**{container: [{"text": "hi"}, OF_GEMINI, THINKING]})
    sent = arrange([ASKED, empty, RESULT, ending, ASKED])
    assert not any(check(sent.messages) for check in VALIDATORS)
    assert sent.messages[1].content is None
    assert sent.messages[3].to_openai()[container] == [{"text": "hi"}]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thinking", "thinking": "so"},
        {"type": "thinking", "thinking": "so", "signature": ""},
        {"type": "thinking", "thinking": "so", "signature": None},
        {"type": "redacted_thinking"},
    ],
)
def test_thinking_of_anthropics_that_is_not_signed_leaves_by_name(part: Wire) -> None:
    text = {"type": "text", "text": "hi"}
    sent = arrange([ASKED, said(content=[part]), said(content=[part, text])])
    assert [m.to_openai()["content"] for m in sent.messages] == ["hi", [text]]
    rules = [(repair.rule.value, repair.message_index) for repair in sent.repairs]
    assert rules == [("unsigned", 1), ("silent", 1), ("unsigned", 2)]
    assert not any(check(sent.messages) for check in VALIDATORS)


def test_a_view_names_what_left_a_message_and_shows_the_same_object_again() -> None:
    thinking = {"type": "thinking", "thinking": "so"}
    text = {"type": "text", "text": "hi"}
    window = HistoryWindow(HistoryPolicy(), EstimatingTokenCounter())
    window.extend([ASKED, said(content=[thinking, text], tool_calls=[])])
    one, other = window.view(), window.view()
    rules = [Repair(RepairRule.EMPTY, 1), Repair(RepairRule.UNSIGNED, 1)]
    assert one.repairs == tuple(rules)
    assert one.messages[1].to_openai()["content"] == [text]
    assert one.messages[1] is other.messages[1]
