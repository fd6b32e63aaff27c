"""Journals that fail at the corners: refusals, repetitions, scopes, other handles."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any, Self

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Ruled
from raf_session.changes import Change, StateDelta
from raf_session.clock import to_micros
from raf_session.entries import Entry
from raf_session.journal import Commit, Page, ScopedState
from raf_session.journals._memory_records import MemoryScope
from raf_session.journals._rules import Rules
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Query


@fault("journal", "append_needs_entries")
class AppendsNothing(MemoryJournal):
    """An append of nothing commits its change."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        if not entries:
            return await self.update(key, options.get("change") or Change())
        return await super().append(key, entries, **options)


@fault("journal", "stored_at_never_goes_back")
class StampsByTheClock(MemoryJournal):
    """Where the clock was set back, so is the time of an entry."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        active, now = self._sessions[key].active, self._now()
        if active and not commit.repeated:
            active[-1] = active[-1]._replace(stored_at=now)
        return commit


@fault("journal", "a_removed_id_is_free")
class RemembersRemovedIds(MemoryJournal):
    """The id of an entry that was removed is known for ever."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        session = self._sessions.get(key)
        known = dict(session.by_id) if session else {}
        commit = await super().splice(key, *args, **options)
        by_id = self._sessions[key].by_id
        by_id |= {name: row for name, row in known.items() if name not in by_id}
        return commit


@fault("journal", "an_id_twice_in_a_batch_conflicts")
class KeepsTheLastOfABatch(MemoryJournal):
    """Of two entries with one id an append keeps the last."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        once = list({entry.id: entry for entry in entries}.values())
        return await super().append(key, once, **options)


@fault("journal", "a_place_is_archived_more_than_once")
class ArchivesAPlaceOnce(MemoryJournal):
    """What leaves a place replaces what left it before."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        commit = await super().splice(key, *args, **options)
        session = self._sessions[key]
        session.archive = list({row.seq: row for row in session.archive}.values())
        return commit


@fault("journal", "splice_checks_session_and_revision")
class SplicesAnyRevision(MemoryJournal):
    """A summary replaces entries, whatever was done to them since it was begun."""

    @override
    async def splice(
        self, *args: Any, expected_revision: int | None = None, **options: Any
    ) -> Commit:
        return await super().splice(*args, **options)


@fault("journal", "update_checks_session_and_revision")
class UpdatesAnyRevision(MemoryJournal):
    """An update does not look at the revision."""

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        options["expected_revision"] = None
        return await super().update(key, change, **options)


@fault("journal", "request_keeps_only_what_it_knows")
class KeepsAnyDigests(MemoryJournal):
    """Digests are kept, whichever request they are of."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change | None = options.get("change")
        if change and change.request and key in self._sessions:
            base = self._sessions[key].head.request_hash
            request = replace(change.request, base=base)
            options["change"] = replace(change, request=request)
        return await super().append(key, entries, **options)


@fault("journal", "scope_refresh_moves_activity")
class RefreshesSessionsAlone(MemoryJournal):
    """A refresh does not reach the state of user and app."""

    @override
    def _read_scope(self, scope: ScopeKey, now: int, *, refresh: bool) -> ScopedState:
        return super()._read_scope(scope, now, refresh=False)


@fault("journal", "parallel_scope_writers_merge")
class LosesScopeUpdates(MemoryJournal):
    """The state of a user is read, changed and written back whole."""

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        state = delta.apply((await self.scoped_state(scope)).state)
        await checkpoint()
        now = (await self.scoped_state(scope)).state
        whole = StateDelta(state, set(now) - set(state))
        await super().update_scoped_state(scope, whole)


@fault("journal", "expired_state_is_invisible")
class ReadsExpiredState(MemoryJournal):
    """The state of a user is read until it is swept."""

    @override
    def _read_scope(self, scope: ScopeKey, now: int, *, refresh: bool) -> ScopedState:
        kept = self._scopes.get(scope) or MemoryScope({}, now, now)
        now = min(now, kept.created_at, kept.last_active_at)
        return super()._read_scope(scope, now, refresh=refresh)


@fault("journal", "key_order_is_by_exact_bytes")
class OrdersByLetters(MemoryJournal):
    """A page is in the order of a dictionary, not in that of bytes."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        page = await super().scan(query, *args, **options)
        if options.get("order") != "key":
            return page
        by_letters = sorted(page.sessions, key=lambda x: str(x.head.key).casefold())
        return page._replace(sessions=tuple(by_letters))


@fault(
    "journal",
    "a_cancelled_expire_loses_nothing",
    also=("expire_checks_again",),
)
class HoldsWhatItSweeps(MemoryJournal):
    """What a sweep has chosen is kept for it, though the sweep was cancelled."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        found = await super().expire(limit, dry_run=True)
        held = [self._sessions[key] for key in found if isinstance(key, SessionKey)]
        for pinned in () if dry_run else (True, False):
            for session in held:
                session.head = session.head._replace(pinned=pinned)
            await checkpoint()
        return found if dry_run else await super().expire(limit)


class _Local(Rules):
    @override
    def now(self) -> int:
        return to_micros(self.clock().replace(tzinfo=UTC))


@fault("journal", "a_clock_may_be_of_any_zone")
class ForgetsTheZone(Ruled):
    """The time of another zone is taken for that of UTC."""

    rules = _Local


@fault("journal", "two_handles_see_one_storage")
class CachesScopes(MemoryJournal):
    """The state of a user is read again only when this handle has written it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cache: dict[tuple[ScopeKey, int], ScopedState] = {}

    @override
    def _read_scope(self, scope: ScopeKey, now: int, *, refresh: bool) -> ScopedState:
        found = super()._read_scope(scope, now, refresh=refresh)
        return self._cache.setdefault((scope, now), found)

    @override
    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        super()._write_scope(scope, delta, now)
        self._cache.clear()


@fault("journal", "threads_may_share_a_journal", reported=True)
class BelongsToAThread(MemoryJournal):
    """A lock that is made in one event loop is used in another."""

    @override
    async def __aenter__(self) -> Self:
        self._thread = threading.get_ident()
        return await super().__aenter__()

    @override
    async def append(self, *args: Any, **options: Any) -> Commit:
        if self._open and self._thread != threading.get_ident():
            raise RuntimeError("the lock is bound to a different event loop")
        return await super().append(*args, **options)
