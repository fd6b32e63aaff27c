"""What can be replayed: conversations and request logs, told apart by looking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard, cast

from raf_session.cli.faults import Fault, Place
from raf_session.cli.json_values import STDIN, JsonValues, Numbered
from raf_session.errors import InvalidValueError
from raf_session.frozen import freeze
from raf_session.keys import MAX_NAME_BYTES, check_name
from raf_session.messages import ChatMessage

__all__ = ("Conversation", "Request", "RequestLog", "read_sources", "stem_of")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in order, each with the id ``{conversation}/{index}``."""

    id: str
    place: Place
    messages: Iterable[ChatMessage]
    """May be read from the file as it is iterated, and raise `Fault`."""


class Request(NamedTuple):
    """One call of the model."""

    messages: Sequence[ChatMessage]
    header: Any
    """What is rendered before the messages or changes how; `None`: nothing is."""


@dataclass(frozen=True, slots=True)
class RequestLog:
    """The requests of one conversation, each whole, as they were sent."""

    id: str
    place: Place
    requests: Sequence[Request]


class _Shape(StrEnum):
    LOG = "request log"
    CONVERSATION = "conversation"
    MESSAGE = "message"


_MARKS: Final = {
    "requests": _Shape.LOG,
    "messages": _Shape.CONVERSATION,
    "role": _Shape.MESSAGE,
}
"""The key that tells a shape; the first that is there decides."""

NOT_CACHED: Final = frozenset(
    (
        *("messages", "metadata", "user", "safety_identifier", "store"),
        *("stream", "stream_options", "prompt_cache_key", "prompt_cache_retention"),
        *("max_tokens", "max_completion_tokens", "stop", "n", "seed"),
        *("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"),
        *("logit_bias", "logprobs", "top_logprobs"),
    )
)
"""Fields of a request that change nothing in front of its messages."""

ID_BYTES: Final = MAX_NAME_BYTES - 12
"""How long an id may be, so that there is room for the index of a message."""


def stem_of(path: str) -> str:
    """Return the id of a conversation that has none, from its file."""
    return "stdin" if path == STDIN else Path(path).stem


def read_sources(values: JsonValues, stem: str) -> Iterator[Conversation | RequestLog]:
    """Yield what the file holds, in order.

    A file of messages is one conversation, whose messages must have been iterated
    before the next source is asked for.

    Args:
        values: the file.
        stem: the id of a conversation without one; where the file is a list or holds
            several, its number follows, counted from 1.

    Raises:
        Fault: what comes next cannot be read; everything before it was yielded.
    """
    numbered = iter(values)
    expected: _Shape | None = None
    for number, (line, value) in enumerate(numbered, 1):
        place = Place(values.name, line)
        shape = _shape(value, place)
        expected = expected or shape
        if shape is not expected:
            raise Fault(place, f"a {shape} in a file that began with a {expected}")
        if shape is _Shape.MESSAGE:
            session = _check_id(stem, place)
            first = _message(value, f"{session}/0", place, "")
            rest = _stream(numbered, session, values.name)
            yield Conversation(session, place, chain((first,), rest))
            return
        session = value.get("id")
        if session is None:
            alone = number == 1 and not values.listed and not values.more()
            session = stem if alone else f"{stem}-{number}"
        session = _check_id(session, place)
        if shape is _Shape.LOG:
            requests = tuple(_requests(value["requests"], session, place))
            yield RequestLog(session, place, requests)
        else:
            items = _list(value["messages"], place, "messages")
            read = [
                _message(item, f"{session}/{i}", place, f"messages[{i}]")
                for i, item in enumerate(items)
            ]
            yield Conversation(session, place, read)


def _shape(value: Any, place: Place) -> _Shape:
    if isinstance(value, dict):
        for mark, shape in _MARKS.items():
            if mark in value:
                return shape
        raise Fault(place, 'an object without "messages", "requests" or "role"')
    raise Fault(place, f"{_kind(value)} where a conversation or a message is expected")


def _check_id(value: object, place: Place) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        name = check_name(cast("str", value), "id")
    except InvalidValueError as error:
        raise Fault(place, f"id {error.reason}") from error
    if len(name.encode()) > ID_BYTES:
        raise Fault(place, f"id is longer than {ID_BYTES} bytes")
    return name


# Messages ------------------------------------------------------------------------


def _stream(
    numbered: Iterable[Numbered], session: str, file: str
) -> Iterator[ChatMessage]:
    for index, (line, value) in enumerate(numbered, 1):
        place = Place(file, line)
        if isinstance(value, dict) and "role" not in value:
            for mark in _MARKS.keys() & value.keys():
                other = f"a {_MARKS[mark]} in a file that began with a message"
                raise Fault(place, other)
        yield _message(value, f"{session}/{index}", place, "")


def _message(value: Any, message_id: str, place: Place, path: str) -> ChatMessage:
    front = f"{path}: " if path else ""
    if not isinstance(value, dict):
        raise Fault(place, f"{front}{_kind(value)} where a message is expected")
    fields = cast("dict[str, Any]", value)
    if "role" not in fields:
        raise Fault(place, f"{front}a message without role")
    try:
        return ChatMessage.from_openai(fields, id=message_id)
    except InvalidValueError as error:
        raise Fault(place, f"{path}.{error}" if path else str(error)) from error


# Requests ------------------------------------------------------------------------


def _requests(value: Any, session: str, place: Place) -> Iterator[Request]:
    """Yield the requests; a message that stays where it was stays the same object."""
    former: list[tuple[Any, ChatMessage]] = []
    for number, body in enumerate(_list(value, place, "requests")):
        path = f"requests[{number}]"
        if not isinstance(body, dict):
            raise Fault(place, f"{path}: {_kind(body)} where a request is expected")
        fields = cast("dict[str, Any]", body)
        if "messages" not in fields:
            raise Fault(place, f'{path}: a request without "messages"')
        now: list[tuple[Any, ChatMessage]] = []
        for i, item in enumerate(_list(fields["messages"], place, f"{path}.messages")):
            if i < len(former) and _identical(former[i][0], item):
                now.append(former[i])
                continue
            where = f"{path}.messages[{i}]"
            now.append((item, _message(item, f"{session}/{i}", place, where)))
        former = now
        yield Request([message for _, message in now], _header(fields, place, path))


def _identical(one: Any, other: Any) -> bool:
    # Python says 1 == 1.0 == True, and that the order of keys is nothing.
    return one == other and repr(one) == repr(other)


def _header(body: dict[str, Any], place: Place, path: str) -> Any:
    header = {name: body[name] for name in sorted(body) if name not in NOT_CACHED}
    try:
        return freeze(header, path) if header else None
    except InvalidValueError as error:
        raise Fault(place, str(error)) from error


# JSON ----------------------------------------------------------------------------


def _list(value: Any, place: Place, path: str) -> list[Any]:
    if _is_list(value):
        return value
    raise Fault(place, f"{path}: {_kind(value)} where a list is expected")


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


_KINDS: Final[dict[type[Any], str]] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")
