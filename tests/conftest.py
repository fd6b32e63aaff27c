"""Fixtures and options shared by the whole suite."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

EXTENSION = "raf_session._prefix"

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("default", deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "ci", max_examples=100, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "nightly", max_examples=10_000, deadline=None, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that proves the extension was really built."""
    parser.addoption(
        "--require-ext",
        action="store_true",
        help="fail, rather than skip, when the compiled extension is missing",
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave what takes minutes to the nightly profile."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" or config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.fixture(
    scope="session",
    params=[EXTENSION, "raf_session._prefix_py"],
    ids=["compiled", "pure"],
)
def prefix_impl(request: pytest.FixtureRequest) -> ModuleType:
    """Each implementation of the prefix hash, the compiled one first."""
    name: str = request.param
    if name == EXTENSION:
        return _compiled(request)
    return import_module(name)


@pytest.fixture(scope="session")
def prefix_twins(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """Both implementations of the prefix hash, the compiled one first."""
    return _compiled(request), import_module("raf_session._prefix_py")


def _compiled(request: pytest.FixtureRequest) -> ModuleType:
    if find_spec(EXTENSION) is None:
        if request.config.getoption("--require-ext"):
            pytest.fail(f"{EXTENSION} was not built")
        pytest.skip(f"{EXTENSION} was not built")
    return import_module(EXTENSION)
