"""Every check of the store trait, and a run of them all that needs no pytest."""

from __future__ import annotations

from functools import partial
from typing import Final

from raf_session.conformance import (
    store_expiry,
    store_races,
    store_reads,
    store_removals,
    store_saves,
    store_storage,
)
from raf_session.conformance.findings import why_absent
from raf_session.conformance.outcome import CheckOutcome, run_check
from raf_session.conformance.store_harness import StoreCheck, StoreHarness

__all__ = (
    "STORE_CHECKS",
    "run_store_check",
    "run_store_checks",
    "store_absence",
    "store_check_applies",
)

STORE_CHECKS: Final[tuple[StoreCheck, ...]] = (
    *store_reads.CHECKS,
    *store_saves.CHECKS,
    *store_races.CHECKS,
    *store_removals.CHECKS,
    *store_expiry.CHECKS,
    *store_storage.CHECKS,
)
"""Each requirement of `ISessionStore` as an async function that takes a harness."""

_NEEDS: Final = (
    store_reads.NEEDS
    | store_saves.NEEDS
    | store_races.NEEDS
    | store_expiry.NEEDS
    | store_storage.NEEDS
)


def store_absence(check: StoreCheck, harness: StoreHarness) -> str:
    """Return why a check does not apply to a store; empty where it does."""
    return why_absent(_NEEDS.get(check, frozenset()) - harness.capabilities)


def store_check_applies(check: StoreCheck, harness: StoreHarness) -> bool:
    """Tell whether a store claims what the check needs."""
    return not store_absence(check, harness)


async def run_store_check(check: StoreCheck, harness: StoreHarness) -> CheckOutcome:
    """Run one check, if it applies, and return what became of it."""
    reason = store_absence(check, harness)
    return await run_check(
        check, partial(check, harness), applies=not reason, reason=reason
    )


async def run_store_checks(harness: StoreHarness) -> tuple[CheckOutcome, ...]:
    """Run every check one after another and return what became of each."""
    return tuple([await run_store_check(check, harness) for check in STORE_CHECKS])
