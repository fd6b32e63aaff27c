"""Every kind of session that we ship keeps every promise of the traits."""

from __future__ import annotations

import pytest
from session_bindings import HARNESSES, loops

from raf_session.conformance.session import (
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    run_session_check,
    run_session_checks,
    session_check_applies,
)
from raf_session.conformance.session_harness import (
    CoreCheck,
    SessionCapability,
    SessionCheck,
    SessionHarness,
)

pytestmark = pytest.mark.anyio


CLAIMED = [
    pytest.param(check, harness, loop, id=f"{check.__name__}-{harness.name}-{loop}")
    for check in (*SESSION_CORE_CHECKS, *SESSION_CHECKS)
    for harness in HARNESSES
    for loop in loops(harness)
    if session_check_applies(check, harness)
]


@pytest.mark.parametrize(("check", "harness", "anyio_backend"), CLAIMED)
async def test_session(
    check: CoreCheck | SessionCheck, harness: SessionHarness
) -> None:
    outcome = await run_session_check(check, harness)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.result == "kept"


@pytest.mark.parametrize(
    "harness",
    [harness for harness in HARNESSES if not harness.name.startswith("journaled")],
    ids=lambda harness: harness.name,
)
async def test_a_run_reports_what_is_not_claimed(harness: SessionHarness) -> None:
    outcomes = await run_session_checks(harness)
    assert len(outcomes) == len(SESSION_CORE_CHECKS) + len(SESSION_CHECKS)
    absent = {outcome.name for outcome in outcomes if outcome.result == "absent"}
    claims = harness.capabilities
    assert ("check_has_every_member" in absent) == (
        SessionCapability.TRAIT not in claims
    )
    assert ("check_a_batch_is_all_or_none" in absent) == (
        SessionCapability.ATOMIC_BATCH not in claims
    )
    assert all(outcome.requirement for outcome in outcomes)


def test_every_check_is_in_a_tuple_once() -> None:
    names = [check.__name__ for check in (*SESSION_CORE_CHECKS, *SESSION_CHECKS)]
    assert len(set(names)) == len(names)
    assert all(name.startswith("check_") for name in names)
