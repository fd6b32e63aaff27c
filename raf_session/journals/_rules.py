"""The limits and the clock of a journal, and what a write makes of a head."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import datetime

from raf_session.changes import NO_CHANGE, Change, SessionStatus, StateDelta
from raf_session.clock import Clock, from_micros, to_micros, utc, utc_now
from raf_session.encoding import BODY_VERSION, Row
from raf_session.entries import Counts, SessionHead
from raf_session.errors import (
    SchemaVersionError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.expiry import ExpiryRule
from raf_session.journals._heads import grown_head
from raf_session.journals._rows import total
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, Query

__all__ = ("Rules", "app_scope", "described", "merge", "touched", "user_scope")


def user_scope(key: SessionKey) -> ScopeKey:
    """Return the scope that the session shares with its user's other sessions."""
    return ScopeKey(key.app, key.user)


def app_scope(key: SessionKey) -> ScopeKey:
    """Return the scope that the session shares with all of its app."""
    return ScopeKey(key.app)


class Rules:
    """The limits and the clock of one journal, applied."""

    def __init__(self, backend: str, limits: Limits, clock: Clock) -> None:
        self.backend = backend
        self.limits = limits
        self.clock = clock
        self.sessions: ExpiryRule = ExpiryRule(limits.sessions)
        self.users: ExpiryRule = ExpiryRule(limits.user_state)
        self.apps: ExpiryRule = ExpiryRule(limits.app_state)

    def now(self) -> int:
        """Return the journal's time in microseconds since the epoch."""
        if self.clock is utc_now:  # the same, without a `datetime` on the way
            return time.time_ns() // 1000
        return to_micros(utc(self.clock()))

    def scope_rule(self, scope: ScopeKey) -> ExpiryRule:
        """Return the rule of this scope."""
        return self.apps if scope.user is None else self.users

    def live(
        self,
        key: SessionKey,
        head: SessionHead | None,
        now: int,
        incarnation: str | None = None,
    ) -> SessionHead:
        """Return the head of a session that may be used.

        Raises:
            SessionNotFoundError: missing, expired or another incarnation.
            SchemaVersionError: a newer library wrote it.
        """
        if head is None:
            raise SessionNotFoundError(key, "missing")
        if self.sessions.enabled and self.sessions.head_expired(head, now):
            raise SessionNotFoundError(key, "expired")
        if incarnation is not None and head.incarnation != incarnation:
            raise SessionNotFoundError(key, "replaced")
        if head.schema > BODY_VERSION:
            raise SchemaVersionError(self.backend, head.schema, BODY_VERSION)
        return head

    def matches(self, head: SessionHead, query: Query, now: int) -> bool:
        """Tell whether a listing shows this session: live, and as it asks."""
        key = head.key
        since, before = query.active_since, query.active_before
        return (
            query.app in {None, key.app}
            and query.user in {None, key.user}
            and query.scope in {None, key.scope}
            and head.labels.issuperset(query.labels)
            and (since is None or head.last_active_at >= since)
            and (before is None or head.last_active_at < before)
            and not self.sessions.head_expired(head, now)
        )

    # Heads -----------------------------------------------------------------------

    def new_head(
        self,
        new: NewSession,
        entries: Sequence[Row],
        archived: Sequence[Row],
        change: Change,
        now: int,
    ) -> SessionHead:
        """Return the head of a session that is created now."""
        moment = from_micros(now)
        created = new.created_at or moment
        head = SessionHead(
            key=new.key,
            incarnation=secrets.token_hex(16),
            revision=1,
            created_at=created,
            updated_at=new.updated_at or created,
            last_active_at=new.last_active_at or created,
            pinned=new.pinned,
            last_seq=len(entries) + len(archived),
            spliced_at=1 if archived else 0,
            active=total(entries),
            total=total(entries).plus(total(archived)),
            title="",
            model="",
            status=SessionStatus.ACTIVE,
            labels=frozenset(),
            session_type=new.session_type,
            forked_from=new.forked_from,
            schema=BODY_VERSION,
        )
        return described(touched(head, change.touch), change)

    def appended(
        self,
        head: SessionHead,
        rows: Sequence[Row],
        trimmed: Counts | None,
        change: Change,
        now: int,
    ) -> SessionHead:
        """Return the head after an append; `trimmed` counts what left the window."""
        counts = rows[0].counts if len(rows) == 1 else total(rows)
        after = grown_head(head, counts, now, change.updated_at, change.touch)
        if trimmed is not None:
            after = after._replace(
                spliced_at=after.revision, active=after.active.minus(trimmed)
            )
        return after if change is NO_CHANGE else described(after, change)

    def spliced(
        self,
        head: SessionHead,
        removed: Counts,
        rows: Sequence[Row],
        change: Change,
        now: int,
        *,
        tail: int = 0,
        afresh: bool,
    ) -> SessionHead:
        """Return the head after a splice.

        Args:
            head: the session before it.
            removed: the counts of what leaves.
            rows: replacements and tail.
            change: what else changes.
            now: the journal's time.
            tail: how many of the rows take new places.
            afresh: nothing of the past is left.
        """
        counts = total(rows)
        revision = head.revision + 1
        head = head._replace(
            revision=revision,
            updated_at=max(head.updated_at, change.updated_at or from_micros(now)),
            spliced_at=revision,
            last_seq=head.last_seq + tail,
            active=head.active.minus(removed).plus(counts),
            total=counts if afresh else head.total.plus(counts),
        )
        if afresh:
            head = head._replace(
                request_n=None,
                request_hash=None,
                request_header=None,
                request_format=None,
            )
        return described(touched(head, change.touch), change)

    def updated(self, head: SessionHead, change: Change, now: int) -> SessionHead:
        """Return the head after an update."""
        if change.counts:
            head = head._replace(
                revision=head.revision + 1,
                updated_at=max(head.updated_at, change.updated_at or from_micros(now)),
            )
        elif change.updated_at is not None:
            head = head._replace(updated_at=max(head.updated_at, change.updated_at))
        return described(touched(head, change.touch), change)


def touched(head: SessionHead, moment: datetime | None) -> SessionHead:
    """Return the head with activity at that moment; it never goes back."""
    if moment is None or moment <= head.last_active_at:
        return head
    return head._replace(last_active_at=moment)


def described(head: SessionHead, change: Change) -> SessionHead:
    """Return the head with title, model, labels, pin, status and request changed."""
    if change.title is not None:
        head = head._replace(title=change.title)
    if change.model is not None:
        head = head._replace(model=change.model)
    if change.labels:
        head = head._replace(labels=change.labels.apply(head.labels))
    if change.pin is not None:
        head = head._replace(pinned=change.pin)
    if change.status is not None:
        head = head._replace(status=change.status)
    request = change.request
    if request is not None:
        if request.keep and (
            request.keep > (head.request_n or 0) or request.base != head.request_hash
        ):
            raise StaleSessionError(
                head.key, None, head.revision, "the request record is another one"
            )
        head = head._replace(
            request_n=request.n,
            request_hash=request.hash,
            request_header=request.header,
            request_format=request.format,
        )
    return head


def merge(state: dict[str, object], delta: StateDelta | None) -> None:
    """Apply a delta to a state, in place."""
    if delta is not None:
        for name in delta.deleted:
            state.pop(name, None)
        state.update(delta.set)
