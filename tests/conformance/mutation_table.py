"""Prints which check catches which mutant.

From a checkout: ``python tests/conformance/mutation_table.py``.

Names of mutants, or of kinds, choose some of them; ``--machine`` looks also for the
shortest history at which the state machine sees the fault of those that it has to.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "conformance")]

from mutants import MUTANTS, Mutant  # noqa: E402  (found by the paths above)
from mutants.machines import counter_example  # noqa: E402
from mutants.runs import CHECK_NAMES, tripped  # noqa: E402

COLUMNS = ("mutant", "kind", "fault", "caught by", "others that trip")


def _shortest(mutant: Mutant) -> str:
    if not mutant.machine:
        return ""
    steps = counter_example(mutant, number=0, shrink=True, histories=75, steps=15)
    return "-" if steps is None else str(len(steps))


def _row(cells: Sequence[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)  # noqa: T201  (its purpose)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a mutant is not caught by its check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants, or kinds; none: all")
    parser.add_argument("--machine", action="store_true", help="run the machines too")
    options = parser.parse_args(arguments)
    logging.disable()
    wanted = set(options.names)
    chosen = [m for m in MUTANTS if not wanted or wanted & {m.name, m.kind}]
    columns = (*COLUMNS, "steps of the machine") if options.machine else COLUMNS
    _row(columns)
    _row(["---"] * len(columns))
    tripping: defaultdict[tuple[str, str], int] = defaultdict(int)
    missed: list[str] = []
    for mutant in chosen:
        found = tripped(mutant.kind, mutant.cls)
        for name in found:
            tripping[mutant.kind, name] += 1
        if mutant.check not in found:
            missed.append(mutant.name)
        cells = [
            mutant.name + (" (reported)" if mutant.reported else ""),
            mutant.kind,
            mutant.fault,
            mutant.check if mutant.check in found else "nothing",
            ", ".join(name for name in found if name != mutant.check) or "-",
        ]
        _row([*cells, _shortest(mutant)] if options.machine else cells)
    print(f"\n{len(chosen)} mutants, {len(missed)} missed", *missed)  # noqa: T201
    for kind, names in CHECK_NAMES.items():
        if wanted and kind not in wanted:
            continue
        idle = [name for name in names if not tripping[kind, name]]
        print(f"{kind}: {len(names)} checks, tripped by no mutant:", *idle)  # noqa: T201
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
