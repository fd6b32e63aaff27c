"""What is MySQL's own, beside connections and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from raf_session.journals._mysql_faults import BACKEND, fault
from raf_session.journals._mysql_pools import OwnPool
from raf_session.journals._sql_activity import Activity
from raf_session.journals._sql_dialect import Dialect, Fault, Pool

__all__ = ("MysqlDialect",)

_ACTIVITY: Final = Activity(None)


class MysqlDialect(Dialect):
    """The dialect of MySQL and MariaDB.

    Args:
        options: how to connect, as `asyncmy.connect` takes it.
        pool_size: how many connections an event loop may have.
        pool_recycle_secs: the age at which a connection is not used again.
        lock_wait_secs: how long a statement waits for a row.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        *,
        pool_size: int,
        pool_recycle_secs: float,
        lock_wait_secs: float,
    ) -> None:
        self._options: Final = options
        self._pool_size: Final = pool_size
        self._pool_recycle_secs: Final = pool_recycle_secs
        self._lock_wait_secs: Final = lock_wait_secs

    @property
    @override
    def backend(self) -> str:
        """``mysql``."""
        return BACKEND

    @property
    @override
    def compares_rows(self) -> bool:
        """They answer a comparison of rows without an index."""
        return False

    @property
    @override
    def activity(self) -> Activity:
        """Heads are indexed by the time itself: nothing is sorted by parts here."""
        return _ACTIVITY

    @override
    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        """Return the statement that inserts a row, or replaces the one of its key."""
        names = (*key, *columns)
        puts = ", ".join(f"{name} = VALUES({name})" for name in columns)
        return (
            f"INSERT INTO {table} ({', '.join(names)}) "  # noqa: S608
            f"VALUES ({', '.join('?' * len(names))}) ON DUPLICATE KEY UPDATE {puts}"
        )

    @override
    def fault(self, error: BaseException) -> Fault | None:
        """Tell what an error means."""
        return fault(error)

    @override
    async def pool(self) -> Pool:
        """Make a pool for the running event loop; it connects when it is used."""
        return OwnPool(
            self._options,
            size=self._pool_size,
            recycle_secs=self._pool_recycle_secs,
            lock_wait_secs=self._lock_wait_secs,
        )
