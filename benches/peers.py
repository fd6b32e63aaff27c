"""The peers, each used as its own documentation shows; those that are installed."""

from __future__ import annotations

import importlib.metadata
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ("PEERS", "Peer", "version")


def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, `None` where it is not there."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


class Peer(ABC):
    """One library's session on one SQLite file."""

    distribution: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    async def open(self, messages: list[dict[str, Any]]) -> None:
        """Make a session that holds these messages."""

    @abstractmethod
    async def append(self, messages: list[dict[str, Any]]) -> float:
        """Append each by a call of its own, and return the seconds."""

    @abstractmethod
    async def load(self) -> tuple[float, int]:
        """Load the session anew; return the seconds and the number of messages."""


class OpenAIAgents(Peer):
    """`SQLiteSession` of OpenAI's Agents SDK."""

    distribution = "openai-agents"

    async def open(self, messages: list[dict[str, Any]]) -> None:
        from agents import SQLiteSession

        self.make: Callable[[], Any] = lambda: SQLiteSession(
            "s", self.folder / "openai.db"
        )
        self.session = self.make()
        if messages:
            await self.session.add_items(messages)

    async def append(self, messages: list[dict[str, Any]]) -> float:
        started = time.perf_counter()
        for message in messages:
            await self.session.add_items([message])
        return time.perf_counter() - started

    async def load(self) -> tuple[float, int]:
        session = self.make()
        started = time.perf_counter()
        items = await session.get_items()
        seconds = time.perf_counter() - started
        session.close()
        return seconds, len(items)


class ServicePeer(Peer):
    """One library's session service, with a session of events."""

    service: Any
    session: Any
    event: Callable[[dict[str, Any]], Any]
    user = "u"

    async def append(self, messages: list[dict[str, Any]]) -> float:
        events = [self.event(message) for message in messages]
        started = time.perf_counter()
        for event in events:
            await self.service.append_event(self.session, event)
        return time.perf_counter() - started

    async def load(self) -> tuple[float, int]:
        started = time.perf_counter()
        session = await self.service.get_session(
            app_name="a", user_id=self.user, session_id="s"
        )
        seconds = time.perf_counter() - started
        assert session is not None
        return seconds, len(session.events)


class GoogleADK(ServicePeer):
    """`SqliteSessionService` of Google's ADK."""

    distribution = "google-adk"

    async def open(self, messages: list[dict[str, Any]]) -> None:
        from google.adk.events import Event
        from google.adk.sessions.sqlite_session_service import SqliteSessionService
        from google.genai import types

        self.service = SqliteSessionService(str(self.folder / "adk.db"))
        self.session = await self.service.create_session(
            app_name="a", user_id="u", session_id="s"
        )
        self.event = lambda message: Event(
            author=message["role"],
            invocation_id="i",
            content=types.Content(
                role="user" if message["role"] == "user" else "model",
                parts=[types.Part(text=message["content"])],
            ),
        )
        await self.append(messages)


class TRPCAgent(ServicePeer):
    """`SqlSessionService` of tRPC-Agent."""

    distribution = "trpc-agent-py"

    async def open(self, messages: list[dict[str, Any]]) -> None:
        from trpc_agent_sdk.events import Event
        from trpc_agent_sdk.sessions import SqlSessionService
        from trpc_agent_sdk.types import Content, Part

        self.service = SqlSessionService(
            db_url=f"sqlite:///{self.folder}/trpc.db", is_async=False
        )
        self.session = await self.service.create_session(
            app_name="a", user_id="u", session_id="s"
        )
        self.event = lambda message: Event(
            author=message["role"],
            invocation_id="i",
            content=Content(
                role="user" if message["role"] == "user" else "model",
                parts=[Part.from_text(text=message["content"])],
            ),
        )
        await self.append(messages)


PEERS: tuple[type[Peer], ...] = tuple(
    peer
    for peer in (OpenAIAgents, GoogleADK, TRPCAgent)
    if version(peer.distribution) is not None
)
