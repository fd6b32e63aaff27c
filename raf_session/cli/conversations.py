"""What can be replayed: conversations and request logs, told apart by looking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from raf_session.cli.bodies import is_body, is_list, is_object
from raf_session.cli.faults import Fault, Place, invalid, unexpected
from raf_session.cli.json_values import STDIN, JsonValues, Numbered
from raf_session.cli.request_logs import Request, RequestLog, RequestReader
from raf_session.errors import InvalidValueError
from raf_session.keys import MAX_NAME_BYTES, check_name
from raf_session.messages import ChatMessage

__all__ = ("Conversation", "read_sources", "stem_of")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages in order, each with the id ``{conversation}/{index}``."""

    id: str
    place: Place
    messages: Iterable[ChatMessage]
    """May be read from the file as it is iterated, and raise `Fault`."""


class _Kind(StrEnum):
    LOG = "request log"
    REQUEST = "request"
    CONVERSATION = "conversation"
    MESSAGE = "message"


ID_BYTES: Final = MAX_NAME_BYTES - 12
"""How long an id may be, so that there is room for the index of a message."""


def stem_of(path: str) -> str:
    """Return the id of a conversation that has none, from its file."""
    return "stdin" if path == STDIN else Path(path).stem


def read_sources(values: JsonValues, stem: str) -> Iterator[Conversation | RequestLog]:
    """Yield what the file holds, in order.

    A file of messages is one conversation, whose messages must have been iterated
    before the next source is asked for.  A file of requests is one log.

    Args:
        values: the file.
        stem: the id of a conversation without one; where the file is a list or holds
            several, its number follows, counted from 1.

    Raises:
        Fault: what comes next cannot be read; everything before it was yielded.
    """
    numbered = iter(values)
    expected: _Kind | None = None
    for number, (line, value) in enumerate(numbered, 1):
        place = Place(values.name, line)
        kind = _kind(value, place)
        expected = expected or kind
        _check_kind(kind, expected, place)
        if kind is _Kind.MESSAGE:
            session = _check_id(stem, place)
            first = _message(value, f"{session}/0", place, "")
            rest = _stream(numbered, session, values.name)
            yield Conversation(session, place, chain((first,), rest))
            return
        if kind is _Kind.REQUEST:
            session = _check_id(stem, place)
            bodies = chain(((line, value),), numbered)
            yield from _one_log(bodies, session, values.name)
            return
        session = value.get("id")
        if session is None:
            alone = number == 1 and not values.listed and not values.more()
            session = stem if alone else f"{stem}-{number}"
        session = _check_id(session, place)
        if kind is _Kind.LOG:
            yield _log(value, session, place)
        else:
            items = _list(value, "messages", place)
            read = [
                _message(item, f"{session}/{i}", place, f"messages[{i}]")
                for i, item in enumerate(items)
            ]
            yield Conversation(session, place, read)


def _kind(value: Any, place: Place) -> _Kind:
    """Return what an object is; the first of its marks that is there decides."""
    if not is_object(value):
        raise unexpected(place, "", value, "a conversation or a message")
    if "requests" in value:
        return _Kind.LOG
    if is_body(value):
        return _Kind.REQUEST
    if "messages" in value:
        return _Kind.CONVERSATION
    if "role" in value:
        return _Kind.MESSAGE
    reason = 'an object without "messages", "requests" or "role" is no request either'
    raise Fault(place, reason)


def _check_kind(kind: _Kind, expected: _Kind, place: Place) -> None:
    if kind is not expected:
        raise Fault(place, f"a {kind} in a file that began with a {expected}")


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


def _list(owner: dict[str, Any], name: str, place: Place) -> list[Any]:
    value = owner[name]
    if is_list(value):
        return value
    raise unexpected(place, name, value, "a list")


# Messages ------------------------------------------------------------------------


def _stream(
    numbered: Iterable[Numbered], session: str, file: str
) -> Iterator[ChatMessage]:
    for index, (line, value) in enumerate(numbered, 1):
        place = Place(file, line)
        if is_object(value) and "role" not in value:
            others = value.keys() & {"requests", "messages"}
            if others or is_body(value):
                _check_kind(_kind(value, place), _Kind.MESSAGE, place)
        yield _message(value, f"{session}/{index}", place, "")


def _message(value: Any, message_id: str, place: Place, path: str) -> ChatMessage:
    if not is_object(value):
        raise unexpected(place, path, value, "a message")
    if "role" not in value:
        front = f"{path}: " if path else ""
        raise Fault(place, f"{front}a message without role")
    try:
        return ChatMessage.from_openai(value, id=message_id)
    except InvalidValueError as error:
        raise invalid(place, path, error) from error


# Requests ------------------------------------------------------------------------


def _log(value: dict[str, Any], session: str, place: Place) -> RequestLog:
    reader = RequestReader(session)
    requests = [
        reader.read(body, place, f"requests[{number}]")
        for number, body in enumerate(_list(value, "requests", place))
    ]
    return RequestLog(session, place, requests, reader.meter)


def _one_log(
    bodies: Iterable[Numbered], session: str, file: str
) -> Iterator[RequestLog]:
    """Yield the log that a file is; what is before a fault is a log as well."""
    reader = RequestReader(session)
    requests: list[Request] = []
    place: Place | None = None
    fault: Fault | None = None
    try:
        for line, value in bodies:
            here = Place(file, line)
            _check_kind(_kind(value, here), _Kind.REQUEST, here)
            requests.append(reader.read(value, here))
            place = place or here
    except Fault as error:
        fault = error
    if place is not None:
        yield RequestLog(session, place, requests, reader.meter)
    if fault is not None:
        raise fault
