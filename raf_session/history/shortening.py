"""Texts and JSON values made to fit a number of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from raf_session.graphemes import cut_place
from raf_session.json_text import dump_json, load_json

__all__ = ("fit_text", "fit_value", "share_out", "value_size")

_ELLIPSIS: Final = "…"
_LEAST: Final = 3
"""Characters of the JSON text of an ellipsis."""
_DEEPEST: Final = 32
"""Levels of a JSON value that are looked into; what is nested deeper and does not fit
is an ellipsis."""
_JSON_STARTS: Final = frozenset('{["-0123456789')


def fit_text(text: str, limit: int) -> str:
    """Return the text in at most `limit` characters, with a mark of what is missing.

    A text that is JSON becomes the JSON text of a shorter value of its kind, in at
    least 2 characters; else its beginning stays, and no character is broken.  A text
    that fits is returned itself.
    """
    if len(text) <= limit:
        return text
    if text.lstrip()[:1] in _JSON_STARTS:
        try:
            value = load_json(text)
        except ValueError:
            return _fit_prose(text, limit)
        return dump_json(fit_value(value, limit))
    return _fit_prose(text, limit)


def _fit_prose(text: str, limit: int) -> str:
    room = limit - len(_cut(len(text), "character"))
    if room < 0:
        return _ELLIPSIS
    place = cut_place(text, room)
    return text[:place] + _cut(len(text) - place, "character")


def _cut(count: int, unit: str) -> str:
    return f"{_ELLIPSIS} [{count:,} {unit}{'' if count == 1 else 's'} cut]"


def value_size(value: Any) -> int:
    """Return the characters of the JSON text of a value."""
    return len(dump_json(value))


def fit_value(value: Any, limit: int) -> Any:
    """Return a JSON value whose text has at most `limit` characters, at least 2.

    An object stays an object, an array an array, all else becomes a string.  Long
    values of an object share the room; of an array the first items stay.  What is
    missing is said where it was.  A value that fits is returned itself.
    """
    fitted = _fit(value, limit, 0)
    return fitted if value_size(fitted) <= limit else _empty(value)


def _empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {}
    return [] if isinstance(value, list | tuple) else ""


def _fit(value: Any, limit: int, depth: int) -> Any:
    if value_size(value) <= limit:
        return value
    if limit < _LEAST:
        return _empty(value)
    if isinstance(value, str):
        return _fit_string(value, limit)
    if depth < _DEEPEST and isinstance(value, Mapping):
        return _fit_object(cast("Mapping[str, Any]", value), limit, depth)
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return _fit_array(cast("Sequence[Any]", value), limit, depth)
    return _ELLIPSIS


def _fit_string(text: str, limit: int) -> str:
    longest = _cut(len(text), "character")
    place = cut_place(text, max(0, limit - value_size(longest)))
    over = value_size(text[:place] + longest) - limit
    if over > 0:
        place = cut_place(text, max(0, place - over))
    fitted = text[:place] + _cut(len(text) - place, "character")
    return fitted if value_size(fitted) <= limit else _ELLIPSIS


def _fit_object(fields: Mapping[str, Any], limit: int, depth: int) -> Any:
    names = [*fields]
    frames = [value_size(name) + 2 for name in names]
    sizes = [value_size(value) for value in fields.values()]
    least = [min(size, _LEAST) for size in sizes]
    kept = len(names)
    rest: dict[str, str] = {}
    while 1 + sum(frames[:kept]) + sum(least[:kept]) + _inside(rest) > limit:
        if kept == 0:
            return {}
        kept -= 1
        rest = {_free_name(fields): _cut(len(names) - kept, "field")}
    room = limit - 1 - sum(frames[:kept]) - _inside(rest)
    shares = share_out(sizes[:kept], room)
    fitted = {
        name: _fit(fields[name], share, depth + 1)
        for name, share in zip(names, shares, strict=False)
    }
    return fitted | rest


def _inside(rest: Mapping[str, str]) -> int:
    return value_size(rest) - 1 if rest else 0


def _free_name(fields: Mapping[str, Any]) -> str:
    name = _ELLIPSIS
    while name in fields:
        name += _ELLIPSIS
    return name


def _fit_array(items: Sequence[Any], limit: int, depth: int) -> Any:
    mark = _cut(len(items), "item")
    room = limit - 1 - (value_size(mark) + 1 if len(items) > 1 else 0)
    fitted: list[Any] = []
    for item in items:
        size = value_size(item) + 1
        if size > room:
            if room - 1 >= (limit // 4 if fitted else _LEAST):
                fitted.append(_fit(item, room - 1, depth + 1))
            break
        fitted.append(item)
        room -= size
    missing = len(items) - len(fitted)
    return [*fitted, _cut(missing, "item")] if missing else fitted


def share_out(sizes: Sequence[int], room: int) -> list[int]:
    """Return how much of the room each gets: no more than its size, else all alike."""
    shares = [0] * len(sizes)
    left = room
    for rank, place in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[place] = min(sizes[place], max(0, left // (len(sizes) - rank)))
        left -= shares[place]
    return shares
