"""The programs of docs/moving-sessions.md run, and print what they should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "moving-sessions.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
PRINTED = {
    "move": r"1 1 True\n",
    "back_up": r'\{"raf_session_dump":1,.*"active":1\}\}\n',
    "branch": r"2 alice\n",
    "forget": r"\{'app': 'shop', 'user': 'ann', .*",
    "hide": r"False\n",
}


@pytest.mark.parametrize("name", PRINTED)
def test_program_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    (program,) = [text for text in PROGRAMS if f"async def {name}(" in text]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.match(PRINTED[name], done.stdout, re.DOTALL), done.stdout


def test_every_program_is_run() -> None:
    assert len(PROGRAMS) == len(PRINTED)
