"""Rows of measured work, as a table and as JSON."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benches.detectors import DISTRIBUTIONS
from benches.peers import PEERS, version
from benches.timing import Timing

__all__ = ("Row", "print_table", "to_json")


@dataclass(frozen=True)
class Row:
    """One kind of work: ours, what it is compared with, and what it has to reach."""

    work: str
    ours: Timing
    beside: Mapping[str, Timing]
    reach: str
    reached: Callable[[], bool]


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f} µs"
    return f"{seconds * 1e3:.2f} ms"


def machine() -> dict[str, Any]:
    """Return where and with what this was measured."""
    import sqlite3

    libraries = ["pydantic", "anyio", "xxhash", "orjson"]
    names = [*libraries, *DISTRIBUTIONS, *(peer.distribution for peer in PEERS)]
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "machine": platform.machine(),
        "system": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: v for name in names if (v := version(name))},
    }


def print_table(rows: Sequence[Row]) -> None:
    """Print each row: best round, median, and the ratios."""
    where = machine()
    versions = ", ".join(f"{k} {v}" for k, v in where["versions"].items())
    print(f"Python {where['python']} on {where['system']}, SQLite {where['sqlite']}")
    print(f"{versions}\n")
    for row in rows:
        mark = "reached" if row.reached() else "NOT REACHED"
        print(row.work)
        print(f"    ours  {_time(row.ours.best)}  (median {_time(row.ours.typical)})")
        for name, timing in row.beside.items():
            ratio = timing.best / row.ours.best
            medians = timing.typical / row.ours.typical
            print(
                f"    {name}  {_time(timing.best)}  = {ratio:.2f} x ours "
                f"(medians {medians:.2f} x)"
            )
        print(f"    reach {row.reach}: {mark}\n")


def to_json(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what was measured, for later comparison; seconds."""
    return {
        "machine": machine(),
        "rows": [
            {
                "work": row.work,
                "ours": {"best": row.ours.best, "median": row.ours.typical},
                "beside": {
                    name: {"best": t.best, "median": t.typical}
                    for name, t in row.beside.items()
                },
                "reach": row.reach,
                "reached": row.reached(),
            }
            for row in rows
        ],
    }
