"""Pages of docs/ that map an original's document to the tests that show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

TESTS: Final = Path(__file__).parent
HEADING: Final = "## The document, sentence by sentence"
_TEST: Final = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


class Row(NamedTuple):
    """One line of a page's table."""

    said: str
    """What the document says."""
    shown: str
    """The tests that show it, or a deviation."""


def table_rows(page: str) -> list[Row]:
    """Return the rows under `HEADING` of a page in docs/, without the headers."""
    text = (TESTS.parent / "docs" / page).read_text(encoding="utf-8")
    _, _, table = text.partition(f"{HEADING}\n")
    found = re.findall(r"^\| (.+) \| (.+) \|$", table, re.MULTILINE)
    return [Row(said, shown) for said, shown in found if said != "the document"]


def names_of_tests() -> set[str]:
    """Return the names of all tests of the suite."""
    return {
        name
        for path in TESTS.rglob("test_*.py")
        for name in _TEST.findall(path.read_text(encoding="utf-8"))
    }


def assert_shown(row: Row, tests: set[str]) -> None:
    """Check that a row names tests that exist, or a deviation and says which."""
    named = set(re.findall(r"`(test_\w+)`", row.shown))
    assert named <= tests
    assert named or re.match(r"\*\*deviation\*\*: \w.{20}", row.shown)
