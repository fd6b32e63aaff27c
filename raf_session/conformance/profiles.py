"""How many examples the kit tries: by the profile that is asked for."""

from __future__ import annotations

import os
from typing import Any, Final

from hypothesis import HealthCheck
from hypothesis import settings as Settings  # noqa: N812  (a class with a small name)

__all__ = ("histories", "values")

_EVERY_ONE: Final[list[Any]] = list(HealthCheck)
_TIMES: Final = {"nightly": 10}
"""How many times the examples of the default profile, by ``HYPOTHESIS_PROFILE``."""


def _settings(examples: int, steps: int) -> Settings:
    return Settings(
        max_examples=examples * _TIMES.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 1),
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=_EVERY_ONE,
    )


def histories() -> Settings:
    """Return the settings of a state machine: 15 histories of 25 steps by default.

    150 where the environment says ``HYPOTHESIS_PROFILE=nightly``.
    """
    return _settings(15, 25)


def values() -> Settings:
    """Return the settings of a property: 60 examples, 600 for ``nightly``."""
    return _settings(60, 1)
