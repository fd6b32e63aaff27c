"""The page "Write your own": its code runs, and what it says is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_code import BLOCKS, PAGE, page_module

from raf_session.conformance import (
    JOURNAL_CHECKS,
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    STORE_CHECKS,
    Capability,
    SessionCapability,
    StoreCapability,
    check_session,
    check_store,
    run_journal_checks,
)

pytestmark = pytest.mark.anyio

CHECKS = (*JOURNAL_CHECKS, *SESSION_CORE_CHECKS, *SESSION_CHECKS, *STORE_CHECKS)


def test_the_session_has_at_most_thirty_lines() -> None:
    lines = [line for line in BLOCKS["session"].splitlines() if line.strip()]
    assert len(lines) <= 30


@pytest.mark.parametrize("name", ["session", "store"])
def test_a_program_prints_its_report(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BLOCKS[name], "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    assert " kept, 0 broken, " in done.stdout


async def test_the_session_is_one() -> None:
    report = await check_session(page_module("session").NotebookSession)
    assert report.ok
    assert report.name == "NotebookSession"


async def test_the_store_is_one_and_audits_what_was_stored() -> None:
    page = page_module("store")
    assert (await check_store(page.audited)).ok
    audit: list[str] = []

    class Refusing:
        async def save_session(self, session: object, /) -> None:
            raise OSError(f"no space for {session}")

    session: Any = type("Any", (), {"session_id": "s"})()
    with pytest.raises(OSError, match="no space"):
        await page.AuditedStore(Refusing(), audit).save_session(session)
    assert audit == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_journal_is_one() -> None:
    harness = page_module("rules", "storage").HARNESS
    outcomes = await run_journal_checks(harness)
    assert [outcome for outcome in outcomes if outcome.result != "kept"] == []


def test_every_check_that_is_named_exists() -> None:
    named = set(re.findall(r"`(check_\w+)`", PAGE))
    assert len(named) > 10
    assert named <= {check.__name__ for check in CHECKS}


@pytest.mark.parametrize(
    ("of", "capabilities"),
    [
        ("a journal", Capability),
        ("a store", StoreCapability),
        ("a session", SessionCapability),
    ],
)
def test_every_capability_is_named(of: str, capabilities: Any) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {of} | `"))
    assert set(re.findall(r"`(\w+)`", row)) - {"ISession"} == set(capabilities)
