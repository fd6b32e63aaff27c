"""Random histories of every store that we ship, and any session that is saved."""

from __future__ import annotations

import pytest
from anyio.from_thread import start_blocking_portal
from store_bindings import HARNESSES, loops

from raf_session.conformance import StoreHarness, run_store_machine, run_store_values
from raf_session.conformance.store_machine import StoreMachine

EVERYWHERE = [
    pytest.param(bound, loop, id=f"{bound.name}-{loop}")
    for bound in HARNESSES
    for loop in loops(bound)
]


@pytest.mark.parametrize(("harness", "loop"), EVERYWHERE)
def test_random_histories(harness: StoreHarness, loop: str) -> None:
    run_store_machine(harness, backend=loop)


@pytest.mark.parametrize(("harness", "loop"), EVERYWHERE)
def test_any_session_comes_back(harness: StoreHarness, loop: str) -> None:
    run_store_values(harness, backend=loop)


@pytest.mark.parametrize(("harness", "loop"), EVERYWHERE)
@pytest.mark.parametrize("turns", [0, 100], ids=["cancelled", "stored"])
def test_what_expires_as_it_is_stored_may_not_be_there(
    harness: StoreHarness, loop: str, turns: int
) -> None:
    with start_blocking_portal(loop) as portal:
        machine = StoreMachine(harness, portal)
        machine.make(session_id="a", on=0, texts=["x"])
        machine.wait(wait=100.000001)
        machine.save_cancelled(pick=0, turns=turns)
        machine.everything_is_as_in_the_model()
        machine.sweep(on=0)
        machine.teardown()
