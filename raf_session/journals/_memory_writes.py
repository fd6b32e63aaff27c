"""`MemoryWrites`: the journal in memory as it is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change
from raf_session.clock import Clock, utc_now
from raf_session.entries import Entry, SessionHead, raw_tuple
from raf_session.errors import SessionExistsError
from raf_session.journal import Codec, Commit
from raf_session.journals import _checks, _rows, _rules, _splices
from raf_session.journals._memory_base import MemoryBase
from raf_session.journals._memory_listing import Listing
from raf_session.journals._memory_records import MemorySession
from raf_session.journals._memory_splices import Splice
from raf_session.keys import SessionKey
from raf_session.options import Limits, NewSession

__all__ = ("MemoryWrites",)


class MemoryWrites(MemoryBase):
    """The sessions in their dict, and what makes, changes and removes them.

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
        super().__init__(limits=limits, clock=clock, codec=codec)
        self._sessions: dict[SessionKey, MemorySession] = {}
        self._listing = Listing(self._sessions)

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
            if existing is not None:
                self._listing.remove(existing.head)
            self._sessions[key] = session
            self._listing.add(head, now)
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
        bodies = list(map(self._bodies.encode, entries))
        with self._lock:
            now = self._now()
            session = self._find(key, now, incarnation)
            head = session.head
            known = session.known(entries)
            if known and _checks.check_ids(key, entries, known, self._bodies):
                rows = [known[entry.id] for entry in entries]
                return Commit(head, _rows.stored(entries, rows), repeated=True)
            if expected_revision is not None:
                _checks.check_revision(head, expected_revision)
            active = session.active
            rows = _rows.new_rows(
                bodies,
                entries,
                count(head.last_seq + 1),
                now,
                not_before=active[-1].stored_at if active else 0,
            )
            excess = 0 if trim is None else len(active) + len(rows) - trim
            leaving = (active + rows)[:excess] if excess > 0 else []
            head = self._rules.appended(
                head, rows, _rows.total(leaving) if leaving else None, change, now
            )
            active.extend(rows)
            for row in rows:
                session.by_id[row.id] = row
            if leaving:
                left = [row._replace(left_at=head.revision) for row in leaving]
                session.by_id |= {row.id: row for row in left}
                del active[:excess]
                session.archive.extend(left)
                gone = {row.seq: row for row in left}
                rows = [gone.get(row.seq, row) for row in rows]
            self._advance(session, head, change, now)
        commit: Commit = raw_tuple(Commit, (head, _rows.stored(entries, rows), False))
        return commit

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
        splice = Splice(
            *(first, last, entries, tail, bodies, keep, archive, purge),
            expected_revision,
        )
        with self._lock:
            now = self._now()
            session = self._find(key, now, incarnation)
            commit = splice.run(session, change, now, self._rules, self._bodies)
            if commit is None:
                return Commit(self._update(session, change, now))
            if not commit.repeated:
                self._advance(session, commit.head, change, now)
            return commit

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
        head = self._rules.updated(session.head, change, now)
        self._advance(session, head, change, now)
        return head

    def _advance(
        self, session: MemorySession, head: SessionHead, change: Change, now: int
    ) -> None:
        """Give a session its next head, and what else changes with it."""
        former, session.head = session.head, head
        listing, active_at = self._listing, head.last_active_at
        if active_at is not former.last_active_at:
            listing.activity.move(head.key, active_at, now)
        if head.labels is not former.labels:
            listing.relabel(former, head)
        if change is not NO_CHANGE:
            self._apply(session, change, now)

    def _apply(self, session: MemorySession, change: Change, now: int) -> None:
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
        self._listing.remove(self._sessions.pop(key).head)
