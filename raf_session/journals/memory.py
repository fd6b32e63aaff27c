"""The journal in memory: the reference for all others, and for tests."""

from __future__ import annotations

from typing_extensions import override

from raf_session.changes import NO_CHANGE, RequestRecord
from raf_session.clock import from_micros
from raf_session.entries import Record, SessionHead
from raf_session.journal import Listed, Order, Page
from raf_session.journals import _checks, _rules
from raf_session.journals._memory_records import by_name
from raf_session.journals._memory_writes import MemoryWrites
from raf_session.journals._windows import within
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Query, Window

__all__ = ("MemoryJournal",)


class MemoryJournal(MemoryWrites):
    """Sessions in dicts: gone with the object, safe from any thread and event loop.

    Bodies are kept as JSON text, so that everything behaves as it does on disk.

    Args:
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text, as on other backends.
    """

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
                head = _rules.touched(session.head, from_micros(now))
                self._advance(session, head, NO_CHANGE, now)
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
            found = self._listing.page(
                query,
                None if after is None else (-after[0], after[1]),
                order,
                limit,
                lambda head: self._matches(head, query, now),
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
                for key in self._listing.keys
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
