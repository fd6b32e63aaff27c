"""Every store that we ship keeps every promise of the trait."""

from __future__ import annotations

import pytest
from store_bindings import HARNESSES, loops

from raf_session.conformance.store import (
    STORE_CHECKS,
    run_store_check,
    run_store_checks,
    store_check_applies,
)
from raf_session.conformance.store_harness import StoreCheck, StoreHarness

pytestmark = pytest.mark.anyio


CLAIMED = [
    pytest.param(check, harness, loop, id=f"{check.__name__}-{harness.name}-{loop}")
    for check in STORE_CHECKS
    for harness in HARNESSES
    for loop in loops(harness)
    if store_check_applies(check, harness)
]


@pytest.mark.parametrize(("check", "harness", "anyio_backend"), CLAIMED)
async def test_store(check: StoreCheck, harness: StoreHarness) -> None:
    outcome = await run_store_check(check, harness)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.result == "kept"


async def test_a_run_reports_what_is_not_claimed() -> None:
    harness = next(harness for harness in HARNESSES if harness.name == "wrapper")
    outcomes = await run_store_checks(harness)
    absent = {outcome.name for outcome in outcomes if outcome.result == "absent"}
    assert absent == {
        "check_overwriting_replaces_what_is_stored",
        "check_parallel_opens_make_one_session",
        "check_what_was_saved_survives_a_restart",
    }


def test_every_check_is_in_the_tuple_once() -> None:
    names = [check.__name__ for check in STORE_CHECKS]
    assert len(set(names)) == len(names)
    assert all(check.__doc__ for check in STORE_CHECKS)
