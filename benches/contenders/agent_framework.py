"""Microsoft's Agent Framework: its history providers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

from typing_extensions import override

from benches.contenders.contender import Contender

__all__ = ("AGENT_FRAMEWORK",)


class AgentFramework(Contender):
    """A `HistoryProvider`; messages bear ids, without which a repeat is dropped."""

    label = distribution = "agent-framework-core"
    imports = "from agent_framework import InMemoryHistoryProvider"
    lacks: ClassVar = {
        "load last 20": "the whole history",
        "list": "a provider knows none",
    }
    provider: Any
    _ids: ClassVar = count()

    @override
    def message(self, message: dict[str, Any]) -> Any:
        from agent_framework import Message

        number = f"m{next(self._ids)}"
        return Message(message["role"], [message["content"]], message_id=number)

    @override
    def text(self, message: Any) -> str:
        return str(message.text)


class AgentFrameworkMemory(AgentFramework):
    """`InMemoryHistoryProvider` over the state of an `AgentSession`."""

    backend = "memory"
    how = "InMemoryHistoryProvider"

    @override
    async def open(self) -> None:
        from agent_framework import InMemoryHistoryProvider

        self.provider = InMemoryHistoryProvider()
        self._sessions: dict[str, Any] = {}

    @override
    async def create(self, name: str) -> Any:
        from agent_framework import AgentSession

        self._sessions[name] = AgentSession(session_id=name)
        return self._sessions[name]

    @override
    async def append(self, session: Any, message: Any) -> None:
        await self.batch(session, [message])

    @override
    async def batch(self, session: Any, messages: Sequence[Any]) -> None:
        await self.provider.save_messages(
            session.session_id, list(messages), state=session.state
        )

    @override
    async def load(self, name: str) -> Sequence[Any]:
        state = self._sessions[name].state
        found: list[Any] = await self.provider.get_messages(name, state=state)
        return found


class AgentFrameworkFile(AgentFramework):
    """`FileHistoryProvider`, a file of JSON lines for each session."""

    backend = "JSONL"
    how = "FileHistoryProvider; never synced, no lock between processes"

    @override
    async def open(self) -> None:
        from agent_framework import FileHistoryProvider

        self.provider = FileHistoryProvider(self.place.folder / "s")

    @override
    async def create(self, name: str) -> str:
        return name

    @override
    async def append(self, session: str, message: Any) -> None:
        await self.provider.save_messages(session, [message])

    @override
    async def batch(self, session: str, messages: Sequence[Any]) -> None:
        await self.provider.save_messages(session, list(messages))

    @override
    async def load(self, name: str) -> Sequence[Any]:
        found: list[Any] = await self.provider.get_messages(name)
        return found


AGENT_FRAMEWORK: tuple[type[Contender], ...] = (
    AgentFrameworkMemory,
    AgentFrameworkFile,
)
