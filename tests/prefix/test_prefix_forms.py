"""When two values differ in their written form alone, and when in more."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from prefix_inputs import plain_keys, plain_leaves, plain_values, values

from raf_session import prefix_explanation
from raf_session.frozen import freeze
from raf_session.prefix_forms import (
    canonical_digest,
    first_leaf,
    form_cause,
    same,
    wire_digest,
)
from raf_session.prefix_match import Cause


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, Cause.KEY_ORDER),
        ('{"a":1,"b":2}', '{"b":2,"a":1}', Cause.KEY_ORDER),
        ("a b", "a\n\n b", Cause.WHITESPACE),
        ("", " ", Cause.WHITESPACE),
        ("a", "a\n", Cause.WHITESPACE),
        ('{"a":1}', '{"a": 1}', Cause.WHITESPACE),
        ("now here", "nowhere", None),
        ('{"a":"x y"}', '{"a":"xy"}', None),
        ("é", "e\u0301", Cause.UNICODE),
        ('["é"]', '["\\u00e9"]', Cause.UNICODE),
        ('["/"]', '["\\/"]', Cause.UNICODE),
        (1, 1.0, Cause.NUMBER_FORM),
        (0.0, -0.0, Cause.NUMBER_FORM),
        ("[1]", "[1.0]", Cause.NUMBER_FORM),
        ("[100]", "[1e2]", Cause.NUMBER_FORM),
        (1, True, None),
        ("[1]", "[true]", None),
        # A key that comes again: what the parser drops is not dropped here.
        ('{"n":7,"n":2}', '{"n":9,"n":2}', None),
        ('{"p":"/etc","p":"/tmp"}', '{"p":"/home","p":"/tmp"}', None),
        ('{"a":1,"a":2}', '{"a":2}', None),
        ({"a": "b c"}, {"a": "b  d"}, None),
        ([1, 2], [2, 1], None),
        ("[NaN]", "[NaN ]", None),  # no JSON, and a blank where none was
        ('{"b": 1, "a": "é"}', '{"a":"e\u0301","b":1.0}', Cause.KEY_ORDER),
    ],
)
def test_forms(before: Any, after: Any, cause: Cause | None) -> None:
    assert form_cause(before, after) is cause
    assert form_cause(after, before) is cause
    assert form_cause({"x": [before]}, {"x": [after]}) is cause
    equal = canonical_digest(before) == canonical_digest(after)
    assert equal == (cause is not None)
    assert wire_digest(before) != wire_digest(after)


@given(value=plain_values, other=values(plain_leaves, plain_keys))
def test_a_leaf_is_found_where_the_encodings_differ(value: Any, other: Any) -> None:
    one, two = freeze(value), freeze(other)
    assert same(one, two) == (wire_digest(one) == wire_digest(two))
    leaf = first_leaf(one, two)
    if leaf is not None:
        here: Any = two
        for step in leaf.path[:-1]:
            here = here[step]


@given(value=plain_values)
def test_a_re_encoded_text_is_told_as_such(value: Any) -> None:
    text = json.dumps([value])
    spaced = json.dumps([value], indent=1)
    if text != spaced and len(spaced) < 1 << 16:
        assert form_cause(text, spaced) is Cause.WHITESPACE


@pytest.mark.parametrize(
    "unit", ['"",', "1,", "[", '{"a":', "\\", "é", " ", "-", '\\"']
)
def test_megabytes_are_not_parsed(unit: str) -> None:
    before = "[" + unit * (3_000_000 // len(unit)) + "1]"
    assert form_cause(before, before[:-2] + "2]") is None
    assert form_cause(before, f"{before}\n") is Cause.WHITESPACE


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


@pytest.mark.parametrize("kind", [[], {}, 1, None, True])
def test_a_type_that_is_no_string(prefix_impl: ModuleType, kind: Any) -> None:
    """The explanation looks at it, and the break is recorded as any other."""
    tracker = prefix_impl.PrefixTracker()
    one, two = ({"type": kind, "text": text} for text in "xy")
    header = {"system": [one], "tools": [{"type": kind}]}
    tracker.touch([user(one)], header)
    match = tracker.touch([user(two)], header)
    assert match.cause is Cause.MESSAGE_EDITED
    assert str(match.first_difference) == "messages[0].content[0].text"
    match = tracker.touch([user(two)], {**header, "system": [two]})
    assert match.cause is Cause.SYSTEM_CHANGED


def test_a_stack_too_deep_to_explain_loses_no_break(
    prefix_impl: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_deep(*_: Any) -> Any:
        raise RecursionError

    tracker = prefix_impl.PrefixTracker()
    tracker.touch([user("a")])
    monkeypatch.setattr(prefix_explanation, "compare_messages", too_deep)
    match = tracker.touch([user("b")])
    assert (match.append_only, match.cause) == (False, Cause.UNKNOWN)
    assert str(match.first_difference) == "messages[0]"
    assert tracker.last == match
