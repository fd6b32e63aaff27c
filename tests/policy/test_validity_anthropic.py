"""The Messages API: documented requests are taken, known-bad ones refused."""

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

from raf_session.validity import Provider, Rule, anthropic_violations

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a"}}
SERVER_CALL = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "x"},
}
SERVER_RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [],
}

TAKEN: dict[str, list[Wire]] = {
    "one user message": [user()],
    "a system message in front": [system(), user(), assistant(), user()],
    "system messages in the middle": [user(), system(), assistant(), system(), user()],
    "a system message before the result": [user(), asks("c1"), system(), tool("c1")],
    "turns of one role behind one another": [user(), user(), assistant(), assistant()],
    "an answer begun for the assistant": [user(), assistant("The answer is (")],
    "an empty final answer": [user(), assistant("")],
    "an image": [parts("user", IMAGE, text("what is this"))],
    "tool use": [
        user(),
        parts("assistant", text("I look"), uses("toolu_1")),
        parts("user", gives("toolu_1")),
        assistant(),
    ],
    "parallel tool use": [
        user(),
        parts("assistant", uses("toolu_1"), uses("toolu_2")),
        parts("user", gives("toolu_2"), gives("toolu_1")),
    ],
    "words behind the results": [
        user(),
        parts("assistant", uses("toolu_1")),
        parts("user", gives("toolu_1"), text("what now?")),
    ],
    "a user message behind the results": [user(), asks("c1"), tool("c1"), user()],
    "a result without content": [
        user(),
        parts("assistant", uses("toolu_1")),
        parts("user", {"type": "tool_result", "tool_use_id": "toolu_1"}),
    ],
    "a call beside an empty text": [user(), asks("c1", content=""), tool("c1", "")],
    "thinking before tool use": [
        user(),
        parts("assistant", thinks(), text("I look"), uses("toolu_1")),
        parts("user", gives("toolu_1")),
        assistant(),
    ],
    "thinking between calls": [
        user(),
        parts("assistant", thinks(), uses("toolu_1")),
        parts("user", gives("toolu_1")),
        parts("assistant", thinks(), text("well"), uses("toolu_2")),
        parts("user", gives("toolu_2")),
    ],
    "redacted thinking": [
        user(),
        parts("assistant", {"type": "redacted_thinking", "data": "x"}, text("well")),
    ],
    "a tool of the server": [
        user(),
        parts("assistant", SERVER_CALL, SERVER_RESULT, text("found")),
        user(),
    ],
    "a tool of an MCP server": [
        user(),
        parts(
            "assistant",
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look"},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1"},
        ),
    ],
    "whitespace before the final block": [
        user(),
        parts("assistant", text("I look "), SERVER_CALL, SERVER_RESULT),
    ],
    "a blank text beside another": [parts("user", text("hello"), text(" "))],
    "whitespace at the end of an earlier answer": [user(), assistant("well "), user()],
    "OpenAI's tool messages": [
        user(),
        *(asks("c1", "c2"), tool("c2"), tool("c1"), assistant()),
    ],
    "Gemini's parts": [
        user(),
        parts("assistant", {"text": "I look"}, function_call("a", id="f1")),
        parts("user", function_response("a", id="f1")),
    ],
    "one call kept in both shapes": [
        user(),
        {
            "role": "assistant",
            "content": [text("wait"), uses("toolu_1")],
            "tool_calls": [call("toolu_1")],
        },
        tool("toolu_1"),
    ],
}

REFUSED: dict[str, Refused] = {
    "nothing": Refused([], [(Rule.EMPTY_REQUEST, None)]),
    "only a system message": Refused([system()], [(Rule.EMPTY_REQUEST, None)]),
    "the assistant first": Refused(
        [system(), assistant(), user()], [(Rule.FIRST_NOT_USER, 1)]
    ),
    "a call first": Refused(
        [asks("c1"), tool("c1"), user()], [(Rule.FIRST_NOT_USER, 0)]
    ),
    "a call at the end": Refused([user(), asks("c1")], [(Rule.MISSING_RESULT, 1)]),
    "a call and then the user": Refused(
        [user(), asks("c1"), user()], [(Rule.MISSING_RESULT, 1)]
    ),
    "one of two results": Refused(
        [
            user(),
            parts("assistant", uses("toolu_1"), uses("toolu_2")),
            parts("user", gives("toolu_2")),
        ],
        [(Rule.MISSING_RESULT, 1)],
    ),
    "a result without a call": Refused(
        [parts("user", gives("toolu_1"))], [(Rule.RESULT_WITHOUT_CALL, 0)]
    ),
    "the result of another call": Refused(
        [user(), asks("c1"), tool("c2")],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_WITHOUT_CALL, 2)],
    ),
    "a result behind a later answer": Refused(
        [user(), asks("c1"), user(), assistant(), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 4)],
    ),
    "a result behind words of the user": Refused(
        [user(), asks("c1"), user(), tool("c1")], [(Rule.RESULT_NOT_FIRST, 3)]
    ),
    "words before the result": Refused(
        [
            user(),
            parts("assistant", uses("toolu_1")),
            parts("user", text("here"), gives("toolu_1")),
        ],
        [(Rule.RESULT_NOT_FIRST, 2)],
    ),
    "words between results": Refused(
        [user(), asks("c1", "c2"), tool("c1"), user(), tool("c2")],
        [(Rule.RESULT_NOT_FIRST, 4)],
    ),
    "a result twice": Refused(
        [user(), asks("c1"), tool("c1"), tool("c1")], [(Rule.DUPLICATE_RESULT, 3)]
    ),
    "a result again later": Refused(
        [user(), asks("c1"), tool("c1"), assistant(), tool("c1")],
        [(Rule.DUPLICATE_RESULT, 4)],
    ),
    "two calls of one id": Refused(
        [user(), parts("assistant", uses("a"), uses("a")), parts("user", gives("a"))],
        [(Rule.DUPLICATE_CALL_ID, 1)],
    ),
    "an id that comes back": Refused(
        [user(), asks("c1"), tool("c1"), asks("c1"), tool("c1")],
        [(Rule.REPEATED_CALL_ID, 3)],
    ),
    "an empty id": Refused(
        [user(), parts("assistant", uses("")), parts("user", gives(""))],
        [(Rule.EMPTY_CALL_ID, 1), (Rule.EMPTY_CALL_ID, 2)],
    ),
    "an id of other characters": Refused(
        [user(), asks("functions.look:0"), tool("functions.look:0")],
        [(Rule.INVALID_CALL_ID, 1)],
    ),
    "a call without a name": Refused(
        [
            user(),
            parts("assistant", {"type": "tool_use", "id": "a", "input": {}}),
            parts("user", gives("a")),
        ],
        [(Rule.MISSING_NAME, 1)],
    ),
    "tool use of the user": Refused(
        [parts("user", uses("toolu_1"))], [(Rule.WRONG_ROLE, 0)]
    ),
    "an answer of the assistant itself": Refused(
        [user(), parts("assistant", uses("a"), gives("a")), user()],
        [(Rule.WRONG_ROLE, 1), (Rule.MISSING_RESULT, 1)],
    ),
    "thinking of the user": Refused(
        [parts("user", thinks(), text("hello"))], [(Rule.WRONG_ROLE, 0)]
    ),
    "an empty user message": Refused([user("")], [(Rule.EMPTY_CONTENT, 0)]),
    "a user message of null": Refused([user(None)], [(Rule.EMPTY_CONTENT, 0)]),
    "no blocks": Refused([user(), assistant(), user([])], [(Rule.EMPTY_CONTENT, 2)]),
    "an empty answer in the middle": Refused(
        [user(), assistant(""), user()], [(Rule.EMPTY_CONTENT, 1)]
    ),
    "an answer of foreign reasoning": Refused(
        [user(), assistant([{"type": "reasoning", "text": "so"}]), user()],
        [(Rule.EMPTY_CONTENT, 1)],
    ),
    "an empty text block": Refused([parts("user", text(""))], [(Rule.EMPTY_TEXT, 0)]),
    "an empty text block beside a call": Refused(
        [user(), parts("assistant", text(""), uses("a")), parts("user", gives("a"))],
        [(Rule.EMPTY_TEXT, 1)],
    ),
    "a blank user message": Refused([user("\n")], [(Rule.BLANK_TEXT, 0)]),
    "a blank answer": Refused([user(), assistant(" "), user()], [(Rule.BLANK_TEXT, 1)]),
    "a blank refusal": Refused(
        [user(), assistant([{"type": "refusal", "refusal": " "}]), user()],
        [(Rule.BLANK_TEXT, 1)],
    ),
    "whitespace at the end": Refused(
        [user(), assistant("The answer is ")], [(Rule.TRAILING_WHITESPACE, 1)]
    ),
    "thinking at the end of a turn": Refused(
        [user(), parts("assistant", text("well"), thinks()), user()],
        [(Rule.THINKING_AT_END, 1)],
    ),
    "nothing but thinking at the end": Refused(
        [user(), parts("assistant", thinks())], [(Rule.THINKING_AT_END, 1)]
    ),
    "thinking without its signature": Refused(
        [user(), parts("assistant", thinks(signature=""), text("well")), user()],
        [(Rule.UNSIGNED_THINKING, 1)],
    ),
    "redacted thinking without its data": Refused(
        [user(), parts("assistant", {"type": "redacted_thinking"}, text("well"))],
        [(Rule.UNSIGNED_THINKING, 1)],
    ),
    "a server's result without its call": Refused(
        [user(), parts("assistant", SERVER_RESULT, text("found")), user()],
        [(Rule.SERVER_RESULT_WITHOUT_CALL, 1)],
    ),
    "content that is no text": Refused([user({"a": 1})], [(Rule.MALFORMED, 0)]),
    "pending calls that the user talks over": Refused(
        [user(), asks("c1"), user()], [(Rule.MISSING_RESULT, 1)], pending=True
    ),
    "an empty answer that is not the final one": Refused(
        [user(), assistant("")], [(Rule.EMPTY_CONTENT, 1)], pending=True
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_documents_show_is_taken(name: str) -> None:
    assert anthropic_violations(sequence(TAKEN[name])) == ()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_known_to_be_refused_is_refused(name: str) -> None:
    check_refused(anthropic_violations, Provider.ANTHROPIC, REFUSED[name])


@pytest.mark.parametrize(
    "messages",
    [
        [user(), asks("c1")],
        [user(), asks("c1", "c2"), tool("c2")],
        [user(), parts("assistant", uses("a"), uses("b")), parts("user", gives("b"))],
    ],
)
def test_pending_calls_may_end_a_sequence(messages: list[Wire]) -> None:
    assert anthropic_violations(sequence(messages), pending=True) == ()
    found = anthropic_violations(sequence(messages))
    assert broken(found) == [(Rule.MISSING_RESULT, 1)]


@pytest.mark.parametrize(
    "messages",
    [
        [asks("c1"), asks("c2"), tool("c1"), tool("c2")],
        [asks("c1"), assistant("I look"), tool("c1")],
        [asks("c1", "c2"), parts("user", gives("c1")), parts("user", gives("c2"))],
        [parts("assistant", thinks()), assistant(), user()],
        [
            *(parts("assistant", function_call("a")), system()),
            parts("assistant", function_call("b")),
            parts("user", function_response("a"), function_response("b")),
        ],
    ],
)
def test_messages_of_one_role_are_one_turn(messages: list[Wire]) -> None:
    assert anthropic_violations(sequence([user(), *messages])) == ()
