"""Each benchmark runs once, and checks that its answers were right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_benches_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benches", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "prefix, all 200 replaced" in done.stdout
    assert "append, memory" in done.stdout
    assert "load 20 messages" in done.stdout
    assert "append to 5 events, Redis" in done.stdout
    counts = dict(
        re.findall(r"^    (\w+) +(\d+ +\d+ +\d+)$", done.stdout, re.MULTILINE)
    )
    for ours in ("compare_requests", "PrefixHistory"):
        assert counts[ours].split() == ["0", "0", "0"]  # missed, false, unread
