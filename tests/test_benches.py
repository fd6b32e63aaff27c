"""Each benchmark runs once, and checks that its answers were right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]
BACKENDS = ("memory", "SQLite", "JSONL", "Redis", "PostgreSQL", "MariaDB")
WORK = ("design", "all")


@dataclass(frozen=True)
class Run:
    """What one run printed, and what it wrote."""

    printed: str
    figures: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    folder: Path

    def measured(self, work: str) -> set[tuple[str, str]]:
        """Return backend and library of all that was measured of this work."""
        return {
            (figure["backend"], figure["library"])
            for figure in self.figures
            if figure["work"] == work and figure["values"]
        }


def _benches(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benches", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("benches")
    outputs = ("--json", f"{folder}/run.json", "--plot", f"{folder}/run.svg")
    done = _benches(*WORK, "--quick", *outputs)
    assert done.returncode == 0, done.stderr
    told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return Run(done.stdout, told["figures"], told["rows"], folder)


@pytest.mark.parametrize("work", ["append", "batch append", "load", "load last 20"])
def test_every_backend_does_what_sessions_are_for(run: Run, work: str) -> None:
    for backend in BACKENDS:
        assert (backend, "raf-session") in run.measured(work)
        assert (backend, "raf-session journal") in run.measured(work)


@pytest.mark.parametrize(
    "work",
    [
        "list 20 sessions",
        "create a session",
        "expire, for each session",
        "append by tasks",
        "open, create, first append",
    ],
)
def test_every_backend_lists_expires_opens_and_takes_many_tasks(
    run: Run, work: str
) -> None:
    assert {(backend, "raf-session") for backend in BACKENDS} <= run.measured(work)


@pytest.mark.parametrize(
    "work",
    [
        "append by processes",
        "event loop late by, p99.9",
        "stored bytes for each byte of messages of 1 kB",
    ],
)
def test_every_durable_backend_is_shared_and_measured_in_bytes(
    run: Run, work: str
) -> None:
    durable = {(backend, "raf-session") for backend in BACKENDS[1:]}
    assert durable <= run.measured(work)


def test_memory_and_imports_are_measured(run: Run) -> None:
    assert ("memory", "raf-session") in run.measured("memory of a session")
    assert ("-", "raf-session") in run.measured("import")


def test_a_raw_write_stands_beside_every_append(run: Run) -> None:
    assert {(backend, "raw write") for backend in BACKENDS} <= run.measured("append")


@pytest.mark.parametrize(
    "work",
    [
        "prefix, 200 messages / ",
        "prefix, all 200 replaced",
        "append, memory, ",
        "append, SQLite, ",
        "append, SQLite, at power durability",
        "append, Redis, 5 messages stored, the journal alone",
        "append, PostgreSQL, 5 messages stored, the journal alone",
        "append, MariaDB, 5 messages stored, the journal alone",
        "load 8 messages, SQLite",
        "list 20 of 25 sessions, JSONL",
        "list 20 of 40 sessions, PostgreSQL",
        "stored bytes for each byte of messages of 1 kB, SQLite",
        "event loop late by, p99.9, 2 processes write to one SQLite file",
        "import raf_session",
    ],
)
def test_the_table_of_the_design_has_the_row(run: Run, work: str) -> None:
    rows = [row for row in run.rows if row["work"].startswith(work)]
    assert rows
    assert all(row["reach"] for row in rows)


def test_our_detectors_miss_nothing_and_invent_nothing(run: Run) -> None:
    counts = dict(
        re.findall(r"^    (\w+) +(\d+ +\d+ +\d+)$", run.printed, re.MULTILINE)
    )
    for ours in ("compare_requests", "PrefixHistory"):
        assert counts[ours].split() == ["0", "0", "0"]  # missed, false, unread


def test_the_plot_is_one_file_of_lines_and_names(run: Run) -> None:
    drawing = ET.parse(run.folder / "run.svg")  # noqa: S314  (our own)
    space = "{http://www.w3.org/2000/svg}"
    texts = {text.text for text in drawing.iter(f"{space}text")}
    assert {f"append, {backend}" for backend in BACKENDS} <= texts
    assert {"raf-session", "messages in the session"} <= texts
    assert list(drawing.iter(f"{space}polyline"))
    assert not list(drawing.iter(f"{space}script"))
    assert not list(drawing.iter(f"{space}image"))


def test_a_run_stands_beside_an_earlier_one(run: Run, tmp_path: Path) -> None:
    later = tmp_path / "later.json"
    chosen = ("growth", "history", "--quick", "-b", "memory", "-l", "raf-session")
    done = _benches(
        *chosen, "--compare", f"{run.folder}/run.json", "--json", str(later)
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d\.\d\d x  append, memory, raf-session, 5: ", done.stdout)
    assert "what bends: " in done.stdout
    figures = json.loads(later.read_text(encoding="utf-8"))["figures"]
    assert {figure["library"] for figure in figures} == {"raf-session"}
    assert {figure["backend"] for figure in figures} == {"memory"}


def test_what_is_not_known_is_refused() -> None:
    for wrong in (["nothing"], ["-b", "paper"], ["-l", "nobody"]):
        done = _benches(*wrong)
        assert done.returncode == 2
        assert "is none of" in done.stderr
