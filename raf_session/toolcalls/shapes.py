"""The calls and results in one message, whatever API it was made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

from raf_session.messages import ChatMessage, MessageRole
from raf_session.parts import ContentPart

__all__ = (
    "CallShape",
    "Mark",
    "calls_in",
    "has_more_than",
    "id_path",
    "is_preamble",
    "is_user_turn",
    "part_container",
    "results_in",
)


class CallShape(StrEnum):
    """How a call or a result is written."""

    OPENAI = "openai"
    """``tool_calls``; role ``tool`` with ``tool_call_id``."""
    FUNCTION = "function"
    """OpenAI's ``function_call``; role ``function`` with ``name``."""
    ANTHROPIC = "anthropic"
    """Parts ``tool_use`` and ``tool_result``."""
    BEDROCK = "bedrock"
    """Parts with ``toolUse`` and ``toolResult``."""
    GEMINI = "gemini"
    """Parts with ``functionCall`` and ``functionResponse``, or in snake case."""
    RESPONSES = "responses"
    """Parts ``function_call`` and ``function_call_output`` with ``call_id``, and the
    other kinds named alike."""


class Mark(NamedTuple):
    """A call or a result in a message."""

    part: int | None
    """Its place among the parts; `None`: it is a field of the message, or all of it."""
    id: str | None
    name: str | None
    shape: CallShape
    kind: str
    """The provider's name for it: a part's type or field, or the message's field."""
    more: bool = False
    """Whether a result says that others will follow (Gemini's ``willContinue``)."""


_USER: Final = MessageRole.USER
_ASSISTANT: Final = MessageRole.ASSISTANT
_SYSTEM: Final = frozenset((MessageRole.SYSTEM, MessageRole.DEVELOPER))
_TOOL: Final = frozenset((MessageRole.TOOL, MessageRole.FUNCTION))
_RESULT_ROLES: Final = _TOOL | {_USER}
_CONTAINERS: Final = ("content", "parts")

_OBJECTS: Final[Mapping[str, tuple[CallShape, bool, str]]] = {
    "functionCall": (CallShape.GEMINI, True, "id"),
    "function_call": (CallShape.GEMINI, True, "id"),
    "functionResponse": (CallShape.GEMINI, False, "id"),
    "function_response": (CallShape.GEMINI, False, "id"),
    "toolUse": (CallShape.BEDROCK, True, "toolUseId"),
    "toolResult": (CallShape.BEDROCK, False, "toolUseId"),
}
"""By the field that makes a part a call or a result: shape, is it a call, its id."""


def is_preamble(message: ChatMessage) -> bool:
    """Tell whether this is an instruction: of the system or the developer."""
    return message.role in _SYSTEM


def is_user_turn(message: ChatMessage | None) -> bool:
    """Tell whether a user says something here.

    A message of role ``user`` that carries the results of calls is no user's turn,
    even where it also holds text: it stands where the results have to.
    """
    return message is not None and message.role is _USER and not results_in(message)


def calls_in(message: ChatMessage) -> Sequence[Mark]:
    """Return the calls that an assistant message asks for, in order.

    An id that stands twice in one message, as in ``tool_calls`` and again as a part,
    is one call.  What a provider calls and answers by itself, as Anthropic's
    ``server_tool_use``, is none.
    """
    if message.role is not _ASSISTANT:
        return ()
    if not message.tool_calls and _has_no_parts(message):
        return ()
    marks: list[Mark] = [
        Mark(None, call.id, call.name, CallShape.OPENAI, "tool_calls")
        for call in message.tool_calls or ()
    ]
    if message.extra:
        called = message.extra.get("function_call")
        if isinstance(called, Mapping):
            fields = cast("Mapping[str, Any]", called)
            name = _text(fields.get("name"))
            marks.append(Mark(None, None, name, CallShape.FUNCTION, "function_call"))
    marks += _part_marks(message, calls=True)
    if len(marks) < 2:
        return marks
    seen: set[str] = set()
    unique: list[Mark] = []
    for mark in marks:
        if mark.id is None or mark.id not in seen:
            unique.append(mark)
        if mark.id is not None:
            seen.add(mark.id)
    return unique


def results_in(message: ChatMessage) -> Sequence[Mark]:
    """Return the results that a message carries, in order.

    A message of role ``tool`` or ``function`` is one result, unless it names no call
    and its parts are results; one of role ``user`` has those of its parts.
    """
    role = message.role
    if role not in _RESULT_ROLES:
        return ()
    if role is _USER:
        return _part_marks(message, calls=False)
    if message.tool_call_id is None:
        marks = _part_marks(message, calls=False)
        if marks:
            return marks
    shape = CallShape.OPENAI if role is MessageRole.TOOL else CallShape.FUNCTION
    return (Mark(None, message.tool_call_id, message.name, shape, role.value),)


def part_container(message: ChatMessage) -> tuple[str, Sequence[Any]]:
    """Return the name and the items of the field that holds the parts, if any does.

    The items of ``content`` are `ContentPart`; where a list fits no such, and in
    Gemini's ``parts``, they are JSON values.
    """
    content = message.content
    if isinstance(content, tuple) and content:
        return "content", cast("Sequence[Any]", content)
    if message.extra:
        for name in _CONTAINERS:
            items = message.extra.get(name)
            if isinstance(items, tuple):
                return name, cast("Sequence[Any]", items)
    return "content", ()


def has_more_than(message: ChatMessage, results: Sequence[Mark]) -> bool:
    """Tell whether a message says something beside the results that it carries."""
    if not results:
        return True
    if results[0].part is None:
        return False
    return len(part_container(message)[1]) > len(results)


def id_path(part: object) -> Sequence[str]:
    """Return where a part as it is sent has the id of its call; none: it has none."""
    for calls in (True, False):
        mark = _mark(0, part, calls=calls)
        if mark is None or mark.id is None:
            continue
        if mark.shape is CallShape.ANTHROPIC:
            return ("id",) if calls else ("tool_use_id",)
        if mark.shape is CallShape.RESPONSES:
            return ("call_id",)
        _, _, id_name = _OBJECTS[mark.kind]
        return mark.kind, id_name
    return ()


def _has_no_parts(message: ChatMessage) -> bool:
    """Tell, at little cost, that a message is of fields alone that this class knows."""
    return not message.extra and not isinstance(message.content, tuple)


def _part_marks(message: ChatMessage, *, calls: bool) -> Sequence[Mark]:
    if _has_no_parts(message):
        return ()
    _, items = part_container(message)
    marks = (_mark(place, item, calls=calls) for place, item in enumerate(items))
    return [mark for mark in marks if mark is not None]


def _mark(place: int, item: Any, *, calls: bool) -> Mark | None:
    if isinstance(item, ContentPart):
        kind, fields = item.type, item.extra
    elif isinstance(item, Mapping):
        fields = cast("Mapping[str, Any]", item)
        kind = _text(fields.get("type"))
    else:
        return None
    if kind is not None:
        typed = _typed_mark(place, kind, fields, calls=calls)
        if typed is not None:
            return typed
    for name, (shape, is_call, id_name) in _OBJECTS.items():
        inner = fields.get(name)
        if is_call is not calls or not isinstance(inner, Mapping):
            continue
        values = cast("Mapping[str, Any]", inner)
        return Mark(
            place,
            _text(values.get(id_name)),
            _text(values.get("name")),
            shape,
            name,
            _true(values, ("willContinue", "will_continue")),
        )
    return None


def _typed_mark(
    place: int, kind: str, fields: Mapping[str, Any], *, calls: bool
) -> Mark | None:
    if kind == ("tool_use" if calls else "tool_result"):
        ident = _text(fields.get("id" if calls else "tool_use_id"))
        return Mark(place, ident, _text(fields.get("name")), CallShape.ANTHROPIC, kind)
    ident = _text(fields.get("call_id"))
    if ident is not None and kind.endswith("_call" if calls else "_call_output"):
        return Mark(place, ident, _text(fields.get("name")), CallShape.RESPONSES, kind)
    return None


def _true(fields: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(fields.get(name) is True for name in names)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
