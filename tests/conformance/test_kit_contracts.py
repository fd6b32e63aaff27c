"""The pytest classes and the plugin: five lines run, and nothing is hidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """
import pytest
from raf_session.agent_session import AgentSession
from raf_session.conformance import *
from raf_session.conformance import xfail
from raf_session.journals.memory import MemoryJournal

class Broken(MemoryJournal):
    async def delete(self, key, *, incarnation=None):
        return False
"""


def run(folder: Path, test: str, *options: str, plugin: bool = True) -> tuple[int, str]:
    (folder / "test_mine.py").write_text(HEAD + test, "utf-8")
    chosen = ("-p", "raf_session_pytest") if plugin else ()
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-q", "-rsxX"),
            *("-p", "no:cacheprovider", *chosen, *options, "test_mine.py"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
            "PYTHONDONTWRITEBYTECODE": "",  # what is rewritten is so for all of them
            # What is installed decides nothing: each run names its plugins.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    return done.returncode, done.stdout + done.stderr


FIVE = """
class TestMine(JournalContract):
    harness = JournalHarness.transient("mine", MemoryJournal, Capability.TRIO)
"""


MIXIN = """
class Mixin:
    def test_scan_filters(self, loop): pass
class TestOther(Mixin, JournalContract):
    harness = JournalHarness.transient("m", MemoryJournal)
"""


def test_five_lines_run_every_requirement(tmp_path: Path) -> None:
    status, text = run(tmp_path, FIVE, "-k", "test_scan_filters or restart")
    assert status == 0, text
    assert "raf_session conformance" in text
    assert "TestMine [mine]: " in text
    assert "test_a_restart" not in text, "an absent one is told by its reason"
    assert "absent: needs durable, not claimed (2)" in text
    status, text = run(tmp_path, FIVE, "--collect-only")
    for name in ("test_scan_filters[asyncio]", "test_scan_filters[trio]",
                 "test_random_histories[trio]"):  # fmt: skip
        assert f"TestMine::{name}" in text


def test_without_a_harness_it_is_looked_into(tmp_path: Path) -> None:
    test = "class TestMine(SessionContract):\n    harness = AgentSession\n"
    status, text = run(tmp_path, test, "-k", "clear or sentinel or threads")
    assert status == 0, text
    assert "is for sessions that do not claim tells_times" in text


@pytest.mark.parametrize(
    "test",
    [
        "    def test_scan_filters(self, loop): pass\n",
        "    test_scan_filters = None\n",
        MIXIN,
        "TestMine.test_scan_filters = lambda self, loop: None\n",
    ],
    ids=["by a method", "by nothing", "by a mixin", "later"],
)
def test_a_replaced_test_is_refused(tmp_path: Path, test: str) -> None:
    status, text = run(tmp_path, FIVE + test, "-k", "scan")
    assert status != 0
    assert ".test_scan_filters replaces a requirement" in text
    assert 'write test_scan_filters = xfail(reason="' in text


def test_what_is_known_to_fail_is_visible(tmp_path: Path) -> None:
    test = """
class TestMine(JournalContract):
    harness = JournalHarness.transient("mine", Broken)
    test_delete_leaves_nothing = xfail(reason="#12: not written yet")
"""
    chosen = ("-k", "test_delete_leaves_nothing or test_scan_filters")
    status, text = run(tmp_path, test, *chosen)
    assert status == 0, text
    assert "XFAIL test_mine.py::TestMine::test_delete_leaves_nothing" in text
    assert "known to fail: #12: not written yet (1)" in text
    fixed = test.replace("Broken", "MemoryJournal")
    status, text = run(tmp_path, fixed, *chosen)
    assert status == 1
    assert "XPASS(strict)" in text


def test_an_xfail_names_a_test_and_a_reason(tmp_path: Path) -> None:
    status, text = run(tmp_path, FIVE + "    test_nothing = xfail(reason='x')\n")
    assert status != 0
    assert "TestMine.test_nothing: there is no such test" in text
    status, text = run(tmp_path, FIVE + "    test_scan_filters = xfail(reason=' ')\n")
    assert status != 0
    assert "xfail needs a reason" in text


def test_a_failure_names_its_requirement(tmp_path: Path) -> None:
    test = FIVE.replace("MemoryJournal", "Broken")
    status, text = run(tmp_path, test, "-k", "test_delete_leaves_nothing")
    assert status == 1
    assert "mine breaks a requirement: " in text
    assert "TestMine [mine]: 2 broken" in text


def test_what_is_claimed_and_skipped_has_failed(tmp_path: Path) -> None:
    marked = "@pytest.mark.skip(reason='later')" + FIVE
    status, text = run(tmp_path, marked, "-k", "test_scan_filters")
    assert status == 1
    assert "claimed, but skipped: later" in text
    skipping = """
from contextlib import asynccontextmanager
@asynccontextmanager
async def storage():
    pytest.skip("no server")
    yield MemoryJournal
class TestMine(JournalContract):
    harness = JournalHarness("mine", storage)
"""
    status, text = run(tmp_path, skipping, "-k", "test_scan_filters", plugin=False)
    assert status == 1
    assert "claimed, but skipped: no server" in text


def test_a_subclass_without_a_harness_is_refused(tmp_path: Path) -> None:
    status, text = run(tmp_path, "class TestMine(JournalContract): pass\n")
    assert status != 0
    assert "TestMine has no harness" in text


# The plugin --------------------------------------------------------------------------


def test_the_plugin_costs_a_suite_nothing_that_does_not_use_it(tmp_path: Path) -> None:
    heavy = "{'pydantic', 'hypothesis', 'anyio', 'raf_session'}"
    code = f"import sys, raf_session_pytest; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "set()\n"
    (tmp_path / "test_mine.py").write_text("def test_one(): pass\n")
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-q"),
            *("-p", "no:cacheprovider", "-p", "raf_session_pytest"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout
    assert "conformance" not in done.stdout


def test_asserts_of_the_kit_are_rewritten(tmp_path: Path) -> None:
    test = """
def test_mine():
    from raf_session.conformance import backdoor_checks
    from _pytest.assertion.rewrite import AssertionRewritingHook
    assert isinstance(backdoor_checks.__loader__, AssertionRewritingHook)
"""
    (tmp_path / "test_mine.py").write_text(test)
    status, text = run(tmp_path, test)
    assert status == 0, text
    status, text = run(tmp_path, test, plugin=False)
    assert status == 1, "or the test tells nothing"
