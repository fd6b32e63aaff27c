"""Hypothesis strategies for text, names, keys, times and JSON values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from raf_session.keys import ScopeKey, SessionKey

__all__ = (
    "hostile_text",
    "json_values",
    "moments",
    "names",
    "objects",
    "scope_keys",
    "session_keys",
)

_NOTABLE = (
    *(
        "",
        "\0",
        "\ud83d",
        "\udcff",
        "😀",
        "e\u0301",
        "é",
        "%",
        "_",
        "*",
        "'",
        '"',
        "\\",
    ),
    *(
        "\n",
        "\r\n",
        "\ufeff",
        "\u2028",
        "null",
        "NaN",
        "{}",
        "\\u0000",
        "--",
        "${a}",
        "{a}",
    ),
    *("x" * 4095, "x" * 4096, "é" * 5000),
)
_NAMES = (
    *(
        "a",
        "A",
        "a ",
        " a",
        "é",
        "e\u0301",
        "ß",
        "ss",
        "\u017f",
        "\uff5e",
        "😀",
        "\ufeff",
    ),
    *(
        "%",
        "_",
        "*",
        "?",
        "[x]",
        "'",
        '"',
        ";",
        "%2f",
        "%25",
        "{a}",
        "null",
        "\n",
        "\x7f",
    ),
    *(
        "a/b",
        "/",
        "a//b",
        "a:b",
        "::",
        ":",
        "a.b",
        ".",
        "..",
        "...",
        "a\\b",
        "a|b",
        "a,b",
    ),
    *("user:a", "app:a", "temp:a", "con", "nul.txt", "x" * 512, "é" * 256, "0", "-1"),
)
_MOMENTS = (
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 1, 1, 8, tzinfo=timezone(timedelta(hours=8))),
    datetime(1970, 1, 1, tzinfo=UTC),
)


def _among(count: int, draw: Callable[[int], str]) -> st.SearchStrategy[str]:
    """Return one of many texts; by number, since some are too long to be printed."""
    return st.integers(0, count - 1).map(draw)


def _notable(number: int) -> str:
    return _NOTABLE[number]


def _name(number: int) -> str:
    return _NAMES[number]


def hostile_text(max_size: int = 30) -> st.SearchStrategy[str]:
    """Text of any code points, NUL and lone surrogates among them.

    A high surrogate before a low one is their character: JSON cannot tell them apart.
    """
    any_text = st.text(
        st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None),
        max_size=max_size,
    )
    surrogates = st.text(st.characters(categories=["Cs"]), max_size=3)
    return st.one_of(any_text, surrogates, _among(len(_NOTABLE), _notable)).map(_joined)


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )


def names(max_size: int = 12) -> st.SearchStrategy[str]:
    """Names: not empty, without NUL and surrogates, within their bytes."""
    return st.one_of(
        st.text(
            st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
            min_size=1,
            max_size=max_size,
        ),
        _among(len(_NAMES), _name),
    )


def session_keys() -> st.SearchStrategy[SessionKey]:
    """Keys of sessions; parts other than the id may be empty."""
    part = st.one_of(st.just(""), names())
    return st.builds(SessionKey, part, part, part, names())


def scope_keys() -> st.SearchStrategy[ScopeKey]:
    """Keys of the state of apps and of their users."""
    part = st.one_of(st.just(""), names())
    return st.builds(ScopeKey, part, st.one_of(st.none(), part))


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """JSON values: hostile text, large integers, all finite floats, nested deeply."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from((2**53 + 1, 2**63, 2**64, -(2**64), 10**40)),
        st.floats(allow_nan=False, allow_infinity=False),
        hostile_text(),
    )
    return st.one_of(
        st.recursive(
            leaves,
            lambda inner: st.one_of(
                st.lists(inner, max_size=4),
                st.dictionaries(hostile_text(8), inner, max_size=4),
            ),
            max_leaves=max_leaves,
        ),
        st.builds(_nested, leaves, st.integers(0, 150)),
    )


def _nested(leaf: Any, depth: int) -> Any:
    for level in range(depth):
        leaf = {"k": leaf} if level % 2 else [leaf]
    return leaf


def objects() -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects, as metadata and fields of others hold them."""
    return st.dictionaries(hostile_text(8), json_values(4), max_size=3)


def moments() -> st.SearchStrategy[datetime]:
    """Aware moments, in zones of any offset; some come again and again."""
    zones = st.one_of(
        st.just(UTC),
        st.timedeltas(
            min_value=-timezone.max.utcoffset(None),
            max_value=timezone.max.utcoffset(None),
        ).map(timezone),
    )
    any_moment = st.datetimes(
        min_value=datetime(1980, 1, 1),  # noqa: DTZ001  (the strategy adds the zone)
        max_value=datetime(2100, 1, 1),  # noqa: DTZ001
        timezones=zones,
    )
    return st.one_of(any_moment, st.sampled_from(_MOMENTS))
