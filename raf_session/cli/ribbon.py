"""Two prompts side by side: what of the later one the former one held, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from raf_session.prefix import (
    PrefixTracker,
    header_digest,
    message_digest,
    message_size,
)
from raf_session.prefix_match import count_shared
from raf_session.request_shapes import PromptRequest

__all__ = ("Part", "PartState", "read_parts")


class PartState(StrEnum):
    """What became of a part of the prompt."""

    SHARED = "shared"
    """It stands where it stood, and so does everything before it."""
    CHANGED = "changed"
    """Something else stood in its place."""
    BEHIND = "behind"
    """It was there before, but behind a change, where no prefix reaches."""
    NEW = "new"
    """It was not there before."""
    GONE = "gone"
    """It was there before, and is no more."""


class Part(NamedTuple):
    """A field of the header, or messages that follow one another."""

    name: str
    """As the body calls it: ``tools``, ``messages[0..12]``; of what is gone, as the
    former body did."""
    state: PartState
    bytes: int
    """As encoded for the prefix hash."""


class _Piece(NamedTuple):
    state: PartState
    bytes: int
    field: str
    at: int | None
    """Which message it is; `None` in the header."""


def read_parts(
    former: PromptRequest, request: PromptRequest, *, header_changed: bool
) -> tuple[Part, ...]:
    """Return the parts of a request in reading order, equal neighbours as one.

    Args:
        former: the request before.
        request: the one to look at.
        header_changed: whether the two have different headers.
    """
    pieces = [
        *_header_pieces(former, request),
        *_message_pieces(former, request, behind=header_changed),
    ]
    return tuple(map(_part, _runs(pieces)))


# The header ----------------------------------------------------------------------


def _header_pieces(former: PromptRequest, request: PromptRequest) -> Iterator[_Piece]:
    old, new = former.header, request.header
    behind = False
    for name in dict.fromkeys(("model", "tools", *old, *new)):
        if name in new:
            state = _header_state(name, old, new, behind=behind)
            place = request.names.get(name, name)
            yield _Piece(state, _field_bytes(name, new[name]), place, None)
        elif name in old:
            state = PartState.GONE
            place = former.names.get(name, name)
            yield _Piece(state, _field_bytes(name, old[name]), place, None)
        else:
            continue
        behind = behind or state is not PartState.SHARED


def _header_state(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any], *, behind: bool
) -> PartState:
    if name not in old:
        return PartState.NEW
    if header_digest({name: old[name]}) != header_digest({name: new[name]}):
        return PartState.CHANGED
    return PartState.BEHIND if behind else PartState.SHARED


def _field_bytes(name: str, value: Any) -> int:
    whole, empty = (
        PrefixTracker().touch([], header).header_bytes for header in ({name: value}, {})
    )
    return whole - empty


# Messages ------------------------------------------------------------------------


def _message_pieces(
    former: PromptRequest, request: PromptRequest, *, behind: bool
) -> Iterator[_Piece]:
    old = [message_digest(message) for message in former.messages]
    new = [message_digest(message) for message in request.messages]
    first = 0 if behind else count_shared(old, new)
    place = request.names.get("messages", "messages")
    former_place = former.names.get("messages", "messages")
    gone = set(_unmatched(old, new, first))
    fresh = set(_unmatched(new, old, first))
    changed = _changed(old, new, first, gone & fresh)
    gone -= changed
    runs = _starts(gone)
    for index in range(max(len(old), len(new))):
        for lost in runs.get(index, ()):
            size = message_size(former.messages[lost])
            yield _Piece(PartState.GONE, size, former_place, lost)
        if index >= len(new):
            continue
        if index < first:
            state = PartState.SHARED
        elif index in changed:
            state = PartState.CHANGED
        else:
            state = PartState.NEW if index in fresh else PartState.BEHIND
        yield _Piece(state, message_size(request.messages[index]), place, index)


def _changed(
    old: Sequence[int], new: Sequence[int], first: int, places: set[int]
) -> set[int]:
    """Return those of the places up to which nothing has moved."""
    found: set[int] = set()
    for place in range(first, min(len(old), len(new))):
        if place in places:
            found.add(place)
        elif old[place] != new[place]:
            break
    return found


def _unmatched(these: Sequence[int], others: Sequence[int], first: int) -> list[int]:
    """Return from `first` on the places of these that are not among the others."""
    left = Counter(others[first:])
    places: list[int] = []
    for place in range(first, len(these)):
        if left[these[place]]:
            left[these[place]] -= 1
        else:
            places.append(place)
    return places


def _starts(places: Iterable[int]) -> dict[int, list[int]]:
    """Return runs of numbers that follow one another, by the first of each."""
    runs: dict[int, list[int]] = {}
    run: list[int] = []
    for place in sorted(places):
        if not run or place != run[-1] + 1:
            run = runs.setdefault(place, [])
        run.append(place)
    return runs


# Runs ----------------------------------------------------------------------------


def _runs(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    run: list[_Piece] = []
    for piece in pieces:
        if run and not _follows(run[-1], piece):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _follows(one: _Piece, other: _Piece) -> bool:
    if one.at is None or other.at is None:
        return one.state is other.state and one.at is other.at
    return one.state is other.state and other.at == one.at + 1


def _part(run: Sequence[_Piece]) -> Part:
    first, last = run[0], run[-1]
    if first.at is None:
        name = ", ".join(piece.field for piece in run)
    elif first is last:
        name = f"{first.field}[{first.at}]"
    else:
        name = f"{first.field}[{first.at}..{last.at}]"
    return Part(name, first.state, sum(piece.bytes for piece in run))
