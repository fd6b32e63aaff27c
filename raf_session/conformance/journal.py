"""Every check of the storage contract, and a run of them all that needs no pytest."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from raf_session.conformance import (
    journal_append,
    journal_cancellation,
    journal_content,
    journal_create,
    journal_deletion,
    journal_existing,
    journal_expiry,
    journal_filters,
    journal_identity,
    journal_load,
    journal_opening,
    journal_purge,
    journal_scan,
    journal_scope_commits,
    journal_scopes,
    journal_splice,
    journal_splice_rules,
    journal_storage,
    journal_sweep,
    journal_update,
)
from raf_session.conformance.backdoor_checks import BACKDOOR_CHECKS
from raf_session.conformance.findings import why_absent
from raf_session.conformance.journal_harness import (
    Capability,
    JournalCheck,
    JournalHarness,
)
from raf_session.conformance.outcome import CheckOutcome, run_check

__all__ = (
    "JOURNAL_CHECKS",
    "journal_absence",
    "needs",
    "run_journal_check",
    "run_journal_checks",
)

JOURNAL_CHECKS: Final[tuple[JournalCheck, ...]] = (
    *journal_create.CHECKS,
    *journal_existing.CHECKS,
    *journal_load.CHECKS,
    *journal_append.CHECKS,
    *journal_identity.CHECKS,
    *journal_deletion.CHECKS,
    *journal_splice.CHECKS,
    *journal_splice_rules.CHECKS,
    *journal_purge.CHECKS,
    *journal_update.CHECKS,
    *journal_scopes.CHECKS,
    *journal_scope_commits.CHECKS,
    *journal_scan.CHECKS,
    *journal_filters.CHECKS,
    *journal_expiry.CHECKS,
    *journal_sweep.CHECKS,
    *journal_content.CHECKS,
    *journal_cancellation.CHECKS,
    *journal_opening.CHECKS,
    *journal_storage.CHECKS,
)
"""Each requirement of `Journal` as an async function that takes a `JournalHarness`."""

_NEEDS: Final = {**journal_storage.NEEDS, **journal_scope_commits.NEEDS}


def needs(check: JournalCheck) -> frozenset[Capability]:
    """Return what a journal must claim for the check to apply to it."""
    return _NEEDS.get(check, frozenset())


def journal_absence(check: JournalCheck, harness: JournalHarness) -> str:
    """Return why a check does not apply to a journal; empty where it does."""
    if check in BACKDOOR_CHECKS and harness.backdoor is None:
        return "needs a back door, and none is given"
    return why_absent(needs(check) - harness.capabilities)


async def run_journal_check(
    check: JournalCheck, harness: JournalHarness
) -> CheckOutcome:
    """Run one check, if it applies, and return what became of it."""
    reason = journal_absence(check, harness)
    return await run_check(
        check, partial(check, harness), applies=not reason, reason=reason
    )


async def run_journal_checks(
    harness: JournalHarness, checks: Iterable[JournalCheck] = JOURNAL_CHECKS
) -> tuple[CheckOutcome, ...]:
    """Run the checks one after another and return what became of each."""
    return tuple([await run_journal_check(check, harness) for check in checks])
