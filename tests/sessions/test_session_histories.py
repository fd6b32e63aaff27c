"""Random histories of every session that we ship, and any message that is added."""

from __future__ import annotations

import pytest
from session_bindings import HARNESSES, loops

from raf_session.conformance import (
    SessionHarness,
    run_session_machine,
    run_session_values,
)

EVERYWHERE = [
    pytest.param(bound, loop, id=f"{bound.name}-{loop}")
    for bound in HARNESSES
    for loop in loops(bound)
]


@pytest.mark.parametrize(("harness", "loop"), EVERYWHERE)
def test_random_histories(harness: SessionHarness, loop: str) -> None:
    run_session_machine(harness, backend=loop)


@pytest.mark.parametrize(("harness", "loop"), EVERYWHERE)
def test_any_message_comes_back(harness: SessionHarness, loop: str) -> None:
    run_session_values(harness, backend=loop)
