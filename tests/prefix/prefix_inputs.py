"""Messages of every kind for the prefix hash: fitting, ill-fitting and hostile."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import types
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st
from typing_extensions import override

from raf_session.errors import InvalidValueError
from raf_session.frozen import FrozenDict

PART_FIELDS = ("text", "image_url", "input_audio", "file", "refusal")
PART_TYPES = ("text", "image_url", "input_audio", "file", "refusal", "reasoning")
MARKS = ("cache_control", "cachePoint", "prompt_cache_breakpoint")
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class Word(str):
    __slots__ = ()


class Liar(str):
    """Equal to everything and hashed like nothing else."""

    __slots__ = ()

    @override
    def __eq__(self, other: object) -> bool:
        return True

    @override
    def __hash__(self) -> int:
        return 7

    @override
    def __str__(self) -> str:
        return "another text"


class Colour(enum.StrEnum):
    RED = "red"
    USER = "user"


class Level(enum.IntEnum):
    HIGH = 300


class Count(int):
    @override
    def __int__(self) -> int:
        return 5


class Ratio(float):
    @override
    def __float__(self) -> float:
        return 0.25


class Fraction(float):
    pass


class Backwards(list[Any]):
    @override
    def __iter__(self) -> Iterator[Any]:
        return iter(self[::-1])


class Pairs(dict[str, Any]):
    @override
    def items(self) -> Any:
        return [("role", "system")]

    @override
    def keys(self) -> Any:
        return ["role"]


Point = namedtuple("Point", "x y")  # noqa: PYI024


def _ordered(items: dict[str, Any]) -> OrderedDict[str, Any]:
    moved = OrderedDict(items)
    if moved:
        moved.move_to_end(next(iter(moved)))
    return moved


texts = st.one_of(
    st.text(st.characters(), max_size=12),  # lone surrogates too
    st.sampled_from(
        [
            "",
            "a",
            "\0",
            "\ud800",
            "\udc00\ud800",
            "é",
            "e\u0301",
            "\u4f60\u597d",
            "\U0001f600",
        ]
    ),
    st.builds(
        lambda text, times: text * times,
        st.text(st.characters(), min_size=1, max_size=3),
        st.sampled_from([127, 128, 1365, 1366, 2048, 4095, 4096, 4097]),
    ),
)
plain_keys = st.one_of(
    st.sampled_from(
        [*MARKS, *PART_FIELDS, "type", "role", "content", "name", "id", "tool_calls"]
    ),
    st.sampled_from(["function", "arguments", "tool_call_id", "x", "ключ"]),
    st.text(st.characters(), max_size=4),
)
numbers = st.one_of(
    st.integers(),
    st.integers(min_value=-300, max_value=300),
    st.builds(
        lambda bits, by, sign: sign * (2**bits + by),
        st.integers(0, 300),
        st.integers(-1, 1),
        st.sampled_from([1, -1]),
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)
plain_leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
odd_leaves = st.one_of(
    texts.map(Word),
    texts.map(Liar),
    st.sampled_from(list(Colour)),
    st.just(Level.HIGH),
    st.integers().map(Count),
    st.just(Ratio(1.5)),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
    st.builds(Point, plain_leaves, plain_leaves),
)
junk = st.one_of(
    st.sampled_from([float("nan"), float("inf"), float("-inf"), Ratio("nan")]),
    st.binary(max_size=3),
    st.builds(object),
    st.just({1, 2}),
    st.just(decimal.Decimal(1)),
    st.just(dt.date(2026, 1, 1)),
    st.just(types.MappingProxyType({"a": 1})),
    st.just(range(3)),
    st.just({1: 2}),
    st.just({None: 2}),
    st.sampled_from([Fraction("inf"), complex(1, 1)]),
)


def values(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> Any:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(keys, inner, max_size=4),
        ),
        max_leaves=8,
    )


plain_values = values(plain_leaves, plain_keys)
odd_values = st.one_of(
    values(st.one_of(plain_leaves, odd_leaves), st.one_of(plain_keys, texts.map(Word))),
    st.lists(plain_leaves, max_size=3).map(Backwards),
    st.dictionaries(plain_keys, plain_leaves, max_size=3).map(_ordered),
    st.dictionaries(plain_keys, plain_leaves, max_size=3).map(Pairs),
    st.dictionaries(texts.map(Liar), plain_leaves, max_size=3),
)
any_values = st.one_of(
    plain_values,
    odd_values,
    junk,
    values(st.one_of(plain_leaves, odd_leaves, junk), plain_keys),
)


def objects(
    fields: dict[str, st.SearchStrategy[Any]],
    others: st.SearchStrategy[Any],
    keys: st.SearchStrategy[Any] = plain_keys,
) -> st.SearchStrategy[dict[Any, Any]]:
    """Dicts of some of these fields and some others, in any order."""

    def build(declared: dict[str, Any], rest: dict[Any, Any]) -> Any:
        return st.permutations([*({**rest, **declared}).items()]).map(dict)

    return st.builds(
        build,
        st.fixed_dictionaries({}, optional=fields),
        st.dictionaries(keys, others, max_size=3),
    ).flatmap(lambda made: made)


def parts(of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[Any, Any]]:
    kinds = st.one_of(st.sampled_from(PART_TYPES), st.sampled_from(PART_TYPES), of)
    payloads = {
        name: st.one_of(texts, st.dictionaries(plain_keys, of, max_size=2), of)
        for name in PART_FIELDS
    }
    return st.one_of(
        objects({"type": kinds, **payloads}, of),
        st.dictionaries(st.sampled_from(MARKS), of, max_size=2),
    )


def calls(of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[Any, Any]]:
    function = st.one_of(objects({"name": texts, "arguments": texts}, of), of)
    return objects(
        {
            "id": st.one_of(texts, of),
            "type": st.one_of(st.just("function"), of),
            "function": function,
        },
        of,
    )


def messages(
    of: st.SearchStrategy[Any], roles: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[dict[Any, Any]]:
    """Messages whose untyped values are drawn from `of`."""
    content = st.one_of(
        texts, st.none(), st.lists(parts(of), max_size=3), st.lists(of, max_size=2), of
    )
    names = ("name", "tool_call_id", "refusal")
    fields = {
        "content": content,
        "tool_calls": st.one_of(st.lists(calls(of), max_size=3), of),
        **{name: st.one_of(texts, of) for name in names},
        **dict.fromkeys(MARKS, of),
    }
    made = objects(fields, of)
    role = roles if roles is not None else st.sampled_from(ROLES)

    def place(message: dict[Any, Any], role: Any, first: bool) -> dict[Any, Any]:
        rest = {key: value for key, value in message.items() if key != "role"}
        return {"role": role, **rest} if first else {**rest, "role": role}

    return st.builds(place, made, role, st.booleans())


valid_messages = messages(plain_values)
few_messages = st.sampled_from(
    [
        {"role": "user", "content": "a"},
        {"content": "a", "role": "user", "cache_control": {}},
        {"role": "user", "content": "\u4f60" * 2000},
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f"}, "id": "i"}]},
        {"role": "tool", "tool_call_id": "i", "content": "x" * 70_000},
        {"role": "user", "content": [{"text": "t", "type": "text"}, {"cachePoint": 1}]},
        {"role": "user", "content": [{"text": 5, "type": "text"}], "x": [2**70, 1.5]},
        {"role": "system", "name": None, "y": {"b": 1, "a": [{}]}},
    ]
)
"""Quick to draw, for tests of many messages."""

odd_messages = messages(
    odd_values, st.sampled_from([*ROLES, Colour.USER, Word("tool"), Liar("user")])
)
any_messages = st.one_of(
    valid_messages,
    odd_messages,
    messages(any_values, st.one_of(st.sampled_from(ROLES), any_values)),
    st.dictionaries(plain_keys, any_values, max_size=3),
    any_values,
    valid_messages.map(types.MappingProxyType),
    valid_messages.map(_ordered),
    valid_messages.map(FrozenDict),
    valid_messages.map(Pairs),
)


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """Return what a call gives or raises, as something that can be compared."""
    try:
        return ("value", call(*args))
    except InvalidValueError as error:
        return ("invalid", error.path, error.reason)
    except Exception as error:  # noqa: BLE001  (whatever it is, both must raise it)
        return (type(error), str(error))


def deep(levels: int, leaf: Any = 1) -> Any:
    """Return lists and dicts in turns, that many inside one another."""
    value = leaf
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def same_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return an equal message that shares no object with this one."""
    import copy

    return copy.deepcopy(dict(message))
