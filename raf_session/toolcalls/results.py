"""Messages with calls and results: made anew, taken apart, put together, renamed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from raf_session.frozen import FrozenDict, freeze
from raf_session.messages import ChatMessage, MessageRole
from raf_session.parts import ContentPart
from raf_session.toolcalls.groups import Call
from raf_session.toolcalls.shapes import CallShape, id_path, part_container

__all__ = (
    "ResultParts",
    "from_wire",
    "placeholder_message",
    "placeholder_part",
    "rename_calls",
    "response_of",
    "response_part",
    "wire_parts",
    "without_parts",
)

_OWN = ("id", "metadata", "created_at", "source")


def placeholder_part(call: Call, text: str) -> Mapping[str, Any] | None:
    """Return the part that stands for the result of a call; `None`: a message does."""
    part: dict[str, Any]
    if call.shape is CallShape.ANTHROPIC:
        part = {"type": "tool_result", "tool_use_id": call.id, "content": text}
    elif call.shape is CallShape.RESPONSES:
        part = {"type": f"{call.kind}_output", "call_id": call.id, "output": text}
    elif call.shape is CallShape.BEDROCK:
        part = {"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}}
    elif call.shape is CallShape.GEMINI:
        return response_part(call, {"output": text})
    else:
        return None
    return cast("Mapping[str, Any]", freeze(part))


def response_part(call: Call, response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the response to a call as a part of Gemini's, in snake case as the call.

    Gemini takes both cases.
    """
    snake = call.shape is CallShape.GEMINI and call.kind == "function_call"
    fields: dict[str, Any] = {} if call.id is None else {"id": call.id}
    fields |= {"name": call.name, "response": response}
    part = {"function_response" if snake else "functionResponse": fields}
    return cast("Mapping[str, Any]", freeze(part))


def response_of(message: ChatMessage, part: int | None) -> Mapping[str, Any]:
    """Return what a result says, as Gemini's ``functionResponse`` names it.

    Args:
        message: what carries the result.
        part: its place among the parts; `None`: the message is the result.

    Returns:
        The text or the parts under ``output``, of a failed call under ``error``
        (Gemini's reference, "FunctionResponse").
    """
    if part is None:
        return {"output": message.wire().get("content")}
    item = wire_parts(message)[part]
    fields = cast("Mapping[str, Any]", item.get("toolResult", item))
    failed = fields.get("is_error") is True or fields.get("status") == "error"
    said = fields.get("content", fields.get("output"))
    return {"error" if failed else "output": said}


def placeholder_message(call: Call, text: str) -> ChatMessage:
    """Return the message that stands for the result of a call that is no part."""
    if call.shape is CallShape.FUNCTION:
        return ChatMessage(role=MessageRole.FUNCTION, name=call.name, content=text)
    if call.id is None:
        return ChatMessage(role=MessageRole.TOOL, name=call.name, content=text)
    return ChatMessage.tool(text, call.id)


def without_parts(message: ChatMessage, places: Collection[int | None]) -> ChatMessage:
    """Return what a message says beside the results that are these parts.

    It has the id of the message, and is the user's: a tool says nothing else.
    """
    items = wire_parts(message)
    parts = [part for place, part in enumerate(items) if place not in places]
    wire = {**message.wire(), "role": MessageRole.USER.value}
    return _with_parts(message, wire, parts, _OWN)


def rename_calls(message: ChatMessage, names: Mapping[str, str]) -> ChatMessage:
    """Return the message with other ids for these calls, asked for or answered."""
    wire = message.wire()
    answered = message.tool_call_id
    if answered is not None:
        wire["tool_call_id"] = names.get(answered, answered)
    if message.tool_calls:
        calls = wire["tool_calls"]
        wire["tool_calls"] = tuple(_renamed(call, ("id",), names) for call in calls)
    parts = [_renamed(part, id_path(part), names) for part in wire_parts(message)]
    if not parts:
        return from_wire(message, wire)
    return _with_parts(message, wire, parts, _OWN)


def _renamed(item: Any, path: Sequence[str], names: Mapping[str, str]) -> Any:
    if not path:
        return item
    step, *rest = path
    fields = cast("Mapping[str, Any]", item)
    if step not in fields:
        return fields
    value = fields[step]
    new = _renamed(value, rest, names) if rest else names.get(value, value)
    return FrozenDict[Any]({**fields, step: new})


class ResultParts:
    """The results of one message with calls that are parts: of one message, then."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._host: ChatMessage | None = None
        self._container = ""

    def add(self, message: ChatMessage, place: int) -> bool:
        """Add a part of a message; tell whether it needs no other message."""
        _, items = part_container(message)
        self._parts.append(_wire(items[place]))
        if self._host is None:
            self._host = message
        return self._host is message

    def add_new(self, part: Mapping[str, Any], beside: ChatMessage) -> None:
        """Add a part that no message had, written as those of that message."""
        self._parts.append(part)
        self._container, _ = part_container(beside)

    def messages(self) -> Iterator[ChatMessage]:
        """Yield the message, if there are parts; one that had all of them, itself."""
        host = self._host
        if not self._parts:
            return
        if host is None:
            fields = {"role": MessageRole.USER.value, self._container: self._parts}
            yield ChatMessage.from_openai(fields)
        elif self._parts == wire_parts(host):
            yield host
        else:
            yield _with_parts(host, host.wire(), self._parts, _OWN[1:])


def wire_parts(message: ChatMessage) -> list[Any]:
    """Return the parts of a message as they are sent."""
    _, items = part_container(message)
    return [_wire(item) for item in items]


def _wire(item: Any) -> Any:
    return item.wire() if isinstance(item, ContentPart) else item


def _with_parts(
    message: ChatMessage,
    wire: Mapping[str, Any],
    parts: Sequence[Any],
    own: Sequence[str],
) -> ChatMessage:
    container, _ = part_container(message)
    return from_wire(message, {**wire, container: tuple(parts)}, own)


def from_wire(
    message: ChatMessage, wire: Mapping[str, Any], own: Sequence[str] = _OWN
) -> ChatMessage:
    """Return a message of these frozen fields that keeps what of the other is ours."""
    given = [name for name in own if name in message.model_fields_set]
    return ChatMessage.from_frozen(
        wire, {name: getattr(message, name) for name in given}
    )
