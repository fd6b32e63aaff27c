"""Calls and their results: who was asked, who has answered, and who was not."""

from __future__ import annotations

import re

from raf_session.validity.blocks import Block, CallId, Kind, Reading, Speaker
from raf_session.validity.violations import Findings, Rule

__all__ = ("Exchange", "check_fields")


def check_fields(reading: Reading, findings: Findings) -> None:
    """Find what no provider takes in a message by itself."""
    index = reading.index
    if reading.malformed is not None:
        findings.add(Rule.MALFORMED, index, field=reading.malformed)
    for block in reading.blocks:
        if block.kind is Kind.CALL:
            if reading.speaker is not Speaker.ASSISTANT:
                what = f"asks for call {block.label}"
                findings.add(Rule.WRONG_ROLE, index, what=what)
            if not block.name:
                findings.add(Rule.MISSING_NAME, index, call=block.label)
        elif block.kind is Kind.RESULT and reading.speaker is not Speaker.USER:
            what = f"answers call {block.label}"
            findings.add(Rule.WRONG_ROLE, index, what=what)


class Exchange:
    """Holds the calls of the last turn against the results behind it.

    Args:
        findings: where violations go.
        form: what an id has to match as a whole; `None`: any text.
        unique: whether no id may come back in a later turn.
    """

    def __init__(
        self,
        findings: Findings,
        *,
        form: re.Pattern[str] | None = None,
        unique: bool = False,
    ) -> None:
        self._findings = findings
        self._form = form
        self._unique = unique
        self._asked: set[CallId] = set()
        self._waiting: dict[CallId, tuple[int, str]] = {}
        self._former: set[CallId] = set()
        self._answered: set[CallId] = set()

    def ask(self, index: int, block: Block) -> None:
        """Take a call of the message at `index`."""
        call = block.call
        if call is None or call == "":
            self._findings.add(Rule.EMPTY_CALL_ID, index, what="call")
            return
        if self._form and isinstance(call, str) and not self._form.fullmatch(call):
            self._findings.add(Rule.INVALID_CALL_ID, index, call=block.label)
        if call in self._asked:
            self._findings.add(Rule.DUPLICATE_CALL_ID, index, call=block.label)
            return
        if self._unique and call in self._former:
            self._findings.add(Rule.REPEATED_CALL_ID, index, call=block.label)
        self._asked.add(call)
        self._waiting[call] = index, block.label

    def answer(self, index: int, block: Block) -> None:
        """Take a result in the message at `index`."""
        call = block.call
        if call is None or call == "":
            self._findings.add(Rule.EMPTY_CALL_ID, index, what="result")
            return
        if call in self._waiting:
            del self._waiting[call]
            self._answered.add(call)
            return
        if call in self._answered:
            rule = Rule.DUPLICATE_RESULT
        elif call in self._former:
            rule = Rule.MISPLACED_RESULT
        else:
            rule = Rule.RESULT_WITHOUT_CALL
        self._findings.add(rule, index, call=block.label)

    def close(self) -> None:
        """End the turn of results: whoever still waits has none."""
        for index, call in self._waiting.values():
            self._findings.add(Rule.MISSING_RESULT, index, call=call)
        self._former |= self._asked
        self._asked.clear()
        self._waiting.clear()
