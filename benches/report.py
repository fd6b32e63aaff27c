"""Rows: one kind of work, what stands beside it, and what it has to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benches.figures import Measured, Unit, ratio, shown

__all__ = ("Row", "print_rows", "rows_to_json")


@dataclass(frozen=True)
class Row:
    """One kind of work: ours, what it is compared with, and what it has to reach."""

    work: str
    ours: Measured
    beside: Mapping[str, Measured]
    reach: str
    """As people read it; empty where nothing is demanded."""
    reached: Callable[[], bool] = lambda: True
    unit: Unit = "s"
    quiet: float | None = None
    """What the best round has to be on a quiet machine, where a ratio decides."""

    @property
    def verdict(self) -> str:
        """Whether it was reached, in capitals where it was not."""
        return "reached" if self.reached() else "NOT REACHED"


def print_rows(rows: Sequence[Row]) -> None:
    """Print each row: best round, median, the ratios, and whether it was reached.

    A ratio is the median of those of the rounds.
    """
    for row in rows:
        ours = row.ours
        best_of_ours = shown(ours.best, row.unit)
        typical = shown(ours.typical, row.unit)
        print(f"{row.work}\n    ours  {best_of_ours}  (median {typical})")
        for name, other in row.beside.items():
            best, typical = shown(other.best, row.unit), shown(other.typical, row.unit)
            times = ratio(other, ours)
            print(f"    {name}  {best}  (median {typical})  = {times:,.2f} x ours")
        if row.quiet is not None:
            wanted = shown(row.quiet, row.unit)
            print(f"    on a quiet machine <= {wanted}: {best_of_ours} here")
        print(f"    reach {row.reach}: {row.verdict}\n" if row.reach else "")
    demanded = [row for row in rows if row.reach]
    short = [row.work for row in demanded if not row.reached()]
    if demanded:
        print(f"{len(demanded) - len(short)} of {len(demanded)} rows reached")
    for work in short:
        print(f"    NOT REACHED: {work}")


def rows_to_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows, for later reading; seconds, bytes or ratios."""
    return [
        {
            "work": row.work,
            "unit": row.unit,
            "ours": {"best": row.ours.best, "median": row.ours.typical},
            "beside": {
                name: {
                    "best": other.best,
                    "median": other.typical,
                    "ratio": ratio(other, row.ours),
                }
                for name, other in row.beside.items()
            },
            "reach": row.reach,
            "reached": row.reached(),
            "quiet": row.quiet,
        }
        for row in rows
    ]
