"""What OpenAI's chat completions refuse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from raf_session.messages import ChatMessage, MessageRole
from raf_session.validity.blocks import Kind, Reading, Shape, Speaker
from raf_session.validity.exchange import Exchange, check_fields
from raf_session.validity.readings import read_messages
from raf_session.validity.violations import Findings, Provider, Rule, Violation

__all__ = ("openai_violations",)

_CALL_ID: Final = re.compile(r".{1,40}", re.DOTALL)

_REASONS: Final[Mapping[Rule, str]] = {
    Rule.EMPTY_REQUEST: "messages is empty; OpenAI wants at least one",
    Rule.WRONG_ROLE: (
        "messages[{index}] {what}, which OpenAI does not take of its role"
    ),
    Rule.MALFORMED: "messages[{index}].{field} is of a type that OpenAI does not take",
    Rule.EMPTY_CONTENT: "messages[{index}].content is {value}; OpenAI wants content",
    Rule.NO_CONTENT_OR_CALLS: (
        "messages[{index}] is the assistant's and has neither content nor calls"
    ),
    Rule.EMPTY_CALLS: "messages[{index}].tool_calls is empty; OpenAI wants one or none",
    Rule.MISSING_NAME: "messages[{index}] has no function name, at call {call}",
    Rule.EMPTY_CALL_ID: "messages[{index}] has a {what} with no id",
    Rule.INVALID_CALL_ID: (
        "messages[{index}] has the call {call}; OpenAI takes ids of up to 40 characters"
    ),
    Rule.DUPLICATE_CALL_ID: "messages[{index}] asks twice for the one call {call}",
    Rule.MISSING_RESULT: (
        "messages[{index}] asks for call {call}, and no tool message directly behind "
        "it responds"
    ),
    Rule.RESULT_WITHOUT_CALL: (
        "messages[{index}] answers call {call}, for which no message before it asks"
    ),
    Rule.MISPLACED_RESULT: (
        "messages[{index}] answers call {call}, but does not stand directly behind the "
        "message that asks for it"
    ),
    Rule.DUPLICATE_RESULT: (
        "messages[{index}] answers call {call}, which has been answered"
    ),
}


def openai_violations(
    messages: Iterable[ChatMessage], *, pending: bool = False
) -> tuple[Violation, ...]:
    """Return why chat completions would refuse these messages, in their order.

    Anthropic's and Gemini's blocks count as what they become: calls as ``tool_calls``,
    each result, where it stands, as a tool message of its own, thinking as nothing.
    System and developer messages are taken in every place but between a call and its
    results.  Linear in the size of the messages.

    Left out, because it is not certain, or no matter of the sequence: whether a
    ``function`` message of the old kind needs a ``function_call`` before it; which
    parts a role or a model takes; names and arguments of functions beyond there being
    a name; ids that come back in a later turn, which are taken.

    Args:
        messages: the sequence.
        pending: whether it may end in calls that wait for results.

    Returns:
        Nothing where the request would be taken.
    """
    findings = Findings(Provider.OPENAI, _REASONS)
    exchange = Exchange(findings, form=_CALL_ID)
    reading = None
    for reading in read_messages(messages):
        check_fields(reading, findings)
        _check_content(reading, findings)
        if reading.speaker is not Speaker.USER or not reading.blocks:
            exchange.close()
        for block in reading.calls:
            if block.shape is not Shape.FUNCTION:
                exchange.ask(reading.index, block)
        if reading.speaker is Speaker.USER:
            for block in reading.blocks:
                if block.kind is Kind.RESULT and block.shape is not Shape.FUNCTION:
                    exchange.answer(reading.index, block)
                else:
                    exchange.close()
    if reading is None:
        findings.add(Rule.EMPTY_REQUEST, None)
    if not pending:
        exchange.close()
    return findings.in_order()


def _check_content(reading: Reading, findings: Findings) -> None:
    message, index = reading.message, reading.index
    if message.tool_calls == ():
        findings.add(Rule.EMPTY_CALLS, index)
    if message.role is MessageRole.FUNCTION:
        if not message.name:
            findings.add(Rule.MISSING_NAME, index, call="of a function message")
        return
    if message.content == ():
        findings.add(Rule.EMPTY_CONTENT, index, value="an empty list")
    elif message.role is MessageRole.ASSISTANT:
        said = any(block.kind is not Kind.THINKING for block in reading.blocks)
        if not said and not isinstance(message.content, str):
            findings.add(Rule.NO_CONTENT_OR_CALLS, index)
    elif message.content is None and not {"content", "parts"} & message.extra.keys():
        findings.add(Rule.EMPTY_CONTENT, index, value="null")
