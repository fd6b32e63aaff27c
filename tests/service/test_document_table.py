"""The table of docs/trpc-agent.md names tests that exist, or a deviation."""

from __future__ import annotations

import pytest
from document_tables import Row, assert_shown, names_of_tests, table_rows

ROWS = table_rows("trpc-agent.md")


@pytest.fixture(scope="module")
def tests() -> set[str]:
    return names_of_tests()


@pytest.mark.parametrize("row", ROWS, ids=[row.said for row in ROWS])
def test_a_sentence_has_its_tests(row: Row, tests: set[str]) -> None:
    assert_shown(row, tests)


def test_the_whole_document_is_in_the_table() -> None:
    assert len(ROWS) > 50
