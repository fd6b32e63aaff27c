"""Messages in the three shapes, and how a judgement of them is written as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from raf_session.messages import ChatMessage
from raf_session.validity import (
    Provider,
    Rule,
    Violation,
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

Wire = dict[str, Any]
Validator = Callable[..., tuple[Violation, ...]]


class Refused(NamedTuple):
    """A sequence, and each rule that it breaks with the message that does."""

    messages: list[Wire]
    expected: list[tuple[Rule, int | None]]
    pending: bool = False


def sequence(messages: list[Wire]) -> list[ChatMessage]:
    return [ChatMessage.from_openai(message) for message in messages]


def broken(violations: tuple[Violation, ...]) -> list[tuple[Rule, int | None]]:
    return [(violation.rule, violation.index) for violation in violations]


def check_refused(
    violations: Validator, provider: Provider, sequence_: Refused
) -> None:
    """Check that a sequence is refused by its rules, with reasons that say where."""
    messages, expected, pending = sequence_
    found = violations(sequence(messages), pending=pending)
    assert broken(found) == expected
    for violation in found:
        assert violation.provider is provider
        if violation.index is not None:
            assert f"messages[{violation.index}]" in violation.reason


def violations_of_any(
    sent: Sequence[ChatMessage], *, pending: bool = False
) -> list[Violation]:
    """Return what any provider refuses, but that there is nothing to send."""
    checks = (openai_violations, anthropic_violations, gemini_violations)
    found = [v for check in checks for v in check(sent, pending=pending)]
    return [v for v in found if v.rule is not Rule.EMPTY_REQUEST]


# OpenAI's shape ---------------------------------------------------------------------


def system(text: str = "be brief") -> Wire:
    return {"role": "system", "content": text}


def user(content: Any = "hello") -> Wire:
    return {"role": "user", "content": content}


def assistant(content: Any = "well") -> Wire:
    return {"role": "assistant", "content": content}


def call(call_id: Any, name: str = "look") -> Wire:
    function = {"name": name, "arguments": "{}"}
    return {"id": call_id, "type": "function", "function": function}


def asks(*call_ids: Any, content: Any = None) -> Wire:
    calls = [call(call_id) for call_id in call_ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def tool(call_id: Any, content: Any = "done") -> Wire:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


# Anthropic's shape ------------------------------------------------------------------


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def uses(call_id: Any, name: str = "look") -> Wire:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def gives(call_id: Any, content: Any = "done") -> Wire:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def thinks(**proof: str) -> Wire:
    return {"type": "thinking", "thinking": "so", **(proof or {"signature": "s"})}


# Gemini's shape ---------------------------------------------------------------------


def function_call(name: str = "look", **more: Any) -> Wire:
    return {"functionCall": {"name": name, "args": {}, **more}}


def function_response(name: str = "look", **more: Any) -> Wire:
    return {"functionResponse": {"name": name, "response": {"output": 1}, **more}}


def parts(role: str, *blocks: Mapping[str, Any]) -> Wire:
    return {"role": role, "content": [dict(block) for block in blocks]}
