"""`python -m benches [prefix|append|load ...] [--json FILE] [--quick]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from pathlib import Path

from benches import append, load, prefix
from benches.report import Row, print_table, to_json


def main() -> None:
    """Run what was asked for, print the table, and write JSON where asked."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("work", nargs="*", help="prefix, append, load; default: all")
    parser.add_argument("--json", type=Path, help="write what was measured here")
    parser.add_argument("--quick", action="store_true", help="once through, no figures")
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # the peers' own
    wanted = args.work or ["prefix", "append", "load"]
    rows: list[Row] = []
    if "prefix" in wanted:
        rows += prefix.rows(quick=args.quick)
    if "append" in wanted:
        rows += asyncio.run(append.rows(quick=args.quick))
    if "load" in wanted:
        rows += asyncio.run(load.rows(quick=args.quick))
    print_table(rows)
    if args.json is not None:
        args.json.write_text(
            json.dumps(to_json(rows), indent=2) + "\n", encoding="utf-8"
        )


main()
