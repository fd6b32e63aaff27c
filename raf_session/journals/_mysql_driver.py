"""What is used of `asyncmy`: its shape, and how to connect."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from typing_extensions import Protocol, runtime_checkable

__all__ = ("Cursor", "Driver", "DriverPool", "Result", "Statement", "connect")


class Result(Protocol):
    """What a statement gave, read to its end."""

    rows: Sequence[Sequence[Any]] | None
    affected_rows: int
    insert_id: int
    description: Sequence[Sequence[Any]] | None


class Statement(Protocol):
    """A prepared statement; its values travel as they are, unescaped."""

    @abstractmethod
    async def execute(self, args: Sequence[Any], /) -> Result:
        """Run it."""
        ...

    @abstractmethod
    async def close(self) -> None:
        """Forget it on the server."""
        ...


class Cursor(Protocol):
    """Runs texts of one statement or several."""

    description: Sequence[Sequence[Any]] | None

    @abstractmethod
    async def execute(self, query: str, /) -> object:
        """Run a text, and read the first of its results."""
        ...

    @abstractmethod
    async def nextset(self) -> bool | None:
        """Read the next result, if there is one."""
        ...

    @abstractmethod
    async def fetchall(self) -> Sequence[Sequence[Any]]:
        """Return the rows of the result that was read last."""
        ...


class Driver(Protocol):
    """A connection of the driver."""

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether it is not known to be closed."""
        ...

    @abstractmethod
    async def prepare(self, query: str, /) -> Statement:
        """Prepare a statement with ``?`` for its values."""
        ...

    @abstractmethod
    def cursor(self) -> Cursor:
        """Return a cursor."""
        ...

    @abstractmethod
    async def begin(self) -> None:
        """Begin a transaction."""
        ...

    @abstractmethod
    async def commit(self) -> None:
        """Commit it."""
        ...

    @abstractmethod
    async def rollback(self) -> None:
        """Undo it."""
        ...

    @abstractmethod
    def get_autocommit(self) -> bool:
        """Whether a statement without a transaction commits by itself."""
        ...

    @abstractmethod
    def get_transaction_status(self) -> bool:
        """Whether a transaction is open, as the server said last."""
        ...

    @abstractmethod
    def character_set_name(self) -> str:
        """Return the character set that texts travel in."""
        ...

    @abstractmethod
    def get_server_info(self) -> str:
        """Return the server's version."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Close it at once."""
        ...

    @abstractmethod
    async def ensure_closed(self) -> None:
        """Take leave of the server, and close it."""
        ...


@runtime_checkable
class DriverPool(Protocol):
    """A pool of the driver, as it is given to a journal."""

    @abstractmethod
    def acquire(self) -> Awaitable[Driver]:
        """Check a connection out."""
        ...

    @abstractmethod
    def release(self, conn: Driver, /) -> object:
        """Give it back."""
        ...


async def connect(options: Mapping[str, Any]) -> Driver:
    """Connect to a server."""
    module = import_module("asyncmy")
    return cast("Driver", await module.connect(**options))
