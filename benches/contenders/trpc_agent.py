"""tRPC-Agent: the session services of `trpc_agent_sdk`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from benches.contenders.contender import Contender
from benches.contenders.services import ServiceContender

__all__ = ("TRPC_AGENT",)


class TRPCAgent(ServiceContender):
    """A session service of tRPC-Agent."""

    label = distribution = "trpc-agent-py"
    imports = "from trpc_agent_sdk.sessions import InMemorySessionService"
    lacks: ClassVar = ServiceContender.lacks | {
        "load last 20": "a limit of the service"
    }

    @override
    async def close(self) -> None:
        await self.service.close()

    @override
    def message(self, message: dict[str, Any]) -> Any:
        from trpc_agent_sdk.events import Event
        from trpc_agent_sdk.types import Content, Part

        role = "user" if message["role"] == "user" else "model"
        return Event(
            author=message["role"],
            invocation_id="i",
            content=Content(role=role, parts=[Part.from_text(text=message["content"])]),
        )


class TRPCMemory(TRPCAgent):
    """`InMemorySessionService`."""

    backend = "memory"
    how = "InMemorySessionService"

    @override
    async def open(self) -> None:
        from trpc_agent_sdk.sessions import InMemorySessionService

        self.service = InMemorySessionService()


class TRPCRedis(TRPCAgent):
    """`RedisSessionService`, which keeps a session in one value.

    It is filled by `update_session`: each append writes the whole session, so that
    filling by appends would take hours.
    """

    backend = "Redis"
    how = "RedisSessionService; append-only file, never synced"

    @override
    async def open(self) -> None:
        from trpc_agent_sdk.sessions import RedisSessionService

        self.service = RedisSessionService(db_url=self.place.url, is_async=True)

    @override
    async def fill(self, session: Any, messages: Sequence[Any]) -> None:
        session.events = [*session.events, *messages]
        await self.service.update_session(session)


class TRPCSQL(TRPCAgent):
    """`SqlSessionService` through SQLAlchemy, `is_async=False` as in its samples."""

    driver = ""

    @override
    async def open(self) -> None:
        from trpc_agent_sdk.sessions import SqlSessionService

        url = self.place.sqlalchemy(self.driver) if self.driver else self.place.url
        self.service = SqlSessionService(db_url=url, is_async=False)


class TRPCSQLite(TRPCSQL):
    """Through sqlite3."""

    backend = "SQLite"
    how = "SqlSessionService; rollback journal, synced at each commit"


class TRPCPostgres(TRPCSQL):
    """Through psycopg."""

    backend = "PostgreSQL"
    needs = ("psycopg",)
    driver = "psycopg"
    how = "SqlSessionService(psycopg); the server without fsync"


class TRPCMariaDB(TRPCSQL):
    """Through PyMySQL."""

    backend = "MariaDB"
    needs = ("pymysql",)
    driver = "pymysql"
    how = "SqlSessionService(pymysql)"


TRPC_AGENT: tuple[type[Contender], ...] = (
    TRPCMemory,
    TRPCSQLite,
    TRPCRedis,
    TRPCPostgres,
    TRPCMariaDB,
)
