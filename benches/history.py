"""Cost against the length of the history: load, load last 20, append, batch append."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.contenders import Contender
from benches.cores import apart
from benches.corpus import numbered
from benches.figures import Figure
from benches.places import open_place, server_process
from benches.scope import Scope
from benches.timing import frozen, timed, turned

__all__ = ("QUICK", "SIZES", "WORKS", "Held", "Limits", "figures", "measure")

SIZES = (10, 100, 1_000, 10_000, 100_000)
_SMALL = 100
"""Up to this length each round gets a session of its own, so that it stays short."""


@dataclass(frozen=True)
class Limits:
    """How much of it, and where a contender stops."""

    rounds: int = 8
    appends: int = 20
    """Appends a round."""
    batch: int = 100
    """Messages of a batch."""
    fill_secs: float = 20.0
    """A session that would take longer to fill is left out."""
    stop_secs: float = 2.0
    """Where one operation takes longer, longer histories are left out."""
    work_secs: float = 2.0
    """What one contender may take for one work at one length, past two rounds."""


FULL = Limits()
QUICK = Limits(rounds=2, appends=3, batch=4)


@dataclass
class Held:
    """A session that a contender keeps, and what has to be in it."""

    contender: Contender
    size: int
    name: str = ""
    session: Any = None
    texts: list[str] = field(default_factory=list[str])

    async def fill(self, name: str) -> None:
        """Make a session of this name that holds so many messages."""
        self.name, self.texts = name, []
        self.session = await self.contender.create(name)
        for start in range(0, self.size, 1000):
            await self.add(
                self.contender.fill, numbered(start, min(1000, self.size - start))
            )

    async def add(
        self,
        call: Callable[[Any, Sequence[Any]], Awaitable[None]],
        messages: Sequence[dict[str, Any]],
    ) -> float:
        """Add messages by this call, and return the seconds."""
        theirs = [self.contender.message(message) for message in messages]
        seconds, _ = await timed(call(self.session, theirs))
        self.texts += [message["content"] for message in messages]
        return seconds

    def check(self, found: Sequence[Any], last: int | None = None) -> None:
        """Raise where what was found is not what was stored."""
        start = 0 if last is None else len(self.texts) - min(last, len(self.texts))
        texts = [self.contender.text(message) for message in found]
        assert texts == self.texts[start:], f"{self.contender.how}: {len(texts)} found"

    async def check_stored(self) -> None:
        """Raise where the store does not hold what was added, if it can be read."""
        if "load" not in self.contender.lacks:
            self.check(await self.contender.load(self.name))


# The kinds of work: each returns the seconds of one unit of it ---------------------


async def _append(held: Held, limits: Limits) -> float:
    async def each(session: Any, messages: Sequence[Any]) -> None:
        for message in messages:
            await held.contender.append(session, message)

    first = len(held.texts)
    return await held.add(each, numbered(first, limits.appends)) / limits.appends


async def _batch(held: Held, limits: Limits) -> float:
    messages = numbered(len(held.texts), limits.batch)
    return await held.add(held.contender.batch, messages) / limits.batch


async def _load(held: Held, _: Limits) -> float:
    seconds, found = await timed(held.contender.load(held.name))
    held.check(found)
    return seconds


async def _last(held: Held, _: Limits) -> float:
    seconds, found = await timed(held.contender.last(held.name, 20))
    held.check(found, last=20)
    return seconds


WORKS: dict[str, Callable[[Held, Limits], Awaitable[float]]] = {
    "load": _load,
    "load last 20": _last,
    "append": _append,
    "batch append": _batch,
}
"""Seconds for one load, one load, one message, one message of a batch.

Reading comes first: appends lengthen the session, and those of a fast store, which has
more rounds, by more.
"""
_LENGTHENING = {"append", "batch append"}


# Running them ---------------------------------------------------------------------


async def _fill(
    contender: Contender, sizes: Sequence[int], limits: Limits
) -> tuple[list[Held], dict[int, str]]:
    """Fill a session of each size; say of the others why they are left out."""
    filled: list[Held] = []
    left_out: dict[int, str] = {}
    cost = 0.0  # of one message
    await Held(contender, 2).fill("warm")  # imports, tables, connections
    for size in sizes:
        if size * cost > limits.fill_secs:
            left_out[size] = f"filling it would take {size * cost:.0f} s"
            continue
        held = Held(contender, size)
        seconds, _ = await timed(held.fill(f"s{size}"))
        cost = seconds / size
        filled.append(held)
    return filled, left_out


async def _measure_work(
    work: str, held: Sequence[Held], limits: Limits
) -> dict[tuple[str, int], Figure]:
    figures = {
        (one.contender.label, one.size): Figure(
            work, one.contender.backend, one.contender.label, one.size
        )
        for one in held
        if work not in one.contender.lacks
    }
    spent = dict.fromkeys(figures, 0.0)
    slow: dict[str, str] = {}

    def takes_part(one: Held, round_: int) -> bool:
        key = one.contender.label, one.size
        return key in figures and (
            round_ < 2 or spent[key] * (round_ + 1) / round_ <= limits.work_secs
        )

    for round_ in range(limits.rounds):
        taking = [one for one in turned(held, round_) if takes_part(one, round_)]
        anew = [one for one in taking if one.size <= _SMALL and work in _LENGTHENING]
        for one in anew:  # first, so that what is timed stands side by side
            await one.fill(f"s{one.size}.{work}.{round_}")
        for one in taking:
            label = one.contender.label
            figure = figures[label, one.size]
            if not figure.values and label in slow:
                figure.note = slow[label]
                continue
            gc.collect()
            seconds, per_unit = await timed(WORKS[work](one, limits))
            figure.values.append(per_unit)
            spent[label, one.size] += seconds
            whole = per_unit * (limits.batch if work == "batch append" else 1)
            if whole > limits.stop_secs:
                slow[label] = f"{whole:.1f} s at {one.size:,} already"
        for one in anew:
            await one.check_stored()
    return figures


async def measure(
    classes: Sequence[type[Contender]],
    sizes: Sequence[int] | Callable[[type[Contender]], Sequence[int]],
    *,
    works: Collection[str] = tuple(WORKS),
    limits: Limits = FULL,
) -> list[Figure]:
    """Measure contenders of one backend, alternating, at all lengths.

    Args:
        classes: who takes part.
        sizes: messages stored, rising; for all, or by contender.
        works: of `WORKS`.
        limits: rounds, and where a contender stops.
    """
    found: list[Figure] = []
    async with AsyncExitStack() as stack:
        for backend in {cls.backend for cls in classes}:
            stack.enter_context(apart(server_process(backend)))
        filled: list[Held] = []
        for cls in classes:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            opened = open_place(cls.backend, Path(folder))
            place = await stack.enter_async_context(opened)
            contender = await stack.enter_async_context(cls(place))
            theirs = sizes(cls) if callable(sizes) else sizes
            held, left_out = await _fill(contender, theirs, limits)
            filled += held
            found += [
                Figure(work, cls.backend, cls.label, size, note=note)
                for work in works
                if work not in cls.lacks
                for size, note in left_out.items()
            ]
        with frozen():
            for work in works:
                found += (await _measure_work(work, filled, limits)).values()
        for one in filled:
            await one.check_stored()
    return found


async def figures(scope: Scope) -> list[Figure]:
    """Measure all four on every backend of the scope."""
    sizes = scope.at(SIZES, (5, 12))
    found: list[Figure] = []
    for backend in scope.backends:
        limits = QUICK if scope.quick else FULL
        found += await measure(scope.classes(backend), sizes, limits=limits)
    return found
