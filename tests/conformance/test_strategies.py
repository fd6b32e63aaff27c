"""There is a strategy for every value that people hand us; corners are reached."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from raf_session.conformance import strategies
from raf_session.conformance.profiles import histories, values
from raf_session.entries import Entry, EntryKind
from raf_session.json_text import dump_json, load_json
from raf_session.keys import ScopeKey, SessionKey

MODULES = ("keys", "parts", "calls", "messages", "changes", "entries", "metadata",
           "options")  # fmt: skip
PART_OF_ANOTHER = {
    # Made of the parts of others, and never handed to us.
    *("Record",),
    # Forms of `ContentPart` that `parts` draws by their type.
    *("TextPart", "ImagePart", "AudioPart", "FilePart", "RefusalPart", "ReasoningPart"),
    *("FrozenModel",),
}
FEW = settings(
    max_examples=25,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def value_classes() -> set[str]:
    found: set[str] = set()
    for name in MODULES:
        module = import_module(f"raf_session.{name}")
        for public, value in vars(module).items():
            if (
                inspect.isclass(value)
                and value.__module__ == module.__name__
                and not public.startswith("_")
                and (
                    dataclasses.is_dataclass(value)
                    or issubclass(value, BaseModel | tuple)
                )
            ):
                found.add(public)
    return found


def test_every_value_has_a_strategy() -> None:
    drawn: set[str] = set()
    for name in strategies.__all__:
        strategy: st.SearchStrategy[Any] = getattr(strategies, name)()

        def draw(value: Any) -> None:
            drawn.update(cls.__name__ for cls in type(value).__mro__)

        FEW(given(strategy)(draw))()
    assert value_classes() - drawn - PART_OF_ANOTHER == set()


@FEW
@given(key=strategies.session_keys(), scope=strategies.scope_keys())
def test_keys_have_one_text_form(key: SessionKey, scope: ScopeKey) -> None:
    assert SessionKey.parse(str(key)) == key
    assert ScopeKey.parse(str(scope)) == scope


@FEW
@given(value=strategies.json_values())
def test_json_values_are_json(value: Any) -> None:
    assert dump_json(load_json(dump_json(value))) == dump_json(value)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, inner), default=0)


@pytest.mark.parametrize(
    ("strategy", "corner"),
    [
        (strategies.hostile_text(), lambda text: "\0" in text),
        (strategies.hostile_text(), lambda text: "\ud800" <= text <= "\udfff"),
        (strategies.hostile_text(), lambda text: len(text) >= 4096),
        (strategies.hostile_text(), lambda text: not text),
        (strategies.json_values(), lambda value: depth(value) > 100),
        (strategies.json_values(), lambda value: value == 2**64),
        (strategies.names(), lambda name: "/" in name and "." not in name),
        (strategies.names(), lambda name: name == ".."),
        (strategies.names(), lambda name: len(name.encode()) == 512),
        (strategies.session_keys(), lambda key: not key.app and ":" in key.user),
        (st.lists(strategies.moments(), min_size=2), lambda m: m[0] == m[1]),
        (strategies.entries(), lambda entry: entry.kind is EntryKind.SUMMARY),
        (strategies.ttl_options(), lambda ttl: ttl.max_idle_secs == 0),
        (strategies.windows(), lambda window: window.last == 0),
    ],
)
def test_the_corners_are_reached(
    strategy: st.SearchStrategy[Any], corner: Callable[[Any], bool]
) -> None:
    find(
        strategy,
        corner,
        settings=settings(
            max_examples=20_000, database=None, phases=[Phase.generate], deadline=None
        ),
    )


def test_nightly_is_ten_times_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[tuple[int, int]] = []
    for profile in ("default", "ci", "nightly"):
        monkeypatch.setenv("HYPOTHESIS_PROFILE", profile)
        counts.append((histories().max_examples, values().max_examples))
    assert counts == [(15, 60), (15, 60), (150, 600)]


def test_an_entry_is_of_the_class_that_is_asked_for() -> None:
    entry = find(strategies.entries(st.just("mine")), lambda _: True, settings=FEW)
    assert type(entry) is Entry
    assert entry.id == "mine"
