"""Cost against the number of sessions in a store: a page of a listing, and expiry."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benches.contenders import Contender
from benches.contenders.ours import Expiring
from benches.corpus import numbered
from benches.figures import Figure
from benches.places import Place, open_place
from benches.scope import Scope
from benches.timing import timed

__all__ = ("PAGE", "expiries", "figures", "listings")

PAGE = 20
_FILL_SECS = 120.0


async def _fill(
    contender: Contender,
    start: int,
    end: int,
    messages: int,
    *,
    tasks: int = 1,
    most_secs: float = _FILL_SECS,
) -> tuple[float, int]:
    """Add the sessions from `start` to `end`; return seconds and how many there are."""
    numbers = iter(range(start, end))
    spent, made = 0.0, start

    async def work() -> None:
        nonlocal spent, made
        for n in numbers:
            theirs = [contender.message(m) for m in numbered(0, messages)]
            seconds, _ = await timed(contender.make(f"s{n}", theirs))
            spent += seconds / tasks
            made += 1
            if spent > most_secs:
                return

    await asyncio.gather(*(work() for _ in range(tasks)))
    return spent, made


async def listings(
    cls: type[Contender],
    sizes: Sequence[int],
    *,
    messages: int,
    rounds: int,
    tasks: int = 1,
    fill_secs: float = _FILL_SECS,
) -> list[Figure]:
    """Measure a page of 20 at each number of sessions, and what making one costs.

    Args:
        cls: a contender that can list.
        sizes: sessions in the store, rising.
        messages: in each session.
        rounds: how often a page is read.
        tasks: so many make the sessions; what that costs is told of a single one.
        fill_secs: a store that would take longer to fill is left out.
    """
    works = f"list {PAGE} sessions", "create a session"
    pages = [Figure(works[0], cls.backend, cls.label, size) for size in sizes]
    made = [Figure(works[1], cls.backend, cls.label, size) for size in sizes]
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        place = await stack.enter_async_context(open_place(cls.backend, Path(folder)))
        contender = await stack.enter_async_context(cls(place))
        start, cost = 0, 0.0
        for page, create in zip(pages, made, strict=True):
            seconds = cost * (page.size - start)
            if seconds > 1.5 * fill_secs:
                page.note = create.note = f"filling it would take {seconds:.0f} s"
                continue
            spent, end = await _fill(
                *(contender, start, page.size, messages),
                tasks=tasks,
                most_secs=fill_secs,
            )
            cost = spent / (end - start)
            create.values.append(cost)
            start = end
            if end < page.size:
                page.note = create.note = f"filling it stopped at {end:,}"
                continue
            gc.collect()
            for _ in range(rounds):
                seconds, names = await timed(contender.listed(PAGE))
                assert len(set(names)) >= min(PAGE, page.size), contender.how
                page.values.append(seconds)
                if len(names) > PAGE:
                    page.note = f"it has no pages: all {len(names):,}"
    return [*pages, *made] if tasks == 1 else pages


async def expiries(backend: str, sizes: Sequence[int]) -> list[Figure]:
    """Measure what one call that removes up to 1,000 expired sessions costs for each.

    The peers have no call for it, or none that is public.
    """
    found: list[Figure] = []
    for size in sizes:
        figure = Figure("expire, for each session", backend, Expiring.label, size)
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            place: Place = await stack.enter_async_context(
                open_place(backend, Path(folder))
            )
            contender = await stack.enter_async_context(Expiring(place))
            await _fill(contender, 0, size, 2)
            contender.later()
            removed = 0
            while removed < size:
                seconds, keys = await timed(contender.store.expire(1000))
                assert keys, f"{removed} of {size} expired sessions were removed"
                figure.values.append(seconds / len(keys))
                removed += len(keys)
            assert not await contender.store.expire(1000)
            assert not await contender.listed(PAGE)
        found.append(figure)
    return found


async def figures(scope: Scope) -> list[Figure]:
    """Measure both on every backend of the scope."""
    sizes = scope.at((100, 1_000, 10_000), (5, 25))
    messages, rounds = (2, 2) if scope.quick else (4, 10)
    found: list[Figure] = []
    for backend in scope.backends:
        for cls in scope.one_each(backend, "list"):
            found += await listings(cls, sizes, messages=messages, rounds=rounds)
        if Expiring.label in scope.libraries:
            found += await expiries(backend, [size for size in sizes if size <= 1000])
    return found
