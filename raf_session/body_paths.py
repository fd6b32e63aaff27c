"""The way from a request body to what differs in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY
from raf_session.prefix import PrefixMatch, PrefixTracker
from raf_session.request_shapes import PromptRequest
from raf_session.request_shapes.fields import is_list, is_object, only_marks

__all__ = ("in_body", "touch_body")

_LIST: Final = re.compile(r"(tools|system|messages\[(\d+)]\.(?:content|parts))(?!\w)")
"""A list from which cache marks are taken, or which is its only text."""

_MESSAGE: Final = re.compile(r"messages\[(\d+)]")
_PART: Final = re.compile(r"\.parts\[(\d+)]")
_ROLE: Final = re.compile(r"\[(\d+)]\.role")
_INDEX: Final = re.compile(r"\[(\d+)]")


def in_body(
    match: PrefixMatch,
    request: PromptRequest,
    body: Mapping[str, Any],
    former: Mapping[str, str] = EMPTY,
) -> PrefixMatch:
    """Return the match with its path as it leads through the body.

    A reduced request has fields under names of its own, no parts that are marks alone,
    and a text in place of a list that holds nothing else.

    Args:
        match: of the reduced request.
        request: that request.
        body: what was reduced; where the path leads to what stood only in the body
            before, marks behind it are not counted.
        former: the names of the request before, for what is gone.
    """
    difference = match.first_difference
    if difference is None:
        return match
    path = _placed(difference.path, request)
    if path is None:
        path = _indexed(difference.path, request, body)
        path = _renamed(path, {**former, **request.names}, body)
    if path == difference.path:
        return match
    return match._replace(first_difference=replace(difference, path=path))


def _placed(path: str, request: PromptRequest) -> str | None:
    """Return the path to a message that does not stand at its index, if it is one."""
    found = _MESSAGE.match(path)
    if found is None or request.places is None:
        return None
    index, rest = int(found[1]), path[found.end() :]
    if index >= len(request.places):
        return None
    place = request.places[index]
    if isinstance(place, str):
        return place + rest
    part = _PART.match(rest)
    if part is None or int(part[1]) >= len(place):  # the message that was made of them
        return place[-1] if part is not None else place[0]
    return place[int(part[1])] + rest[part.end() :].removesuffix(".text")


def touch_body(
    tracker: PrefixTracker, request: PromptRequest, body: Mapping[str, Any]
) -> PrefixMatch:
    """Record a reduced request in a tracker, and return its match.

    Raises:
        InvalidValueError: with the path as it leads through the body.
    """
    try:
        return tracker.touch(request.messages, request.header)
    except InvalidValueError as error:
        path = _renamed(error.path, request.names, body)  # marks are counted in it
        raise InvalidValueError(path, error.reason) from error


def _indexed(path: str, request: PromptRequest, body: Mapping[str, Any]) -> str:
    """Return the path with the indexes that count marks as well."""
    found = _LIST.match(path)
    if found is None:
        return path
    place, rest = found[1], path[found.end() :]
    value = _value(found, request, body)
    if isinstance(value, str):  # what stood there before were parts
        return place
    listed: Sequence[Any] = value if is_list(value) else ()
    index = _INDEX.match(rest)
    if index is not None:
        there = _place(int(index[1]), listed)
        return f"{place}[{there}]{rest[index.end() :]}"
    if not rest and listed and isinstance(_reduced(found, request), str):
        return f"{place}[{_place(0, listed)}].text"
    return path


def _reduced(found: re.Match[str], request: PromptRequest) -> Any:
    """Return what the reduced request has in place of the list."""
    if found[2] is None:
        return request.header.get(found[1])
    message = request.messages[int(found[2])]
    return message.get(found[1].rpartition(".")[2])


def _value(
    found: re.Match[str], request: PromptRequest, body: Mapping[str, Any]
) -> Any:
    """Return what stands in the body in the place of the list."""
    name = found[1]
    if found[2] is None:
        value = _at(body, request.names.get(name, name))
    else:
        messages = _at(body, request.names.get("messages", "messages"))
        index = int(found[2])
        message: Any = None
        if is_list(messages) and index < len(messages):
            message = messages[index]
        value = message.get(name.rpartition(".")[2]) if is_object(message) else None
    return value


def _at(body: Mapping[str, Any], path: str) -> Any:
    value: Any = body
    for name in path.split("."):
        value = value.get(name) if is_object(value) else None
    return value


def _place(index: int, items: Sequence[Any]) -> int:
    """Return where the item of this index stands, counted without marks."""
    kept = [place for place, item in enumerate(items) if not only_marks(item)]
    return kept[index] if index < len(kept) else len(items) + index - len(kept)


def _renamed(path: str, names: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the path under the body's names; to all of it where that is one text.

    A role that the body does not give is that of the whole message.
    """
    for name, place in names.items():
        rest = path.removeprefix(name)
        if rest == path or rest[:1] not in {"", ".", "["}:
            continue
        messages = _at(body, place) if name == "messages" else None
        if isinstance(messages, str):
            return place
        told = _ROLE.fullmatch(rest)
        if told is not None and is_list(messages):
            index = int(told[1])
            message = messages[index] if index < len(messages) else None
            if is_object(message) and "role" not in message:
                return f"{place}[{index}]"
        return place + rest
    return path
