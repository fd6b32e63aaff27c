"""The fields of a request body: which are kept, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard

from raf_session.errors import InvalidValueError
from raf_session.prefix_match import EXCLUDED

__all__ = (
    "TRANSPORT",
    "Reducer",
    "build_header",
    "drop",
    "dropping",
    "each",
    "inside",
    "is_blank",
    "is_list",
    "is_object",
    "only_marks",
    "read_messages",
    "read_object",
    "reduce_fields",
    "unexpected",
    "unless",
)

Reducer: TypeAlias = Callable[[Any], Any]
"""Returns what of a field's value is rendered into the prompt; `None` for nothing."""

TRANSPORT: Final = ("extra_headers", "extra_query", "timeout")
"""Arguments of the Python SDKs that are not sent in the body."""


_LISTS: Final = (list, tuple)
_PLAIN: Final = frozenset((dict,))


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the value is a JSON object."""
    return type(value) is dict or isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a JSON list."""
    return type(value) is list or isinstance(value, _LISTS)


def only_marks(block: object) -> bool:
    """Whether the block is a cache mark and nothing else."""
    return is_object(block) and bool(block) and EXCLUDED.issuperset(block)


# Reducers ------------------------------------------------------------------------


def drop(_value: Any) -> None:
    """Leave a field out, whatever its value."""


def dropping(*names: str) -> dict[str, Reducer]:
    """Return the reducers that leave these fields out."""
    return dict.fromkeys(names, drop)


def unless(*defaults: Any) -> Reducer:
    """Return a reducer that leaves out these values, which are the default."""

    def reduce(value: Any) -> Any:
        # Not by equality alone: 1 is not true.
        default = any(isinstance(value, type(d)) and value == d for d in defaults)
        return None if default else value

    return reduce


def inside(reducers: Mapping[str, Reducer]) -> Reducer:
    """Return a reducer of the fields of an object, which drops one left empty."""

    def reduce(value: Any) -> Any:
        if not is_object(value):
            return value
        kept = reduce_fields(value, reducers)
        if not kept:
            return None
        return value if _same_items(kept, value) else kept

    return reduce


def each(reducers: Mapping[str, Reducer]) -> Reducer:
    """Return a reducer of the fields of every object in a list."""

    def reduce(value: Any) -> Any:
        if not is_list(value) or not any(
            is_object(item) and not reducers.keys().isdisjoint(item) for item in value
        ):
            return value
        return [
            reduce_fields(item, reducers) if is_object(item) else item for item in value
        ]

    return reduce


def _same_items(kept: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    return len(kept) == len(given) and all(kept[name] is given[name] for name in given)


def reduce_fields(
    value: Mapping[str, Any], reducers: Mapping[str, Reducer]
) -> dict[str, Any]:
    """Return the fields of an object, reduced; fields without a reducer are kept.

    Null counts as absent.
    """
    kept: dict[str, Any] = {}
    for name, item in value.items():
        reduce = reducers.get(name)
        reduced = item if reduce is None else reduce(item)
        if reduced is not None:
            kept[name] = reduced
    return kept


# Reading -------------------------------------------------------------------------


_KINDS: Final[Mapping[type[Any], str]] = {
    dict: "an object",
    list: "a list",
    tuple: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def unexpected(path: str, value: object, wanted: str) -> InvalidValueError:
    """Return the error of a JSON value that is of another kind than is wanted."""
    kind = _KINDS.get(type(value), type(value).__name__)
    return InvalidValueError(path, f"{kind} where {wanted} is expected")


def read_messages(body: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the list of this name, which holds objects only.

    Raises:
        InvalidValueError: it is missing, or no list, or an element is no object.
    """
    value = body.get(name)
    if value is None:
        raise InvalidValueError(name, "missing")
    if not is_list(value):
        raise unexpected(name, value, "a list")
    if not _PLAIN.issuperset(map(type, value)):
        for index, message in enumerate(value):
            if not is_object(message):
                raise unexpected(f"{name}[{index}]", message, "a message")
    return value


def read_object(value: object, path: str) -> Mapping[str, Any]:
    """Return the value, an object; an empty one for `None`.

    Raises:
        InvalidValueError: it is no object.
    """
    if value is None:
        return {}
    if not is_object(value):
        raise unexpected(path, value, "an object")
    return value


def build_header(
    parameters: Mapping[Any, Any],
    *,
    model: Any = None,
    tools: Any = None,
    system: Any = None,
    late: Collection[str] = (),
) -> dict[str, Any]:
    """Return a header in the order in which it is rendered.

    Args:
        parameters: every other field that counts, in any order.
        model: the model, or `None`.
        tools: the tools; a list without any is left out.
        system: the system prompt, likewise.
        late: the parameters that touch nothing but the messages.

    Raises:
        InvalidValueError: a parameter's name is none, or is that of a section that the
            API names otherwise.
    """
    sections = {"model": model, "tools": tools, "system": system}
    sections = {name: value for name, value in sections.items() if not is_blank(value)}
    for name in parameters:
        if not isinstance(name, str):
            kind = type(name).__name__
            raise InvalidValueError("", f"an object's key is {kind}, not a string")
        if name in sections:
            raise InvalidValueError(name, "no field of this API")
    early = [name for name in sorted(parameters) if name not in late]
    order = ("model", "tools", *early, "system", *sorted(late))
    fields = {**parameters, **sections}
    return {name: fields[name] for name in order if name in fields}


def is_blank(value: object) -> bool:
    """Whether the value of a section is absent, or a list of nothing but marks."""
    if value is None:
        return True
    return is_list(value) and all(map(only_marks, value))
