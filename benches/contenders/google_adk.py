"""Google's ADK: the session services of `google.adk`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from benches.contenders.contender import Contender
from benches.contenders.services import ServiceContender

__all__ = ("GOOGLE_ADK",)


class GoogleADK(ServiceContender):
    """A session service of the ADK."""

    label = distribution = "google-adk"
    imports = "from google.adk.sessions import InMemorySessionService"

    @override
    async def close(self) -> None:
        close = getattr(self.service, "close", None)
        if close is not None:
            await close()

    @override
    def message(self, message: dict[str, Any]) -> Any:
        from google.adk.events import Event
        from google.genai import types

        return Event(
            author=message["role"],
            invocation_id="i",
            content=types.Content(
                role="user" if message["role"] == "user" else "model",
                parts=[types.Part(text=message["content"])],
            ),
        )

    @override
    async def last(self, name: str, count: int) -> Sequence[Any]:
        from google.adk.sessions.base_session_service import GetSessionConfig

        session = await self.service.get_session(
            app_name="a",
            user_id="u",
            session_id=name,
            config=GetSessionConfig(num_recent_events=count),
        )
        found: list[Any] = session.events
        return found


class ADKMemory(GoogleADK):
    """`InMemorySessionService`."""

    backend = "memory"
    how = "InMemorySessionService"

    @override
    async def open(self) -> None:
        from google.adk.sessions import InMemorySessionService

        self.service = InMemorySessionService()


class ADKSQLite(GoogleADK):
    """`SqliteSessionService`, which opens a connection for each call."""

    backend = "SQLite"
    needs = ("aiosqlite",)
    how = "SqliteSessionService; rollback journal, synced at each commit"

    @override
    async def open(self) -> None:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        self.service = SqliteSessionService(str(self.place.path))


class ADKRedis(GoogleADK):
    """`RedisSessionService`, which keeps a session in one value."""

    backend = "Redis"
    needs = ("redis",)
    how = "RedisSessionService; append-only file, never synced"

    @override
    async def open(self) -> None:
        from google.adk.integrations.redis import (
            RedisSessionService,
            RedisSessionServiceConfig,
        )

        self.service = RedisSessionService(
            RedisSessionServiceConfig(uri=self.place.url)
        )


class ADKDatabase(GoogleADK):
    """`DatabaseSessionService` through SQLAlchemy."""

    driver: str

    @override
    async def open(self) -> None:
        from google.adk.sessions import DatabaseSessionService

        self.service = DatabaseSessionService(self.place.sqlalchemy(self.driver))


class ADKPostgres(ADKDatabase):
    """Through asyncpg."""

    backend = "PostgreSQL"
    needs = ("sqlalchemy", "asyncpg")
    driver = "asyncpg"
    how = "DatabaseSessionService(asyncpg); the server without fsync"


class ADKMariaDB(ADKDatabase):
    """Through asyncmy."""

    backend = "MariaDB"
    needs = ("sqlalchemy", "asyncmy")
    driver = "asyncmy"
    how = "DatabaseSessionService(asyncmy)"


GOOGLE_ADK: tuple[type[Contender], ...] = (
    ADKMemory,
    ADKSQLite,
    ADKRedis,
    ADKPostgres,
    ADKMariaDB,
)
