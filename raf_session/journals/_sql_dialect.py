"""What a driver of a server's database has to offer to the shared SQL journal.

The journal is written once, over `Connection` and `Pool`; a backend implements these
two and a `Dialect`, and makes the tables.

**The SQL of the core** is the same for every backend and holds three kinds of marks:

- ``~name`` stands for a table: ``~heads`` becomes ``"schema"."heads"`` or
  ``raf_heads``;
- ``?`` stands for a value, in the order of the arguments: ``$1, $2, …`` or ``%s``;
- ``IN ??`` stands for a list of values, given as one argument that is a list, never
  empty and of at most 1000: ``= ANY($1)`` or ``IN (%s, %s)``. `lists` makes such.

No literal in it holds ``~``, ``?``, ``%`` or a quotation mark. `Translation` turns it
into the text of a driver, once for each statement.

**Values** are `str`, `int`, `bytes`, `None`, or a list of `str` or of `int`. A `str`
holds neither NUL nor surrogates. Rows give back what was stored: `str` for texts,
whatever the type of the column; `int` for numbers; `bytes` for the columns
`request_hash`, `request_header` and `digests`, and for these alone.

**Comparison of texts** is of exact bytes, in ``=``, in unique keys and in ``ORDER BY``.

**Tables.** `heads`, `labels`, `entries`, `session_state`, `provider_states`,
`request_digests`, `scopes`, `scoped_state`, `meta`; their columns are listed in
`_sql_tables`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from typing_extensions import Protocol

from raf_session.journals._sql_activity import Activity

__all__ = (
    "Connection",
    "Dialect",
    "Fault",
    "FaultKind",
    "Pool",
    "Row",
    "Transaction",
    "Translation",
    "Value",
    "lists",
)

_T = TypeVar("_T")

Value: TypeAlias = str | int | bytes | Sequence[str] | Sequence[int] | None
"""What stands for a mark."""

Row: TypeAlias = Sequence[Any]
"""A row as it was read, its columns in the order of the statement."""


# Connections ---------------------------------------------------------------------


class Transaction(Protocol):
    """What may be done between the beginning of a transaction and its end.

    Any error of the driver may come out of each method as it is; the core tells what
    it means by `Dialect.fault`. Each method may be cancelled at any await; then, and
    after any error but of `insert`, the transaction is rolled back, or the connection
    closed where that fails.
    """

    @abstractmethod
    async def rows(self, sql: str, /, *values: Value) -> Sequence[Row]:
        """Run a statement and return all its rows."""
        ...

    @abstractmethod
    async def execute(self, sql: str, /, *values: Value) -> None:
        """Run a statement that gives no rows."""
        ...

    @abstractmethod
    async def execute_many(self, sql: str, rows: Sequence[Sequence[Value]], /) -> None:
        """Run it for each of these values, in few round trips; there is at least one.

        The statement is an ``INSERT … VALUES (?, …)``, what `Dialect.upsert` gave, an
        ``UPDATE`` or a ``DELETE``.
        """
        ...

    @abstractmethod
    async def insert(self, sql: str, /, *values: Value) -> int | None:
        """Insert one row; return its new `number`, `None` where its key is taken.

        The statement is ``INSERT INTO ~heads (…) VALUES (?, …)``, or the same for
        ``~scopes``: the tables whose `number` the server draws. Where another
        transaction has inserted that key and not ended yet, it is waited for. The
        transaction can go on after `None`; no other fault may be taken for a taken key.
        """
        ...


class Connection(Transaction, Protocol):
    """A connection that is checked out of a pool; one task has it at a time."""

    @abstractmethod
    async def begin(self, *, snapshot: bool = False) -> None:
        """Begin a transaction; it may wait for the server, or for the first statement.

        Args:
            snapshot: all statements read the same moment, and nothing is written;
                else each reads what is committed when it begins (READ COMMITTED).
        """
        ...

    @abstractmethod
    async def commit(self) -> None:
        """Commit it."""
        ...

    @abstractmethod
    async def rollback(self) -> None:
        """Undo it. Called after errors and cancellation; it may raise."""
        ...

    @abstractmethod
    def terminate(self) -> None:
        """Close the connection at once, whatever state it is in; never raises.

        The pool is still given it back by `Pool.release`.
        """
        ...


class Pool(Protocol):
    """Connections of one event loop."""

    @abstractmethod
    async def acquire(self) -> Connection:
        """Check a connection out, or wait for one.

        The core bounds the wait: a cancelled call has checked nothing out.
        """
        ...

    def acquire_now(self) -> Connection | None:
        """Check a connection out where one is at hand, without waiting."""
        return None

    @abstractmethod
    async def release(self, connection: Connection, /) -> None:
        """Give it back, in a transaction no more, or terminated.

        Called once for each `acquire`. It does not suspend, or is done whole even where
        its caller is cancelled.
        """
        ...

    @abstractmethod
    async def close(self) -> None:
        """Close it, once every connection is back; a pool that was given stays."""
        ...

    @abstractmethod
    def terminate(self) -> None:
        """Close every connection at once, without awaiting; a given pool stays."""
        ...

    @abstractmethod
    def renew(self) -> None:
        """Take care that connections that are idle now are not used again.

        Called after one was lost: the others of its age are likely to be dead too.
        """
        ...


# Faults --------------------------------------------------------------------------


class FaultKind(Enum):
    """What an error of the driver means for a transaction."""

    CONFLICT = "conflict"
    """Deadlock, serialisation, a lock not had in time, a statement whose plan is out
    of date: nothing was done, and the whole transaction may be run again."""
    REFUSED = "refused"
    """There is no connection to be had, as the server is down, starts or stops; or the
    connection was known to be closed before this was sent. Nothing was sent."""
    LOST = "lost"
    """The connection is gone. What was sent in its transaction is undone, but for a
    commit, or a call that commits by itself: these may have been done."""
    DUPLICATE = "duplicate"
    """A unique key is taken; `Fault.constraint` names it where the driver tells."""
    FULL = "full"
    """No space left: `StorageFullError`."""
    BUSY = "busy"
    """Too many connections: `StorageBusyError`."""
    TOO_LARGE = "too large"
    """The server does not take a packet of that size; nothing was done."""
    OTHER = "other"
    """Any other error of the driver: `StorageError`."""


class Fault(NamedTuple):
    """An error of the driver, understood."""

    kind: FaultKind
    detail: str
    """What the server or the driver said, and its code."""
    constraint: str = ""
    """The unique key that is taken."""


# The dialect ---------------------------------------------------------------------


class Dialect(Protocol):
    """What differs between the databases, beside their connections."""

    @property
    @abstractmethod
    def backend(self) -> str:
        """The name that errors carry: ``postgresql``, ``mysql``."""
        ...

    @property
    @abstractmethod
    def compares_rows(self) -> bool:
        """Whether ``(a, b) > (?, ?)`` is answered by an index over both.

        Else the core writes ``a > ? OR (a = ? AND b > ?)``.
        """
        ...

    @property
    @abstractmethod
    def activity(self) -> Activity:
        """How heads are found by the time of their activity."""
        ...

    @abstractmethod
    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        """Return the statement that inserts a row, or replaces the one of its key.

        Args:
            table: as ``~session_state``.
            key: the columns of its primary key.
            columns: the others; the values are given for key and columns, in order.
        """
        ...

    @abstractmethod
    def fault(self, error: BaseException) -> Fault | None:
        """Tell what an error means, `None` for one that is not of the driver.

        Beside the driver's own classes these are its `OSError` and whatever else it
        raises for a connection that is closed.
        """
        ...

    @abstractmethod
    async def pool(self) -> Pool:
        """Make a pool for the running event loop; nothing need be connected yet."""
        ...


_MANY: Final = 1000


def lists(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yield the values in lists that a statement takes, in order."""
    for start in range(0, len(values), _MANY):
        yield values[start : start + _MANY]


_MARKS: Final = re.compile(r"~(\w+)|IN \?\?|\?")


class Translation:
    """Turns the SQL of the core into that of a driver, each statement once.

    Args:
        table: the name of a table as the server takes it.
        mark: the n-th value, from 1.
        many: what stands for ``IN ??``, where the list is the n-th value.
    """

    def __init__(
        self,
        *,
        table: Callable[[str], str],
        mark: Callable[[int], str],
        many: Callable[[int], str],
    ) -> None:
        self._table = table
        self._mark = mark
        self._many = many
        self._known: dict[str, str] = {}

    def __call__(self, sql: str) -> str:
        """Return the statement for the driver."""
        text = self._known.get(sql)
        if text is None:
            text = self._known[sql] = self._translate(sql)
        return text

    def _translate(self, sql: str) -> str:
        n = 0

        def put(match: re.Match[str]) -> str:
            nonlocal n
            if match[1]:
                return self._table(match[1])
            n += 1
            return self._mark(n) if match[0] == "?" else self._many(n)

        return _MARKS.sub(put, sql)
