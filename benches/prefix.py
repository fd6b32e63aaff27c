"""The prefix rows: turns, breaks, cold dicts, large messages, beside what others do."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import xxhash

from benches.corpus import conversation
from benches.figures import ratio
from benches.report import Row
from benches.timing import Timed, clocked, race
from raf_session import Cause, ChatMessage, PrefixMatch, PrefixTracker, compare_requests
from raf_session.prefix import ACCELERATED, message_digest, prefix_hashes

__all__ = ("rows", "warm_turn")


def _naive(messages: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()


def warm_turn(dicts: list[dict[str, Any]], times: int) -> Callable[[], float]:
    """Return a timed request that holds the last one's messages and two new ones."""

    def run() -> float:
        old = [ChatMessage.from_openai(d) for d in dicts[:198]]
        new = [
            [ChatMessage.from_openai(d) for d in dicts[198:200]] for _ in range(times)
        ]
        requests = [[*old, *pair] for pair in new]
        seconds = 0.0
        for request in requests:
            tracker = PrefixTracker()  # one that went on would have a break to explain
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


def _edited(first: dict[str, Any], number: int) -> dict[str, Any]:
    return {**first, "content": f"{number} {first['content']}"}


def _is_break(match: PrefixMatch) -> bool:
    told = match.append_only, match.first_different, match.cause
    return told == (False, 0, Cause.SYSTEM_CHANGED)


def _broken_turn(dicts: list[dict[str, Any]], times: int) -> Callable[[], float]:
    """The last request's messages, of which the first is another one."""

    def run() -> float:
        old = [ChatMessage.from_openai(d) for d in dicts]
        firsts = [ChatMessage.from_openai(_edited(dicts[0], i)) for i in range(times)]
        requests = [[first, *old[1:]] for first in firsts]
        tracker = PrefixTracker()
        seconds = 0.0
        for request in requests:
            tracker.touch(old)
            started = time.perf_counter()
            match = tracker.touch(request)
            seconds += time.perf_counter() - started
            assert _is_break(match)
        return seconds

    return run


def _compared(dicts: list[dict[str, Any]], times: int) -> Callable[[], float]:
    """Two bodies, of which the second has another first message."""

    def run() -> float:
        former = {"model": "m", "messages": dicts}
        bodies = [
            {"model": "m", "messages": [_edited(dicts[0], i), *dicts[1:]]}
            for i in range(times)
        ]
        seconds = 0.0
        for body in bodies:
            started = time.perf_counter()
            match = compare_requests(former, body)
            seconds += time.perf_counter() - started
            assert _is_break(match)
        return seconds

    return run


def _large_messages(threads: int, times: int) -> Callable[[], float]:
    """A message of 1 MB, hashed anew each time, by so many threads."""

    def hash_all(messages: list[dict[str, Any]], start: threading.Barrier) -> None:
        start.wait()
        for message in messages:
            message_digest(message)

    def run() -> float:
        text = "the flight was booked for two passengers " * 25_000
        start = threading.Barrier(threads + 1)
        workers = [
            threading.Thread(
                target=hash_all,
                args=([{"role": "user", "content": f"{n} {text}"}] * times, start),
            )
            for n in range(threads)
        ]
        for worker in workers:
            worker.start()
        started = time.perf_counter()
        start.wait()
        for worker in workers:
            worker.join()
        return time.perf_counter() - started

    return run


def _two_threads(*, quick: bool) -> Row:
    """Return the row of large messages: the ratio is what the second thread adds."""
    rounds, times = (2, 2) if quick else (30, 64)
    one = Timed("one", _large_messages(1, times), times)
    two = Timed("two", _large_messages(2, times), 2 * times)
    load = os.getloadavg()[0]
    t = race([one, two], rounds)
    return Row(
        "hash messages of 1 MB, by two threads",
        t["two"],
        {"by one": t["one"]},
        f">= 1.7 x; two idle cores needed, load average {load:.2f}",
        lambda: ratio(t["one"], t["two"]) >= 1.7,
    )


def rows(*, quick: bool = False) -> list[Row]:
    """Measure, and return the rows of the report."""
    dicts = conversation(200)
    text = json.dumps(dicts, separators=(",", ":")).encode()
    rounds, times = (2, 5) if quick else (40, 200)
    digests = [message_digest(d) for d in dicts]
    assert digests == [message_digest(ChatMessage.from_openai(d)) for d in dicts]
    contenders = [
        Timed("warm", warm_turn(dicts, times), times),
        Timed("replaced", _all_replaced(dicts, times), times),
        Timed("dicts", clocked(lambda: prefix_hashes(dicts), times), times),
        Timed("broken", _broken_turn(dicts, times), times),
        Timed("compared", _compared(dicts, times // 5), times // 5),
        Timed("naive", clocked(lambda: _naive(dicts), 4), 4),
        Timed("xxh64", clocked(lambda: xxhash.xxh64(text).intdigest(), 50), 50),
    ]
    try:
        import orjson
    except ModuleNotFoundError:
        pass
    else:
        contenders.append(
            Timed(
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
            f">= 300 x faster than sha256(json) ({twin})",
            lambda: ratio(t["naive"], t["warm"]) >= 300,
            quiet=1e-6,
        ),
        Row(
            "prefix, all 200 replaced by objects hashed before",
            t["replaced"],
            {"sha256(json.dumps(sort_keys))": t["naive"]},
            "<= 8 µs",
            lambda: t["replaced"].best <= 8e-6,
        ),
        Row(
            "prefix, the first of 200 messages is another, explained",
            t["broken"],
            {"sha256(json.dumps(sort_keys))": t["naive"], "2 new ones": t["warm"]},
            ">= 5 x faster than sha256(json)",
            lambda: ratio(t["naive"], t["broken"]) >= 5,
        ),
        Row(
            "compare_requests, the first of 200 messages is another, explained",
            t["compared"],
            {"sha256(json.dumps(sort_keys)) of one": t["naive"]},
            "no slower than sha256(json) of one",
            lambda: ratio(t["naive"], t["compared"]) >= 1,
        ),
    ]
    if "orjson" in t:
        result.append(
            Row(
                "prefix, 200 plain dicts, cold, all 200 prefix hashes",
                t["dicts"],
                {"xxh3_64(orjson.dumps)": t["orjson"]},
                "<= 1.5 x xxh3_64(orjson.dumps)",
                lambda: ratio(t["dicts"], t["orjson"]) <= 1.5,
            )
        )
    if ACCELERATED:
        result.append(_two_threads(quick=quick))
    return result
