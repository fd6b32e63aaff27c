"""Pydantic AI: the `ConversationStore` of its core, which is in memory."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from typing_extensions import override

from benches.contenders.contender import Contender

__all__ = ("PYDANTIC_AI",)


class PydanticAIMemory(Contender):
    """`InMemoryConversationStore`: the conversation is saved after each message."""

    label = distribution = "pydantic-ai-slim"
    backend = "memory"
    how = "InMemoryConversationStore"
    imports = "from pydantic_ai.conversation_store import InMemoryConversationStore"

    @classmethod
    @override
    def installed(cls) -> bool:
        try:
            import_module("pydantic_ai.conversation_store")
        except ImportError:
            return False  # not installed, or older than the store
        return True

    @override
    async def open(self) -> None:
        from pydantic_ai.conversation_store import InMemoryConversationStore

        self.store: Any = InMemoryConversationStore()

    @override
    def message(self, message: dict[str, Any]) -> Any:
        from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart

        if message["role"] == "user":
            return ModelRequest.user_text_prompt(message["content"])
        return ModelResponse(parts=[TextPart(content=message["content"])])

    @override
    def text(self, message: Any) -> str:
        return str(message.parts[0].content)

    @override
    async def create(self, name: str) -> Any:
        from pydantic_ai.conversation import Conversation

        return Conversation(messages=[], conversation_id=name)

    @override
    async def append(self, session: Any, message: Any) -> None:
        session.messages.append(message)
        await self.store.save(session, scope="u")

    @override
    async def batch(self, session: Any, messages: Sequence[Any]) -> None:
        session.messages.extend(messages)
        await self.store.save(session, scope="u")

    @override
    async def load(self, name: str) -> Sequence[Any]:
        conversation = await self.store.load(name)
        found: list[Any] = conversation.messages
        return found

    @override
    async def last(self, name: str, count: int) -> Sequence[Any]:
        conversation = await self.store.load(name, limit=count)
        found: list[Any] = conversation.messages
        return found

    @override
    async def listed(self, count: int) -> Sequence[str]:
        found = await self.store.list_conversations(scope="u", limit=count)
        return [record.conversation_id for record in found]


PYDANTIC_AI: tuple[type[Contender], ...] = (PydanticAIMemory,)
