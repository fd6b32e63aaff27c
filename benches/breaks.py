"""Which breaks each detector misses, and what a turn costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.corpus import conversation
from benches.detectors import DETECTORS, Detector, Pair, read_pairs
from benches.figures import ratio
from benches.machine import version
from benches.prefix import warm_turn
from benches.report import Row
from benches.timing import Timed, Timing, clocked, race
from raf_session.request_shapes import RequestShape

__all__ = ("PAIRS", "Findings", "find", "print_findings", "rows")

PAIRS = Path(__file__).parents[1] / "tests" / "vectors" / "prefix-breaks-v1.json"


@dataclass
class Found:
    """What one detector said that is not so, and what it could not be asked."""

    detector: str
    asked: str
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Findings:
    """All of it, over the pairs of one file."""

    breaks: int
    others: int
    undecided: list[str]
    found: list[Found]

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the names."""
        return {
            "breaks": self.breaks,
            "no_breaks": self.others,
            "depends_on_the_provider": self.undecided,
            "found": [vars(found) for found in self.found],
        }


def _label(detector: Detector) -> str:
    if detector.distribution is None:
        return detector.name
    return f"{detector.name} {version(detector.distribution)}"


def _judge(detector: Detector, pairs: Sequence[Pair]) -> Found:
    found = Found(_label(detector), detector.asked)
    for pair in pairs:
        try:
            told = detector.breaks(pair)
        except Exception as error:  # noqa: BLE001  (a peer may raise anything)
            found.unread.append(f"{pair.name} ({type(error).__name__}: {error})")
            continue
        if told != pair.breaks:
            (found.missed if pair.breaks else found.false).append(pair.name)
    return found


def find(path: Path) -> Findings:
    """Ask every detector about every pair of which the answer is known."""
    pairs = read_pairs(path)
    decided = [pair for pair in pairs if pair.breaks is not None]
    breaks = sum(pair.breaks is True for pair in decided)
    return Findings(
        breaks,
        len(decided) - breaks,
        [pair.name for pair in pairs if pair.breaks is None],
        [_judge(detector, decided) for detector in DETECTORS],
    )


def _print_names(title: str, names: Sequence[str]) -> None:
    if names:
        print(f"    {title}")
        for name in names:
            print(f"        {name}")


def print_findings(findings: Findings) -> None:
    """Print the counts, and below them the names."""
    print(
        f"pairs of requests: {findings.breaks} breaks, {findings.others} that are "
        f"none, {len(findings.undecided)} that depend on the provider: not judged"
    )
    width = max(len(found.detector) for found in findings.found)
    print(f"    {'':{width}}  missed  false breaks  unread")
    for found in findings.found:
        counts = len(found.missed), len(found.false), len(found.unread)
        print("    {:{}}  {:6}  {:12}  {:6}".format(found.detector, width, *counts))
    for found in findings.found:
        print(f"\n{found.detector}: {found.asked}")
        _print_names("missed", found.missed)
        _print_names("false breaks", found.false)
        _print_names("unread", found.unread)
    print()


def _body(messages: list[dict[str, Any]]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    function = {"name": "search_reservations", "parameters": parameters}
    tool = {"type": "function", "function": function}
    return {"model": "gpt-5.6", "tools": [tool], "messages": messages}


def _turns(detector: Detector, pair: Pair, times: int) -> Callable[[], float]:
    def run() -> float:
        return sum(detector.turn(pair) for _ in range(times))

    return run


def _naive(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def rows(*, quick: bool = False) -> list[Row]:
    """Measure a turn of each detector, and return the rows of the report."""
    rounds, times = (2, 2) if quick else (30, 20)
    dicts = conversation(200)
    chat = RequestShape.OPENAI_CHAT
    pair = Pair("", chat, _body(dicts[:198]), _body(dicts), breaks=False)
    for detector in DETECTORS:
        assert not detector.breaks(pair), detector.name
    contenders = [
        Timed("objects", warm_turn(dicts, times), times),
        Timed("naive", clocked(lambda: _naive(pair.current), times), times),
        *(Timed(d.name, _turns(d, pair, times), times) for d in DETECTORS),
    ]
    t = race(contenders, rounds)
    peers = {_label(d): t[d.name] for d in DETECTORS if d.distribution}
    beside = {"sha256(json.dumps(sort_keys))": t["naive"], **peers}

    def row(work: str, name: str, least: int) -> Row:
        ours: Timing = t[name]
        return Row(
            f"a turn, 198 messages the same and 2 new, {work}",
            ours,
            beside,
            f">= {least} x faster than each",
            lambda: all(ratio(timing, ours) >= least for timing in beside.values()),
        )

    return [
        row("objects: PrefixTracker.touch", "objects", 300),
        row("whole bodies: PrefixHistory.touch_request", "PrefixHistory", 1),
        row("whole bodies, both read: compare_requests", "compare_requests", 1),
    ]
