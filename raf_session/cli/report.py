"""What a replay found: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from raf_session.cli.meter import Break, Figures, Played, Totals
from raf_session.cli.terminal import one_line, shorten

__all__ = ("LINES", "print_report", "print_table", "report_json")

HEADERS: Final = (
    "conversation",
    "messages",
    "requests",
    "bytes",
    "reused %",
    "first break",
    "cause",
)
NAME: Final = 0
PLACE: Final = 5
"""The columns of the id and of the first break."""

SHORTEST_ID: Final = 12
"""How short the ids may become, in columns."""

LONGEST_PLACE: Final = 40
NARROW_PLACE: Final = 20
"""How long the place of a break may be: beside its request, and below it."""

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
    foot = (
        f"total: {totals.conversations:,}",
        *_numbers(totals.figures),
        f"in {totals.broken:,} of {totals.conversations:,}" if totals.broken else "-",
        "" if totals.broken else "-",
    )
    rows = [_cells(row, ": ", LONGEST_PLACE) for row in played]
    widths = _widths([HEADERS, foot, *rows])
    if _room(widths, console) < SHORTEST_ID:  # the break over two lines
        rows = [_cells(row, ":\n", NARROW_PLACE) for row in played]
        widths = _widths([HEADERS, foot, *rows])
    widths[NAME] = min(widths[NAME], max(_room(widths, console), SHORTEST_ID))
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
            justify="right" if NAME < index < PLACE else "left",
            width=width,
            no_wrap=index != PLACE,
        )
    for name, *cells in rows:
        table.add_row(Text(shorten(name, widths[NAME])), *map(Text, cells))
    # Where a terminal is too narrow, a line that goes on is better than half a number.
    print_table(table, console, width=sum(widths) + GAP * len(widths))
    console.print(_summary(totals, store, seconds), soft_wrap=True)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column has to be."""
    columns = zip(*rows, strict=True)
    return [
        max(cell_len(line) for cell in column for line in cell.split("\n"))
        for column in columns
    ]


def _room(widths: Sequence[int], console: Console) -> int:
    """Return how wide the ids may be."""
    return console.width - sum(widths[NAME + 1 :]) - GAP * (len(widths) - 1)


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


def _cells(row: Played, gap: str, longest: int) -> tuple[str, ...]:
    first, cause = row.first_break, "-"
    place = "-"
    if first is not None:
        place = f"request {first.request:,}{gap}{shorten(one_line(first.at), longest)}"
        cause = first.cause.value
    return (one_line(row.id), *_numbers(row.figures), place, cause)


def _numbers(figures: Figures) -> tuple[str, str, str, str]:
    return (
        f"{figures.messages:,}",
        f"{figures.requests:,}",
        f"{figures.bytes:,}",
        _percent(figures.reuse),
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
    return f"\n{_breaks(totals.figures)}{done} in {seconds:.2f} s: {one_line(store)}"


def _breaks(figures: Figures) -> str:
    """Return a line on all breaks, not only the first ones; nothing without any."""
    if not figures.breaks:
        return ""
    causes = ", ".join(f"{count:,} {cause}" for cause, count in figures.causes.items())
    many = "1 break" if figures.breaks == 1 else f"{figures.breaks:,} breaks"
    return f"{many} in all: {causes}; {figures.lost_bytes:,} bytes lost\n"


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
                **_figures(row.figures),
                "first_break": _break(row.first_break),
                "worst_break": _break(row.worst_break),
            }
            for row in played
        ],
        "totals": {
            "conversations": totals.conversations,
            **_figures(totals.figures),
            "broken": totals.broken,
        },
        "run": {
            "store": store,
            "written_messages": totals.written,
            "writes": totals.writes,
            "seconds": round(seconds, 6),
        },
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {**figures._asdict(), "breaks": figures.breaks, "reuse": figures.reuse}


def _break(found: Break | None) -> dict[str, Any] | None:
    return None if found is None else found._asdict()
