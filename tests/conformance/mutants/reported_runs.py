"""Journals that stand loops, threads and cancellation as badly as reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from raf_session.entries import Entry
from raf_session.journal import Commit, Page
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Query


@fault("journal", "cancelled_waiters_hold_nobody_up", reported=True)
class StaysLocked(MemoryJournal):
    """A writer that is cancelled takes the lock with it."""

    _taken = False

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        for _ in range(1000):
            if not self._taken:
                break
            await checkpoint()
        else:
            raise TimeoutError("database is locked")
        self._taken = True
        await checkpoint()
        self._taken = False
        return await super().append(key, entries, **options)


@fault("journal", "a_cancelled_append_is_whole_or_absent", reported=True)
class AppendsInTheBackground(MemoryJournal):
    """An append that is cancelled is done nevertheless, twice where it is repeated."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        try:
            await checkpoint()
        except BaseException:
            again = [entry._replace(id=f"{entry.id}+") for entry in entries]
            await super().append(key, again)
            raise
        return commit


@fault(
    "journal",
    "an_error_leaves_the_journal_usable",
    reported=True,
    wide="whatever is done after a refusal fails",
)
class StopsAtTheFirstError(MemoryJournal):
    """One damaged or refused call, and the connection is good for nothing."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._broken = False

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        if self._broken:
            raise RuntimeError("the transaction was aborted")
        self._broken = True
        commit = await super().append(key, entries, **options)
        self._broken = False
        return commit


@fault(
    "journal",
    "key_order_is_complete",
    reported=True,
    also=("scan_refuses_bad_arguments",),
)
class PagesByOffset(MemoryJournal):
    """A cursor counts sessions, so one that comes or goes shifts the next page."""

    @override
    async def scan(
        self, query: Query, cursor: str | None = None, **options: Any
    ) -> Page:
        limit = options.pop("limit", 100)
        skip = int(cursor.rsplit("#", 1)[1]) if cursor and "#" in cursor else 0
        page = await super().scan(query, None, limit=skip + limit, **options)
        cursor = page.cursor and f"{page.cursor}#{skip + limit}"
        return Page(page.sessions[skip:], cursor)


@fault("journal", "parallel_sweeps_report_each_once", reported=True)
class CountsWhatOthersRemoved(MemoryJournal):
    """A sweep reports what it meant to remove, the same twice if it is called twice."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._reported: tuple[SessionKey | ScopeKey, ...] = ()

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        gone = await super().expire(limit, dry_run=dry_run)
        if not dry_run:
            self._reported = gone = (self._reported + gone)[:limit]
        return gone


@fault("journal", "opening_deletes_nothing", reported=True)
class SweepsWhenOpened(MemoryJournal):
    """To open it after a long break removes what has expired, and tells nobody."""

    @override
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.expire()
        return self
