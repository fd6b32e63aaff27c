"""`python -m benches [WORK ...] [--json F] [--quick]`, as `--help` lists the work."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from pathlib import Path

from benches import append, breaks, load, prefix, service, storage
from benches.report import Row, print_table, to_json

WORK = ["prefix", "detectors", "append", "load", "service", "storage"]


def _work(name: str) -> str:
    if name not in WORK:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(WORK)}")
    return name


def main() -> None:
    """Run what was asked for, print the table, and write JSON where asked."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("work", nargs="*", type=_work, help=", ".join(WORK))
    parser.add_argument(
        "--pairs",
        type=Path,
        default=breaks.PAIRS,
        help="pairs of requests for the detectors; default: tests/vectors",
    )
    parser.add_argument("--json", type=Path, help="write what was measured here")
    parser.add_argument("--quick", action="store_true", help="once through, no figures")
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # the peers' own
    wanted = args.work or WORK
    rows: list[Row] = []
    findings: breaks.Findings | None = None
    if "prefix" in wanted:
        rows += prefix.rows(quick=args.quick)
    if "detectors" in wanted:
        findings = breaks.find(args.pairs)
        rows += breaks.rows(quick=args.quick)
    if "append" in wanted:
        rows += asyncio.run(append.rows(quick=args.quick))
    if "load" in wanted:
        rows += asyncio.run(load.rows(quick=args.quick))
    if "service" in wanted:
        rows += asyncio.run(service.rows(quick=args.quick))
    sizes: dict[str, dict[str, float]] | None = None
    if "storage" in wanted:
        rows += asyncio.run(storage.rows(quick=args.quick))
        sizes = asyncio.run(storage.sizes(quick=args.quick))
    print_table(rows)
    measured = to_json(rows)
    if findings is not None:
        breaks.print_findings(findings)
        measured["detectors"] = findings.to_json()
    if sizes is not None:
        storage.print_sizes(sizes)
        measured["sizes"] = sizes
    if args.json is not None:
        text = json.dumps(measured, indent=2) + "\n"
        args.json.write_text(text, encoding="utf-8")


main()
