"""What a replay found: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raf_session.cli.meter import Played, Totals, reuse
from raf_session.cli.terminal import one_line, shorten

__all__ = ("LINES", "print_report", "print_table", "report_json")

HEADERS: Final = (
    "conversation",
    "messages",
    "requests",
    "bytes",
    "reused %",
    "first break",
)
SHORTEST_ID: Final = 12
"""How short the ids may become, in columns."""

LINES: Final = Box(
    "    \n    \n -- \n    \n    \n -- \n    \n    \n",
    ascii=True,
)
"""A rule under the headers and one above the totals, everything else is space."""

GAP: Final = 2


def print_report(
    played: Sequence[Played], *, store: str, seconds: float, console: Console
) -> None:
    """Print a row for each conversation, the totals, and what was stored."""
    totals = Totals.of(played)
    rows = [_cells(row) for row in played]
    foot = (
        f"total: {totals.conversations:,}",
        *_numbers(totals),
        f"in {totals.broken:,} of {totals.conversations:,}" if totals.broken else "-",
    )
    columns = zip(HEADERS, foot, *rows, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    room = console.width - sum(widths[1:]) - GAP * (len(widths) - 1)
    if room < SHORTEST_ID:  # the break over two lines
        rows = [(*cells[:-1], cells[-1].replace(": ", ":\n")) for cells in rows]
        breaks = (line for cells in rows for line in cells[-1].split("\n"))
        room += widths[-1]
        widths[-1] = max(map(cell_len, (HEADERS[-1], foot[-1], *breaks)))
        room -= widths[-1]
    widths[0] = min(widths[0], max(room, SHORTEST_ID))
    table = Table(
        box=LINES,
        show_edge=False,
        show_footer=True,
        padding=(0, GAP - 1, 0, 0),
        pad_edge=False,
    )
    for index, (name, width, end) in enumerate(zip(HEADERS, widths, foot, strict=True)):
        table.add_column(
            name,
            footer=Text(end),
            justify="left" if index in {0, len(HEADERS) - 1} else "right",
            width=width,
            no_wrap=index < len(HEADERS) - 1,
        )
    for name, *cells in rows:
        table.add_row(Text(shorten(name, widths[0])), *map(Text, cells))
    # Where a terminal is too narrow, a line that goes on is better than half a number.
    print_table(table, console, width=sum(widths) + GAP * len(widths))
    console.print(_summary(totals, store, seconds), soft_wrap=True)


def print_table(table: Table, console: Console, width: int | None = None) -> None:
    """Print a table without the blanks at the ends of its lines.

    Args:
        table: what to print.
        console: where to.
        width: how wide, even where that is wider than the console.
    """
    if width is not None:
        console.width = max(console.width, width)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.file.write(line.rstrip() + "\n")


def _cells(row: Played) -> tuple[str, ...]:
    first_break = "-" if row.first_break is None else str(row.first_break)
    return (one_line(row.id), *_numbers(row), first_break)


def _numbers(row: Played | Totals) -> tuple[str, str, str, str]:
    return (
        f"{row.messages:,}",
        f"{row.requests:,}",
        f"{row.bytes:,}",
        _percent(reuse(row)),
    )


def _percent(share: float | None) -> str:
    """Return it with one digit, rounded down: 100.0 is all of it."""
    return "-" if share is None else f"{int(share * 1000) / 10:.1f}"


def _summary(totals: Totals, store: str, seconds: float) -> str:
    if totals.written:
        done = f"{totals.written:,} messages written"
    elif totals.writes:
        done = f"{totals.writes:,} changes written"
    else:
        done = "nothing new to write"
    return f"\n{done} in {seconds:.2f} s: {one_line(store)}"


def report_json(
    played: Sequence[Played], *, store: str, seconds: float
) -> dict[str, Any]:
    """Return the same as one JSON value; `run` alone differs from run to run."""
    totals = Totals.of(played)
    return {
        "conversations": [
            {
                "id": row.id,
                "file": row.place.file,
                "line": row.place.line,
                **_figures(row),
                "first_break": None
                if row.first_break is None
                else row.first_break._asdict(),
            }
            for row in played
        ],
        "totals": {
            "conversations": totals.conversations,
            **_figures(totals),
            "broken": totals.broken,
        },
        "run": {
            "store": store,
            "written_messages": totals.written,
            "writes": totals.writes,
            "seconds": round(seconds, 6),
        },
    }


def _figures(row: Played | Totals) -> dict[str, Any]:
    return {
        "messages": row.messages,
        "requests": row.requests,
        "bytes": row.bytes,
        "compared_bytes": row.compared_bytes,
        "shared_bytes": row.shared_bytes,
        "reuse": reuse(row),
    }
