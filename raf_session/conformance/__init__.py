"""The conformance kit: what sessions, stores and journals have to do, as checks.

The checks are plain async functions and need neither pytest nor hypothesis; only the
state machine and the strategies do, and they are imported when they are asked for.

::

    harness = JournalHarness.transient("mine", MyJournal)
    for outcome in await run_journal_checks(harness):
        print(outcome)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from raf_session.conformance.backdoor import Backdoor, BackdoorFactory
from raf_session.conformance.backdoor_checks import BACKDOOR_CHECKS
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.findings import Finding
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
from raf_session.conformance.report import ConformanceError, ConformanceReport
from raf_session.conformance.session import (
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    run_session_checks,
)
from raf_session.conformance.session_harness import SessionCapability, SessionHarness
from raf_session.conformance.store import STORE_CHECKS, run_store_checks
from raf_session.conformance.store_harness import StoreCapability, StoreHarness
from raf_session.conformance.trials import (
    check_journal,
    check_session,
    check_store,
    report_journal,
    report_session,
    report_store,
)

if TYPE_CHECKING:
    from raf_session.conformance.any_values import (
        run_journal_values,
        run_session_values,
        run_store_values,
    )
    from raf_session.conformance.contracts import (
        JournalContract,
        SessionContract,
        StoreContract,
        xfail,
    )
    from raf_session.conformance.journal_histories import run_journal_machine
    from raf_session.conformance.session_machine import run_session_machine
    from raf_session.conformance.store_machine import run_store_machine

__all__ = (
    "BACKDOOR_CHECKS",
    "JOURNAL_CHECKS",
    "SESSION_CHECKS",
    "SESSION_CORE_CHECKS",
    "STORE_CHECKS",
    "Backdoor",
    "BackdoorFactory",
    "Capability",
    "CheckOutcome",
    "ConformanceError",
    "ConformanceReport",
    "Finding",
    "JournalCheck",
    "JournalContract",
    "JournalFactory",
    "JournalHarness",
    "JournalOpener",
    "SessionCapability",
    "SessionContract",
    "SessionHarness",
    "StorageFactory",
    "StoreCapability",
    "StoreContract",
    "StoreHarness",
    "TickingClock",
    "check_journal",
    "check_session",
    "check_store",
    "needs",
    "report_journal",
    "report_session",
    "report_store",
    "requirement",
    "run_journal_checks",
    "run_journal_machine",
    "run_journal_values",
    "run_session_checks",
    "run_session_machine",
    "run_session_values",
    "run_store_checks",
    "run_store_machine",
    "run_store_values",
    "xfail",
)

_LATER: Final = {
    "run_journal_machine": "journal_histories",
    "run_session_machine": "session_machine",
    "run_store_machine": "store_machine",
    **dict.fromkeys(
        ("run_journal_values", "run_session_values", "run_store_values"), "any_values"
    ),
    **dict.fromkeys(
        ("JournalContract", "SessionContract", "StoreContract", "xfail"), "contracts"
    ),
}
"""What needs hypothesis or pytest, and is imported when it is asked for."""


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
