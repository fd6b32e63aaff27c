"""Messages read as blocks: the shapes of OpenAI, Anthropic and Gemini as one.

OpenAI's are those of chat completions and of Responses, Anthropic's its own and
Bedrock's, Gemini's the parts in ``content`` or ``parts``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from raf_session.calls import ToolCall
from raf_session.messages import ChatMessage, MessageRole
from raf_session.validity.blocks import Block, CallId, Kind, Reading, Shape, Speaker

__all__ = ("read_messages",)

_SPEAKERS: Final[Mapping[MessageRole, Speaker]] = {
    MessageRole.SYSTEM: Speaker.SYSTEM,
    MessageRole.DEVELOPER: Speaker.SYSTEM,
    MessageRole.USER: Speaker.USER,
    MessageRole.TOOL: Speaker.USER,
    MessageRole.FUNCTION: Speaker.USER,
    MessageRole.ASSISTANT: Speaker.ASSISTANT,
}
_THINKING_PROOFS: Final = {"thinking": "signature", "redacted_thinking": "data"}


def read_messages(messages: Iterable[ChatMessage]) -> Iterator[Reading]:
    """Return each message as blocks.

    An empty text that is the whole content is no block, and an empty text part is one.
    What a tool message says is part of its result.  Calls and responses that their
    shape leaves without ids, as Gemini's may be, are paired by name and order within
    their exchange.  A call that stands both in ``tool_calls`` and in the content, as
    some frameworks keep it, is one call.
    """
    pairs = _PairsByName()
    for index, message in enumerate(messages):
        speaker = _SPEAKERS[message.role]
        pairs.hear(speaker)
        malformed = next(
            (
                field
                for field in ("content", "tool_calls")
                if message.extra.get(field) is not None
            ),
            None,
        )
        blocks = tuple(_read_message(message, pairs))
        if malformed == "content":
            blocks += (Block(Kind.OTHER, Shape.OPENAI),)
        yield Reading(index, message, speaker, blocks, malformed)


class _PairsByName:
    """Gives numbers to calls without ids, and finds them again for their results."""

    def __init__(self) -> None:
        self._given = 0
        self._numbers: defaultdict[str | None, deque[CallId]] = defaultdict(deque)
        self._ids: defaultdict[str | None, deque[CallId]] = defaultdict(deque)
        self._answered: set[CallId] = set()
        self._last = Speaker.SYSTEM

    def hear(self, speaker: Speaker) -> None:
        """Forget the open calls where an assistant's new turn begins."""
        if speaker is Speaker.SYSTEM:
            return
        if speaker is Speaker.ASSISTANT and self._last is not Speaker.ASSISTANT:
            self._numbers.clear()
            self._ids.clear()
            self._answered.clear()
        self._last = speaker

    def call(self, name: str | None, given: str | None) -> CallId:
        """Return the id of a call."""
        if given:
            self._ids[name].append(given)
            return given
        number = self._number()
        self._numbers[name].append(number)
        return number

    def result(self, name: str | None, given: str | None) -> CallId:
        """Return the id of the call that a result answers.

        Without an id it is that of the first open call of the function, those first
        that have no id either.
        """
        if given:
            self._answered.add(given)
            return given
        if self._numbers[name]:
            return self._numbers[name].popleft()
        waiting = self._ids[name]
        while waiting and waiting[0] in self._answered:
            waiting.popleft()
        return waiting.popleft() if waiting else self._number()

    def _number(self) -> int:
        self._given += 1
        return self._given


def _read_message(message: ChatMessage, pairs: _PairsByName) -> Iterator[Block]:
    content = message.content
    said = [_read_part(part, pairs) for part in _parts(message)]
    if message.role is MessageRole.TOOL:
        yield from _tool_results(message, said)
        return
    if message.role is MessageRole.FUNCTION:
        call = pairs.result(message.name, None)
        yield Block(Kind.RESULT, Shape.FUNCTION, call, message.name)
        return
    if isinstance(content, str) and content:
        yield Block(Kind.TEXT, Shape.OPENAI, text=content)
    yield from said
    if message.refusal:
        yield Block(Kind.TEXT, Shape.OPENAI, text=message.refusal)
    if isinstance(message.extra.get("audio"), Mapping):
        yield Block(Kind.OTHER, Shape.OPENAI)
    in_content = {block.call for block in said if block.kind is Kind.CALL}
    for tool_call in message.tool_calls or ():
        if not tool_call.id or tool_call.id not in in_content:
            name = _call_name(tool_call)
            yield Block(Kind.CALL, Shape.OPENAI, tool_call.id, name)
    old = message.extra.get("function_call")
    if isinstance(old, Mapping):
        name = _text(cast("Mapping[str, Any]", old), "name")
        yield Block(Kind.CALL, Shape.FUNCTION, pairs.call(name, None), name)


def _parts(message: ChatMessage) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a message: of its content, and Gemini's own ``parts``."""
    if isinstance(message.content, tuple):
        for part in message.content:
            yield part.wire()
    native = message.extra.get("parts")
    if isinstance(native, tuple):
        for item in cast("tuple[object, ...]", native):
            if isinstance(item, Mapping):
                yield cast("Mapping[str, Any]", item)


def _tool_results(message: ChatMessage, said: Iterable[Block]) -> Iterator[Block]:
    results = [block for block in said if block.kind is Kind.RESULT]
    yield from results
    own = message.tool_call_id
    if not results or (own and own not in {block.call for block in results}):
        yield Block(Kind.RESULT, Shape.OPENAI, own, message.name)


def _read_part(fields: Mapping[str, Any], pairs: _PairsByName) -> Block:
    kind = fields.get("type")
    if not isinstance(kind, str):
        return _read_untyped(fields, pairs)
    if kind in {"text", "refusal"} and isinstance(fields.get(kind), str):
        return Block(Kind.TEXT, Shape.OPENAI, text=fields[kind])
    if kind == "tool_use":
        call, name = _text(fields, "id"), _text(fields, "name")
        return Block(Kind.CALL, Shape.ANTHROPIC, call, name)
    if kind == "tool_result":
        return Block(Kind.RESULT, Shape.ANTHROPIC, _text(fields, "tool_use_id"))
    if kind == "function_call":
        call, name = _text(fields, "call_id"), _text(fields, "name")
        return Block(Kind.CALL, Shape.OPENAI, call, name)
    if kind == "function_call_output":
        return Block(Kind.RESULT, Shape.OPENAI, _text(fields, "call_id"))
    if kind in {"reasoning", "reasoning_text"}:
        return Block(Kind.THINKING, Shape.OPENAI)
    if kind == "thinking" and not isinstance(fields.get("thinking"), str):
        return Block(Kind.THINKING, Shape.OPENAI)  # Mistral's, which signs none
    if kind in _THINKING_PROOFS:
        signed = bool(_text(fields, _THINKING_PROOFS[kind]))
        return Block(Kind.THINKING, Shape.ANTHROPIC, signed=signed)
    if kind == "server_tool_use":
        return Block(Kind.SERVER_CALL, Shape.ANTHROPIC, _text(fields, "id"))
    if kind.endswith("_tool_result") and kind != "mcp_tool_result":
        call = _text(fields, "tool_use_id")
        return Block(Kind.SERVER_RESULT, Shape.ANTHROPIC, call)
    return Block(Kind.OTHER, Shape.OPENAI)


def _read_untyped(fields: Mapping[str, Any], pairs: _PairsByName) -> Block:
    call = fields.get("functionCall", fields.get("function_call"))
    if isinstance(call, Mapping):
        items = cast("Mapping[str, Any]", call)
        name = _text(items, "name")
        given = pairs.call(name, _text(items, "id"))
        return Block(Kind.CALL, Shape.GEMINI, given, name)
    result = fields.get("functionResponse", fields.get("function_response"))
    if isinstance(result, Mapping):
        items = cast("Mapping[str, Any]", result)
        name = _text(items, "name")
        given = pairs.result(name, _text(items, "id"))
        return Block(Kind.RESULT, Shape.GEMINI, given, name)
    for field, kind in (("toolUse", Kind.CALL), ("toolResult", Kind.RESULT)):
        found = fields.get(field)
        if isinstance(found, Mapping):
            items = cast("Mapping[str, Any]", found)
            given = _text(items, "toolUseId")
            return Block(kind, Shape.ANTHROPIC, given, _text(items, "name"))
    if "reasoningContent" in fields:
        return Block(Kind.THINKING, Shape.OPENAI)
    text = _text(fields, "text")
    if text is None:
        return Block(Kind.OTHER, Shape.GEMINI)
    signed = "thoughtSignature" in fields or "thought_signature" in fields
    if fields.get("thought") is True or (signed and not text):
        return Block(Kind.THINKING, Shape.GEMINI)
    return Block(Kind.TEXT, Shape.GEMINI, text=text)


def _call_name(call: ToolCall) -> str | None:
    custom = call.extra.get("custom")
    if call.name is None and isinstance(custom, Mapping):
        return _text(cast("Mapping[str, Any]", custom), "name")
    return call.name


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None
