"""The runners that need no pytest: what they report, and what they never let pass."""

from __future__ import annotations

import unittest
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mutants.harnesses import journal_harness
from mutants.journal_lags import AppStateFollows
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.conformance import (
    Capability,
    CheckOutcome,
    ConformanceError,
    ConformanceReport,
    JournalHarness,
    JournalOpener,
    SessionCapability,
    SessionHarness,
    StoreCapability,
    StoreHarness,
    check_journal,
    check_session,
    check_store,
    report_journal,
    report_session,
    run_journal_checks,
)
from raf_session.conformance.findings import look
from raf_session.conformance.journal_probes import JOURNAL_PROBES
from raf_session.conformance.journal_storage import NEEDS
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.stores import InMemorySessionStore

pytestmark = pytest.mark.anyio

KEPT = CheckOutcome("check_a", "A is so.", "kept")
BROKEN = CheckOutcome("check_b", "B is so.", "broken", AssertionError("1 is not 2"))
ABSENT = CheckOutcome("check_c", "C is so.", "absent", reason="needs x, not claimed")


def reported(*outcomes: CheckOutcome) -> ConformanceReport:
    return ConformanceReport("journal", "mine", outcomes, (), {})


def test_nothing_unknown_counts_as_kept() -> None:
    assert reported(KEPT, ABSENT).ok
    assert not reported(KEPT, BROKEN).ok
    assert not reported(ABSENT).ok, "what was never run is not proved"
    assert not reported().ok
    unknown: Any = CheckOutcome("check_d", "D is so.", "perhaps")  # type: ignore[arg-type]
    assert not reported(KEPT, unknown).ok


def test_the_error_names_what_is_broken_and_why() -> None:
    with pytest.raises(ConformanceError) as caught:
        reported(KEPT, BROKEN, ABSENT).require()
    assert str(caught.value) == (
        "mine breaks 1 of 2 requirements of Journal on asyncio:\n"
        "- check_b: B is so.\n"
        "    1 is not 2"
    )
    assert caught.value.report.broken == (BROKEN,)
    with pytest.raises(ConformanceError, match="no check was run"):
        reported(ABSENT).require()


def test_the_report_is_markdown_for_a_readme() -> None:
    text = reported(KEPT, BROKEN, ABSENT).markdown()
    assert text.startswith("### mine: Journal of raf_session ")
    assert "\n1 kept, 1 broken, 1 absent; asyncio, Python " in text
    assert "\n- **check_b**: B is so.\n  1 is not 2\n" in text
    assert text.endswith("\nAbsent:\n\n- needs x, not claimed: check_c\n")


async def test_ours_are_found_to_be_what_they_are() -> None:
    report = await check_session(AgentSession)
    assert set(report.claims) == set(SessionCapability)
    assert not report.declared
    store = await check_store(InMemorySessionStore)
    assert set(StoreCapability) - set(store.claims) == {
        StoreCapability.SHARED,
        StoreCapability.DURABLE,
    }


async def test_a_journal_is_looked_into() -> None:
    report = await check_journal(MemoryJournal)
    assert report.name == "MemoryJournal"
    assert set(Capability) - set(report.claims) == {
        Capability.SHARED,
        Capability.DURABLE,
    }
    assert report.findings[Capability.DURABLE].result == "not found"
    assert "(missing)" in report.findings[Capability.DURABLE].detail
    absent = {outcome.name for outcome in report.absent}
    assert {check.__name__ for check in NEEDS} & absent
    assert all(outcome.reason for outcome in report.absent)


class Forgetful(MemoryJournal):
    """Says that it deleted, and did not."""

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        return key in self._sessions


async def test_a_broken_journal_is_told_by_its_requirements() -> None:
    with pytest.raises(ConformanceError) as caught:
        await check_journal(Forgetful, name="forgetful")
    assert "check_delete_leaves_nothing: " in str(caught.value)
    assert "forgetful breaks " in str(caught.value)


async def test_scopes_that_lag_are_found_by_looking() -> None:
    probe = {Capability.ATOMIC_SCOPES: JOURNAL_PROBES[Capability.ATOMIC_SCOPES]}
    for cls, result in ((MemoryJournal, "found"), (AppStateFollows, "not found")):
        findings = await look(JournalHarness.transient("m", cls), probe)
        assert findings[Capability.ATOMIC_SCOPES].result == result


async def test_what_a_crash_would_leave_is_unknown() -> None:
    harness = replace(journal_harness(MemoryJournal), capabilities=frozenset())
    report = await report_journal(harness)
    finding = report.findings[Capability.ATOMIC_SCOPES]
    assert finding.result == "unknown"
    assert "what a crash leaves" in finding.detail
    assert "- needs atomic_scopes, not claimed: check_scopes_commit_with_" in (
        report.markdown()
    )


async def test_what_is_claimed_and_not_there_is_broken() -> None:
    harness = JournalHarness.transient("m", MemoryJournal, Capability.DURABLE)
    report = await report_journal(harness)
    assert report.declared
    assert "check_what_was_stored_survives_a_restart" in {
        outcome.name for outcome in report.broken
    }


def _by_pytest() -> None:
    pytest.skip("no server")


def _by_unittest() -> None:
    raise unittest.SkipTest("no server")


def skipping(leave_out: Callable[[], None]) -> Any:
    @asynccontextmanager
    async def storage() -> AsyncGenerator[JournalOpener]:
        leave_out()
        yield MemoryJournal

    return storage


@pytest.mark.parametrize("leave_out", [_by_pytest, _by_unittest])
async def test_what_is_claimed_and_skipped_is_broken(
    leave_out: Callable[[], None],
) -> None:
    harness = JournalHarness("m", skipping(leave_out))
    outcomes = await run_journal_checks(harness)
    assert {outcome.result for outcome in outcomes} == {"broken", "absent"}
    assert "no server" in str(outcomes[0])


class OnlyAsyncio(AgentSession):
    @override
    async def clear(self) -> None:
        import asyncio

        await asyncio.sleep(0)
        await super().clear()


async def make(session_id: str | None = None, *, clock: Any) -> OnlyAsyncio:
    return OnlyAsyncio(session_id, clock=clock)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_trio_is_tried_where_it_is_claimed() -> None:
    claims = frozenset(SessionCapability)
    report = await report_session(SessionHarness.of("a", make, *claims))
    assert [outcome.name for outcome in report.broken] == ["check_the_other_event_loop"]
    claims -= {SessionCapability.TRIO}
    report = await report_session(SessionHarness.of("a", make, *claims))
    assert report.ok
    assert "check_the_other_event_loop" in {o.name for o in report.absent}


def test_an_unknown_capability_is_refused() -> None:
    unknown: Any = frozenset({"telepathy"})
    for kind in (JournalHarness, StoreHarness, SessionHarness):
        with pytest.raises(ValueError, match="telepathy"):
            kind("m", skipping(_by_pytest), unknown)
