"""``raf-session conform``: what it finds, what it prints, how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
import anyio
from raf_session import AgentSession, ChatMessage, InMemorySessionStore
from raf_session.conformance import Capability, JournalHarness
from raf_session.journals.memory import MemoryJournal

class Plain:
    def __init__(self, session_id=None):
        self.session_id = session_id or str(id(self))
        self.said = []
    async def add_message(self, message, /):
        self.said.append(message)
    async def get_messages(self):
        return list(self.said)
    async def clear(self):
        self.said = []

class Kept(Plain):
    async def clear(self):
        pass

class Box:
    Inner = Plain

async def made(session_id=None, *, clock):
    return Plain(session_id)

def claims_too_much():
    return JournalHarness.transient("boaster", MemoryJournal, Capability.SHARED)

number = 7
def nothing(): return 7
"""


def conform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(MODULE, "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "raf_session.cli", "conform", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize(
    "name",
    [
        "Plain",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("Box.Inner", "made")),
    ],
)
def test_what_keeps_all_is_reported(tmp_path: Path, name: str) -> None:
    done = conform(tmp_path, f"mine:{name}", "--name", "mine 1.2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("### mine 1.2: ISession of raf_session ")
    assert " kept, 0 broken, " in done.stdout
    assert "\n- needs trait, not claimed: check_" in done.stdout
    assert "| trio | yes | found |" in done.stdout


def test_what_is_broken_ends_with_one(tmp_path: Path) -> None:
    done = conform(tmp_path, "mine:Kept", "--loop", "trio")
    assert done.returncode == 1
    assert "- **check_clear_empties_the_history**: After `clear` there" in done.stdout
    assert "- **random_histories**: After any history" in done.stdout
    assert "; trio, Python" in done.stdout


def test_a_function_may_make_a_harness(tmp_path: Path) -> None:
    done = conform(tmp_path, "mine:claims_too_much")
    assert done.returncode == 1
    assert done.stdout.startswith("### boaster: Journal of raf_session ")
    assert "| shared | yes | not found (SessionNotFoundError" in done.stdout
    assert "- **check_two_handles_see_one_storage**: " in done.stdout


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("mine", "write module:name"),
        ("nowhere:x", "No module named 'nowhere'"),
        ("mine:missing", "has no attribute 'missing'"),
        ("mine:number", "int makes nothing"),
        ("mine:nothing", "it makes int, no session, store or journal"),
        ("mine:ChatMessage", "the class is no session, store or journal"),
    ],
)
def test_a_fault_is_one_line(tmp_path: Path, place: str, told: str) -> None:
    done = conform(tmp_path, place)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"raf-session: {place}: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_event_loop_that_is_none_is_a_fault(tmp_path: Path) -> None:
    done = conform(tmp_path, "mine:Plain", "--loop", "curio")
    assert done.returncode == 2
    assert "'curio' is not one of those installed" in done.stderr
