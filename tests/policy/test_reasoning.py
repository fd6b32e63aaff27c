"""Reasoning in messages of its own: joined with what it led to, in any shapes."""

from __future__ import annotations

from typing import Any

import pytest
from call_histories import STATE, THOUGHT, Form, assistant, call, message, user
from hypothesis import given
from hypothesis import strategies as st
from validity_inputs import Wire

from raf_session.messages import ChatMessage
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
NAMES = ("reasoning_content", "reasoning")

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
            {"content": "hi", "reasoning": ["b"]},
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
