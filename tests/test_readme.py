"""The programs of README and docs run; the commands are the ones that CI runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("backends.md", "tpclaw.md", "trpc-agent.md")
]
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROGRAMS = PROGRAM.findall(README)


@pytest.mark.parametrize(
    "program", [*PROGRAMS, *(text for doc in DOCS for text in PROGRAM.findall(doc))]
)
def test_program_runs(program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    "program", [*PROGRAMS, *(text for doc in DOCS for text in PROGRAM.findall(doc))]
)
def test_the_functions_of_a_program_are_typed(program: str) -> None:
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            untyped = [arg.arg for arg in given if arg.annotation is None]
            assert {*untyped} <= {"self", "cls"}, node.name
            assert node.returns is not None, node.name


def test_the_first_program_has_twelve_lines() -> None:
    lines = [line for line in PROGRAMS[0].splitlines() if line.strip()]
    assert len(lines) == 12


def test_the_session_of_your_own_has_at_most_thirty_lines() -> None:
    lines = [line for line in PROGRAMS[1].splitlines() if line.strip()]
    assert len(lines) <= 30


def test_commands_name_what_exists() -> None:
    commands = re.findall(r"<!-- command: (\w+) -->\n```sh\n(.*)\n```", README)
    assert [name for name, _ in commands] == ["replay", "test"]
    replay = dict(commands)["replay"]
    sample = replay.split()[-1]
    assert (ROOT / sample).is_file()
