"""Every check of the session traits, and a run of them all that needs no pytest."""

from __future__ import annotations

from typing import Final, cast

from raf_session.conformance import (
    session_core,
    session_reads,
    session_states,
    session_text,
    session_threads,
    session_times,
)
from raf_session.conformance.findings import why_absent
from raf_session.conformance.outcome import CheckOutcome, run_check
from raf_session.conformance.session_harness import (
    CoreCheck,
    SessionCapability,
    SessionCheck,
    SessionFactory,
    SessionHarness,
)

__all__ = (
    "SESSION_CHECKS",
    "SESSION_CORE_CHECKS",
    "run_session_check",
    "run_session_checks",
    "session_absence",
    "session_check_applies",
)

SESSION_CORE_CHECKS: Final[tuple[CoreCheck, ...]] = (
    *session_core.CHECKS,
    *session_threads.CHECKS,
)
"""Each requirement of `SessionCore` as an async function that takes a factory."""

SESSION_CHECKS: Final[tuple[SessionCheck, ...]] = (
    *session_reads.CHECKS,
    *session_states.CHECKS,
    *session_text.CHECKS,
    *session_times.CHECKS,
)
"""Each requirement that `ISession` adds."""

_NEEDS: Final = (
    session_threads.NEEDS
    | session_reads.NEEDS
    | session_text.NEEDS
    | session_times.NEEDS
)
_TRAIT: Final = frozenset((SessionCapability.TRAIT,))


def session_absence(check: CoreCheck | SessionCheck, harness: SessionHarness) -> str:
    """Return why a check does not apply to a session; empty where it does."""
    needed = _NEEDS.get(check, frozenset())
    if check not in SESSION_CORE_CHECKS:
        needed |= _TRAIT
    exempt = session_times.SPARES.get(check)
    if exempt in harness.capabilities:
        return f"is for sessions that do not claim {exempt}"
    return why_absent(needed - harness.capabilities)


def session_check_applies(
    check: CoreCheck | SessionCheck, harness: SessionHarness
) -> bool:
    """Tell whether a session claims what the check needs, and is not exempt."""
    return not session_absence(check, harness)


async def run_session_check(
    check: CoreCheck | SessionCheck, harness: SessionHarness
) -> CheckOutcome:
    """Run one check, if it applies, and return what became of it."""

    async def run() -> None:
        async with harness.opened() as make:
            # One that claims the trait makes sessions that have it.
            await check(cast("SessionFactory", make))

    reason = session_absence(check, harness)
    return await run_check(check, run, applies=not reason, reason=reason)


async def run_session_checks(harness: SessionHarness) -> tuple[CheckOutcome, ...]:
    """Run every check one after another and return what became of each."""
    checks = (*SESSION_CORE_CHECKS, *SESSION_CHECKS)
    return tuple([await run_session_check(check, harness) for check in checks])
