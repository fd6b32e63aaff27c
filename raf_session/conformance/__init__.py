"""The conformance kit: what sessions, stores and journals have to do, as checks.

The checks are plain async functions and need neither pytest nor hypothesis; only the
state machine and the strategies do, and they are imported when they are asked for.

::

    harness = JournalHarness.transient("mine", MyJournal)
    for outcome in await run_journal_checks(harness):
        print(outcome)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal import JOURNAL_CHECKS, needs, run_journal_checks
from raf_session.conformance.journal_harness import (
    Capability,
    JournalCheck,
    JournalFactory,
    JournalHarness,
    JournalOpener,
    StorageFactory,
)
from raf_session.conformance.outcome import CheckOutcome, requirement
from raf_session.conformance.session import (
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    run_session_checks,
)
from raf_session.conformance.session_harness import SessionCapability, SessionHarness
from raf_session.conformance.store import STORE_CHECKS, run_store_checks
from raf_session.conformance.store_harness import StoreCapability, StoreHarness

if TYPE_CHECKING:
    from raf_session.conformance.journal_machine import run_journal_machine

__all__ = (
    "JOURNAL_CHECKS",
    "SESSION_CHECKS",
    "SESSION_CORE_CHECKS",
    "STORE_CHECKS",
    "Capability",
    "CheckOutcome",
    "JournalCheck",
    "JournalFactory",
    "JournalHarness",
    "JournalOpener",
    "SessionCapability",
    "SessionHarness",
    "StorageFactory",
    "StoreCapability",
    "StoreHarness",
    "TickingClock",
    "needs",
    "requirement",
    "run_journal_checks",
    "run_journal_machine",
    "run_session_checks",
    "run_store_checks",
)


def __getattr__(name: str) -> Any:
    if name == "run_journal_machine":
        from raf_session.conformance import journal_machine  # noqa: PLC0415

        return journal_machine.run_journal_machine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
