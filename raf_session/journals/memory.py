"""The journal in memory: the reference for all others, and for tests."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Sequence
from heapq import nsmallest
from types import TracebackType
from typing import Self

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change, RequestRecord, StateDelta
from raf_session.clock import Clock, from_micros, utc_now
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record, SessionHead
from raf_session.errors import JournalClosedError, SessionExistsError
from raf_session.frozen import EMPTY
from raf_session.journal import Codec, Commit, Listed, Order, Page, ScopedState
from raf_session.journals import _checks, _rows, _rules, _splices
from raf_session.journals._base import BaseJournal
from raf_session.journals._memory_records import (
    MemoryScope,
    MemorySession,
    by_name,
    rank,
)
from raf_session.journals._rules import Rules
from raf_session.journals._windows import within
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Limits, NewSession, Query, Window

__all__ = ("MemoryJournal",)


class MemoryJournal(BaseJournal):
    """Sessions in dicts: gone with the object, safe from any thread and event loop.

    Bodies are kept as JSON text, so that everything behaves as it does on disk.

    Args:
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text, as on other backends.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
    ) -> None:
        super().__init__(Rules("memory", limits or Limits(), clock))
        self._bodies = BodyFormat("memory", codec, self.limits.max_entry_bytes)
        self._lock = threading.Lock()
        self._open = False
        self._sessions: dict[SessionKey, MemorySession] = {}
        self._order: list[SessionKey] = []  # the same keys, sorted
        self._scopes: dict[ScopeKey, MemoryScope] = {}

    @classmethod
    def opened(cls, *, limits: Limits | None = None, clock: Clock = utc_now) -> Self:
        """Return a journal that is open at once: it holds nothing to be closed."""
        journal = cls(limits=limits, clock=clock)
        journal._open = True
        return journal

    @override
    async def __aenter__(self) -> Self:
        """Open it; what it held when it was closed is still there."""
        if self._open:
            raise RuntimeError("the memory journal is open already")
        self._open = True
        return self

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it."""
        self._open = False

    def _now(self) -> int:
        if not self._open:
            raise JournalClosedError("memory")
        return self._rules.now()

    def _find(
        self, key: SessionKey, now: int, incarnation: str | None
    ) -> MemorySession:
        session = self._sessions.get(key)
        head = None if session is None else session.head
        self._rules.live(key, head, now, incarnation)
        assert session is not None  # noqa: S101  (`live` raised otherwise)
        return session

    # Writes ----------------------------------------------------------------------

    @override
    async def create(
        self,
        new: NewSession,
        entries: Sequence[Entry] = (),
        *,
        archived: Sequence[Entry] = (),
        change: Change | None = None,
    ) -> Commit:
        """Create a session; see `Journal.create`."""
        change = NO_CHANGE if change is None else change
        key = new.key
        _checks.check_unique(key, (*archived, *entries))
        bodies = [self._bodies.encode(entry) for entry in (*archived, *entries)]
        with self._lock:
            now = self._now()
            existing = self._sessions.get(key)
            if existing is not None and not self._rules.sessions.head_expired(
                existing.head, now
            ):
                raise SessionExistsError(key)
            old, young = _rows.first_rows(bodies, archived, entries, now)
            head = self._rules.new_head(new, young, old, change, now)
            session = MemorySession(head, young, old)
            session.index()
            self._apply(session, change, now)
            if existing is None:
                insort(self._order, key)
            self._sessions[key] = session
        return Commit(head, _rows.stored(entries, young))

    @override
    async def append(
        self,
        key: SessionKey,
        entries: Sequence[Entry],
        *,
        change: Change | None = None,
        trim: int | None = None,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Add entries at the end; see `Journal.append`."""
        change = NO_CHANGE if change is None else change
        _checks.check_append(key, entries, trim)
        bodies = [self._bodies.encode(entry) for entry in entries]
        with self._lock:
            now = self._now()
            session = self._find(key, now, incarnation)
            head = session.head
            known = session.known(entries)
            if known and _checks.check_ids(key, entries, known, self._bodies):
                rows = [known[entry.id] for entry in entries]
                return Commit(head, _rows.stored(entries, rows), repeated=True)
            _checks.check_revision(head, expected_revision)
            active = session.active
            rows = _rows.new_rows(
                bodies,
                entries,
                range(head.last_seq + 1, head.last_seq + 1 + len(entries)),
                now,
                not_before=active[-1].stored_at if active else 0,
            )
            excess = 0 if trim is None else len(active) + len(rows) - trim
            leaving = (active + rows)[:excess] if excess > 0 else []
            head = self._rules.appended(
                head, rows, _rows.total(leaving) if leaving else None, change, now
            )
            left = [row._replace(left_at=head.revision) for row in leaving]
            session.head = head
            active.extend(rows)
            session.remember(rows)
            if leaving:
                session.remember(left)
                del active[:excess]
                session.archive.extend(left)
                gone = {row.seq: row for row in left}
                rows = [gone.get(row.seq, row) for row in rows]
            self._apply(session, change, now)
        return Commit(head, _rows.stored(entries, rows))

    @override
    async def splice(
        self,
        key: SessionKey,
        first: int,
        last: int,
        entries: Sequence[Entry] = (),
        *,
        tail: Sequence[Entry] = (),
        keep: Collection[int] = (),
        archive: bool,
        purge: bool = False,
        change: Change | None = None,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Replace a run of active entries; see `Journal.splice`."""
        change = NO_CHANGE if change is None else change
        wanted = (*entries, *tail)
        _splices.check_splice(key, first, last, wanted, archive=archive, purge=purge)
        bodies = [self._bodies.encode(entry) for entry in wanted]
        with self._lock:
            now = self._now()
            session = self._find(key, now, incarnation)
            active = session.active
            low = bisect_left(active, first, key=lambda row: row.seq)
            high = bisect_right(active, last, key=lambda row: row.seq)
            run = active[low:high]
            kept = [row for row in run if row.seq in keep]
            plan = _splices.plan_splice(
                session.head,
                leaving=[row for row in run if row.seq not in keep],
                purged=[r for r in session.archive if purge and first <= r.seq <= last],
                entries=entries,
                tail=tail,
                bodies=bodies,
                known=session.known(wanted),
                archive=archive,
                expected_revision=expected_revision,
                body_format=self._bodies,
            )
            if plan.repeated:
                entries_now = _rows.stored(wanted, plan.leaving)
                return Commit(session.head, entries_now, repeated=True)
            afresh = (
                purge
                and not kept
                and len(run) == len(active)
                and len(plan.purged) == len(session.archive)
            )
            if plan.empty and not (afresh and _splices.has_past(session.head)):
                return Commit(self._update(session, change, now))
            front = active[low - 1].stored_at if low else 0
            behind = active[high].stored_at if high < len(active) else now
            rows = plan.replacements(now, front, behind, kept)
            middle = sorted((*kept, *rows))
            latest = (active[:low] + middle + active[high:])[-1:]
            rows += plan.appended(
                session.head, now, latest[0].stored_at if latest else 0
            )
            session.head = self._rules.spliced(
                session.head,
                _rows.total(plan.leaving),
                rows,
                change,
                now,
                tail=len(tail),
                afresh=afresh,
            )
            active[low:high] = middle
            active.extend(rows[len(entries) :])
            purged = set(plan.purged)
            session.archive = [row for row in session.archive if row not in purged]
            if archive:
                left_at = session.head.revision
                session.archive += [r._replace(left_at=left_at) for r in plan.leaving]
            if afresh:
                session.digests = b""
            session.index()
            self._apply(session, change, now)
            return Commit(session.head, _rows.stored(wanted, rows))

    @override
    async def update(
        self,
        key: SessionKey,
        change: Change,
        *,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Alter what the change names; see `Journal.update`."""
        with self._lock:
            now = self._now()
            session = self._find(key, now, incarnation)
            _checks.check_revision(session.head, expected_revision)
            return Commit(self._update(session, change, now))

    def _update(self, session: MemorySession, change: Change, now: int) -> SessionHead:
        session.head = self._rules.updated(session.head, change, now)
        self._apply(session, change, now)
        return session.head

    def _apply(self, session: MemorySession, change: Change, now: int) -> None:
        if change is NO_CHANGE:
            return
        _rules.merge(session.state, change.session)
        _rules.merge(session.providers, change.providers)
        if change.request is not None:
            kept = session.digests[: 8 * change.request.keep]
            session.digests = kept + change.request.digests
        if change.user:
            self._write_scope(_rules.user_scope(session.head.key), change.user, now)
        if change.app:
            self._write_scope(_rules.app_scope(session.head.key), change.app, now)

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        """Remove a session; see `Journal.delete`."""
        with self._lock:
            now = self._now()
            session = self._sessions.get(key)
            if (
                session is None
                or self._rules.sessions.head_expired(session.head, now)
                or incarnation not in {None, session.head.incarnation}
            ):
                return False
            self._remove(key)
            return True

    def _remove(self, key: SessionKey) -> None:
        del self._sessions[key]
        del self._order[bisect_left(self._order, key)]

    # Reads -----------------------------------------------------------------------

    @override
    async def load(
        self,
        key: SessionKey,
        window: Window = WHOLE,
        *,
        refresh: bool = False,
        archived: bool = False,
    ) -> Record:
        """Read a session; see `Journal.load`."""
        with self._lock:
            now = self._now()
            session = self._find(key, now, None)
            if refresh:
                session.head = _rules.touched(session.head, from_micros(now))
            rows = within(session.active, window)
            left = sorted(session.archive) if archived else []
            head = session.head
            state = by_name(session.state)
            providers = by_name(session.providers)
            digests = session.digests
            user = self._read_scope(_rules.user_scope(key), now, refresh=refresh)
            app = self._read_scope(_rules.app_scope(key), now, refresh=refresh)
        return Record(
            head=head,
            entries=self._bodies.decode(key, rows),
            archived=self._bodies.decode(key, left),
            state=state,
            user_state=user.state,
            app_state=app.state,
            provider_states=providers,
            request=None
            if head.request_hash is None
            else RequestRecord(
                digests,
                head.request_hash,
                head.request_header,
                head.request_format or 1,
            ),
        )

    @override
    async def scan(
        self,
        query: Query,
        cursor: str | None = None,
        *,
        order: Order = "activity",
        limit: int = 100,
        state: bool = False,
    ) -> Page:
        """List sessions; see `Journal.scan`."""
        _checks.check_scan(order, limit)
        after = None if cursor is None else _checks.read_cursor(order, cursor)
        with self._lock:
            now = self._now()
            found: list[MemorySession] = []
            if order == "key":
                start = 0 if after is None else bisect_right(self._order, after[1])
                for key in self._order[start:]:
                    session = self._sessions[key]
                    if self._matches(session.head, query, now):
                        found.append(session)
                        if len(found) > limit:
                            break
            else:
                last = None if after is None else (-after[0], after[1])
                found = nsmallest(
                    limit + 1,
                    (
                        session
                        for session in self._sessions.values()
                        if self._matches(session.head, query, now)
                        and (last is None or rank(session) > last)
                    ),
                    key=rank,
                )
            page = found[:limit]
            more = len(found) > limit
            return Page(
                tuple(
                    Listed(s.head, by_name(s.state) if state else None) for s in page
                ),
                _checks.write_cursor(order, page[-1].head) if more else None,
            )

    def _matches(self, head: SessionHead, query: Query, now: int) -> bool:
        return self._rules.matches(head, query, now)

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete what has expired; see `Journal.expire`."""
        _checks.check_limit(limit)
        gone: list[SessionKey | ScopeKey] = []
        with self._lock:
            now = self._now()
            rule = self._rules.sessions
            gone += (
                key
                for key in self._order
                if rule.head_expired(self._sessions[key].head, now)
            )
            gone += (s for s in self._scopes if self._live_scope(s, now) is None)
            del gone[limit:]
            if not dry_run:
                for key_or_scope in gone:
                    if isinstance(key_or_scope, SessionKey):
                        self._remove(key_or_scope)
                    else:
                        del self._scopes[key_or_scope]
        return tuple(gone)

    # Scopes ----------------------------------------------------------------------

    @override
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; see `Journal.scoped_state`."""
        with self._lock:
            now = self._now()
            return self._read_scope(scope, now, refresh=refresh)

    def _read_scope(self, scope: ScopeKey, now: int, *, refresh: bool) -> ScopedState:
        kept = self._live_scope(scope, now)
        if kept is None:
            return ScopedState(EMPTY, None, None)
        if refresh:
            kept.last_active_at = max(kept.last_active_at, now)
        return ScopedState(
            by_name(kept.state),
            from_micros(kept.created_at),
            from_micros(kept.last_active_at),
        )

    def _live_scope(self, scope: ScopeKey, now: int) -> MemoryScope | None:
        kept = self._scopes.get(scope)
        if kept is not None and self._rules.scope_rule(scope).expired(
            kept.created_at, kept.last_active_at, now
        ):
            return None
        return kept

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys; see `Journal.update_scoped_state`."""
        with self._lock:
            now = self._now()
            self._write_scope(scope, delta, now)

    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        kept = self._live_scope(scope, now) or MemoryScope({}, now, now)
        _rules.merge(kept.state, delta)
        kept.last_active_at = max(kept.last_active_at, now)
        if kept.state:
            self._scopes[scope] = kept
        else:
            self._scopes.pop(scope, None)

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes that hold live state; see `Journal.scopes`."""
        app = ScopeKey(app).app
        with self._lock:
            now = self._now()
            return tuple(
                sorted(
                    scope
                    for scope in self._scopes
                    if scope.app == app and self._live_scope(scope, now) is not None
                )
            )
