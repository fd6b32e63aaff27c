"""Contenders timed in turn within one run, so that a ratio means something."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

__all__ = ("Contender", "Timing", "race", "race_async")


@dataclass
class Timing:
    """The seconds that one contender took for one unit of work, round by round."""

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
class Contender:
    """A name, and a function that does so many units of work and tells the seconds."""

    name: str
    run: Callable[[], float] | Callable[[], Awaitable[float]]
    units: int = 1


def race(contenders: Sequence[Contender], rounds: int) -> dict[str, Timing]:
    """Run each contender once a round, starting with another one each time."""
    timings = {c.name: Timing(c.name) for c in contenders}
    for start in range(rounds):
        for c in _turned(contenders, start):
            gc.collect()
            seconds = c.run()
            assert isinstance(seconds, float)
            timings[c.name].rounds.append(seconds / c.units)
    return timings


async def race_async(contenders: Sequence[Contender], rounds: int) -> dict[str, Timing]:
    """Do as `race` does, awaiting each."""
    timings = {c.name: Timing(c.name) for c in contenders}
    for start in range(rounds):
        for c in _turned(contenders, start):
            gc.collect()
            seconds = c.run()
            assert not isinstance(seconds, float)
            timings[c.name].rounds.append(await seconds / c.units)
    return timings


def _turned(contenders: Sequence[Contender], start: int) -> list[Contender]:
    start %= len(contenders)
    return [*contenders[start:], *contenders[:start]]


def clocked(work: Callable[[], object], times: int) -> Callable[[], float]:
    """Return a function that does the work several times and returns the seconds."""

    def run() -> float:
        started = time.perf_counter()
        for _ in range(times):
            work()
        return time.perf_counter() - started

    return run
