"""The table of docs/trpc-agent.md names tests that exist, or a deviation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "trpc-agent.md").read_text(encoding="utf-8")
ROWS = [
    (said, shown)
    for said, shown in re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    if said not in {"there", "the document"} and not said.startswith("`trpc_agent_sdk")
]


@pytest.fixture(scope="module")
def tests() -> set[str]:
    return {
        node.name
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("row", ROWS, ids=[said for said, _ in ROWS])
def test_a_sentence_has_its_tests(row: tuple[str, str], tests: set[str]) -> None:
    _, shown = row
    named = set(re.findall(r"`(test_\w+)`", shown))
    assert named <= tests
    assert named or re.match(r"\*\*deviation\*\*: \w.{20}", shown)


def test_the_whole_document_is_in_the_table() -> None:
    assert len(ROWS) > 50
