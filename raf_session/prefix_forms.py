"""Where two JSON values differ first, and whether only the written form does."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from typing_extensions import override

from raf_session._prefix_encoding import encode_value
from raf_session.json_text import dump_json, load_json
from raf_session.prefix_decoding import LargeText
from raf_session.prefix_match import Cause, count_shared

__all__ = (
    "MISSING",
    "Change",
    "Leaf",
    "Step",
    "as_parts",
    "canonical_digest",
    "first_leaf",
    "form_cause",
    "is_array",
    "is_object",
    "plain_form",
    "same",
    "shown",
    "type_of",
    "wire_digest",
)

Step = str | int | LargeText
"""A key or an index."""


class _Missing:
    """The value of what is not there."""

    @override
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def is_object(value: object) -> TypeGuard[dict[Any, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list | tuple) and not isinstance(value, LargeText)


# Places -----------------------------------------------------------------------------


class Leaf(NamedTuple):
    """The first place, in reading order, at which two values differ."""

    path: tuple[Step, ...]
    """To the leaf; to the object itself where only the order of its keys differs."""
    before: Any
    """`MISSING` where nothing stood there."""
    after: Any


class Change(NamedTuple):
    """What happened, and where in the two values."""

    cause: Cause
    leaf: Leaf | None = None


def first_leaf(before: Any, after: Any) -> Leaf | None:
    """Return where the values differ first, `None` where they are the same JSON.

    1, 1.0 and true differ, and so do the orders of an object's keys.
    """
    if is_object(before) and is_object(after):
        return _first_key(before, after)
    if is_array(before) and is_array(after):
        return _first_item(before, after)
    if _same_scalar(before, after):
        return None
    return Leaf((), before, after)


def same(before: Any, after: Any) -> bool:
    """Tell whether the values are the same JSON."""
    return first_leaf(before, after) is None


def _same_scalar(before: Any, after: Any) -> bool:
    if type(before) is not type(after) or before != after:
        return False
    return not isinstance(before, float) or _sign(before) == _sign(after)


def _sign(number: float) -> float:
    return math.copysign(1.0, number)


def _first_key(before: dict[Step, Any], after: dict[Step, Any]) -> Leaf | None:
    old, new = list(before), list(after)
    for place in range(max(len(old), len(new))):
        if place == len(old) or (place < len(new) and new[place] not in before):
            key = new[place]
            return Leaf((key,), MISSING, after[key])
        key = old[place]
        if key not in after:
            return Leaf((key,), before[key], MISSING)
        if key != new[place]:
            return Leaf((), before, after)
        leaf = first_leaf(before[key], after[key])
        if leaf is not None:
            return leaf._replace(path=(key, *leaf.path))
    return None


def _first_item(before: Sequence[Any], after: Sequence[Any]) -> Leaf | None:
    for index in range(max(len(before), len(after))):
        if index == len(before):
            return Leaf((index,), MISSING, after[index])
        if index == len(after):
            return Leaf((index,), before[index], MISSING)
        leaf = first_leaf(before[index], after[index])
        if leaf is not None:
            return leaf._replace(path=(index, *leaf.path))
    return None


# Forms ------------------------------------------------------------------------------

_FORMS: Final = (Cause.KEY_ORDER, Cause.WHITESPACE, Cause.UNICODE, Cause.NUMBER_FORM)
_ALL_FORMS: Final = frozenset(_FORMS)
_DEEPEST_TEXT: Final = 50
_LONGEST_TEXT: Final = 1 << 16
"""How long a string may be, in characters, to be looked into for JSON."""

_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_TOKEN: Final = re.compile(r'("(?:[^"\\]|\\.)*")|(\s+)|(-?\d[\d.eE+-]*)')


def form_cause(before: Any, after: Any) -> Cause | None:
    """Return which written form alone makes the values differ, `None` where more does.

    The order of keys, how much white space stands where some does or at the ends, the
    Unicode form or the form of numbers, in values and in strings that hold JSON.  Where
    several of them differ, the first in this order.
    """
    if not _alike(before, after, _ALL_FORMS):
        return None
    for form in _FORMS:
        if _alike(before, after, frozenset((form,))):
            return form
    for form in _FORMS:
        if not _alike(before, after, _ALL_FORMS - {form}):
            return form
    return None


def _alike(before: Any, after: Any, forms: frozenset[Cause]) -> bool:
    """Whether the values are the same but for these forms."""
    if is_object(before) and is_object(after):
        old, new = _plain_keys(before, forms), _plain_keys(after, forms)
        if len(old) != len(before) or old.keys() != new.keys():
            return False
        if Cause.KEY_ORDER not in forms and list(old) != list(new):
            return False
        return all(_alike(old[key], new[key], forms) for key in old)
    if is_array(before) and is_array(after):
        return len(before) == len(after) and all(
            _alike(one, other, forms) for one, other in zip(before, after, strict=True)
        )
    return same(before, after) or same(
        _canonical(before, forms), _canonical(after, forms)
    )


def _plain_keys(value: dict[Step, Any], forms: frozenset[Cause]) -> dict[Step, Any]:
    return {_plain_key(key, forms): item for key, item in value.items()}


def _plain_key(key: Step, forms: frozenset[Cause]) -> Step:
    return _plain(key, forms) if isinstance(key, str) else key


def _canonical(value: Any, forms: frozenset[Cause], *, inside: bool = False) -> Any:
    """Return the value without what these forms write differently.

    Args:
        value: what is looked at.
        forms: what does not matter.
        inside: whether it stood in a string, where no more strings are looked into.
    """
    if isinstance(value, str):
        return _plain(value, forms) if inside else _canonical_text(value, forms)
    if is_object(value):
        pairs = [
            (_plain_key(key, forms), _canonical(item, forms, inside=inside))
            for key, item in value.items()
        ]
        if Cause.KEY_ORDER in forms:
            pairs.sort(key=_first)
        return dict(pairs)
    if is_array(value):
        items = value
        return [_canonical(item, forms, inside=inside) for item in items]
    if isinstance(value, float) and Cause.NUMBER_FORM in forms and value.is_integer():
        return int(value)
    return value


def _first(pair: tuple[Step, Any]) -> str:
    return str(pair[0])


def _plain(text: str, forms: frozenset[Cause]) -> str:
    if Cause.UNICODE in forms and not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split()) if Cause.WHITESPACE in forms else text


def _canonical_text(text: str, forms: frozenset[Cause]) -> Any:
    """Look into a string that holds JSON, as the arguments of a call; plain otherwise.

    What parsing hides stays in sight: a value under a key that comes again, and, unless
    it is one of these forms, the white space between tokens, how strings are escaped
    and how numbers are written.
    """
    if text[:1] not in {"{", "["} or len(text) > _LONGEST_TEXT or _is_deep(text):
        return _plain(text, forms)
    try:
        value = load_json(text)
    except ValueError:
        return _plain(text, forms)
    strings: list[str] = []
    spaces: list[str] = []
    numbers: list[str] = []
    for token in _TOKEN.finditer(text):
        (strings, spaces, numbers)[(token.lastindex or 1) - 1].append(token.group())
    if Cause.UNICODE in forms:
        strings = [load_json(token) for token in strings]
    if Cause.NUMBER_FORM in forms:
        numbers = [str(_canonical(load_json(token), forms)) for token in numbers]
    hidden = (
        sorted(_plain(token, forms) for token in strings),
        [] if Cause.WHITESPACE in forms else sorted(spaces),
        sorted(numbers),
    )
    return [_canonical(value, forms, inside=True), *hidden]


def _is_deep(text: str) -> bool:
    """Whether JSON text is nested so deeply that it is not worth looking into."""
    depth = 0
    for token in _BRACKET.finditer(text):
        bracket = token.group()
        if len(bracket) == 1:  # else a string, whatever it holds
            depth += 1 if bracket in "[{" else -1
        if depth > _DEEPEST_TEXT:
            return True
    return False


def wire_digest(value: Any) -> int:
    """Return the digest of a value as it is sent, as `value_digest` does."""
    return encode_value(value).digest()


def canonical_digest(value: Any) -> int:
    """Return the digest of a value without its written forms."""
    return encode_value(_canonical(value, _ALL_FORMS)).digest()


_TEXT_TYPES: Final = frozenset(("text", "input_text", "output_text"))


def plain_form(value: Any) -> Any:
    """Return a message, or a system prompt, in the form that has the least to it.

    A list that holds one text part alone is its text; a null field is absent.
    """
    if is_array(value):
        return _only_text(value)
    if not is_object(value):
        return value
    fields = value
    plain = {key: item for key, item in fields.items() if item is not None}
    if is_array(plain.get("content")):
        plain["content"] = _only_text(plain["content"])
    return plain


def as_parts(value: Any, other: Any) -> Any:
    """Return a text as a list of one part, where the other value is one of others.

    So that a part which came or went stands where it is.
    """
    if not isinstance(value, str | LargeText) or not is_array(other):
        return value
    if not is_array(_only_text(other)):  # what differs is the form as well
        return value
    return [{"type": "text", "text": value}]


def _only_text(parts: Sequence[Any]) -> Any:
    part = parts[0] if len(parts) == 1 else None
    if is_object(part) and part.keys() == {"type", "text"}:
        return part["text"] if type_of(part) in _TEXT_TYPES else parts
    return parts


def type_of(part: Any) -> str | None:
    """Return the ``type`` of a part, `None` where it has none that is a string."""
    kind = part.get("type") if is_object(part) else None
    return kind if isinstance(kind, str) else None


# For people -------------------------------------------------------------------------

_WIDTH: Final = 72
_LEAD: Final = 24


def shown(before: Any, after: Any) -> tuple[str | None, str | None]:
    """Return both values as JSON, shortened around the first place that differs."""
    if isinstance(before, str) and isinstance(after, str):
        start = max(0, count_shared(before, after) - _LEAD)
        return _window(before, start), _window(after, start)
    texts = [None if v is MISSING else dump_json(_brief(v)) for v in (before, after)]
    one, other = texts
    start = (
        0 if one is None or other is None else max(0, count_shared(one, other) - _LEAD)
    )
    return _cut(one, start), _cut(other, start)


def _window(text: str, start: int) -> str:
    front = "…" if start else ""
    end = "…" if len(text) > start + _WIDTH else ""
    return dump_json(f"{front}{text[start : start + _WIDTH]}{end}")


def _cut(text: str | None, start: int) -> str | None:
    if text is None or len(text) <= _WIDTH:
        return text
    front = "…" if start else ""
    end = "…" if len(text) > start + _WIDTH else ""
    return f"{front}{text[start : start + _WIDTH]}{end}"


def _brief(value: Any) -> Any:
    """Return the value with long strings cut, for display."""
    if isinstance(value, LargeText):
        return str(value)
    if isinstance(value, str):
        return value if len(value) <= 4 * _WIDTH else f"{value[: 4 * _WIDTH]}…"
    if is_object(value):
        items = value.items()
        return {str(key): _brief(item) for key, item in items}
    if is_array(value):
        return [_brief(item) for item in value]
    return value
