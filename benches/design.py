"""The table of what "fast" means: each row beside the raw operation and the peers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from benches import footprint, history, listing, prefix, startup, writers
from benches.contenders import PEERS, Contender
from benches.figures import Figure, ratio
from benches.places import SERVERS
from benches.report import Row
from benches.scope import Scope

__all__ = ("measure",)

_OURS, _JOURNAL, _POWER = "raf-session", "raf-session journal", "raf-session (power)"
_RAW, _RAW_KEYED, _RAW_POWER = "raw write", "raw write (keyed)", "raw write (power)"
_PEERS = tuple(sorted({cls.label for cls in PEERS}))
_OPENAI, _ADK, _TRPC = "openai-agents", "google-adk", "trpc-agent-py"


class _Found:
    """What was measured, by its key."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._by_key = {figure.key: figure for figure in figures if figure.values}

    def get(self, work: str, backend: str, label: str, size: int) -> Figure | None:
        """Return a figure, `None` where it was not measured."""
        return self._by_key.get((work, backend, label, size))

    def beside(
        self, work: str, backend: str, labels: Iterable[str], size: int
    ) -> dict[str, Figure]:
        """Return those of the labels that were measured."""
        found = {label: self.get(work, backend, label, size) for label in labels}
        return {label: figure for label, figure in found.items() if figure}


def _faster(
    ours: Figure, others: Mapping[str, Figure], least: Mapping[str, float]
) -> bool:
    """Return whether ours is so many times faster than each that is named and there."""
    return all(
        ratio(others[label], ours) >= times
        for label, times in least.items()
        if label in others
    )


def _append(found: _Found, backend: str, short: int, long: int) -> Iterator[Row]:
    ours = found.get("append", backend, _OURS, short)
    if ours is None:
        return
    name = f"append, {backend}, {short:,} messages stored"
    raw = found.beside("append", backend, [_RAW, _RAW_KEYED], short)
    if backend == "memory":
        yield Row(name, ours, raw, "<= 20 µs", lambda: ours.best <= 20e-6)
    elif backend == "SQLite":
        others = raw | found.beside("append", backend, _PEERS, short)
        yield Row(
            *(name, ours, others, ">= 3 x faster than openai-agents"),
            lambda: _faster(ours, others, {_OPENAI: 3}),
            quiet=60e-6,
        )
    else:
        reach = "<= 3 x one raw write" if backend in SERVERS else ""
        yield Row(
            *(name, ours, raw, reach),
            lambda: not reach or ratio(ours, raw[_RAW]) <= 3,
        )
    if backend in SERVERS:
        journal = found.get("append", backend, _JOURNAL, short)
        assert journal is not None
        yield Row(
            *(f"{name}, the journal alone", journal, raw, "<= 2 x one raw write"),
            lambda: ratio(journal, raw[_RAW]) <= 2,
        )
    grown = found.get("append", backend, _OURS, long)
    if grown is not None:
        yield Row(
            f"append, {backend}, {long:,} messages stored",
            *(grown, {f"the same with {short:,} stored": ours}),
            "<= 1.2 x the same with few stored",
            lambda: ratio(grown, ours) <= 1.2,
        )


def _power(found: _Found, backend: str, size: int) -> Iterator[Row]:
    ours = found.get("append", backend, _POWER, size)
    if ours is None:
        return
    others = found.beside("append", backend, [_RAW_POWER, *_PEERS], size)
    reach = ">= 1.3 x faster than openai-agents" if backend == "SQLite" else ""
    yield Row(
        *(f"append, {backend}, at power durability, {size:,} stored", ours, others),
        *(reach, lambda: not reach or _faster(ours, others, {_OPENAI: 1.3})),
    )


def _load(found: _Found, size: int) -> Iterator[Row]:
    ours = found.get("load", "SQLite", _OURS, size)
    if ours is None:
        return
    others = found.beside("load", "SQLite", _PEERS, size)
    yield Row(
        *(f"load {size:,} messages, SQLite", ours, others),
        ">= 10 x faster than google-adk, trpc-agent-py; no slower than openai-agents",
        lambda: _faster(ours, others, {_OPENAI: 1, _ADK: 10, _TRPC: 10}),
    )


def _list(found: _Found, backend: str, few: int, many: int, most: int) -> Iterator[Row]:
    work = f"list {listing.PAGE} sessions"
    for size, fewer in ((many, few), (most, many)):
        ours = found.get(work, backend, _JOURNAL, size)
        if ours is None:
            continue
        before = found.get(work, backend, _JOURNAL, fewer)
        reach = 5.0  # ms
        if backend == "JSONL":  # it looks at each file
            reach = 50.0 if size == many else inf
        yield Row(
            f"list {listing.PAGE} of {size:,} sessions, {backend}",
            *(ours, {f"of {fewer:,}": before} if before else {}),
            "" if reach == inf else f"<= {reach:.0f} ms",
            partial(_within, ours, reach / 1000),
        )


def _within(ours: Figure, seconds: float) -> bool:
    return ours.best <= seconds


def _stored(found: _Found, backend: str, size: int) -> Iterator[Row]:
    ours = found.get(footprint.STORED, backend, _OURS, size)
    if ours is None:
        return
    half = found.get(footprint.STORED, backend, _OURS, size // 2)
    yield Row(
        f"{footprint.STORED}, {backend}, {size:,} messages",
        *(ours, {"half as many": half} if half else {}),
        *("<= 2 x", lambda: ours.best <= 2),
        unit="x",
    )


# Measuring ------------------------------------------------------------------------


async def _histories(
    scope: Scope, backend: str, short: int, middle: int, long: int
) -> list[Figure]:
    classes = scope.classes(backend)
    if backend != "SQLite":
        classes = [cls for cls in classes if cls.label not in _PEERS]
    classes = [cls for cls in classes if cls.label != "raf-session service"]

    def sizes(cls: type[Contender]) -> Sequence[int]:
        if cls.label == _OURS:
            return short, middle, long
        return (short,) if cls.label.startswith(("raw", "raf")) else (short, middle)

    patient = replace(history.FULL, rounds=60, fill_secs=120)
    limits = history.QUICK if scope.quick else patient
    works = ("load", "append") if backend == "SQLite" else ("append",)
    return await history.measure(classes, sizes, works=works, limits=limits)


def _labelled(scope: Scope, label: str) -> list[type[Contender]]:
    every = (cls for backend in scope.backends for cls in scope.classes(backend))
    return [cls for cls in every if cls.label == label]


async def measure(scope: Scope) -> tuple[list[Row], list[Figure]]:
    """Measure all rows on the backends of the scope, and the figures under them."""
    short, middle, long = (5, 8, 20) if scope.quick else (100, 1_000, 100_000)
    few, many, most = (15, 25, 40) if scope.quick else (1_000, 10_000, 100_000)
    events = 2 if scope.quick else 100
    bytes_at, rounds = (20, 2) if scope.quick else (1_000, 10)
    figures: list[Figure] = []
    rows: list[Row] = prefix.rows(quick=scope.quick)
    for backend in scope.backends:
        figures += await _histories(scope, backend, short, middle, long)
        found = _Found(figures)
        rows += [
            *_append(found, backend, short, long),
            *_power(found, backend, short),
            *(_load(found, middle) if backend == "SQLite" else ()),
        ]
    ours = _labelled(scope, _OURS)
    for cls in _labelled(scope, _JOURNAL):
        figures += await listing.listings(
            *(cls, (few, many)), messages=events, rounds=rounds
        )
        figures += await listing.listings(
            *(cls, (most,)), messages=1, rounds=rounds, tasks=8, fill_secs=900
        )
    for cls in ours:
        if cls.backend != "memory":
            figures += await footprint.stored(cls, (bytes_at, 2 * bytes_at))
    found = _Found(figures)
    for backend in scope.backends:
        rows += _list(found, backend, few, many, most)
    for backend in scope.backends:
        rows += _stored(found, backend, 2 * bytes_at)
    for cls in (cls for cls in ours if cls.backend == "SQLite"):
        appends, count = (3, 2) if scope.quick else (300, 8)
        stall, alone = await writers.stalls(cls, count=count, appends=appends)
        figures += [stall, alone]
        rows.append(_stall(stall, alone))
    own, used, base = imported = startup.ours(1 if scope.quick else 9)
    rows += _imports(own, used, base)
    return rows, [*figures, *imported]


def _stall(ours: Figure, alone: Figure) -> Row:
    return Row(
        f"event loop late by, p99.9, {ours.size} processes write to one SQLite file",
        *(ours, {"the same processes only computing": alone}),
        *("<= 10 ms", lambda: ours.best <= 0.010),
    )


def _imports(ours: Figure, used: Figure, base: Figure) -> list[Row]:
    beside = {f"import {startup.BASE}": base}
    return [
        Row(
            *("import raf_session", ours, beside),
            f"<= 1.5 x importing {startup.BASE}",
            lambda: ours.typical <= 1.5 * base.typical,
        ),
        Row(startup.USED, used, beside, ""),
    ]
