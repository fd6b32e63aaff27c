"""PostgreSQL, as the shared journal sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from raf_session.errors import SessionError
from raf_session.journals._postgres_connections import Connector, Settings
from raf_session.journals._postgres_driver import (
    DRIVER,
    OUTDATED,
    DriverConnection,
    DriverPool,
)
from raf_session.journals._postgres_pools import GivenPool, OwnPool
from raf_session.journals._sql_activity import Activity
from raf_session.journals._sql_dialect import (
    Dialect,
    Fault,
    FaultKind,
    Pool,
    Translation,
)

__all__ = ("BACKEND", "PERIOD_BITS", "PostgresDialect", "quoted")

BACKEND: Final = "postgresql"
PERIOD_BITS: Final = 17
"""Sessions are indexed by the 2**17 microseconds, 0.13 s, of their activity.

A page sorts those of the periods that it meets, so these have to be short.
"""

_KINDS: Final = {
    "23505": FaultKind.DUPLICATE,
    "25006": FaultKind.REFUSED,  # a former primary, that is read only now
    "25P03": FaultKind.LOST,
    "40001": FaultKind.CONFLICT,
    "40P01": FaultKind.CONFLICT,
    "53100": FaultKind.FULL,
    "53300": FaultKind.BUSY,
    "55P03": FaultKind.CONFLICT,
    "57014": FaultKind.BUSY,
    "57P01": FaultKind.LOST,
    "57P02": FaultKind.LOST,
    "57P03": FaultKind.REFUSED,
    "57P05": FaultKind.LOST,
}
"""What an ``SQLSTATE`` means."""
_LOST_CLASS: Final = "08"
_ACTIVITY: Final = Activity(PERIOD_BITS)


def quoted(name: str) -> str:
    """Return a name as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


class PostgresDialect(Dialect):
    """PostgreSQL through `asyncpg`.

    Args:
        url: for the driver; unused where pools are given.
        schema: that the tables stand in.
        pool_size: the most connections for each event loop.
        timeout: how long connecting may take, in seconds.
    """

    def __init__(
        self, url: str, *, schema: str, pool_size: int, timeout: float
    ) -> None:
        self._url = url
        self._pool_size = pool_size
        self._timeout = timeout
        self._connector = Connector()
        self.schema: Final = schema
        self.settings = Settings()
        self.translate = Translation(
            table=lambda name: f"{quoted(schema)}.{name}",
            mark=lambda n: f"${n}",
            many=lambda n: f"= ANY(${n})",
        )

    @property
    @override
    def backend(self) -> str:
        """``postgresql``."""
        return BACKEND

    @property
    @override
    def compares_rows(self) -> bool:
        """Rows are compared by an index over their columns."""
        return True

    @property
    @override
    def activity(self) -> Activity:
        """Heads are indexed by the period of their activity."""
        return _ACTIVITY

    @override
    def upsert(self, table: str, key: Sequence[str], columns: Sequence[str]) -> str:
        """Return the statement that inserts a row, or replaces the one of its key."""
        marks = ", ".join("?" * (len(key) + len(columns)))
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
        return (
            f"INSERT INTO {table} ({', '.join((*key, *columns))}) VALUES ({marks}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
        )

    @override
    def fault(self, error: BaseException) -> Fault | None:
        """Tell what an error means, `None` for one that is not of the driver."""
        if isinstance(error, SessionError):
            return None
        if isinstance(error, OUTDATED):
            return Fault(FaultKind.CONFLICT, str(error))
        state = getattr(error, "sqlstate", None)
        if isinstance(error, DRIVER.PostgresError) and isinstance(state, str):
            kind = _KINDS.get(state, FaultKind.OTHER)
            if state.startswith(_LOST_CLASS):
                kind = FaultKind.LOST
            constraint = getattr(error, "constraint_name", None) or ""
            return Fault(kind, f"{error} ({state})", constraint)
        if isinstance(error, DRIVER.InternalClientError):
            # Also where the server has said that it ends the connection: the driver
            # takes no statement then, before it has seen the end.
            return Fault(FaultKind.LOST, str(error))
        if isinstance(error, DRIVER.InterfaceError):
            closed = "closed" in str(error)
            return Fault(FaultKind.LOST if closed else FaultKind.OTHER, str(error))
        if isinstance(error, OSError):
            return Fault(FaultKind.LOST, str(error) or type(error).__name__)
        return None

    @override
    async def pool(self) -> Pool:
        """Make a pool for the running event loop; it connects when it is used."""
        return OwnPool(
            self._connect,
            size=self._pool_size,
            translate=self.translate,
            settings=self.settings,
        )

    def given(self, lender: DriverPool) -> Pool:
        """Return the user's pool, for the shared journal."""
        return GivenPool(lender, self.translate, self.settings)

    async def connect(self, *, statements: int = 0) -> DriverConnection:
        """Connect, beside all pools.

        Args:
            statements: how many prepared statements are kept; behind a pooler none.
        """
        return await self._connector(
            self._url, statement_cache_size=statements, timeout=self._timeout
        )

    async def _connect(self) -> DriverConnection:
        return await self.connect(statements=0 if self.settings.pooled else 256)
