"""Which two request bodies the arguments of ``raf-session diff`` name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from raf_session.cli.bodies import Logged, is_list, is_object, logged
from raf_session.cli.faults import Fault, Place, unexpected
from raf_session.cli.json_values import STDIN, JsonValues, Numbered, open_values

__all__ = ("Pair", "read_pair")


class Pair(NamedTuple):
    """Two requests that were sent one after the other."""

    previous: Logged
    current: Logged


_NAMES: Final = (
    ("previous", "current"),
    ("before", "after"),
    ("request_n", "request_n1"),
)
"""What an object calls the two bodies that it holds."""

_LINE: Final = re.compile(r"(?s)(.+):([0-9]{1,15})")


def read_pair(first: str, second: str | None) -> Pair:
    """Return the bodies that one argument holds, or two name.

    Raises:
        Fault: an argument cannot be read, or does not say which body is meant.
    """
    one = _argument(first)
    if second is None:
        with open_values(one.path) as values:
            return _both(values, one)
    other = _argument(second)
    if one.path == other.path == STDIN:
        raise Fault(STDIN, "standard input is read once: give it alone for both bodies")
    return Pair(_single(one), _single(other))


class _Argument(NamedTuple):
    path: str
    line: int | None


def _argument(text: str) -> _Argument:
    """Split ``FILE:LINE``; a file of that very name comes first."""
    match = _LINE.fullmatch(text)
    if match is None or _is_there(text):
        return _Argument(text, None)
    return _Argument(match[1], int(match[2]))


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _single(argument: _Argument) -> Logged:
    """Return the one body that an argument names."""
    with open_values(argument.path) as values:
        if argument.line is not None:
            line, value = values.at(argument.line)
            place = Place(values.name, line)
        else:
            place = Place(values.name)
            (_, value), *more = _some(values, 2)
            if more:
                raise Fault(place, "several bodies: name one, as FILE:LINE")
    if _held(value, place) is not None:
        raise Fault(place, "two bodies or more: give it alone to compare them")
    return logged(value, place)


def _both(values: JsonValues, argument: _Argument) -> Pair:
    """Return the two bodies that one argument holds, or ends with."""
    former: Numbered | None = None
    if argument.line is not None:
        line, value = values.at(argument.line)
        former = values.before()
        place = Place(values.name, line)
    else:
        place = Place(values.name)
        (line, value), *more = _some(values, 3)
        if len(more) > 1:
            raise Fault(place, "more than two bodies: name one, as FILE:LINE")
        if more and values.listed:
            return _listed((value, more[0][1]), place)
        if more:
            return _pair(values, (line, value), more[0])
    held = _held(value, place)
    if held is not None:
        return held
    if former is None:
        raise Fault(place, "one body alone: give the one to compare it with")
    return _pair(values, former, (line, value))


def _pair(values: JsonValues, one: Numbered, other: Numbered) -> Pair:
    return Pair(
        *(logged(value, Place(values.name, line)) for line, value in (one, other))
    )


def _listed(pair: Sequence[Any], place: Place) -> Pair:
    return Pair(*(logged(pair[i], place, f"[{i}]") for i in (0, 1)))


def _held(value: Any, place: Place) -> Pair | None:
    """Return the pair that a value is; of a request log, the last two."""
    if is_list(value):
        if len(value) != 2:
            raise Fault(place, f"a list of {len(value)}, not of two bodies")
        return _listed(value, place)
    if not is_object(value):
        return None
    for names in _NAMES:
        if all(name in value for name in names):
            return Pair(*(logged(value[name], place, name) for name in names))
    if "requests" not in value:
        return None
    requests = value["requests"]
    if not is_list(requests):
        raise unexpected(place, "requests", requests, "a list")
    last = range(len(requests))[-2:]
    if len(last) < 2:
        raise Fault(place, "requests: fewer than two")
    return Pair(*(logged(requests[i], place, f"requests[{i}]") for i in last))


def _some(values: JsonValues, count: int) -> list[Numbered]:
    """Return the first values of a file, at most that many.

    Raises:
        Fault: there is none.
    """
    found = list(islice(values, count))
    if not found:
        raise Fault(Place(values.name), "no request body")
    return found
