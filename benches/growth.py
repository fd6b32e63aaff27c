"""Cost as it grows, of one library: what bends first, from which size on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from benches import footprint, history, listing, writers
from benches.contenders import LIBRARIES, OURS_LABEL
from benches.figures import Figure, shown
from benches.scope import Scope
from benches.tables import series

__all__ = ("figures", "print_bends")

_BY_SIZE = {"load", "memory of a session"}
"""What is read or kept whole: flat is the cost of one message."""


async def figures(scope: Scope) -> list[Figure]:
    """Measure to 100,000 messages, 100,000 sessions, 64 tasks and 8 processes.

    Without `--library`, of this library alone.
    """
    if scope.libraries == LIBRARIES:
        scope = replace(scope, libraries=(OURS_LABEL,))
    messages = scope.at((1_000, 10_000, 100_000), (5, 20))
    sessions = scope.at((1_000, 10_000, 100_000), (5, 20))
    tasks, appends = ((1, 4), 8) if scope.quick else ((1, 8, 64), 1024)
    processes, each = ((1, 2), 3) if scope.quick else ((1, 2, 4, 8), 300)
    rounds = 2 if scope.quick else 6
    limits = history.QUICK if scope.quick else replace(history.FULL, fill_secs=120)
    found: list[Figure] = []
    for backend in scope.backends:
        classes = scope.classes(backend, "load")
        found += await history.measure(classes, messages, limits=limits)
        for cls in classes:
            found += await writers.tasks(cls, tasks, appends=appends, rounds=rounds)
            if backend == "memory":
                found += await footprint.held(cls, messages[:2])
            else:
                found += (await writers.processes(cls, processes, appends=each))[0]
            if "list" not in cls.lacks:
                found += await listing.listings(
                    *(cls, sessions), messages=1, rounds=rounds
                )
        if OURS_LABEL in scope.libraries:
            found += await listing.expiries(backend, sessions[:2])
    return found


def _bend(before: Figure, after: Figure) -> float:
    times = after.typical / before.typical if before.typical > 0 else 1.0
    if after.work in _BY_SIZE:
        times *= before.size / after.size
    return times


def print_bends(found: Sequence[Figure], least: float = 1.5) -> None:
    """Print every step in size after which one unit costs more than `least` times.

    A unit is one call, and of a load and of memory one message.
    """
    bends = [
        (_bend(before, after), before, after)
        for line in series(found).values()
        for before, after in pairwise(line)
        if before.values and after.values
    ]
    print(f"what bends: one unit costs {least} x or more of what it cost before")
    for times, before, after in sorted(bends, key=lambda bend: -bend[0]):
        if times < least:
            break
        costs = (shown(f.typical, f.unit) for f in (before, after))
        print(
            f"    {times:4.1f} x  {after.work}, {after.backend}, {after.library}: "
            f"{before.size:,} -> {after.size:,}: {' -> '.join(costs)}"
        )
    print()
