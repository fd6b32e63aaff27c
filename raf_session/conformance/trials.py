"""Every check on one implementation, and a report of it; no pytest is needed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from raf_session.conformance.backdoor_checks import BACKDOOR_CHECKS
from raf_session.conformance.binding import (
    AnySession,
    AnyStore,
    journal_harness,
    session_harness,
    store_harness,
)
from raf_session.conformance.findings import found, look
from raf_session.conformance.journal import JOURNAL_CHECKS, run_journal_checks
from raf_session.conformance.journal_harness import JournalHarness, JournalOpener
from raf_session.conformance.journal_probes import JOURNAL_PROBES
from raf_session.conformance.report import ConformanceReport, report
from raf_session.conformance.session import run_session_checks
from raf_session.conformance.session_probes import SESSION_PROBES
from raf_session.conformance.store import run_store_checks
from raf_session.conformance.store_probes import STORE_PROBES

__all__ = (
    "check_journal",
    "check_session",
    "check_store",
    "report_journal",
    "report_session",
    "report_store",
)


async def report_session(
    session: AnySession, *, name: str | None = None
) -> ConformanceReport:
    """Run every check on a session, and return what became of each.

    Args:
        session: its harness; or an async function that makes a session of an id, on a
            ``clock=``; or a class that is called so.  Without a harness nothing is
            declared, and what looking finds is counted as claimed.
        name: what the report calls it.
    """
    harness = session_harness(session, name)
    findings = await look(harness, SESSION_PROBES)
    declared = harness is session
    if not declared:
        harness = replace(harness, capabilities=found(findings))
    return await report(
        "session",
        name or harness.name,
        partial(run_session_checks, harness),
        harness.capabilities,
        findings,
        declared=declared,
    )


async def check_session(
    session: AnySession, *, name: str | None = None
) -> ConformanceReport:
    """Run every check on a session, and return the report where all are kept.

    See `report_session` for the arguments.

    Raises:
        ConformanceError: some are broken; the message names each requirement.
    """
    return (await report_session(session, name=name)).require()


async def report_store(
    store: AnyStore, *, name: str | None = None
) -> ConformanceReport:
    """Run every check on a store, and return what became of each.

    Args:
        store: its harness; or what makes a store, or a context of one, over new, empty
            storage, and takes ``ttl=``, ``clock=`` and ``types=``: a class will do.
            Without a harness nothing is declared, and what looking finds is counted as
            claimed.
        name: what the report calls it.
    """
    harness = store_harness(store, name)
    findings = await look(harness, STORE_PROBES)
    declared = harness is store
    if not declared:
        harness = replace(harness, capabilities=found(findings))
    return await report(
        "store",
        name or harness.name,
        partial(run_store_checks, harness),
        harness.capabilities,
        findings,
        declared=declared,
    )


async def check_store(store: AnyStore, *, name: str | None = None) -> ConformanceReport:
    """Run every check on a store, and return the report where all are kept.

    See `report_store` for the arguments.

    Raises:
        ConformanceError: some are broken; the message names each requirement.
    """
    return (await report_store(store, name=name)).require()


async def report_journal(
    journal: JournalHarness | JournalOpener, *, name: str | None = None
) -> ConformanceReport:
    """Run every check on a journal, and return what became of each.

    Args:
        journal: its harness, or what makes journals: a class that takes ``limits=``,
            ``clock=`` and ``codec=``.  Without a harness nothing is declared, and what
            looking finds is counted as claimed.
        name: what the report calls it.
    """
    harness = journal_harness(journal, name)
    findings = await look(harness, JOURNAL_PROBES)
    declared = harness is journal
    if not declared:
        harness = replace(harness, capabilities=found(findings))
    checks = (*JOURNAL_CHECKS, *BACKDOOR_CHECKS)
    return await report(
        "journal",
        name or harness.name,
        partial(run_journal_checks, harness, checks),
        harness.capabilities,
        findings,
        declared=declared,
    )


async def check_journal(
    journal: JournalHarness | JournalOpener, *, name: str | None = None
) -> ConformanceReport:
    """Run every check on a journal, and return the report where all are kept.

    See `report_journal` for the arguments.

    Raises:
        ConformanceError: some are broken; the message names each requirement.
    """
    return (await report_journal(journal, name=name)).require()
