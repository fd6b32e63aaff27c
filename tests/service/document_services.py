"""The services of tRPC-Agent's document, made as it makes them, by backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from journal_bindings import BY_NAME, mysql_storage
from servers import postgres, redis

from raf_session.service import (
    InMemorySessionService,
    RedisSessionService,
    SessionService,
    SqlSessionService,
    open_service,
)

__all__ = ("BACKENDS", "Make", "makers")

Make: TypeAlias = Callable[..., SessionService]
"""Makes a service over one storage: the same with each call."""

BACKENDS: Final = ("memory", "sqlite", "jsonl", "redis", "postgresql", "mariadb")

_AS_PRINTED: Final[dict[str, Any]] = {
    "is_async": True,
    "pool_pre_ping": True,
    "pool_recycle": 3600,
}


@asynccontextmanager
async def makers(backend: str) -> AsyncGenerator[Make]:
    """Give what makes services over new, empty storage of a backend."""
    made: list[SessionService] = []

    def keep(make: Callable[..., SessionService]) -> Make:
        def made_by(**options: Any) -> SessionService:
            service = make(**options)
            made.append(service)
            return service

        return made_by

    async with _STORAGES[backend]() as make:
        try:
            yield keep(make)
        finally:
            for service in made:
                await service.close()


@asynccontextmanager
async def _memory() -> AsyncGenerator[Make]:
    yield InMemorySessionService


@asynccontextmanager
async def _sqlite() -> AsyncGenerator[Make]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        url = f"sqlite+aiosqlite:///{folder}/sessions.db"
        yield lambda **options: SqlSessionService(db_url=url, **_AS_PRINTED, **options)


@asynccontextmanager
async def _jsonl() -> AsyncGenerator[Make]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield lambda **options: open_service(f"file://{folder}", **options)


@asynccontextmanager
async def _redis() -> AsyncGenerator[Make]:
    async with BY_NAME["redis"].storage() as opener:
        prefix: str = opener.keywords["prefix"]  # type: ignore[attr-defined]
        yield lambda **options: RedisSessionService(
            db_url=redis.url(), is_async=True, prefix=prefix, **options
        )


@asynccontextmanager
async def _postgresql() -> AsyncGenerator[Make]:
    async with BY_NAME["postgresql"].storage() as opener:
        schema: str = opener.keywords["schema"]  # type: ignore[attr-defined]
        parts = urlsplit(postgres.url())
        url = parts._replace(scheme="postgresql+asyncpg").geturl()
        yield lambda **options: SqlSessionService(
            db_url=url, schema=schema, **_AS_PRINTED, **options
        )


@asynccontextmanager
async def _mariadb() -> AsyncGenerator[Make]:
    async with mysql_storage() as opener:
        (given,) = opener.args  # type: ignore[attr-defined]
        parts = urlsplit(given)
        url = parts._replace(scheme="mysql+pymysql", query="charset=utf8mb4").geturl()
        yield lambda **options: SqlSessionService(db_url=url, **_AS_PRINTED, **options)


_STORAGES: Final = {
    "memory": _memory,
    "sqlite": _sqlite,
    "jsonl": _jsonl,
    "redis": _redis,
    "postgresql": _postgresql,
    "mariadb": _mariadb,
}
