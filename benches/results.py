"""Runs as JSON, and one run beside an earlier one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benches.figures import Figure, shown
from benches.machine import machine

__all__ = ("print_comparison", "read", "write")

_VERSION = 1


def write(path: Path, figures: Sequence[Figure], **other: Any) -> None:
    """Write what was measured: figures, the machine, and what else the run found.

    Args:
        path: the file.
        figures: seconds, bytes or ratios, all rounds.
        other: what can be JSON.
    """
    told = {
        "format": _VERSION,
        "machine": machine(),
        "figures": [figure.to_json() for figure in figures],
        **other,
    }
    text = json.dumps(told, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> tuple[dict[str, Any], list[Figure]]:
    """Return machine and figures of a file that `write` wrote.

    Raises:
        ValueError: the file is of another format.
    """
    told = json.loads(path.read_text(encoding="utf-8"))
    if told.get("format") != _VERSION:
        raise ValueError(f"{path} is no result of `python -m benches --json`")
    return told["machine"], [Figure.from_json(found) for found in told["figures"]]


def _differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    flat = [{**where, **where["versions"]} for where in (then, now)]
    return [
        f"{name}: {flat[0].get(name)} then, {flat[1].get(name)} now"
        for name in dict.fromkeys([*flat[0], *flat[1]])
        if name not in {"load", "versions"} and flat[0].get(name) != flat[1].get(name)
    ]


def print_comparison(path: Path, figures: Sequence[Figure]) -> None:
    """Print each median beside that of an earlier run, and now over then.

    Args:
        path: what ``--json`` wrote then.
        figures: of now.
    """
    where, earlier = read(path)
    then = {figure.key: figure for figure in earlier if figure.values}
    both = [(then[f.key], f) for f in figures if f.values and f.key in then]
    print(f"beside {path}: {len(both)} figures are in both")
    for line in _differences(where, machine()):
        print(f"    {line}")
    for old, new in both:
        ratio = f"{new.typical / old.typical:.2f} x" if old.typical else "-"
        name = f"{new.work}, {new.backend}, {new.library}, {new.size:,}"
        was = shown(old.typical, old.unit)
        print(f"    {ratio:>8}  {name}: {was} -> {shown(new.typical, new.unit)}")
    print()
