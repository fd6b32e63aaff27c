"""The rows of session services: append and get, beside tRPC-Agent and Google's ADK."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from benches.backends import servers
from benches.corpus import plain_messages
from benches.peers import GoogleADK, Peer, ServicePeer, TRPCAgent, version
from benches.report import Row
from benches.timing import Contender, Timing, race_async
from raf_session.service import (
    Event,
    RedisSessionService,
    SessionService,
    SqlSessionService,
)

__all__ = ("rows",)


class Ours(ServicePeer):
    """`SqlSessionService` of this library."""

    distribution = "raf_session"

    async def open(self, messages: list[dict[str, Any]]) -> None:
        self.service = self.make()
        self.session = await self.service.create_session(
            app_name="a", user_id="u", session_id="s"
        )
        for start in range(0, len(messages), 1000):
            part = messages[start : start + 1000]
            await self.service.append_events(self.session, [*map(self.event, part)])

    def make(self) -> SessionService:
        return SqlSessionService(db_url=f"sqlite:///{self.folder}/ours.db")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.event = _our_event

    async def close(self) -> None:
        await self.service.close()


class OursInRedis(Ours):
    """`RedisSessionService` of this library."""

    def make(self) -> SessionService:
        url = servers("redis").url()
        return RedisSessionService(db_url=url, prefix=f"bench-{uuid4().hex}")


class TRPCAgentInRedis(TRPCAgent):
    """`RedisSessionService` of tRPC-Agent."""

    async def open(self, messages: list[dict[str, Any]]) -> None:
        from trpc_agent_sdk.sessions import RedisSessionService as Theirs

        self.service = Theirs(db_url=servers("redis").url(), is_async=True)
        self.user = f"u-{uuid4().hex}"
        self.session = await self.service.create_session(
            app_name="a", user_id=self.user, session_id="s"
        )
        self.event = _their_event
        # Each append writes the whole session: filling by appends would take hours.
        self.session.events = [*map(self.event, messages)]
        await self.service.update_session(self.session)


def _our_event(message: dict[str, Any]) -> Event:
    return Event(author=message["role"], invocation_id="i", content=message)


def _their_event(message: dict[str, Any]) -> Any:
    from trpc_agent_sdk.events import Event as TheirEvent
    from trpc_agent_sdk.types import Content, Part

    role = "user" if message["role"] == "user" else "model"
    return TheirEvent(
        author=message["role"],
        invocation_id="i",
        content=Content(role=role, parts=[Part.from_text(text=message["content"])]),
    )


def _appending(peer: Peer, count: int) -> Callable[[], Awaitable[float]]:
    messages = plain_messages(count)
    return lambda: peer.append(messages)


def _getting(peer: Peer, least: int) -> Callable[[], Awaitable[float]]:
    async def run() -> float:
        seconds, found = await peer.load()
        assert found >= least
        return seconds

    return run


async def _race(
    peers: Sequence[Peer], stored: int, rounds: int, count: int
) -> list[Row]:
    for peer in peers:
        await peer.open(plain_messages(stored))
    ours, *others = peers
    names = [f"{peer.distribution} (as it ships)" for peer in others]
    found: list[Row] = []
    gets = [Contender(str(i), _getting(p, stored)) for i, p in enumerate(peers)]
    appends = [
        Contender(str(i), _appending(p, count), count) for i, p in enumerate(peers)
    ]
    backend = "Redis" if isinstance(ours, OursInRedis) else "SQLite"
    for work, contenders in (("get of", gets), ("append to", appends)):
        t = await race_async(contenders, rounds)
        beside = {name: t[str(i)] for i, name in enumerate(names, 1)}
        found.append(
            Row(
                f"{work} {stored:,} events, {backend}",
                t["0"],
                beside,
                ">= 3 x faster than each",
                _at_least(3, t["0"], beside.values()),
            )
        )
    return found


def _at_least(times: float, ours: Timing, others: Any) -> Callable[[], bool]:
    timings: list[Timing] = list(others)
    return lambda: all(other.best >= times * ours.best for other in timings)


async def rows(*, quick: bool = False) -> list[Row]:
    """Measure, and return the rows of the report."""
    sizes, rounds, count = ((5,), 2, 3) if quick else ((100, 1_000, 10_000), 7, 10)
    installed = [
        cls for cls in (GoogleADK, TRPCAgent) if version(cls.distribution) is not None
    ]
    in_redis = [cls for cls in (TRPCAgentInRedis,) if TRPCAgent in installed]
    found: list[Row] = []
    for contenders in ([Ours, *installed], [OursInRedis, *in_redis]):
        for stored in sizes:
            async with AsyncExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                peers: list[Any] = [cls(folder) for cls in contenders]
                stack.push_async_callback(peers[0].close)
                found += await _race(peers, stored, rounds, count)
    return found
