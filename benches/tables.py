"""Figures as tables: a row for each library, a column for each size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benches.contenders import LIBRARIES, OURS_LABEL, Contender
from benches.figures import Figure, growth, shown

__all__ = ("print_figures", "print_left_out", "print_used", "series")


def series(figures: Iterable[Figure]) -> dict[tuple[str, str, str], list[Figure]]:
    """Return the figures of each work, backend and library, by size; ours first."""
    found: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        found.setdefault(figure.key[:3], []).append(figure)
    for line in found.values():
        line.sort(key=lambda figure: figure.size)
    return dict(sorted(found.items(), key=lambda item: _place(item[0][2])))


def _place(library: str) -> int:
    return LIBRARIES.index(library) if library in LIBRARIES else len(LIBRARIES)


def _cells(line: Sequence[Figure], ours: Sequence[Figure]) -> list[str]:
    """Return the median and, of others, how many times ours that is."""
    at = {f.size: f for f in ours if f.values and f.typical}
    cells: list[str] = []
    for figure in line:
        if not figure.values:
            cells.append("-")
            continue
        cell = shown(figure.typical, figure.unit)
        if ours is not line and figure.size in at:
            cell += f" ({figure.typical / at[figure.size].typical:.2g} x)"
        cells.append(cell)
    return cells


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first, *others = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("    " + "  ".join([first, *others]).rstrip())


def print_figures(figures: Sequence[Figure]) -> None:
    """Print a table for each work and backend: medians, ratios to ours, growth."""
    lines = series(figures)
    for work, backend in dict.fromkeys((f.work, f.backend) for f in figures):
        keys = [key for key in lines if key[:2] == (work, backend)]
        sizes = sorted({f.size for key in keys for f in lines[key]})
        ours = lines.get((work, backend, OURS_LABEL), [])
        print(f"{work}, {backend}")
        rows = [["", *(f"{size:,}" for size in sizes), "growth"]]
        for key in keys:
            line = lines[key]
            by_size = dict(zip((f.size for f in line), _cells(line, ours), strict=True))
            times = growth(line)
            grown = "" if times is None else f"x {times:.2g}"
            rows.append([key[2], *(by_size.get(s, "") for s in sizes), grown])
        _print_table(rows)
        for figure in (f for key in keys for f in lines[key]):
            if figure.note:
                print(f"    {figure.library} at {figure.size:,}: {figure.note}")
        print()


def print_used(classes: Sequence[type[Contender]]) -> None:
    """Print what of each library is used, and what an acknowledged write survives."""
    print("What is used, and what an acknowledged write survives:")
    _print_table([[f"{c.backend}, {c.label}", c.how] for c in classes])
    print()


def print_left_out(figures: Sequence[Figure]) -> None:
    """Print what was not measured, and why; a row of it is missing above."""
    for figure in figures:
        if not figure.values:
            name = f"{figure.work}, {figure.backend}, {figure.library}"
            print(f"not measured: {name} at {figure.size:,}: {figure.note}")
