"""A session written by hand, inheriting nothing, through the pytest-free runner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SESSION = """
import anyio
from raf_session.conformance import check_session, ConformanceError

class HandSession:
    def __init__(self, session_id=None):
        self.session_id = session_id or str(id(self))
        self.said = []

    async def add_message(self, message, /):
        self.said.append(message)

    async def get_messages(self):
        return list(self.said)

    async def clear(self):
        self.said.clear()

anyio.run(check_session, HandSession)
"""
BROKEN = {
    "check_a_list_once_read_stays": ("return list(self.said)", "return self.said"),
    "check_clear_empties_the_history": ("self.said.clear()", "self.said[:1] = []"),
    "check_messages_come_in_order": (
        "self.said.append(message)",
        "self.said.insert(0, message)",
    ),
    "check_equal_messages_are_kept_apart": (
        "self.said.append(message)",
        "message in self.said or self.said.append(message)",
    ),
    "check_the_id_is_stable": (
        "session_id or str(id(self))",
        "(session_id or str(id(self))).lower()",
    ),
}


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_it_passes(tmp_path: Path) -> None:
    done = run(SESSION, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("check", BROKEN)
def test_with_one_line_broken_the_requirement_is_named(
    check: str, tmp_path: Path
) -> None:
    right, wrong = BROKEN[check]
    assert SESSION.count(right) == 1
    done = run(SESSION.replace(right, wrong), tmp_path)
    assert done.returncode != 0
    assert "ConformanceError: HandSession breaks " in done.stderr
    assert f"\n- {check}: " in done.stderr
