"""The journal in a server's SQL database: how it is made, opened and closed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import Clock
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.errors import (
    EntryTooLargeError,
    JournalClosedError,
    SessionDamagedError,
)
from raf_session.journal import Codec, Durability
from raf_session.journals._base import DurableJournal
from raf_session.journals._rules import Rules
from raf_session.journals._sql_changes import Changes
from raf_session.journals._sql_dialect import Dialect, Pool
from raf_session.journals._sql_listing import Listing
from raf_session.journals._sql_pools import GivenPool, OwnPools, Pools, event_loop
from raf_session.journals._sql_reads import Reads
from raf_session.journals._sql_runner import Duplicate, Runner, Work
from raf_session.journals._sql_sweep import Sweep
from raf_session.journals._texts import ChangeTexts, Values
from raf_session.keys import SessionKey
from raf_session.options import Limits

__all__ = ("SqlBase",)

_T = TypeVar("_T")


class SqlBase(DurableJournal):
    """What the journals in server databases have in common, beside the primitives.

    Args:
        dialect: of the server.
        given: a pool that the user has, `None`: pools are made for each event loop.
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text.
        durability: ``kill`` or ``power``.
        busy_timeout_secs: how long to wait for a connection.

    Raises:
        ValueError: a durability of another name, a negative time.
    """

    def __init__(
        self,
        dialect: Dialect,
        given: Pool | None,
        *,
        limits: Limits | None,
        clock: Clock,
        codec: Codec | None,
        durability: Durability,
        busy_timeout_secs: float,
    ) -> None:
        if not busy_timeout_secs >= 0:
            raise ValueError(f"busy_timeout_secs={busy_timeout_secs} is negative")
        self._dialect = dialect
        self._given = given
        self._busy_timeout_secs: Final = busy_timeout_secs
        rules = Rules(dialect.backend, limits or Limits(), clock)
        super().__init__(rules, durability)
        self._bodies = BodyFormat(dialect.backend, codec, self.limits.max_entry_bytes)
        self._values = Values(dialect.backend, codec)
        self._changes = Changes(dialect, self._rules)
        self._reads = Reads(self._rules, self._changes.scopes)
        self._listing = Listing(dialect, self._rules, self._values)
        self._sweep = Sweep(self._rules, dialect.activity)
        self._no_texts = ChangeTexts(NO_CHANGE, self._values)
        self._runner: Runner | None = None
        self._max_body: int | None = None
        """The largest body that the server takes; known when it is open."""

    # Opening and closing ---------------------------------------------------------

    @override
    async def __aenter__(self) -> Self:
        """Connect, and make or check the tables.

        Raises:
            RuntimeError: the journal is open already, or this is not asyncio.
            StorageError: the server cannot be reached, or lacks what is needed.
            SchemaVersionError: a newer library made the tables.
        """
        if self._runner is not None:
            raise RuntimeError(f"the {self.backend} journal is open already")
        runner = self._runner = self._make_runner()
        try:
            await self._prepare(runner)
        except BaseException:
            self._runner = None
            await runner.close()
            raise
        return self

    def _make_runner(self) -> Runner:
        event_loop(self.backend)
        pools: Pools = (
            OwnPools(self.backend, self._dialect.pool)
            if self._given is None
            else GivenPool(self.backend, self._given)
        )
        return Runner(self._dialect, pools, busy_timeout_secs=self._busy_timeout_secs)

    @abstractmethod
    async def _prepare(self, runner: Runner) -> None:
        """Make or check the tables, and read what the server says of itself."""

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the connections that were opened here, once they are not used."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()

    def _opened(self) -> Runner:
        if self._runner is None:
            raise JournalClosedError(self.backend)
        return self._runner

    # For the primitives ---------------------------------------------------------

    async def _write(
        self, key: SessionKey, work: Work[_T], *, again: bool = False
    ) -> _T:
        try:
            return await self._opened().write(work, again=again)
        except Duplicate as error:
            raise SessionDamagedError(
                key, self.backend, f"a place is taken: {error.detail}"
            ) from error.__cause__

    def _encode(self, entries: Sequence[Entry]) -> list[str]:
        bodies = [self._bodies.encode(entry) for entry in entries]
        limit = self._max_body
        if limit is not None:
            for entry, body in zip(entries, bodies, strict=True):
                # No character takes more than four bytes.
                if 4 * len(body) > limit and (size := len(body.encode())) > limit:
                    raise EntryTooLargeError(entry.id, size, limit)
        return bodies

    def _texts(self, change: Change | None) -> ChangeTexts:
        if change is None or change is NO_CHANGE:
            return self._no_texts
        return ChangeTexts(change, self._values)
