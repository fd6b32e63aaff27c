"""The prefix rows: a warm turn, all replaced, and cold dicts, beside what others do."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import xxhash

from benches.corpus import conversation
from benches.report import Row
from benches.timing import Contender, clocked, race
from raf_session import ChatMessage, PrefixTracker
from raf_session.prefix import ACCELERATED, message_digest, prefix_hashes

__all__ = ("rows",)


def _naive(messages: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()


def _warm_turn(dicts: list[dict[str, Any]], times: int) -> Callable[[], float]:
    """A request that holds the last one's messages and two that are new."""

    def run() -> float:
        old = [ChatMessage.from_openai(d) for d in dicts[:198]]
        new = [
            [ChatMessage.from_openai(d) for d in dicts[198:200]] for _ in range(times)
        ]
        requests = [[*old, *pair] for pair in new]
        tracker = PrefixTracker()
        seconds = 0.0
        for request in requests:
            tracker.touch(old)
            started = time.perf_counter()
            match = tracker.touch(request)
            seconds += time.perf_counter() - started
            assert match.shared_messages == 198
            assert match.append_only
        return seconds

    return run


def _all_replaced(dicts: list[dict[str, Any]], times: int) -> Callable[[], float]:
    """A request of 200 other objects, each hashed before."""

    def run() -> float:
        one = [ChatMessage.from_openai(d) for d in dicts]
        two = [ChatMessage.from_openai(d) for d in dicts]
        tracker = PrefixTracker()
        tracker.touch(two)
        tracker.touch(one)
        seconds = 0.0
        for i in range(times):
            started = time.perf_counter()
            match = tracker.touch((one, two)[(i + 1) % 2])
            seconds += time.perf_counter() - started
            assert match.shared_messages == 200
        return seconds

    return run


def rows(*, quick: bool = False) -> list[Row]:
    """Measure, and return the rows of the report."""
    dicts = conversation(200)
    text = json.dumps(dicts, separators=(",", ":")).encode()
    rounds, times = (2, 5) if quick else (40, 200)
    digests = [message_digest(d) for d in dicts]
    assert digests == [message_digest(ChatMessage.from_openai(d)) for d in dicts]
    contenders = [
        Contender("warm", _warm_turn(dicts, times), times),
        Contender("replaced", _all_replaced(dicts, times), times),
        Contender("dicts", clocked(lambda: prefix_hashes(dicts), times), times),
        Contender("naive", clocked(lambda: _naive(dicts), 4), 4),
        Contender("xxh64", clocked(lambda: xxhash.xxh64(text).intdigest(), 50), 50),
    ]
    try:
        import orjson
    except ModuleNotFoundError:
        pass
    else:
        contenders.append(
            Contender(
                "orjson",
                clocked(lambda: xxhash.xxh3_64(orjson.dumps(dicts)).intdigest(), times),
                times,
            )
        )
    t = race(contenders, rounds)
    twin = "compiled" if ACCELERATED else "pure"
    result = [
        Row(
            f"prefix, 200 messages / {len(text) // 1000} kB, 198 the same and 2 new",
            t["warm"],
            {
                "sha256(json.dumps(sort_keys))": t["naive"],
                "XXH64 of the bytes": t["xxh64"],
            },
            f"<= 1 µs; >= 300 x faster than sha256(json) ({twin})",
            lambda: t["warm"].best <= 1e-6 and t["naive"].best / t["warm"].best >= 300,
        ),
        Row(
            "prefix, all 200 replaced by objects hashed before",
            t["replaced"],
            {"sha256(json.dumps(sort_keys))": t["naive"]},
            "<= 8 µs",
            lambda: t["replaced"].best <= 8e-6,
        ),
    ]
    if "orjson" in t:
        result.append(
            Row(
                "prefix, 200 plain dicts, cold, all 200 prefix hashes",
                t["dicts"],
                {"xxh3_64(orjson.dumps)": t["orjson"]},
                "<= 1.5 x xxh3_64(orjson.dumps)",
                lambda: t["dicts"].best <= 1.5 * t["orjson"].best,
            )
        )
    return result
