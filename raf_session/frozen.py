"""JSON values that nobody can change, and the walk that makes them so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

from typing_extensions import override

from raf_session.errors import InvalidValueError

__all__ = (
    "EMPTY",
    "MAX_DEPTH",
    "FrozenDict",
    "FrozenJson",
    "freeze",
    "freeze_json",
    "freeze_states",
    "join_path",
    "thaw",
)

MAX_DEPTH: Final = 200
"""How many containers may stand inside one another."""

MAX_INT_BYTES: Final = 1785
"""How many bytes of two's complement an integer may have: some 4,298 digits.

Python refuses to write decimal numbers of more than 4,300 digits.
"""

_V = TypeVar("_V")


class FrozenDict(dict[str, _V]):
    """A dict that refuses to be changed: equal to, and read like, any other dict.

    It is a `dict`, so JSON encoders, pydantic and the compiled hash take it as it is.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a FrozenDict cannot be changed; copy it with dict(...)")

    __setitem__: Any = _refuse
    __delitem__: Any = _refuse
    __ior__: Any = _refuse
    clear: Any = _refuse
    pop: Any = _refuse
    popitem: Any = _refuse
    setdefault: Any = _refuse
    update: Any = _refuse

    def __new__(cls, *args: Any, **kwargs: Any) -> FrozenDict[_V]:
        """Make one with the items that `dict` would take from these arguments."""
        self = super().__new__(cls)
        cast("Any", dict).update(self, *args, **kwargs)
        return self

    def __init__(self, *_: Any, **__: Any) -> None:
        # Filled by `__new__`: a second `__init__` changes nothing.
        super().__init__()

    @override
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (dict(self),))

    def __copy__(self) -> FrozenDict[_V]:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict[_V]:
        return self

    @override
    def copy(self) -> dict[str, _V]:
        """Return a plain dict with the same items."""
        return dict(self)


def frozen_dict(items: dict[str, _V]) -> FrozenDict[_V]:
    """Return `FrozenDict(items)`, at a sixth of the cost."""
    made: FrozenDict[_V] = _new(FrozenDict)
    _fill(made, items)
    return made


_new: Final = cast("Any", dict).__new__
_fill: Final = cast("Any", dict).update

FrozenJson: TypeAlias = (
    "str | int | float | bool | tuple[FrozenJson, ...] | FrozenDict[FrozenJson] | None"
)
"""A JSON value with tuples for lists and `FrozenDict` for objects."""

EMPTY: Final[FrozenDict[Any]] = FrozenDict()
"""The empty object, shared."""


def freeze(value: object, path: str = "", depth: int = 1) -> FrozenJson:
    """Return an immutable copy of a JSON value.

    Lists and tuples become tuples, dicts become `FrozenDict` in their key order;
    subclasses of `str`, `int` and `float` become plain values.

    Args:
        value: what to copy.
        path: where it stands, for errors.
        depth: the level that a container here would stand on, the outermost being 1.

    Raises:
        InvalidValueError: the value or a part of it is no JSON value: NaN, an
            infinity, bytes, a key that is no string, another type, or a container
            deeper than `MAX_DEPTH`; a cycle is too deep.
    """
    try:
        return _freeze(value, depth)
    except _Fault as fault:
        raise InvalidValueError(
            join_path(path, *reversed(fault.steps)), fault.reason
        ) from None


STATE_DEPTH: Final = 2
"""The level on which the value of a state stands: the states are an object."""


def freeze_states(states: Mapping[str, object]) -> FrozenDict[Any]:
    """Return frozen copies of values by name.

    Raises:
        InvalidValueError: a name is no string, or a value no JSON value.
    """
    frozen: dict[str, Any] = {}
    for name, value in states.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError("", f"a name is {type(name).__name__}, no string")
        frozen[str.__str__(name)] = freeze(value, name, STATE_DEPTH)
    return FrozenDict(frozen)


def join_path(path: str, *steps: str | int) -> str:
    """Return the path with keys and indexes added, as ``content[0].text``."""
    for step in steps:
        if isinstance(step, int):
            path = f"{path}[{step}]"
        else:
            path = f"{path}.{step}" if path else step
    return path


_INT_LIMIT: Final = 1 << (8 * MAX_INT_BYTES - 1)


class _Fault(Exception):  # noqa: N818  (never leaves this module)
    """What is wrong, and the steps to it, innermost first."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.steps: list[str | int] = []
        super().__init__(reason)


def _freeze(value: object, depth: int) -> FrozenJson:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return cast("FrozenJson", value)
    if isinstance(value, int):
        if not -_INT_LIMIT <= value < _INT_LIMIT:
            raise _Fault(f"an integer of more than {MAX_INT_BYTES} bytes")
        return int.__int__(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _Fault(f"{float(value)!r} is not a JSON number")
        return float(value)
    if isinstance(value, dict):
        return _freeze_dict(cast("dict[object, object]", value), depth)
    if isinstance(value, list | tuple):
        return _freeze_list(cast("list[object] | tuple[object, ...]", value), depth)
    if isinstance(value, str):
        return str.__str__(value)
    raise _Fault(f"{kind.__name__} is not a JSON type")


def _freeze_dict(value: dict[object, object], depth: int) -> FrozenDict[FrozenJson]:
    if depth > MAX_DEPTH:
        raise _Fault(f"nested deeper than {MAX_DEPTH}")
    items: dict[str, FrozenJson] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Fault(f"an object's key is {type(key).__name__}, not a string")
        name = str.__str__(key)
        try:
            items[name] = _freeze(item, depth + 1)
        except _Fault as fault:
            fault.steps.append(name)
            raise
    return frozen_dict(items)


def _freeze_list(
    value: list[object] | tuple[object, ...], depth: int
) -> tuple[FrozenJson, ...]:
    if depth > MAX_DEPTH:
        raise _Fault(f"nested deeper than {MAX_DEPTH}")
    items: list[FrozenJson] = []
    for index, item in enumerate(value):
        try:
            items.append(_freeze(item, depth + 1))
        except _Fault as fault:
            fault.steps.append(index)
            raise
    return tuple(items)


def freeze_json(value: Any) -> Any:
    """Return a frozen copy of a value that a JSON reader made, without checks."""
    if isinstance(value, dict):
        frozen: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", value).items():
            frozen[key] = item if type(item) is str else freeze_json(item)
        return frozen_dict(frozen)
    if isinstance(value, list):
        return tuple([freeze_json(item) for item in cast("list[Any]", value)])  # type: ignore[redundant-cast]
    return value


def thaw(value: object) -> Any:
    """Return a plain, changeable copy: lists for tuples, dicts for `FrozenDict`."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        return {key: thaw(item) for key, item in items.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in cast("tuple[object, ...]", value)]
    return value
