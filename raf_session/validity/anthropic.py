"""What Anthropic's Messages API refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from raf_session.messages import ChatMessage
from raf_session.validity.blocks import Block, CallId, Kind, Reading, Shape, Speaker
from raf_session.validity.exchange import Exchange, check_fields
from raf_session.validity.readings import read_messages
from raf_session.validity.violations import Findings, Provider, Rule, Violation

__all__ = ("anthropic_violations",)

_CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")

_REASONS: Final[Mapping[Rule, str]] = {
    Rule.EMPTY_REQUEST: (
        "there is no message but the system's; Anthropic wants at least one"
    ),
    Rule.FIRST_NOT_USER: (
        "messages[{index}] is the first and the assistant's; Anthropic begins with the "
        "user"
    ),
    Rule.WRONG_ROLE: (
        "messages[{index}] {what}; Anthropic takes tool_use and thinking "
        "of the assistant only, and tool_result of the user only"
    ),
    Rule.MALFORMED: (
        "messages[{index}].{field} is of a type that becomes no block of Anthropic's"
    ),
    Rule.EMPTY_CONTENT: (
        "messages[{index}] is empty; only a final assistant message may be so"
    ),
    Rule.EMPTY_TEXT: "messages[{index}] has an empty text block",
    Rule.BLANK_TEXT: "messages[{index}] is nothing but whitespace",
    Rule.TRAILING_WHITESPACE: (
        "messages[{index}] is the final assistant message and ends in whitespace"
    ),
    Rule.MISSING_NAME: "messages[{index}] has no tool name, at call {call}",
    Rule.EMPTY_CALL_ID: "messages[{index}] has a {what} with no id",
    Rule.INVALID_CALL_ID: (
        "messages[{index}] has the call {call}; Anthropic takes letters, digits, _ and "
        "- of ASCII"
    ),
    Rule.DUPLICATE_CALL_ID: "messages[{index}] asks twice for the one call {call}",
    Rule.REPEATED_CALL_ID: (
        "messages[{index}] asks for call {call}, an id that an earlier call has; they "
        "are unique in a request"
    ),
    Rule.MISSING_RESULT: (
        "messages[{index}] asks for call {call}, and the user's turn directly behind "
        "it has no tool_result of it"
    ),
    Rule.RESULT_WITHOUT_CALL: (
        "messages[{index}] answers call {call}, for which no message before it asks"
    ),
    Rule.MISPLACED_RESULT: (
        "messages[{index}] answers call {call}, which is not of the assistant's turn "
        "directly before it"
    ),
    Rule.DUPLICATE_RESULT: (
        "messages[{index}] answers call {call}, which has its single result"
    ),
    Rule.RESULT_NOT_FIRST: (
        "messages[{index}] answers call {call} behind other content of the same user's "
        "turn; tool_result blocks come first"
    ),
    Rule.THINKING_AT_END: "messages[{index}] ends the assistant's turn with thinking",
    Rule.UNSIGNED_THINKING: (
        "messages[{index}] has thinking without its signature, or redacted thinking "
        "without its data"
    ),
    Rule.SERVER_RESULT_WITHOUT_CALL: (
        "messages[{index}] has the result of the server's tool call {call}, and no "
        "server_tool_use before it"
    ),
}


def anthropic_violations(
    messages: Iterable[ChatMessage], *, pending: bool = False
) -> tuple[Violation, ...]:
    """Return why the Messages API would refuse these messages, in their order.

    Tool messages and Gemini's responses count as ``tool_result`` blocks of a user's
    turn, and calls as ``tool_use`` blocks; messages of one role that follow one another
    are one turn, as the reference says that the API joins them.  System and developer
    messages, wherever they stand, become ``system`` and are not judged, so one between
    a call and its results does no harm (newer models take them in their place too).
    Reasoning in a shape that is not Anthropic's is left out of the request.  Linear in
    the size of the messages.

    Where sources differ, the stricter published error is applied to empty messages
    (some report that an empty assistant message passes in the middle now) and to the
    first role (some report that the assistant may begin); a blank text beside other
    content passes, as some measured.

    Left out, because it is not certain, or no matter of the sequence: whether results
    are looked for before messages are joined, as some report of results in two messages
    of Anthropic's own shape; whether the last turn has to begin with thinking, which
    depends on the thinking mode of the request; whether the request may end with the
    assistant, which depends on the model; whether a server's tool call has its result;
    empty system texts; the content of results; names and inputs of tools beyond there
    being a name.

    Args:
        messages: the sequence.
        pending: whether it may end in calls that wait for results; nothing then counts
            as the final assistant message, since the request will go on.

    Returns:
        Nothing where the request would be taken.
    """
    readings = [
        reading
        for reading in read_messages(messages)
        if reading.speaker is not Speaker.SYSTEM
    ]
    findings = Findings(Provider.ANTHROPIC, _REASONS)
    if not readings:
        findings.add(Rule.EMPTY_REQUEST, None)
        return findings.in_order()
    if readings[0].speaker is Speaker.ASSISTANT:
        findings.add(Rule.FIRST_NOT_USER, readings[0].index)
    for reading in readings:
        check_fields(reading, findings)
        final = reading is readings[-1] and not pending
        _check_content(reading, findings, final=final)
    _check_results(readings, findings, pending=pending)
    _check_thinking(readings, findings)
    _check_server_tools(readings, findings)
    return findings.in_order()


def _sent(reading: Reading) -> list[Block]:
    return [
        block
        for block in reading.blocks
        if block.kind is not Kind.THINKING or block.shape is Shape.ANTHROPIC
    ]


def _check_content(reading: Reading, findings: Findings, *, final: bool) -> None:
    index, blocks = reading.index, _sent(reading)
    closing = final and reading.speaker is Speaker.ASSISTANT
    if not blocks:
        if not closing:
            findings.add(Rule.EMPTY_CONTENT, index)
        return
    texts = [block.text for block in blocks if block.kind is Kind.TEXT]
    if "" in texts:
        findings.add(Rule.EMPTY_TEXT, index)
    elif len(texts) == len(blocks) and not any(text.strip() for text in texts):
        findings.add(Rule.BLANK_TEXT, index)
    elif closing and blocks[-1].kind is Kind.TEXT and texts[-1] != texts[-1].rstrip():
        findings.add(Rule.TRAILING_WHITESPACE, index)


def _check_results(
    readings: Iterable[Reading], findings: Findings, *, pending: bool
) -> None:
    exchange = Exchange(findings, form=_CALL_ID, unique=True)
    former, others = Speaker.USER, False
    for reading in readings:
        if reading.speaker is not former:
            if reading.speaker is Speaker.ASSISTANT:
                exchange.close()
            former, others = reading.speaker, False
        for block in reading.calls:
            exchange.ask(reading.index, block)
        if reading.speaker is Speaker.ASSISTANT:
            continue
        for block in reading.blocks:
            if block.kind is not Kind.RESULT:
                others = True
                continue
            if others:
                findings.add(Rule.RESULT_NOT_FIRST, reading.index, call=block.label)
            exchange.answer(reading.index, block)
    if not pending or others:
        exchange.close()


def _check_thinking(readings: Iterable[Reading], findings: Findings) -> None:
    ending: int | None = None
    for reading in readings:
        if reading.speaker is Speaker.USER and ending is not None:
            findings.add(Rule.THINKING_AT_END, ending)
            ending = None
        for block in _sent(reading):
            thinking = block.kind is Kind.THINKING
            if thinking and not block.signed:
                findings.add(Rule.UNSIGNED_THINKING, reading.index)
            if reading.speaker is Speaker.ASSISTANT:
                ending = reading.index if thinking else None
            elif thinking:
                findings.add(Rule.WRONG_ROLE, reading.index, what="thinks")
    if ending is not None:
        findings.add(Rule.THINKING_AT_END, ending)


def _check_server_tools(readings: Iterable[Reading], findings: Findings) -> None:
    called: set[CallId] = set()
    for reading in readings:
        for block in reading.blocks:
            if block.kind is Kind.SERVER_CALL:
                called.add(block.call)
            elif block.kind is Kind.SERVER_RESULT and block.call not in called:
                findings.add(
                    Rule.SERVER_RESULT_WITHOUT_CALL, reading.index, call=block.label
                )
