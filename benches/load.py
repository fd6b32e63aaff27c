"""The load row: 1,000 messages from SQLite, beside the peers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from benches.corpus import plain_messages
from benches.peers import PEERS, OpenAIAgents, Peer
from benches.report import Row
from benches.timing import Contender, race_async
from raf_session import ChatMessage, JournaledSession, SessionKey, open_journal
from raf_session.journal import Journal

__all__ = ("rows",)


def _ours(journal: Journal, count: int) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        started = time.perf_counter()
        session = await JournaledSession.open(journal, SessionKey.raf("s"))
        seconds = time.perf_counter() - started
        assert session.get_message_count() == count
        return seconds

    return run


def _peer(peer: Peer, count: int) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        seconds, found = await peer.load()
        assert found == count
        return seconds

    return run


async def rows(*, quick: bool = False) -> list[Row]:
    """Measure, and return the row of the report."""
    rounds, count = (2, 20) if quick else (15, 1000)
    dicts = plain_messages(count)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        journal = await stack.enter_async_context(
            open_journal(f"sqlite:///{folder}/ours.db")
        )
        session = await JournaledSession.open(journal, SessionKey.raf("s"))
        await session.add_messages_batch([ChatMessage.from_openai(d) for d in dicts])
        contenders = [Contender("ours", _ours(journal, count))]
        names: list[str] = []
        for cls in PEERS:
            peer = cls(folder)
            await peer.open(dicts)
            names.append(peer.distribution)
            contenders.append(Contender(names[-1], _peer(peer, count)))
        t = await race_async(contenders, rounds)
    openai = OpenAIAgents.distribution

    def reached() -> bool:
        ours = t["ours"].best
        return all(
            t[name].best >= (1 if name == openai else 10) * ours for name in names
        )

    return [
        Row(
            f"load {count:,} messages from SQLite",
            t["ours"],
            {name: t[name] for name in names},
            ">= 10 x faster than google-adk and trpc-agent-py, no slower than "
            "openai-agents",
            reached,
        )
    ]
