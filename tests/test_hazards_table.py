"""The table of hazards names tests that exist, for every hazard."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

import raf_session

TESTS = Path(__file__).parent
TABLE = tomllib.loads((TESTS / "hazards.toml").read_text(encoding="utf-8"))
ROWS = [
    pytest.param(found, id=f"{section}: {hazard}")
    for section, rows in TABLE.items()
    for hazard, found in rows.items()
]


def _functions() -> set[str]:
    kit = Path(raf_session.__file__).parent / "conformance"
    return {
        node.name.removeprefix("check_")
        for folder in (TESTS, kit)
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith(("test_", "check_"))
    }


@pytest.fixture(scope="module")
def functions() -> set[str]:
    return _functions()


@pytest.mark.parametrize("found", ROWS)
def test_a_hazard_has_its_tests(
    found: list[str] | dict[str, str], functions: set[str]
) -> None:
    if isinstance(found, dict):
        assert list(found) == ["later"]
        assert found["later"]
    else:
        assert found
        assert set(found) <= functions
