"""Work that is timed in turn within one run, so that a ratio means something."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TypeVar

__all__ = ("Timed", "Timing", "clocked", "frozen", "race", "timed", "turned")

_T = TypeVar("_T")


@dataclass
class Timing:
    """The seconds that one piece of work took for one unit of it, round by round."""

    name: str
    rounds: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The fastest round: what the machine can do when nobody disturbs it."""
        return min(self.rounds)

    @property
    def typical(self) -> float:
        """The median round."""
        return median(self.rounds)


@dataclass(frozen=True)
class Timed:
    """A name, and a function that does so many units of work and tells the seconds."""

    name: str
    run: Callable[[], float]
    units: int = 1


@contextmanager
def frozen() -> Iterator[None]:
    """Leave what is there to no garbage collection: a turn collects its own alone."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def race(work: Sequence[Timed], rounds: int) -> dict[str, Timing]:
    """Run each once a round, starting with another one each time."""
    timings = {one.name: Timing(one.name) for one in work}
    with frozen():
        for start in range(rounds):
            for one in turned(work, start):
                gc.collect()
                timings[one.name].rounds.append(one.run() / one.units)
    return timings


def turned(items: Sequence[_T], start: int) -> list[_T]:
    """Return the items from the one at `start` on, the others behind."""
    if not items:
        return []
    start %= len(items)
    return [*items[start:], *items[:start]]


def clocked(work: Callable[[], object], times: int) -> Callable[[], float]:
    """Return a function that does the work several times and returns the seconds."""

    def run() -> float:
        started = time.perf_counter()
        for _ in range(times):
            work()
        return time.perf_counter() - started

    return run


async def timed(work: Awaitable[_T]) -> tuple[float, _T]:
    """Return the seconds that this takes, and what it returns."""
    started = time.perf_counter()
    found = await work
    return time.perf_counter() - started, found
