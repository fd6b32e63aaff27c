"""What Gemini's ``generateContent`` refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from raf_session.messages import ChatMessage
from raf_session.validity.blocks import Kind, Reading, Shape, Speaker
from raf_session.validity.exchange import Exchange, check_fields
from raf_session.validity.readings import read_messages
from raf_session.validity.violations import Findings, Provider, Rule, Violation

__all__ = ("gemini_violations",)

_REASONS: Final[Mapping[Rule, str]] = {
    Rule.EMPTY_REQUEST: ("there is no message but the system's; Gemini wants contents"),
    Rule.FIRST_NOT_USER: (
        "messages[{index}] is the first and the model's; Gemini begins with the user"
    ),
    Rule.WRONG_ROLE: (
        "messages[{index}] {what}; Gemini takes functionCall of the model "
        "only, and functionResponse of the user only"
    ),
    Rule.MALFORMED: (
        "messages[{index}].{field} is of a type that becomes no part of Gemini's"
    ),
    Rule.EMPTY_CONTENT: "messages[{index}] has no part; Gemini wants one at least",
    Rule.MISSING_NAME: "messages[{index}] has no function name, at call {call}",
    Rule.EMPTY_CALL_ID: (
        "messages[{index}] has a {what} with no id, so no result gets its name"
    ),
    Rule.DUPLICATE_CALL_ID: "messages[{index}] asks twice for the one call {call}",
    Rule.CALL_PLACE: (
        "messages[{index}] asks for calls, and is not directly behind a turn of the "
        "user or of function responses"
    ),
    Rule.MISSING_RESULT: (
        "messages[{index}] asks for call {call}, and the turn directly behind it has "
        "no functionResponse of it"
    ),
    Rule.RESULT_COUNT: (
        "messages[{index}] begins a turn of {results} function responses to {calls} "
        "function calls"
    ),
    Rule.RESULT_WITHOUT_CALL: (
        "messages[{index}] answers call {call}, for which no message before it asks"
    ),
    Rule.MISPLACED_RESULT: (
        "messages[{index}] answers call {call}, which is not of the turn directly "
        "before it"
    ),
    Rule.DUPLICATE_RESULT: (
        "messages[{index}] answers call {call}, which has been answered"
    ),
}


def gemini_violations(
    messages: Iterable[ChatMessage], *, pending: bool = False
) -> tuple[Violation, ...]:
    """Return why ``generateContent`` would refuse these messages, in their order.

    Assistant messages count as turns of the model, and none is joined with another.
    Results of OpenAI's and Anthropic's shape that follow one another are one turn of
    function responses, each with the name of the call that has its id; what else their
    messages hold is a turn of its own.  A message in Gemini's own shape is a turn as it
    stands; its calls and responses need no ids, and are then paired by name and order.
    System and developer messages, wherever they stand, become ``systemInstruction`` and
    are not judged.  Reasoning in a shape that is not Gemini's is left out of the
    request.  Linear in the size of the messages.

    That contents begin with the user is what Google's SDKs enforce; the API itself says
    it of calls.

    Left out, because it is not certain, or no matter of the sequence: whether the
    request may end with the model, and whether calls need thought signatures, which
    depend on the model; an empty text beside other parts; other parts beside function
    responses in a message of Gemini's shape; names and arguments of functions beyond
    there being a name.

    Args:
        messages: the sequence.
        pending: whether it may end in calls that wait for results.

    Returns:
        Nothing where the request would be taken.
    """
    findings = Findings(Provider.GEMINI, _REASONS)
    turns = _Turns(findings)
    former: Speaker | None = None
    for reading in read_messages(messages):
        if reading.speaker is Speaker.SYSTEM:
            continue
        check_fields(reading, findings)
        if not _has_part(reading):
            findings.add(Rule.EMPTY_CONTENT, reading.index)
        if reading.speaker is Speaker.ASSISTANT:
            if former is None:
                findings.add(Rule.FIRST_NOT_USER, reading.index)
            if reading.calls and former is not Speaker.USER:
                findings.add(Rule.CALL_PLACE, reading.index)
            turns.ask(reading)
        else:
            turns.answer(reading)
        former = reading.speaker
    if former is None:
        findings.add(Rule.EMPTY_REQUEST, None)
    if not pending:
        turns.close()
    return findings.in_order()


def _has_part(reading: Reading) -> bool:
    for block in reading.blocks:
        if block.kind is Kind.TEXT:
            sent = block.text != ""
        else:
            sent = block.kind is not Kind.THINKING or block.shape is Shape.GEMINI
        if sent:
            return True
    return False


class _Turns:
    """Holds each turn of calls against the turn of responses directly behind it."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._exchange = Exchange(findings)
        self._calls = 0
        self._results = 0
        self._first_result = 0
        self._whole = False
        """Whether the turn of responses takes no more."""

    def ask(self, reading: Reading) -> None:
        """Take a turn of the model's."""
        self.close()
        self._calls = len(reading.calls)
        for block in reading.calls:
            self._exchange.ask(reading.index, block)

    def answer(self, reading: Reading) -> None:
        """Take a message of the user's."""
        own = any(block.shape is Shape.GEMINI for block in reading.results)
        if self._whole or (own and self._results) or not reading.blocks:
            self.close()
        for block in reading.blocks:
            if block.kind is Kind.RESULT:
                if not self._results:
                    self._first_result = reading.index
                self._results += 1
                if block.shape is Shape.GEMINI and not block.name:
                    self._findings.add(
                        Rule.MISSING_NAME, reading.index, call=block.label
                    )
                self._exchange.answer(reading.index, block)
            elif not own:
                self.close()
        self._whole = own

    def close(self) -> None:
        """End the exchange."""
        if self._calls and self._results and self._calls != self._results:
            self._findings.add(
                Rule.RESULT_COUNT,
                self._first_result,
                results=self._results,
                calls=self._calls,
            )
        self._exchange.close()
        self._calls = self._results = 0
        self._whole = False
