"""OpenAI's Agents SDK: the sessions of `agents` and `agents.extensions.memory`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from benches.contenders.contender import Contender

__all__ = ("OPENAI_AGENTS",)


class OpenAISession(Contender):
    """`Session` of the SDK: `add_items` and `get_items`."""

    label = distribution = "openai-agents"
    imports = "from agents import SQLiteSession"
    lacks: ClassVar = {"list": "the contract knows one session"}

    @abstractmethod
    def session(self, name: str) -> Any:
        """Return the session of that name, as its constructor makes it."""

    @override
    async def open(self) -> None:
        pass

    @override
    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        return message

    @override
    def text(self, message: Any) -> str:
        return str(message["content"])

    @override
    async def create(self, name: str) -> Any:
        return self.session(name)

    @override
    async def append(self, session: Any, message: Any) -> None:
        await session.add_items([message])

    @override
    async def batch(self, session: Any, messages: Sequence[Any]) -> None:
        await session.add_items(list(messages))

    @override
    async def load(self, name: str) -> Sequence[Any]:
        found: list[Any] = await self.session(name).get_items()
        return found

    @override
    async def last(self, name: str, count: int) -> Sequence[Any]:
        found: list[Any] = await self.session(name).get_items(limit=count)
        return found


class OpenAISQLite(OpenAISession):
    """`SQLiteSession`; it keeps its connection, so one object stands for a session."""

    backend = "SQLite"
    how = "SQLiteSession; WAL, synced at each commit"

    @override
    async def open(self) -> None:
        self._sessions: dict[str, Any] = {}

    @override
    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    @override
    def session(self, name: str) -> Any:
        if name not in self._sessions:
            from agents import SQLiteSession

            self._sessions[name] = SQLiteSession(name, self.place.path)
        return self._sessions[name]


class OpenAIMemory(OpenAISQLite):
    """`SQLiteSession` as it comes: in memory."""

    backend = "memory"
    how = "SQLiteSession(session_id): SQLite in memory"

    @override
    def session(self, name: str) -> Any:
        if name not in self._sessions:
            from agents import SQLiteSession

            self._sessions[name] = SQLiteSession(name)
        return self._sessions[name]


class OpenAIRedis(OpenAISession):
    """`RedisSession` on one client."""

    backend = "Redis"
    needs = ("redis",)
    how = "RedisSession; append-only file, never synced"
    imports = "from agents.extensions.memory import RedisSession"

    @override
    async def open(self) -> None:
        from redis.asyncio import Redis

        self._client = Redis.from_url(self.place.url)

    @override
    async def close(self) -> None:
        await self._client.aclose()

    @override
    def session(self, name: str) -> Any:
        from agents.extensions.memory import RedisSession

        return RedisSession(name, redis_client=self._client)


class OpenAIPostgres(OpenAISession):
    """`SQLAlchemySession` on one engine; its tables cannot be made in MySQL."""

    backend = "PostgreSQL"
    needs = ("sqlalchemy", "asyncpg")
    how = "SQLAlchemySession(asyncpg); the server without fsync"
    imports = "from agents.extensions.memory import SQLAlchemySession"

    @override
    async def open(self) -> None:
        from sqlalchemy.ext.asyncio import create_async_engine

        self._engine = create_async_engine(self.place.sqlalchemy("asyncpg"))

    @override
    async def close(self) -> None:
        await self._engine.dispose()

    @override
    def session(self, name: str) -> Any:
        from agents.extensions.memory import SQLAlchemySession

        return SQLAlchemySession(name, engine=self._engine, create_tables=True)


OPENAI_AGENTS: tuple[type[Contender], ...] = (
    OpenAIMemory,
    OpenAISQLite,
    OpenAIRedis,
    OpenAIPostgres,
)
