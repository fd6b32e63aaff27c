"""Many writers at once: tasks of one process, processes, and the loop meanwhile."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from benches.contenders import Contender, contenders
from benches.corpus import numbered
from benches.figures import Figure
from benches.places import Place, open_place
from benches.scope import Scope
from benches.timing import timed

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

__all__ = ("figures", "processes", "stalls", "tasks")

_Told: TypeAlias = tuple[float, list[float]]
"""Seconds of the writing; by how much each tick came late."""

_LATE = "event loop late by, p99.9"
_TICK = 0.001
_START_SECS = 120.0


async def _write(contender: Contender, name: str, count: int) -> None:
    session = await contender.create(name)
    for message in [contender.message(m) for m in numbered(0, count)]:
        await contender.append(session, message)


async def _lost(contender: Contender, names: Sequence[str], count: int) -> int:
    """Return how many of the messages of all sessions are not there."""
    expected = [m["content"] for m in numbered(0, count)]
    lost = 0
    for name in names:
        texts = [contender.text(message) for message in await contender.load(name)]
        lost += len(expected) - sum(text in texts for text in expected)
    return lost


def _noted(figure: Figure, lost: int, stored: int) -> Figure:
    """Say what was lost; that this library loses anything is an error."""
    if lost:
        assert not figure.library.startswith("raf-session"), f"{lost} lost"
        figure.note = f"LOST {lost} of {stored} messages"
    return figure


async def tasks(
    cls: type[Contender], counts: Sequence[int], *, appends: int, rounds: int
) -> list[Figure]:
    """Measure appends of so many tasks, a session each: seconds for one append."""
    found: list[Figure] = []
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        place = await stack.enter_async_context(open_place(cls.backend, Path(folder)))
        contender = await stack.enter_async_context(cls(place))
        await _write(contender, "warm", 2)
        for count in counts:
            figure = Figure("append by tasks", cls.backend, cls.label, count)
            each = max(2, appends // count)
            for round_ in range(rounds):
                names = [f"s{count}.{round_}.{n}" for n in range(count)]
                writing = asyncio.gather(
                    *(_write(contender, name, each) for name in names)
                )
                seconds, _ = await timed(writing)
                figure.values.append(seconds / (count * each))
                lost = await _lost(contender, names, each)
                _noted(figure, lost, count * each)
            found.append(figure)
    return found


# Processes --------------------------------------------------------------------------


async def _ticks(until: asyncio.Event) -> list[float]:
    """Return by how much each tick of the loop came late."""
    found: list[float] = []
    while not until.is_set():
        due = time.perf_counter() + _TICK
        await asyncio.sleep(_TICK)
        found.append(time.perf_counter() - due)
    return found


class _Job(NamedTuple):
    """What one process writes; it crosses to it, so the class is told by its label."""

    backend: str
    url: str
    folder: Path
    label: str
    name: str
    appends: int


def _process(job: _Job, start: Barrier, results: Queue[_Told]) -> None:
    """What each writer runs: open, wait for the others, write, tell."""

    async def main() -> _Told:
        (cls,) = contenders(job.backend, labels={job.label})
        async with cls(Place(job.backend, job.url, job.folder)) as contender:
            await _write(contender, f"{job.name}.warm", 2)
            await asyncio.to_thread(start.wait, _START_SECS)
            done = asyncio.Event()
            ticking = asyncio.ensure_future(_ticks(done))
            seconds, _ = await timed(_write(contender, job.name, job.appends))
            done.set()
            return seconds, await ticking

    results.put(asyncio.run(main()))


def _burn(start: Barrier, results: Queue[_Told]) -> None:
    """The same ticks beside work that touches no storage, for what is the machine's."""

    async def main() -> _Told:
        await asyncio.to_thread(start.wait, _START_SECS)
        done = asyncio.Event()
        ticking = asyncio.ensure_future(_ticks(done))
        end = time.perf_counter() + 1.0
        while time.perf_counter() < end:
            busy = time.perf_counter() + 0.0001
            while time.perf_counter() < busy:
                pass
            await asyncio.sleep(0)
        done.set()
        return 1.0, await ticking

    results.put(asyncio.run(main()))


def _run(target: Callable[..., None], jobs: Sequence[tuple[_Job, ...]]) -> list[_Told]:
    """Run one process for each job, and return what they tell."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(len(jobs)), context.Queue()
    running = [
        context.Process(target=target, args=(*args, start, results), daemon=True)
        for args in jobs
    ]
    for process in running:
        process.start()
    found = [results.get(timeout=_START_SECS * 2) for _ in running]
    for process in running:
        process.join()
        assert process.exitcode == 0
    return found


async def processes(
    cls: type[Contender], counts: Sequence[int], *, appends: int
) -> tuple[list[Figure], list[float]]:
    """Measure appends of so many processes to one store, a session each.

    Returns:
        Seconds for one append over all of them; and by how much each tick of their
        event loops came late while the most of them wrote, in seconds.
    """
    found: list[Figure] = []
    late: list[float] = []
    for count in counts:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            place = await stack.enter_async_context(
                open_place(cls.backend, Path(folder))
            )
            contender = await stack.enter_async_context(cls(place))
            names = [f"s{n}" for n in range(count)]
            where = place.backend, place.url, place.folder, cls.label
            jobs = [(_Job(*where, name, appends),) for name in names]
            told = await asyncio.to_thread(_run, _process, jobs)
            slowest = max(seconds for seconds, _ in told)
            figure = Figure("append by processes", cls.backend, cls.label, count)
            figure.values.append(slowest / (count * appends))
            lost = await _lost(contender, names, appends)
            found.append(_noted(figure, lost, count * appends))
            late = [tick for _, ticks in told for tick in ticks]
    return found, late


def _percentile(late: Sequence[float]) -> float:
    """Return what 99.9 % of the ticks stay below."""
    return max(late) if len(late) < 1000 else quantiles(late, n=1000)[-1]


async def stalls(
    cls: type[Contender], *, count: int, appends: int
) -> tuple[Figure, Figure]:
    """Return p99.9 of the lateness of ticks of 1 ms while `count` processes write.

    Returns:
        That; and the same where the processes only compute.
    """
    _, late = await processes(cls, [count], appends=appends)
    idle = await asyncio.to_thread(_run, _burn, [()] * count)
    ours = Figure(_LATE, cls.backend, cls.label, count)
    ours.values.append(_percentile(late))
    alone = Figure(_LATE, cls.backend, "computing alone", count)
    alone.values.append(_percentile([tick for _, ticks in idle for tick in ticks]))
    return ours, alone


async def figures(scope: Scope) -> list[Figure]:
    """Measure all of it on every backend of the scope; memory is not shared."""
    together: Sequence[int] = (1, 4) if scope.quick else (1, 8, 64)
    appends, rounds = (8, 1) if scope.quick else (512, 4)
    found: list[Figure] = []
    for backend in scope.backends:
        for cls in scope.one_each(backend, "writers"):
            found += await tasks(cls, together, appends=appends, rounds=rounds)
    together, appends = ((2,), 3) if scope.quick else ((1, 2, 8), 200)
    for backend in scope.backends:
        if backend == "memory":
            continue
        for cls in scope.one_each(backend, "writers"):
            more, late = await processes(cls, together, appends=appends)
            stall = Figure(_LATE, backend, cls.label, together[-1])
            stall.values.append(_percentile(late))
            found += [*more, stall]
    return found
