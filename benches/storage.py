"""The rows of every backend: append, append to much, listing, bytes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benches.backends import BACKENDS, Backend, Opened
from benches.corpus import plain_messages
from benches.report import Row
from benches.timing import Contender, race_async
from raf_session import ChatMessage, Entry, JournaledSession, SessionKey
from raf_session.journal import Journal
from raf_session.json_text import dump_json
from raf_session.options import NewSession, Query

__all__ = ("print_sizes", "rows", "sizes")

_PAGE = 20
_REACH = 2.0
"""Stored bytes for each byte of a message."""


def _entries(count: int, start: int = 0) -> list[Entry]:
    messages = map(ChatMessage.from_openai, plain_messages(count))
    return [
        Entry(f"e{n}", message=message) for n, message in enumerate(messages, start)
    ]


def _key(n: int) -> SessionKey:
    return SessionKey("app", f"user{n % 100}", "", f"session{n}")


async def _fill(journal: Journal, key: SessionKey, count: int) -> None:
    await journal.create(NewSession(key=key))
    for start in range(0, count, 1000):
        await journal.append(key, _entries(min(1000, count - start), start))


# Appends -------------------------------------------------------------------------


def _raw(opened: Opened, count: int) -> Callable[[], Awaitable[float]]:
    bodies = [dump_json({"message": d}) for d in plain_messages(count)]

    async def run() -> float:
        started = time.perf_counter()
        for body in bodies:
            await opened.raw(body)
        return time.perf_counter() - started

    return run


def _journal(
    journal: Journal, key: SessionKey, count: int
) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        last = (await journal.scan(Query(app=key.app, user=key.user))).sessions
        first = max(s.head.last_seq for s in last if s.head.key == key)
        entries = _entries(count, first)
        started = time.perf_counter()
        for entry in entries:
            await journal.append(key, [entry])
        return time.perf_counter() - started

    return run


def _session(session: JournaledSession, count: int) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        messages = [ChatMessage.from_openai(d) for d in plain_messages(count)]
        started = time.perf_counter()
        for message in messages:
            await session.add_message(message)
        return time.perf_counter() - started

    return run


async def _appends(
    backend: Backend, opened: Opened, rounds: int, count: int, long: int
) -> list[Row]:
    journal = opened.journal
    await _fill(journal, SessionKey("app", "short", "", "s"), 100)
    await _fill(journal, SessionKey("app", "long", "", "s"), long)
    session = await JournaledSession.open(journal, SessionKey("app", "live", "", "s"))
    t = await race_async(
        [
            Contender("raw", _raw(opened, count), count),
            Contender(
                "short",
                _journal(journal, SessionKey("app", "short", "", "s"), count),
                count,
            ),
            Contender(
                "long",
                _journal(journal, SessionKey("app", "long", "", "s"), count),
                count,
            ),
            Contender("session", _session(session, count), count),
        ],
        rounds,
    )
    raw = {"one raw write": t["raw"]}
    server = backend.name in {"Redis", "PostgreSQL", "MariaDB"}
    return [
        Row(
            f"append, {backend.name}, journal, 100 entries stored",
            t["short"],
            raw,
            "<= 2 x one raw write" if server else "-",
            lambda: not server or t["short"].best <= 2 * t["raw"].best,
        ),
        Row(
            f"append, {backend.name}, JournaledSession",
            t["session"],
            raw,
            "<= 3 x one raw write" if server else "-",
            lambda: not server or t["session"].best <= 3 * t["raw"].best,
        ),
        Row(
            f"append, {backend.name}, journal, {long:,} entries stored",
            t["long"],
            {"the same with 100 stored": t["short"]},
            "<= 1.2 x the same with 100 stored",
            lambda: t["long"].best <= 1.2 * t["short"].best,
        ),
    ]


# Listings ------------------------------------------------------------------------


def _listing(journal: Journal) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        started = time.perf_counter()
        page = await journal.scan(Query(app="app"), limit=_PAGE)
        seconds = time.perf_counter() - started
        assert len(page.sessions) == _PAGE
        return seconds

    return run


async def _listings(
    backend: Backend, opened: Opened, *, rounds: int, few: int, many: int, events: int
) -> Row:
    entries = _entries(events)
    for n in range(few):
        await opened.journal.create(NewSession(key=_key(n)), entries)
    t = await race_async([Contender("few", _listing(opened.journal))], rounds)
    for n in range(few, many):
        await opened.journal.create(NewSession(key=_key(n)), entries)
    t |= await race_async([Contender("many", _listing(opened.journal))], rounds)
    reach = 0.050 if backend.name == "JSONL" else 0.005
    return Row(
        f"list {_PAGE} of {many:,} sessions of {events} events, {backend.name}",
        t["many"],
        {f"the same of {few:,}": t["few"]},
        f"<= {reach * 1000:.0f} ms",
        lambda: t["many"].best <= reach,
    )


# Bytes ---------------------------------------------------------------------------


async def _bytes(opened: Opened, count: int) -> dict[str, float]:
    text = "0123456789abcdef" * 60
    sizes = [await opened.stored()]
    key = SessionKey("app", "bytes", "", "s")
    await opened.journal.create(NewSession(key=key))
    for half in range(2):
        for n in range(count):
            message = ChatMessage.user(f"{half}.{n} {text}")
            await opened.journal.append(key, [Entry(f"b{half}.{n}", message=message)])
        sizes.append(await opened.stored())
    body = len(dump_json({"message": ChatMessage.user(f"0.0 {text}").to_openai()}))
    return {
        "message bytes": body,
        "stored per byte": (sizes[2] - sizes[0]) / (2 * count * body),
        "the second half": (sizes[2] - sizes[1]) / (count * body),
    }


async def sizes(*, quick: bool = False) -> dict[str, dict[str, float]]:
    """Return how many bytes each backend stores for one byte of a message."""
    found: dict[str, dict[str, float]] = {}
    for backend in BACKENDS:
        with tempfile.TemporaryDirectory() as folder:
            async with backend.open(Path(folder)) as opened:
                found[backend.name] = await _bytes(opened, 5 if quick else 2000)
    return found


def print_sizes(found: Mapping[str, Mapping[str, float]]) -> None:
    """Print how many bytes each backend stores, beside what is to be reached."""
    print("stored bytes, indexes included, for each byte of a message of 1 kB")
    for name, size in found.items():
        mark = "reached" if size["stored per byte"] <= _REACH else "NOT REACHED"
        print(
            f"    {name:12} {size['stored per byte']:.2f}, of the second half "
            f"{size['the second half']:.2f}; reach <= {_REACH:g}: {mark}"
        )


async def rows(
    *, quick: bool = False, backends: Sequence[Backend] = BACKENDS
) -> list[Row]:
    """Measure, and return the rows of the report."""
    rounds, count, long = (2, 5, 200) if quick else (10, 100, 100_000)
    few, many, events = (30, 40, 2) if quick else (1_000, 10_000, 100)
    found: list[Row] = []
    for backend in backends:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            opened = await stack.enter_async_context(backend.open(folder))
            found += await _appends(backend, opened, rounds, count, long)
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            opened = await stack.enter_async_context(backend.open(folder))
            found.append(
                await _listings(
                    backend, opened, rounds=rounds, few=few, many=many, events=events
                )
            )
    return found
