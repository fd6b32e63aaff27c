"""LangGraph: its checkpointers, with the messages in one channel as in its chatbots."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from typing_extensions import override

from benches.contenders.contender import Contender

__all__ = ("LANGGRAPH",)


class LangGraph(Contender):
    """A saver: each step puts a checkpoint that holds the messages so far.

    The saver is called as the graph does it, without the graph's own cost.
    """

    label = "langgraph-checkpoint"
    distribution = "langgraph-checkpoint"
    imports = "from langgraph.checkpoint.memory import InMemorySaver"
    lacks: ClassVar = {
        "load last 20": "the whole channel",
        "list": "checkpoints, not threads",
    }
    saver: Any

    @override
    async def open(self) -> None:
        self._stack = AsyncExitStack()

    @override
    async def close(self) -> None:
        await self._stack.aclose()

    @override
    def message(self, message: dict[str, Any]) -> Any:
        from langchain_core.messages import AIMessage, HumanMessage

        cls = HumanMessage if message["role"] == "user" else AIMessage
        return cls(content=message["content"])

    @override
    def text(self, message: Any) -> str:
        return str(message.content)

    def _config(self, name: str) -> Any:
        return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}

    @override
    async def create(self, name: str) -> dict[str, Any]:
        return {"config": self._config(name), "messages": [], "version": None}

    @override
    async def append(self, session: dict[str, Any], message: Any) -> None:
        await self.batch(session, [message])

    @override
    async def batch(self, session: dict[str, Any], messages: Sequence[Any]) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        session["messages"].extend(messages)
        version = self.saver.get_next_version(session["version"], None)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": session["messages"]}
        checkpoint["channel_versions"] = {"messages": version}
        metadata = {"source": "loop", "step": len(session["messages"]), "parents": {}}
        session["config"] = await self.saver.aput(
            session["config"], checkpoint, metadata, {"messages": version}
        )
        session["version"] = version

    @override
    async def load(self, name: str) -> Sequence[Any]:
        found = await self.saver.aget_tuple(self._config(name))
        messages: list[Any] = found.checkpoint["channel_values"]["messages"]
        return messages


class LangGraphMemory(LangGraph):
    """`InMemorySaver`."""

    backend = "memory"
    how = "InMemorySaver; the channel whole in each checkpoint"

    @override
    async def open(self) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        await super().open()
        self.saver = InMemorySaver()


class LangGraphSQLite(LangGraph):
    """`AsyncSqliteSaver`."""

    backend = "SQLite"
    distribution = "langgraph-checkpoint-sqlite"
    how = "AsyncSqliteSaver; WAL, synced at each commit; the channel whole each time"

    @override
    async def open(self) -> None:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        await super().open()
        self.saver = await self._stack.enter_async_context(
            AsyncSqliteSaver.from_conn_string(str(self.place.path))
        )


class LangGraphPostgres(LangGraph):
    """`AsyncPostgresSaver`."""

    backend = "PostgreSQL"
    distribution = "langgraph-checkpoint-postgres"
    how = "AsyncPostgresSaver; the server without fsync; the channel whole each time"

    @override
    async def open(self) -> None:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        await super().open()
        self.saver = await self._stack.enter_async_context(
            AsyncPostgresSaver.from_conn_string(self.place.url)
        )
        await self.saver.setup()


LANGGRAPH: tuple[type[Contender], ...] = (
    LangGraphMemory,
    LangGraphSQLite,
    LangGraphPostgres,
)
