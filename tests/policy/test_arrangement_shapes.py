"""Results of several shapes, and turns in which nothing is said, in one request."""

from __future__ import annotations

from typing import Any

import pytest
from call_histories import Form, assistant, call, messages, user
from validity_inputs import violations_of_any

from raf_session.messages import ChatMessage
from raf_session.toolcalls import BLANK, INTERRUPTED, Repair, RepairRule, arrange

GEMINI_RESULT = {
    "functionResponse": {"id": "c2", "name": "f", "response": {"output": "two"}}
}
OTHER_RESULTS: list[tuple[Any, Any]] = [
    ({"role": "tool", "tool_call_id": "c1", "content": "one"}, {"output": "one"}),
    (
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text"}]},
        {"output": [{"type": "text"}]},
    ),
    (
        {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True},
        {"error": "no"},
    ),
    (
        {
            "toolResult": {
                "toolUseId": "c1",
                "content": [{"text": "no"}],
                "status": "error",
            }
        },
        {"error": [{"text": "no"}]},
    ),
    (
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"output": "one"},
    ),
]


@pytest.mark.parametrize("form", [Form.GEMINI, Form.GEMINI_SNAKE, Form.ANTHROPIC])
@pytest.mark.parametrize(("other", "response"), OTHER_RESULTS)
def test_beside_results_of_geminis_the_others_are_written_alike(
    form: Form, other: Any, response: Any
) -> None:
    asked = messages([user(), call("c1", "c2")], form)
    wires = [other if "role" in other else {"role": "user", "content": [other]}]
    wires.append({"role": "user", "content": [GEMINI_RESULT]})
    sent = arrange([*asked, *map(ChatMessage.from_openai, wires)])
    name = "function_response" if form is Form.GEMINI_SNAKE else "functionResponse"
    made = {name: {"id": "c1", "name": "f", "response": response}}
    assert sent.messages[2].to_openai()["content"] == [made, GEMINI_RESULT]
    assert sent.repairs == (Repair(RepairRule.RESHAPED, 2, "c1"),)
    assert violations_of_any(sent.messages) == []


def test_a_placeholder_beside_results_of_geminis_is_written_alike() -> None:
    asked = messages([user(), call("c1", "c2")], Form.OPENAI)
    given_result = ChatMessage.from_openai({"role": "user", "content": [GEMINI_RESULT]})
    sent = arrange([*asked, given_result], close_end=True)
    stands = {"output": INTERRUPTED}
    made = {"functionResponse": {"id": "c1", "name": "f", "response": stands}}
    assert sent.messages[2].to_openai()["content"] == [made, GEMINI_RESULT]
    assert violations_of_any(sent.messages) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"content": ""},
        {"content": None},
        {"content": []},
        {"content": " \n"},
        {"content": [{"type": "text", "text": ""}, {"type": "text", "text": " "}]},
        {"parts": [{"text": ""}]},
    ],
)
def test_a_user_who_says_nothing_has_a_placeholder(fields: dict[str, Any]) -> None:
    blank = ChatMessage.from_openai({"role": "user", **fields}, id="m")
    sent = arrange([blank, *messages([assistant()])])
    assert sent.messages[0].to_openai() == {"role": "user", "content": BLANK}
    assert sent.messages[0].id == "m"
    assert (sent.repairs[-1].rule, sent.repairs[-1].message_index) == ("blank", 0)
    assert violations_of_any(sent.messages) == []


def test_a_user_who_says_something_has_none() -> None:
    told_so: list[dict[str, Any]] = [
        {"content": [{"type": "image_url", "image_url": {"url": "u"}}]},
        {"content": None, "audio": {"id": "a"}},
        {"parts": [{"inlineData": {"data": "d"}}]},
    ]
    given_messages = [ChatMessage.from_openai({"role": "user", **f}) for f in told_so]
    assert arrange(given_messages).messages == tuple(given_messages)
