"""Transactions: begun, committed, undone, and run again where that is safe."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeAlias, TypeVar

import anyio

from raf_session.errors import (
    JournalClosedError,
    StorageBusyError,
    StorageError,
    StorageFullError,
)
from raf_session.journals._sql_dialect import (
    Connection,
    Dialect,
    Fault,
    FaultKind,
    Pool,
    Transaction,
)
from raf_session.journals._sql_pools import Pools

__all__ = ("Duplicate", "Runner", "Work", "storage_error")

_T = TypeVar("_T")

Work: TypeAlias = Callable[[Transaction], Awaitable[_T]]
"""What is done in one transaction; it may be run again, from its beginning."""

_CONFLICTS: Final = 20
"""So often a transaction is begun anew that others stood in the way of."""
_PAUSE_SECS: Final = 0.001
"""The longest pause before the second attempt; it doubles up to a hundred times it."""
_REFUSED_SECS: Final = 0.1
_UNDO_SECS: Final = 5.0
"""How long a rollback may take before the connection is closed instead."""


class Duplicate(StorageError):  # noqa: N818  (never leaves the journal)
    """A unique key is taken that should be free; nothing was done."""


class _How(Enum):
    READ = auto()
    """Its statements see one moment."""
    WRITE = auto()
    CALL = auto()
    """One statement, which commits by itself."""


class _Phase(Enum):
    CONNECTING = auto()
    WORKING = auto()
    """What was done is undone where the connection is lost."""
    COMMITTING = auto()
    """It may have been done where the connection is lost."""


# A member of an enumeration is looked up slowly.
_READ, _WRITE, _CALL = _How
_CONNECTING, _WORKING, _COMMITTING = _Phase


@dataclass(slots=True)
class _Attempt:
    """How far an attempt has come."""

    phase: _Phase = _CONNECTING


class Runner:
    """Runs transactions for coroutines of any event loop.

    Args:
        dialect: of the server.
        pools: where connections come from.
        busy_timeout_secs: how long to wait for one.
    """

    def __init__(
        self, dialect: Dialect, pools: Pools, *, busy_timeout_secs: float
    ) -> None:
        self._dialect = dialect
        self._backend = dialect.backend
        self._pools = pools
        self._busy_timeout_secs = busy_timeout_secs
        self._closed = False

    async def close(self) -> None:
        """Close the connections that were opened here, once they are not used.

        What has one, or waits for one, comes to its end; no transaction begins then.
        """
        self._closed = True
        await self._pools.close()

    def read(self, work: Work[_T]) -> Coroutine[Any, Any, _T]:
        """Read at one moment."""
        return self._repeat(_READ, work, again=True)

    def write(self, work: Work[_T], *, again: bool = False) -> Coroutine[Any, Any, _T]:
        """Run this in a transaction that is committed when it returns.

        Args:
            work: what to do.
            again: whether it may be run once more where the connection was lost while
                it committed, so that nobody knows whether it did.

        Raises:
            JournalClosedError: it was closed meanwhile, and nothing was stored.
            StorageBusyError: no connection was to be had, or others stood in the way.
            StorageError: the database failed; nothing was stored, unless it says that
                this is not known.
            Duplicate: a unique key is taken.
        """
        return self._repeat(_WRITE, work, again=again)

    def call(
        self, work: Callable[[Connection], Awaitable[_T]], *, again: bool = True
    ) -> Coroutine[Any, Any, _T]:
        """Run one statement that commits by itself; else as `write`."""
        return self._repeat(_CALL, work, again=again)

    async def _repeat(
        self, how: _How, work: Callable[[Connection], Awaitable[_T]], *, again: bool
    ) -> _T:
        conflicts, lost = 0, False
        while True:
            attempt = _Attempt()
            pool = None if self._closed else self._pools.pool_now()
            if pool is None:
                pool = await self._open_pool()
            try:
                return await self._lend(pool, how, work, attempt)
            except Exception as error:
                fault = self._dialect.fault(error)
                if fault is None:
                    raise
                kind, detail = fault.kind, fault.detail
                gone = kind in {FaultKind.LOST, FaultKind.REFUSED}
                if gone:
                    pool.renew()
                if kind is FaultKind.DUPLICATE:
                    raise Duplicate(self._backend, detail) from error
                if (
                    kind is FaultKind.LOST
                    and attempt.phase is _COMMITTING
                    and (lost or not again)
                ):
                    detail += "; whether it was stored is not known"
                elif kind is FaultKind.CONFLICT and conflicts < _CONFLICTS:
                    conflicts += 1
                    longest = _PAUSE_SECS * 2 ** min(conflicts, 7)
                    await asyncio.sleep(random.uniform(0, longest))  # noqa: S311
                    continue
                elif gone and not lost:
                    lost = True
                    connected = attempt.phase is not _CONNECTING
                    await asyncio.sleep(0 if connected else _REFUSED_SECS)
                    continue
                raise storage_error(
                    self._backend, fault._replace(detail=detail)
                ) from error

    async def _open_pool(self) -> Pool:
        if self._closed:  # else a pool would be made that nobody closes
            raise JournalClosedError(self._backend)
        pool = await self._pools.pool()
        if self._closed:
            raise JournalClosedError(self._backend)
        return pool

    async def _lend(
        self,
        pool: Pool,
        how: _How,
        work: Callable[[Connection], Awaitable[_T]],
        attempt: _Attempt,
    ) -> _T:
        connection = pool.acquire_now() or await self._acquire(pool)
        try:
            if how is _CALL:
                attempt.phase = _COMMITTING
                return await work(connection)
            attempt.phase = _WORKING
            await connection.begin(snapshot=how is _READ)
            result = await work(connection)
            if how is _WRITE:
                attempt.phase = _COMMITTING
            await connection.commit()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _undo(connection)
            raise
        else:
            return result
        finally:
            await pool.release(connection)

    async def _acquire(self, pool: Pool) -> Connection:
        try:
            async with asyncio.timeout(self._busy_timeout_secs):
                return await pool.acquire()
        except TimeoutError as error:
            detail = f"no connection within {self._busy_timeout_secs:g} s"
            raise StorageBusyError(self._backend, detail) from error


async def _undo(connection: Connection) -> None:
    try:
        async with asyncio.timeout(_UNDO_SECS):
            await connection.rollback()
    except Exception:  # noqa: BLE001  (what cannot be undone ends with its connection)
        connection.terminate()
    except BaseException:
        connection.terminate()
        raise


def storage_error(backend: str, fault: Fault) -> StorageError:
    """Return what is to be raised for a fault, the cause not yet set."""
    match fault.kind:
        case FaultKind.FULL:
            return StorageFullError(backend, fault.detail)
        case FaultKind.BUSY | FaultKind.CONFLICT:
            return StorageBusyError(backend, fault.detail)
        case _:
            return StorageError(backend, fault.detail)
