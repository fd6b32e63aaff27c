"""`python -m benches [WORK ...]`: this library and the installed peers, one run.

Without WORK: `design`, the table that says what "fast" means.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from benches import (
    breaks,
    design,
    footprint,
    growth,
    history,
    listing,
    prefix,
    startup,
    windows,
    writers,
)
from benches.contenders import LIBRARIES
from benches.figures import Figure
from benches.machine import described, machine
from benches.places import BACKENDS
from benches.plots import write_plot
from benches.report import Row, print_rows, rows_to_json
from benches.results import print_comparison, write
from benches.scope import Scope
from benches.tables import print_figures, print_left_out, print_used

FIGURES: dict[str, Callable[[Scope], Coroutine[Any, Any, list[Figure]]]] = {
    "history": history.figures,
    "listing": listing.figures,
    "writers": writers.figures,
    "footprint": footprint.figures,
    "startup": startup.figures,
}
"""Kinds of work that all libraries do: tables, growth, plots."""

WORK = ("design", "prefix", "detectors", "windows", *FIGURES, "growth")
ALL = ("prefix", "detectors", "windows", *FIGURES)


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
        return name

    return check


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument(
        "work",
        nargs="*",
        type=_one_of((*WORK, "all")),
        default=["design"],
        help=f"{', '.join(WORK)}; all: {', '.join(ALL)}",
    )
    parser.add_argument("--quick", action="store_true", help="once through, no figures")
    parser.add_argument(
        *("--backend", "-b"),
        action="append",
        type=_one_of(BACKENDS),
        help=f"may be repeated; default all: {', '.join(BACKENDS)}",
    )
    parser.add_argument(
        *("--library", "-l"),
        action="append",
        type=_one_of(LIBRARIES),
        help=f"may be repeated; default all installed: {', '.join(LIBRARIES)}",
    )
    parser.add_argument(
        "--sizes",
        type=lambda text: tuple(int(part) for part in text.split(",")),
        help="instead of 10,100,1000,10000,100000 and the like",
    )
    parser.add_argument(
        "--pairs",
        type=Path,
        default=breaks.PAIRS,
        help="pairs of requests for the detectors; default: tests/vectors",
    )
    parser.add_argument(
        "--conversations",
        type=Path,
        help="for windows: a JSON object with messages in each line; default: made up",
    )
    parser.add_argument(
        "--encoding", help="for windows: count with this encoding of tiktoken as well"
    )
    parser.add_argument("--json", type=Path, help="write what was measured here")
    parser.add_argument("--compare", type=Path, help="print ratios to this --json")
    parser.add_argument("--plot", type=Path, help="draw cost against size: .svg, .html")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for, print the tables, and write what was asked for."""
    args = _arguments()
    logging.disable(logging.WARNING)  # the peers' own
    warnings.simplefilter("ignore")
    scope = Scope(
        quick=args.quick,
        backends=tuple(args.backend or BACKENDS),
        libraries=tuple(args.library or LIBRARIES),
        sizes=args.sizes,
    )
    wanted = [n for w in args.work for n in (ALL if w == "all" else (w,))]
    print(f"{described(machine())}\n")
    rows: list[Row] = []
    figures: list[Figure] = []
    other: dict[str, Any] = {}
    if {*wanted} & {"design", *FIGURES}:
        print_used([cls for b in scope.backends for cls in scope.classes(b)])
    if "design" in wanted:
        more, found = asyncio.run(design.measure(scope))
        rows += more
        figures += found
    if "prefix" in wanted:
        rows += prefix.rows(quick=args.quick)
    if "detectors" in wanted:
        findings = breaks.find(args.pairs)
        rows += breaks.rows(quick=args.quick)
        breaks.print_findings(findings)
        other["detectors"] = findings.to_json()
    if "windows" in wanted:
        count = 100 if args.quick else windows.MESSAGES
        table = windows.report(args.conversations, count=count, encoding=args.encoding)
        windows.print_windows(table)
        other["windows"] = table.to_json()
    for name, measure in FIGURES.items():
        if name in wanted:
            found = asyncio.run(measure(scope))
            print_figures(found)
            figures += found
    if "growth" in wanted:
        found = asyncio.run(growth.figures(scope))
        print_figures(found)
        growth.print_bends(found)
        figures += found
    print_rows(rows)
    print_left_out(figures)
    figures = list({figure.key: figure for figure in figures}.values())
    if args.compare is not None:
        print_comparison(args.compare, figures)
    if args.json is not None:
        write(args.json, figures, rows=rows_to_json(rows), **other)
    if args.plot is not None:
        write_plot(args.plot, figures)


if __name__ == "__main__":  # not in the processes that `writers` starts
    main()
