"""Chat completions: documented requests are taken, known-bad ones refused."""

from __future__ import annotations

import pytest
from validity_inputs import (
    Refused,
    Wire,
    asks,
    assistant,
    broken,
    call,
    check_refused,
    function_call,
    function_response,
    gives,
    parts,
    sequence,
    system,
    text,
    thinks,
    tool,
    user,
    uses,
)

from raf_session.validity import Provider, Rule, openai_violations

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
OLD_CALL = {"name": "look", "arguments": "{}"}

TAKEN: dict[str, list[Wire]] = {
    "one user message": [user()],
    "a system message in front": [system(), user(), assistant(), user()],
    "only a system message": [system()],
    "system messages in the middle": [user(), system(), assistant(), system(), user()],
    "a developer message": [{"role": "developer", "content": "short"}, user()],
    "the assistant first": [assistant("Hello, I am here"), user()],
    "one call": [user(), asks("c1"), tool("c1"), assistant()],
    "a call beside content": [user(), asks("c1", content="wait"), tool("c1")],
    "a call beside an empty text": [user(), asks("c1", content=""), tool("c1")],
    "a call without the field content": [
        user(),
        {"role": "assistant", "tool_calls": [call("c1")]},
        tool("c1"),
    ],
    "parallel calls": [user(), asks("c1", "c2"), tool("c1"), tool("c2"), assistant()],
    "results in another order": [user(), asks("c1", "c2"), tool("c2"), tool("c1")],
    "calls one after the other": [
        user(),
        *(asks("c1"), tool("c1"), asks("c2"), tool("c2")),
        assistant(),
    ],
    "an id that comes back": [
        user(),
        *(asks("c1"), tool("c1"), assistant(), user(), asks("c1"), tool("c1")),
    ],
    "a text before calls": [user(), assistant(), asks("c1"), tool("c1")],
    "an image": [user([text("what is this"), IMAGE])],
    "an empty result": [user(), asks("c1"), tool("c1", "")],
    "a result in parts": [user(), asks("c1"), tool("c1", [text("done")])],
    "an empty answer": [user(), assistant(""), user()],
    "a refusal": [user(), {"role": "assistant", "content": None, "refusal": "no"}],
    "audio of the assistant": [
        user(),
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        user(),
    ],
    "a function call of the old kind": [
        user(),
        {"role": "assistant", "content": None, "function_call": OLD_CALL},
        {"role": "function", "name": "look", "content": "done"},
        assistant(),
    ],
    "a call of a custom tool": [
        user(),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "custom", "custom": {"name": "look", "input": "x"}}
            ],
        },
        tool("c1"),
    ],
    "an id of 40 characters": [user(), asks("c" * 40), tool("c" * 40)],
    "an id of two lines": [user(), asks("c\n1"), tool("c\n1")],
    "Anthropic's blocks": [
        user(),
        parts("assistant", thinks(), text("wait"), uses("t1"), uses("t2")),
        parts("user", gives("t2"), gives("t1"), text("and?")),
    ],
    "Gemini's parts": [
        user(),
        parts("assistant", function_call("a"), function_call("b")),
        parts("user", function_response("b"), function_response("a")),
        parts("assistant", {"text": "done"}),
    ],
    "calls in one shape and results in another": [
        user(),
        *(asks("c1", "c2"), parts("user", gives("c1"), gives("c2"))),
        *(parts("assistant", uses("c3")), tool("c3")),
    ],
    "a tool message that holds the result of another call too": [
        user(),
        *(asks("c1", "c2"), tool("c1", [gives("c2")])),
    ],
    "one call kept in both shapes": [
        user(),
        {
            "role": "assistant",
            "content": [text("wait"), uses("c1")],
            "tool_calls": [call("c1")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [gives("c1")]},
    ],
}

REFUSED: dict[str, Refused] = {
    "nothing": Refused([], [(Rule.EMPTY_REQUEST, None)]),
    "a call at the end": Refused([user(), asks("c1")], [(Rule.MISSING_RESULT, 1)]),
    "a call and then the user": Refused(
        [user(), asks("c1"), user()], [(Rule.MISSING_RESULT, 1)]
    ),
    "a call and then the assistant": Refused(
        [user(), asks("c1"), assistant(), user()], [(Rule.MISSING_RESULT, 1)]
    ),
    "one of two results": Refused(
        [user(), asks("c1", "c2"), tool("c2"), assistant()], [(Rule.MISSING_RESULT, 1)]
    ),
    "no result at all of two": Refused(
        [user(), asks("c1", "c2"), user()],
        [(Rule.MISSING_RESULT, 1), (Rule.MISSING_RESULT, 1)],
    ),
    "a result without a call": Refused(
        [user(), tool("c1"), assistant()], [(Rule.RESULT_WITHOUT_CALL, 1)]
    ),
    "a result first": Refused([tool("c1"), user()], [(Rule.RESULT_WITHOUT_CALL, 0)]),
    "the result of another call": Refused(
        [user(), asks("c1"), tool("c2"), assistant()],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_WITHOUT_CALL, 2)],
    ),
    "a result before its call": Refused(
        [user(), tool("c1"), asks("c1"), user()],
        [(Rule.RESULT_WITHOUT_CALL, 1), (Rule.MISSING_RESULT, 2)],
    ),
    "a result behind a later user message": Refused(
        [user(), asks("c1"), user(), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 3)],
    ),
    "a system message before the result": Refused(
        [user(), asks("c1"), system(), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 3)],
    ),
    "a user message between two results": Refused(
        [user(), asks("c1", "c2"), tool("c1"), user(), tool("c2")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 4)],
    ),
    "interleaved calls": Refused(
        [user(), asks("c1"), asks("c2"), tool("c1"), tool("c2")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 3)],
    ),
    "a result twice": Refused(
        [user(), asks("c1"), tool("c1"), tool("c1", "other")],
        [(Rule.DUPLICATE_RESULT, 3)],
    ),
    "a result again later": Refused(
        [user(), asks("c1"), tool("c1"), assistant(), tool("c1")],
        [(Rule.DUPLICATE_RESULT, 4)],
    ),
    "two calls of one id": Refused(
        [user(), asks("c1", "c1"), tool("c1"), assistant()],
        [(Rule.DUPLICATE_CALL_ID, 1)],
    ),
    "two calls and two results of one id": Refused(
        [user(), asks("c1", "c1"), tool("c1"), tool("c1")],
        [(Rule.DUPLICATE_CALL_ID, 1), (Rule.DUPLICATE_RESULT, 3)],
    ),
    "an empty id": Refused(
        [user(), asks(""), tool("")],
        [(Rule.EMPTY_CALL_ID, 1), (Rule.EMPTY_CALL_ID, 2)],
    ),
    "a result without an id": Refused(
        [user(), asks("c1"), {"role": "tool", "content": "done"}],
        [(Rule.MISSING_RESULT, 1), (Rule.EMPTY_CALL_ID, 2)],
    ),
    "an id that is no text": Refused(
        [user(), asks(7), tool(7)],
        [(Rule.EMPTY_CALL_ID, 1), (Rule.EMPTY_CALL_ID, 2)],
    ),
    "an id that is too long": Refused(
        [user(), asks("c" * 41), tool("c" * 41)], [(Rule.INVALID_CALL_ID, 1)]
    ),
    "a list of no calls": Refused(
        [user(), {"role": "assistant", "content": "well", "tool_calls": []}],
        [(Rule.EMPTY_CALLS, 1)],
    ),
    "calls that are no list": Refused(
        [user(), {"role": "assistant", "content": "well", "tool_calls": "c1"}],
        [(Rule.MALFORMED, 1)],
    ),
    "content that is no text": Refused([user(7)], [(Rule.MALFORMED, 0)]),
    "content that is a list of texts": Refused(
        [user(["hello"])], [(Rule.MALFORMED, 0)]
    ),
    "neither content nor calls": Refused(
        [user(), {"role": "assistant"}, user()], [(Rule.NO_CONTENT_OR_CALLS, 1)]
    ),
    "null and no calls": Refused(
        [user(), assistant(None), user()], [(Rule.NO_CONTENT_OR_CALLS, 1)]
    ),
    "nothing but reasoning": Refused(
        [user(), assistant([{"type": "reasoning", "text": "so"}])],
        [(Rule.NO_CONTENT_OR_CALLS, 1)],
    ),
    "nothing but a thought of Gemini's": Refused(
        [user(), parts("assistant", {"text": "so", "thought": True})],
        [(Rule.NO_CONTENT_OR_CALLS, 1)],
    ),
    "an empty user message before the result": Refused(
        [user(), asks("c1"), user(""), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 3)],
    ),
    "null of the user": Refused([user(None)], [(Rule.EMPTY_CONTENT, 0)]),
    "null of the system": Refused(
        [{"role": "system", "content": None}, user()], [(Rule.EMPTY_CONTENT, 0)]
    ),
    "no parts": Refused([user([])], [(Rule.EMPTY_CONTENT, 0)]),
    "a null result": Refused(
        [user(), asks("c1"), tool("c1", None)], [(Rule.EMPTY_CONTENT, 2)]
    ),
    "calls of the user": Refused(
        [{"role": "user", "content": "hello", "tool_calls": [call("c1")]}],
        [(Rule.WRONG_ROLE, 0)],
    ),
    "a call without a name": Refused(
        [
            user(),
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {}}]},
            tool("c1"),
        ],
        [(Rule.MISSING_NAME, 1)],
    ),
    "a call of no name": Refused(
        [user(), parts("assistant", uses("c1", name="")), tool("c1")],
        [(Rule.MISSING_NAME, 1)],
    ),
    "a function message without a name": Refused(
        [user(), {"role": "function", "content": "done"}], [(Rule.MISSING_NAME, 1)]
    ),
    "an answer of the assistant itself": Refused(
        [user(), parts("assistant", uses("t1"), gives("t1")), user()],
        [(Rule.WRONG_ROLE, 1), (Rule.MISSING_RESULT, 1)],
    ),
    "words before Anthropic's result": Refused(
        [user(), parts("assistant", uses("t1")), parts("user", text("a"), gives("t1"))],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 2)],
    ),
    "a response of Gemini's too many": Refused(
        [
            user(),
            parts("assistant", function_call()),
            parts("user", function_response(), function_response()),
        ],
        [(Rule.RESULT_WITHOUT_CALL, 2)],
    ),
    "pending calls that the user talks over": Refused(
        [user(), asks("c1"), user()], [(Rule.MISSING_RESULT, 1)], pending=True
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_documents_show_is_taken(name: str) -> None:
    assert openai_violations(sequence(TAKEN[name])) == ()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_known_to_be_refused_is_refused(name: str) -> None:
    check_refused(openai_violations, Provider.OPENAI, REFUSED[name])


@pytest.mark.parametrize(
    "messages",
    [
        [user(), asks("c1")],
        [user(), asks("c1", "c2"), tool("c2")],
        [user(), parts("assistant", uses("t1"))],
    ],
)
def test_pending_calls_may_end_a_sequence(messages: list[Wire]) -> None:
    assert openai_violations(sequence(messages), pending=True) == ()
    assert broken(openai_violations(sequence(messages))) == [(Rule.MISSING_RESULT, 1)]


def test_a_reason_names_the_call() -> None:
    (violation,) = openai_violations(sequence([user(), asks("call {7}"), user()]))
    assert violation.reason == (
        "messages[1] asks for call 'call {7}', and no tool message directly behind it "
        "responds"
    )
