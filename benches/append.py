"""The append rows: memory, and SQLite beside the peers and a raw insert."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

from benches.corpus import plain_messages
from benches.peers import PEERS, OpenAIAgents, Peer
from benches.report import Row
from benches.timing import Contender, race_async
from raf_session import ChatMessage, JournaledSession, SessionKey, open_journal

__all__ = ("rows",)


def _messages(count: int) -> list[ChatMessage]:
    return [ChatMessage.from_openai(d) for d in plain_messages(count)]


def _adding(session: JournaledSession, count: int) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        messages = _messages(count)
        before = session.get_message_count()
        started = time.perf_counter()
        for message in messages:
            await session.add_message(message)
        seconds = time.perf_counter() - started
        assert session.get_message_count() == before + count
        return seconds

    return run


async def _session(
    stack: AsyncExitStack,
    url: str,
    *,
    filled: int = 0,
    durability: Literal["kill", "power"] = "kill",
) -> JournaledSession:
    journal = open_journal(url, durability=durability)
    await stack.enter_async_context(journal)
    session = await JournaledSession.open(journal, SessionKey.raf("s"))
    for start in range(0, filled, 1000):
        await session.add_messages_batch(_messages(min(1000, filled - start)))
    return session


def _raw(path: Path, synchronous: str, count: int) -> Callable[[], Awaitable[float]]:
    """One insert and one commit a message, nothing else."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, body TEXT)")
    bodies = [(d["content"],) for d in plain_messages(count)]

    async def run() -> float:
        started = time.perf_counter()
        for body in bodies:
            connection.execute("INSERT INTO entries (body) VALUES (?)", body)
        return time.perf_counter() - started

    return run


def _listing(count: int) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        messages = _messages(count)
        kept: list[ChatMessage] = []
        started = time.perf_counter()
        for message in messages:
            kept.append(message)  # noqa: PERF402  (what is measured)
        return time.perf_counter() - started

    return run


def _peer(peer: Peer, count: int) -> Callable[[], Awaitable[float]]:
    dicts = plain_messages(count)

    async def run() -> float:
        return await peer.append(dicts)

    return run


async def rows(*, quick: bool = False) -> list[Row]:
    """Measure, and return the rows of the report."""
    rounds, count, long = (2, 5, 500) if quick else (12, 100, 100_000)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        memory = await _session(stack, "memory://")
        short = await _session(stack, f"sqlite:///{folder}/short.db", filled=100)
        filled = await _session(stack, f"sqlite:///{folder}/long.db", filled=long)
        power = await _session(
            stack, f"sqlite:///{folder}/power.db", filled=100, durability="power"
        )
        contenders = [
            Contender("memory", _adding(memory, count), count),
            Contender("list", _listing(count), count),
            Contender("short", _adding(short, count), count),
            Contender("long", _adding(filled, count), count),
            Contender("power", _adding(power, count), count),
            Contender("raw", _raw(folder / "raw.db", "NORMAL", count), count),
            Contender("raw power", _raw(folder / "full.db", "FULL", count), count),
        ]
        names: list[str] = []
        for cls in PEERS:
            peer = cls(folder)
            await peer.open(plain_messages(5 if quick else 100))
            names.append(peer.distribution)
            contenders.append(Contender(names[-1], _peer(peer, count), count))
        t = await race_async(contenders, rounds)
    openai = OpenAIAgents.distribution
    beside: dict[str, Any] = {"one raw insert and commit": t["raw"]}
    beside |= {f"{name} (as it ships)": t[name] for name in names}
    power_beside = {"one raw insert and commit, synced": t["raw power"]}
    if openai in t:
        power_beside[f"{openai} (as it ships)"] = t[openai]
    return [
        Row(
            "append, memory",
            t["memory"],
            {"one list append": t["list"]},
            "<= 20 µs",
            lambda: t["memory"].best <= 20e-6,
        ),
        Row(
            "append, SQLite, kill durability, 100 messages stored",
            t["short"],
            beside,
            "<= 60 µs; >= 3 x faster than openai-agents",
            lambda: (
                t["short"].best <= 60e-6
                and (openai not in t or t[openai].best >= 3 * t["short"].best)
            ),
        ),
        Row(
            f"append, SQLite, kill durability, {long:,} messages stored",
            t["long"],
            {"the same with 100 stored": t["short"]},
            "<= 1.2 x the same with 100 stored",
            lambda: t["long"].best <= 1.2 * t["short"].best,
        ),
        Row(
            "append, SQLite, power durability",
            t["power"],
            power_beside,
            ">= 1.3 x faster than openai-agents",
            lambda: openai not in t or t[openai].best >= 1.3 * t["power"].best,
        ),
    ]
