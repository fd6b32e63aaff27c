"""The tables of docs/tpclaw.md: tests that exist, fields, rules, and sizes of steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from document_tables import Row, assert_shown, names_of_tests, table_rows
from manager_values import CharacterCounter, agent, call, configured, result, user

from raf_session.history import HistoryRule, HistoryView, HistoryWindow
from raf_session.manager import RunReport, SessionState, SessionStatistics
from raf_session.messages import ChatMessage
from raf_session.toolcalls import RepairRule, calls_in

ROWS = table_rows("tpclaw.md")
PAGE = (Path(__file__).parents[2] / "docs" / "tpclaw.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tests() -> set[str]:
    return names_of_tests()


@pytest.mark.parametrize("row", ROWS, ids=[row.said for row in ROWS])
def test_a_statement_has_its_tests(row: Row, tests: set[str]) -> None:
    assert_shown(row, tests)


def test_the_whole_document_is_in_the_table() -> None:
    assert len(ROWS) > 85


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("RunReport", RunReport._fields),
        ("HistoryView", (*HistoryView._fields, "dropped_messages")),
        ("HistoryRule", tuple(HistoryRule)),
        ("RepairRule", tuple(RepairRule)),
        ("SessionStatistics", SessionStatistics._fields),
        ("SessionState", tuple(SessionState)),
    ],
)
def test_a_table_of_what_is_reported_names_all_of_it(
    kind: str, fields: tuple[str, ...]
) -> None:
    _, _, table = PAGE.partition(f"| `{kind}`")
    _, *rows = table.partition("\n\n")[0].splitlines()
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(fields)


def turn(number: int) -> list[ChatMessage]:
    name = f"c{number}"
    return [user("go"), call(name), result(name), agent("done")]


@pytest.mark.parametrize(
    ("keep", "left", "every"),
    [
        (int(keep), int(left), int(every or 1))
        for keep, left, every in re.findall(
            r"`keep_tool_calls_count: (\d+)`.* \| (\d+) groups \| every (\d*) ?turn",
            PAGE,
        )
    ],
)
def test_the_steps_of_tool_calls_are_those_that_are_documented(
    keep: int, left: int, every: int
) -> None:
    config = configured(tool_calls={"keep_tool_calls_count": keep})
    window = HistoryWindow(config.history_policy(), CharacterCounter())
    moved: dict[int, int] = {}
    moves = 0
    for number in range(keep + 3 * every + 1):
        window.extend([user("go")])
        view = window.view()
        if view.moves != moves:
            moved[number] = sum(bool(calls_in(m)) for m in view.messages)
            moves = view.moves
        window.extend(turn(number)[1:])
    assert [*moved] == [keep + 1 + step * every for step in range(len(moved))]
    assert len(moved) >= 3
    assert set(moved.values()) == {left}


def test_the_steps_of_messages_are_those_that_are_documented() -> None:
    assert "| `max_messages: 200` | 110 messages |" in PAGE
    window = HistoryWindow(configured().history_policy(), CharacterCounter())
    shown: list[int] = []
    for _ in range(400):
        window.extend([user("go"), agent("done")])
        shown.append(len(window.view().messages))
    assert max(shown) == 200
    assert min(shown[110:]) == 110
