"""The storage contract, asked of every journal on every event loop."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings
from journal_bindings import HARNESSES, loops

from raf_session import conformance
from raf_session.conformance import (
    JOURNAL_CHECKS,
    JournalCheck,
    JournalHarness,
    needs,
    requirement,
    run_journal_checks,
    run_journal_machine,
    strategies,
)
from raf_session.conformance.journal_values import NEW, body, same, varied
from raf_session.entries import Entry

pytestmark = pytest.mark.anyio

MACHINE = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


EVERYWHERE = [
    pytest.param(bound, loop, id=f"{bound.name}-{loop}")
    for bound in HARNESSES
    for loop in loops(bound)
]
on_every_journal = pytest.mark.parametrize(("harness", "anyio_backend"), EVERYWHERE)

CLAIMED = [
    pytest.param(bound, check, loop, id=f"{bound.name}-{check.__name__}-{loop}")
    for check in JOURNAL_CHECKS
    for bound in HARNESSES
    for loop in loops(bound)
    if needs(check) <= bound.capabilities
]


@pytest.mark.parametrize(("bound", "check", "anyio_backend"), CLAIMED)
async def test_requirement(bound: JournalHarness, check: JournalCheck) -> None:
    await check(bound)


@on_every_journal
def test_random_histories(harness: JournalHarness, anyio_backend: str) -> None:
    run_journal_machine(harness, MACHINE, backend=anyio_backend)


@on_every_journal
@given(entry=strategies.entries())
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
async def test_any_entry_comes_back(entry: Entry, harness: JournalHarness) -> None:
    async with harness() as journal:
        await journal.create(NEW, [entry])
        record = await journal.load(NEW.key)
        same(body(record.entries[0]), body(entry), "the entry")
        again = await journal.append(NEW.key, [varied(entry)])
        same(again.repeated, True, "known as the same body")


# The kit itself ----------------------------------------------------------------------


def test_every_check_is_listed() -> None:
    found: set[JournalCheck] = set()
    for module in pkgutil.iter_modules(conformance.__path__):
        if module.name.startswith("journal"):
            members = import_module(f"{conformance.__name__}.{module.name}")
            found |= {
                value
                for name, value in vars(members).items()
                if name.startswith("check_") and inspect.iscoroutinefunction(value)
            }
    assert found == set(JOURNAL_CHECKS)
    assert len(JOURNAL_CHECKS) == len(found), "no check is listed twice"


def test_every_check_says_what_it_demands() -> None:
    for check in JOURNAL_CHECKS:
        line = requirement(check)
        assert line.endswith("."), check.__name__
        assert "\n" not in line, check.__name__


@on_every_journal
async def test_report_needs_no_pytest(harness: JournalHarness) -> None:
    outcomes = await run_journal_checks(harness, JOURNAL_CHECKS[:3])
    assert [outcome.result for outcome in outcomes] == ["kept"] * 3
    assert requirement(JOURNAL_CHECKS[0]) in str(outcomes[0])


def test_kit_imports_neither_pytest_nor_hypothesis() -> None:
    code = (
        "import sys, raf_session.conformance as kit; kit.JOURNAL_CHECKS;"
        "sys.exit(bool({'pytest', 'hypothesis'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=".")
    assert done.returncode == 0
