"""`JournalKeeper`: the journal of a service or manager, opened when first used."""

from __future__ import annotations

from contextlib import AsyncExitStack

from raf_session.clock import to_micros
from raf_session.journal import Journal
from raf_session.options import micros
from raf_session.stores.sweeper import Sweeper
from raf_session.turns import Turn

__all__ = ("JournalKeeper",)


class JournalKeeper:
    """Gives the open journal, and removes now and then what has expired.

    Between `start` and `close` a task does that; else a call does, once the
    interval is over.  In Redis keys expire by themselves, and nothing sweeps.

    Args:
        journal: the journal.
        owned: whether the keeper opens and closes it.
    """

    def __init__(self, journal: Journal, *, owned: bool) -> None:
        self.journal = journal
        self._owned = owned
        self._is_open = not owned
        self._turn = Turn()
        self._sweeper = Sweeper(journal)
        self._stack: AsyncExitStack | None = None
        limits = journal.limits
        options = (limits.sessions, limits.user_state, limits.app_state)
        self._sweeps = journal.backend != "redis" and any(o.enabled for o in options)
        self._interval = micros(limits.sessions.cleanup_interval_secs) or 0
        self._swept_at = to_micros(journal.clock())

    async def get(self) -> Journal:
        """Return the journal, open."""
        if not self._is_open:
            async with self._turn.taken():
                if not self._is_open:
                    await self.journal.__aenter__()
                    self._is_open = True
        if self._sweeps and self._stack is None:
            now = to_micros(self.journal.clock())
            if now - self._swept_at >= self._interval:
                self._swept_at = now
                await self._sweeper.sweep_quietly()
        return self.journal

    async def start(self) -> None:
        """Open the journal, and sweep at the interval until `close`."""
        await self.get()
        if self._stack is not None:
            return
        async with AsyncExitStack() as stack:
            if self._sweeps:
                await stack.enter_async_context(self._sweeper)
            self._stack = stack.pop_all()

    async def close(self) -> None:
        """Stop sweeping, and close the journal if it is owned; idempotent."""
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()
        if self._owned and self._is_open:
            self._is_open = False
            await self.journal.__aexit__(None, None, None)
