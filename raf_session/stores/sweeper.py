"""The sweep: what has expired is removed now and then, while a store is open."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup

from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey

__all__ = ("Sweeper",)

_log = logging.getLogger("raf_session.sweep")

BATCH = 1000


class Sweeper:
    """Calls `Journal.expire` at an interval, inside ``async with``.

    It survives errors, which it logs, ends with the block, and is not started where
    the journal's limits let nothing expire.

    Args:
        journal: what to sweep.
        sleep: how to wait; tests pass their own.
    """

    def __init__(
        self, journal: Journal, sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        self._journal = journal
        self._sleep = sleep
        self._group: TaskGroup | None = None
        self.sentinel_types: set[str] = set()
        """The session types that were saved without telling their times."""
        self._told = False

    async def sweep(self) -> list[SessionKey]:
        """Remove all that has expired, and return the sessions among it."""
        gone: list[SessionKey] = []
        self._tell_sentinels()
        while True:
            batch = await self._journal.expire(BATCH)
            gone.extend(key for key in batch if not isinstance(key, ScopeKey))
            if len(batch) < BATCH:
                return gone

    def _tell_sentinels(self) -> None:
        if self.sentinel_types and not self._told and self._enabled():
            self._told = True
            _log.warning(
                "sessions of type %s do not tell created_at or last_active_at "
                "(UNIX_EPOCH), so they are exempt from the limit that needs it",
                ", ".join(sorted(self.sentinel_types)),
            )

    def _enabled(self) -> bool:
        limits = self._journal.limits
        return (
            limits.sessions.enabled
            or limits.user_state.enabled
            or limits.app_state.enabled
        )

    async def run(self) -> None:
        """Sweep at the interval, for ever."""
        interval = self._journal.limits.sessions.cleanup_interval_secs
        while True:
            await self._sleep(interval)
            await self.sweep_quietly()

    async def sweep_quietly(self) -> None:
        """Sweep, and log what went, or why nothing did: the next may succeed."""
        try:
            gone = await self.sweep()
        except Exception:  # noqa: BLE001  (logged)
            _log.exception("the sweep of the %s journal failed", self._journal.backend)
        else:
            if gone:
                _log.info("swept %d sessions: %s", len(gone), ", ".join(map(str, gone)))

    async def __aenter__(self) -> Self:
        """Start, where anything can expire."""
        if self._enabled():
            group = anyio.create_task_group()
            await group.__aenter__()
            group.start_soon(self.run)
            self._group = group
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Stop, and wait for the sweep that is under way."""
        group, self._group = self._group, None
        if group is not None:
            group.cancel_scope.cancel()
            # The block's own error is not the group's: it must not come out wrapped.
            await group.__aexit__(None, None, None)
