"""What is used of `asyncpg`, which says little of its types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, cast

from typing_extensions import Protocol

__all__ = ("DRIVER", "OUTDATED", "DriverConnection", "DriverPool", "DriverStatement")


class DriverStatement(Protocol):
    """``asyncpg.prepared_stmt.PreparedStatement``."""

    @abstractmethod
    async def fetch(self, *args: Any) -> list[Sequence[Any]]: ...


class DriverConnection(Protocol):
    """``asyncpg.Connection``, or what a pool lends of it."""

    @abstractmethod
    async def execute(self, query: str, /, *args: Any) -> str: ...

    @abstractmethod
    async def executemany(
        self, command: str, args: Iterable[Sequence[Any]], /
    ) -> None: ...

    @abstractmethod
    async def fetch(self, query: str, /, *args: Any) -> list[Sequence[Any]]: ...

    @abstractmethod
    async def prepare(self, query: str, /) -> DriverStatement: ...

    @abstractmethod
    def is_in_transaction(self) -> bool: ...

    @abstractmethod
    def is_closed(self) -> bool: ...

    @abstractmethod
    def get_server_pid(self) -> int: ...

    @abstractmethod
    def terminate(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...


class DriverPool(Protocol):
    """``asyncpg.Pool``."""

    @abstractmethod
    def acquire(self) -> Awaitable[DriverConnection]: ...

    @abstractmethod
    async def release(self, connection: DriverConnection, /) -> None: ...

    @abstractmethod
    def expire_connections(self) -> Coroutine[Any, Any, None]: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def terminate(self) -> None: ...


class _Driver(Protocol):
    InterfaceError: type[Exception]
    PostgresError: type[Exception]
    InternalClientError: type[Exception]
    InvalidCachedStatementError: type[Exception]
    OutdatedSchemaCacheError: type[Exception]
    connect: Callable[..., Coroutine[Any, Any, DriverConnection]]
    create_pool: Callable[..., Awaitable[DriverPool]]


DRIVER: Final = cast("_Driver", import_module("asyncpg"))
OUTDATED: Final = (DRIVER.InvalidCachedStatementError, DRIVER.OutdatedSchemaCacheError)
"""What the driver remembered of the tables was of before a migration."""
