"""Instructions with places for values of the state."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.errors import InvalidValueError, StateKeyMissingError
from raf_session.runner import render_instruction

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{name}", "Ann"),
        ("{user:name} of {app:name}, {temp:name}", "Bob of app, t"),
        ("{name}{name}", "AnnAnn"),
        ("{count} {flag} {none} {list} {object}", '1 true null [1,"x"] {"a":{"b":2}}'),
        ("{missing?}.{user:missing?}.", ".."),
        ("{名字}", "安"),
        ('{"a": 1} {} {0} {a b} {a-b} { name } {name!r} {other:name}', None),
        ("{{name}}", "{Ann}"),
        ("{looks}", "{name}"),
        ("no place", None),
        ("", None),
    ],
)
def test_places_get_their_values(template: str, text: str | None) -> None:
    state = {
        "name": "Ann",
        "user:name": "Bob",
        "app:name": "app",
        "temp:name": "t",
        "count": 1,
        "flag": True,
        "none": None,
        "list": [1, "x"],
        "object": {"a": {"b": 2}},
        "名字": "安",
        "looks": "{name}",
    }
    assert render_instruction(template, state) == (template if text is None else text)


@pytest.mark.parametrize("key", ["name", "user:name", "app:x", "temp:_y"])
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(StateKeyMissingError, match=key) as caught:
        render_instruction(f"for {{{key}}}", {"other": 1})
    assert caught.value.key == key
    assert isinstance(caught.value, LookupError)


def test_a_value_that_is_no_json_is_refused_by_its_key() -> None:
    with pytest.raises(InvalidValueError, match="name"):
        render_instruction("{name}", {"name": object()})


@given(VALUES, st.text(), st.text())
def test_the_rest_of_a_template_stays(value: object, before: str, behind: str) -> None:
    before, behind = before.replace("{", "<"), behind.replace("}", ">")
    text = render_instruction(f"{before}{{key}}{behind}", {"key": value})
    assert text.startswith(before)
    assert text.endswith(behind)
    middle = text[len(before) : len(text) - len(behind)]
    if isinstance(value, str):
        assert middle == value
    else:
        assert json.loads(middle) == value
