"""``generateContent``: documented requests are taken, known-bad ones refused."""

from __future__ import annotations

import pytest
from validity_inputs import (
    Refused,
    Wire,
    asks,
    assistant,
    broken,
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

from raf_session.validity import Provider, Rule, gemini_violations

IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}

TAKEN: dict[str, list[Wire]] = {
    "one user turn": [parts("user", {"text": "hello"})],
    "an image": [parts("user", {"text": "what is this"}, IMAGE)],
    "a conversation": [
        parts("user", {"text": "hello"}),
        parts("assistant", {"text": "well"}),
        parts("user", {"text": "and?"}),
    ],
    "a system message in front": [system(), user(), assistant(), user()],
    "system messages in the middle": [user(), system(), assistant(), system(), user()],
    "a system message before the result": [user(), asks("c1"), system(), tool("c1")],
    "turns of one role behind one another": [user(), user(), assistant(), assistant()],
    "a function call": [
        parts("user", {"text": "hello"}),
        parts("assistant", function_call()),
        parts("user", function_response()),
        parts("assistant", {"text": "done"}),
    ],
    "a function call with its id": [
        user(),
        parts("assistant", function_call(id="f1")),
        parts("user", function_response(id="f1")),
    ],
    "parallel calls of one function": [
        user(),
        parts("assistant", function_call(), function_call()),
        parts("user", function_response(), function_response()),
    ],
    "parallel calls answered in another order": [
        user(),
        parts("assistant", function_call("a", id="f1"), function_call("b", id="f2")),
        parts("user", function_response("b", id="f2"), function_response("a", id="f1")),
    ],
    "a response without the id of its call": [
        user(),
        parts("assistant", function_call(id="f1")),
        parts("user", function_response()),
    ],
    "calls of one function, with an id and without": [
        user(),
        parts("assistant", function_call(id="f1"), function_call()),
        parts("user", function_response(), function_response(id="f1")),
    ],
    "calls with ids, answered with one and without": [
        user(),
        parts("assistant", function_call(id="f1"), function_call(id="f2")),
        parts("user", function_response(id="f1"), function_response()),
    ],
    "an id that comes back, answered without": [
        user(),
        parts("assistant", function_call(id="f1")),
        parts("user", function_response(id="f1")),
        parts("assistant", function_call(id="f1")),
        parts("user", function_response()),
    ],
    "compositional calls": [
        user(),
        *(
            parts("assistant", function_call("a")),
            parts("user", function_response("a")),
        ),
        *(
            parts("assistant", function_call("b")),
            parts("user", function_response("b")),
        ),
        parts("assistant", {"text": "done"}),
    ],
    "a text beside a call": [
        user(),
        parts("assistant", {"text": "I look"}, function_call()),
        parts("user", function_response()),
    ],
    "a thought and a signature": [
        user(),
        parts(
            "assistant",
            {"text": "so", "thought": True},
            {**function_call(), "thoughtSignature": "s"},
        ),
        parts("user", function_response()),
    ],
    "the names of the SDK": [
        user(),
        parts("assistant", {"function_call": {"name": "look", "args": {}}}),
        parts("user", {"function_response": {"name": "look", "response": {}}}),
    ],
    "OpenAI's tool messages": [
        user(),
        *(asks("c1", "c2"), tool("c2"), tool("c1"), user(), assistant()),
    ],
    "an id that comes back": [
        user(),
        *(asks("c1"), tool("c1"), asks("c1"), tool("c1"), assistant()),
    ],
    "Anthropic's blocks": [
        user(),
        parts("assistant", thinks(), text("I look"), uses("a"), uses("b")),
        *(parts("user", gives("a")), parts("user", gives("b"), text("and?"))),
    ],
    "an empty text beside another": [parts("user", text(""), text("hello"))],
}

REFUSED: dict[str, Refused] = {
    "nothing": Refused([], [(Rule.EMPTY_REQUEST, None)]),
    "only a system message": Refused([system()], [(Rule.EMPTY_REQUEST, None)]),
    "the model first": Refused([assistant(), user()], [(Rule.FIRST_NOT_USER, 0)]),
    "a call first": Refused(
        [asks("c1"), tool("c1")], [(Rule.FIRST_NOT_USER, 0), (Rule.CALL_PLACE, 0)]
    ),
    "a call behind the model": Refused(
        [user(), assistant(), asks("c1"), tool("c1")], [(Rule.CALL_PLACE, 2)]
    ),
    "a call behind a call": Refused(
        [
            user(),
            parts("assistant", function_call("a", id="f1")),
            parts("assistant", function_call("b", id="f2")),
            parts(
                "user", function_response("a", id="f1"), function_response("b", id="f2")
            ),
        ],
        [
            (Rule.MISSING_RESULT, 1),
            (Rule.CALL_PLACE, 2),
            (Rule.MISPLACED_RESULT, 3),
            (Rule.RESULT_COUNT, 3),
        ],
    ),
    "a call at the end": Refused([user(), asks("c1")], [(Rule.MISSING_RESULT, 1)]),
    "a call and then the user": Refused(
        [user(), parts("assistant", function_call()), user()],
        [(Rule.MISSING_RESULT, 1)],
    ),
    "a call of a function that is answered in a later turn": Refused(
        [
            user(),
            *(parts("assistant", function_call()), user()),
            *(parts("assistant", function_call()), parts("user", function_response())),
        ],
        [(Rule.MISSING_RESULT, 1)],
    ),
    "a call with an id whose function is answered in a later turn": Refused(
        [
            user(),
            parts("assistant", function_call(id="f1")),
            user(),
            parts("assistant", function_call(id="f2")),
            parts("user", function_response()),
        ],
        [(Rule.MISSING_RESULT, 1)],
    ),
    "a call and then the model": Refused(
        [user(), asks("c1"), assistant()], [(Rule.MISSING_RESULT, 1)]
    ),
    "one of two results": Refused(
        [user(), asks("c1", "c2"), tool("c1"), user()],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_COUNT, 2)],
    ),
    "one of two responses": Refused(
        [
            user(),
            parts("assistant", function_call(), function_call()),
            parts("user", function_response()),
        ],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_COUNT, 2)],
    ),
    "more responses than calls": Refused(
        [
            user(),
            parts("assistant", function_call()),
            parts("user", function_response(), function_response()),
        ],
        [(Rule.RESULT_WITHOUT_CALL, 2), (Rule.RESULT_COUNT, 2)],
    ),
    "responses in two turns": Refused(
        [
            user(),
            parts(
                "assistant", function_call("a", id="f1"), function_call("b", id="f2")
            ),
            parts("user", function_response("a", id="f1")),
            parts("user", function_response("b", id="f2")),
        ],
        [
            (Rule.MISSING_RESULT, 1),
            (Rule.RESULT_COUNT, 2),
            (Rule.MISPLACED_RESULT, 3),
        ],
    ),
    "a response of its own shape and a translated one": Refused(
        [
            *(user(), asks("c1", "c2")),
            *(parts("user", function_response(id="c1")), tool("c2")),
        ],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_COUNT, 2), (Rule.MISPLACED_RESULT, 3)],
    ),
    "an empty user message before the result": Refused(
        [user(), asks("c1"), user(""), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.EMPTY_CONTENT, 2), (Rule.MISPLACED_RESULT, 3)],
    ),
    "a response without a call": Refused(
        [parts("user", function_response())], [(Rule.RESULT_WITHOUT_CALL, 0)]
    ),
    "a result without a call": Refused(
        [user(), tool("c1"), assistant()], [(Rule.RESULT_WITHOUT_CALL, 1)]
    ),
    "the result of another call": Refused(
        [user(), asks("c1"), tool("c2")],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_WITHOUT_CALL, 2)],
    ),
    "the response of another function": Refused(
        [
            user(),
            parts("assistant", function_call("a")),
            parts("user", function_response("b")),
        ],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_WITHOUT_CALL, 2)],
    ),
    "a result behind a later user turn": Refused(
        [user(), asks("c1"), user(), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 3)],
    ),
    "a response behind an answer": Refused(
        [
            user(),
            parts("assistant", function_call(id="f1")),
            assistant(),
            parts("user", function_response(id="f1")),
        ],
        [(Rule.MISSING_RESULT, 1), (Rule.MISPLACED_RESULT, 3)],
    ),
    "words between results": Refused(
        [user(), asks("c1", "c2"), tool("c1"), user(), tool("c2")],
        [
            (Rule.MISSING_RESULT, 1),
            (Rule.RESULT_COUNT, 2),
            (Rule.MISPLACED_RESULT, 4),
        ],
    ),
    "a result twice": Refused(
        [user(), asks("c1"), tool("c1"), tool("c1")],
        [(Rule.RESULT_COUNT, 2), (Rule.DUPLICATE_RESULT, 3)],
    ),
    "a result twice instead of another": Refused(
        [user(), asks("c1", "c2"), tool("c1"), tool("c1")],
        [(Rule.MISSING_RESULT, 1), (Rule.DUPLICATE_RESULT, 3)],
    ),
    "two calls of one id": Refused(
        [
            user(),
            parts("assistant", function_call(id="f1"), function_call(id="f1")),
            parts("user", function_response(id="f1")),
        ],
        [(Rule.DUPLICATE_CALL_ID, 1), (Rule.RESULT_COUNT, 2)],
    ),
    "a translated result without an id": Refused(
        [user(), asks("c1"), {"role": "tool", "content": "done"}],
        [(Rule.MISSING_RESULT, 1), (Rule.EMPTY_CALL_ID, 2)],
    ),
    "a translated call without an id": Refused(
        [user(), asks(None), tool("c1")],
        [(Rule.EMPTY_CALL_ID, 1), (Rule.RESULT_WITHOUT_CALL, 2)],
    ),
    "a call without a name": Refused(
        [
            user(),
            parts("assistant", {"functionCall": {"id": "f1", "args": {}}}),
            parts("user", function_response(id="f1")),
        ],
        [(Rule.MISSING_NAME, 1)],
    ),
    "a response without a name": Refused(
        [
            user(),
            parts("assistant", function_call(id="f1")),
            parts("user", {"functionResponse": {"id": "f1", "response": {}}}),
        ],
        [(Rule.MISSING_NAME, 2)],
    ),
    "a call of the user": Refused(
        [parts("user", function_call())], [(Rule.WRONG_ROLE, 0)]
    ),
    "a response of the model": Refused(
        [user(), parts("assistant", function_response())], [(Rule.WRONG_ROLE, 1)]
    ),
    "no parts": Refused([user([])], [(Rule.EMPTY_CONTENT, 0)]),
    "an empty user message": Refused([user("")], [(Rule.EMPTY_CONTENT, 0)]),
    "an empty answer": Refused(
        [user(), assistant(None), user()], [(Rule.EMPTY_CONTENT, 1)]
    ),
    "an empty text part": Refused(
        [user(), parts("assistant", text("")), user()], [(Rule.EMPTY_CONTENT, 1)]
    ),
    "an answer of foreign reasoning": Refused(
        [user(), assistant([{"type": "reasoning", "text": "so"}]), user()],
        [(Rule.EMPTY_CONTENT, 1)],
    ),
    "content that is no text": Refused([user(7)], [(Rule.MALFORMED, 0)]),
    "pending calls that the user talks over": Refused(
        [user(), asks("c1", "c2"), tool("c1"), user()],
        [(Rule.MISSING_RESULT, 1), (Rule.RESULT_COUNT, 2)],
        pending=True,
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_documents_show_is_taken(name: str) -> None:
    assert gemini_violations(sequence(TAKEN[name])) == ()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_known_to_be_refused_is_refused(name: str) -> None:
    check_refused(gemini_violations, Provider.GEMINI, REFUSED[name])


@pytest.mark.parametrize(
    "messages",
    [
        [user(), asks("c1")],
        [user(), parts("assistant", function_call())],
        [user(), parts("assistant", function_call("a"), function_call("b"))],
    ],
)
def test_pending_calls_may_end_a_sequence(messages: list[Wire]) -> None:
    assert gemini_violations(sequence(messages), pending=True) == ()
    found = gemini_violations(sequence(messages))
    assert {rule for rule, _ in broken(found)} == {Rule.MISSING_RESULT}


def test_a_part_of_the_results_may_end_a_pending_sequence() -> None:
    messages = sequence([user(), asks("c1", "c2"), tool("c2")])
    assert gemini_violations(messages, pending=True) == ()


def test_a_thought_of_gemini_is_a_part() -> None:
    thought = parts("assistant", {"text": "so", "thought": True})
    assert gemini_violations(sequence([user(), thought, user()])) == ()


def test_translated_results_behind_one_another_are_one_turn() -> None:
    results = [tool("c1"), system(), parts("user", gives("c2"))]
    assert gemini_violations(sequence([user(), asks("c1", "c2"), *results])) == ()


def test_other_parts_beside_a_response_of_gemini_are_not_judged() -> None:
    mixed = parts("user", {"text": "here"}, function_response())
    messages = [user(), parts("assistant", function_call()), mixed]
    assert gemini_violations(sequence(messages)) == ()
