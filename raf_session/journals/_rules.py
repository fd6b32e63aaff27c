"""What every journal decides alike: who may write, and what the head becomes."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from raf_session.changes import NO_CHANGE, Change, SessionStatus, StateDelta
from raf_session.clock import Clock, from_micros, to_micros, utc
from raf_session.encoding import BODY_VERSION, BodyFormat, Row
from raf_session.entries import Counts, Entry, SessionHead
from raf_session.errors import (
    EntryConflictError,
    SchemaVersionError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.expiry import ExpiryRule
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession

__all__ = (
    "NO_CHANGE",
    "Rules",
    "app_scope",
    "check_ids",
    "check_revision",
    "read_cursor",
    "user_scope",
    "write_cursor",
)

NO_COUNTS: Final = Counts()


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
        self.sessions = ExpiryRule(limits.sessions)
        self.users = ExpiryRule(limits.user_state)
        self.apps = ExpiryRule(limits.app_state)

    def now(self) -> int:
        """Return the journal's time in microseconds since the epoch."""
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
        if self.sessions.head_expired(head, now):
            raise SessionNotFoundError(key, "expired")
        if incarnation is not None and head.incarnation != incarnation:
            raise SessionNotFoundError(key, "replaced")
        if head.schema > BODY_VERSION:
            raise SchemaVersionError(self.backend, head.schema, BODY_VERSION)
        return head

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
        moment = from_micros(now)
        counts = total(rows)
        active = head.active.plus(counts)
        revision = head.revision + 1
        # By position: `_replace` would cost as much as the rest of an append.
        head = SessionHead(
            head.key,
            head.incarnation,
            revision,
            head.created_at,
            max(head.updated_at, change.updated_at or moment),
            max(head.last_active_at, change.touch or moment),
            head.pinned,
            head.last_seq + len(rows),
            head.spliced_at if trimmed is None else revision,
            active if trimmed is None else active.minus(trimmed),
            head.total.plus(counts),
            *head[11:],
        )
        return head if change is NO_CHANGE else described(head, change)

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


def total(rows: Iterable[Row]) -> Counts:
    """Return the sum of the counts of these rows."""
    counts = NO_COUNTS
    for row in rows:
        counts = row.counts if counts is NO_COUNTS else counts.plus(row.counts)
    return counts


def new_rows(
    bodies: Sequence[str],
    entries: Sequence[Entry],
    places: Iterable[int],
    now: int,
    *,
    not_before: int = 0,
    left_at: int = 0,
    keep_times: bool = False,
) -> list[Row]:
    """Return the rows of entries that take these places now.

    Args:
        bodies: their encoded events.
        entries: the entries.
        places: as many as there are entries.
        now: the journal's time.
        not_before: when the entry in front was stored.
        left_at: the revision that archives them; 0: active.
        keep_times: whether an entry's own `stored_at` stays.
    """
    rows: list[Row] = []
    for body, entry, seq in zip(bodies, entries, places, strict=False):
        stored_at = now
        if keep_times and entry.stored_us is not None:
            stored_at = entry.stored_us
        not_before = max(not_before, stored_at)
        rows.append(
            Row(
                seq,
                left_at,
                entry.id,
                entry.kind.value,
                not_before,
                body,
                Counts.of((entry,)),
            )
        )
    return rows


def stored(entries: Sequence[Entry], rows: Sequence[Row]) -> tuple[Entry, ...]:
    """Return the entries with the places and times of their rows."""
    return tuple(
        [
            entry.stored(row.seq, row.stored_at, row.left_at)
            for entry, row in zip(entries, rows, strict=True)
        ]
    )


def first_rows(
    bodies: Sequence[str],
    archived: Sequence[Entry],
    entries: Sequence[Entry],
    now: int,
) -> tuple[list[Row], list[Row]]:
    """Return the rows of a new session: those archived before, and the active ones.

    Args:
        bodies: the encoded events, of the archived entries first.
        archived: entries that left the window before.
        entries: the active window.
        now: the journal's time, for entries that bring none.
    """
    n = len(archived)
    old = new_rows(
        bodies[:n], archived, range(1, n + 1), now, left_at=1, keep_times=True
    )
    young = new_rows(
        bodies[n:],
        entries,
        range(n + 1, n + 1 + len(entries)),
        now,
        keep_times=True,
        not_before=old[-1].stored_at if old else 0,
    )
    return old, young


# Checks --------------------------------------------------------------------------


def check_unique(key: SessionKey, entries: Iterable[Entry]) -> None:
    """Raise `EntryConflictError` where an id stands twice."""
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise EntryConflictError(key, entry.id, "repeated")
        seen.add(entry.id)


def check_ids(
    key: SessionKey,
    entries: Sequence[Entry],
    known: Mapping[str, Row],
    bodies: BodyFormat,
) -> bool:
    """Tell whether all entries are stored already.

    Args:
        key: the session.
        entries: those to be written.
        known: the stored rows that carry one of their ids.
        bodies: how to compare.

    Raises:
        EntryConflictError: an id is known with another body, or only some are known.
    """
    for entry in entries:
        row = known.get(entry.id)
        if row is not None and not bodies.same(row, entry):
            raise EntryConflictError(key, entry.id, "another body")
    if not known:
        return False
    for entry in entries:
        if entry.id not in known:
            raise EntryConflictError(key, entry.id, "partly known")
    return True


def check_revision(head: SessionHead, expected: int | None) -> None:
    """Raise `StaleSessionError` where the revision is not the expected one."""
    if expected is not None and expected != head.revision:
        raise StaleSessionError(head.key, expected, head.revision)


def merge(state: dict[str, object], delta: StateDelta | None) -> None:
    """Apply a delta to a state, in place."""
    if delta is not None:
        for name in delta.deleted:
            state.pop(name, None)
        state.update(delta.set)


def check_append(key: SessionKey, entries: Sequence[Entry], trim: int | None) -> None:
    """Check the arguments of an append that need no look at what is stored."""
    if not entries:
        raise ValueError("nothing to append; `update` changes what is not an entry")
    if trim is not None and trim < 0:
        raise ValueError(f"trim={trim} is negative")
    if len(entries) > 1:
        check_unique(key, entries)


# Splices -------------------------------------------------------------------------


def check_splice(
    key: SessionKey,
    first: int,
    last: int,
    entries: Iterable[Entry],
    *,
    archive: bool,
    purge: bool,
) -> None:
    """Check the arguments of a splice that need no look at what is stored."""
    if first > last:
        raise ValueError(f"no places between {first} and {last}")
    if archive and purge:
        raise ValueError("what is purged cannot be archived")
    check_unique(key, entries)


class SplicePlan(NamedTuple):
    """What a splice is going to do."""

    leaving: Sequence[Row]
    purged: Sequence[Row]
    entries: Sequence[Entry]
    """The replacements."""
    tail: Sequence[Entry]
    """What is appended behind."""
    bodies: Sequence[str]
    """The encoded events, of the replacements first."""
    repeated: bool
    """Whether the run is already what it would become."""

    @property
    def empty(self) -> bool:
        """Whether no entry comes or goes."""
        return not (self.leaving or self.purged or self.tail)

    def replacements(
        self, now: int, front: int, behind: int, kept: Sequence[Row]
    ) -> list[Row]:
        """Return the replacements on the lowest freed places.

        Their times fit between those of the entries around them: `front` and `behind`
        are those of the neighbours of the whole run, `kept` stays inside it.
        """
        rows: list[Row] = []
        for row in new_rows(
            self.bodies, self.entries, (gone.seq for gone in self.leaving), now
        ):
            before = [other.stored_at for other in kept if other.seq < row.seq]
            after = [other.stored_at for other in kept if other.seq > row.seq]
            earliest = max((front, *before))
            latest = min((behind, *after))
            time = max(earliest, min(row.stored_at, latest))
            rows.append(row._replace(stored_at=time))
        return rows

    def appended(self, head: SessionHead, now: int, not_before: int) -> list[Row]:
        """Return the rows of the tail, on new places."""
        return new_rows(
            self.bodies[len(self.entries) :],
            self.tail,
            range(head.last_seq + 1, head.last_seq + 1 + len(self.tail)),
            now,
            not_before=not_before,
        )


def plan_splice(
    head: SessionHead,
    *,
    leaving: Sequence[Row],
    purged: Sequence[Row],
    entries: Sequence[Entry],
    tail: Sequence[Entry],
    bodies: Sequence[str],
    known: Mapping[str, Row],
    archive: bool,
    expected_revision: int | None,
    body_format: BodyFormat,
) -> SplicePlan:
    """Decide what a splice does.

    Args:
        head: the session.
        leaving: the active rows of the run that are not kept, in order.
        purged: the archived rows that are to be deleted.
        entries: the replacements.
        tail: what is appended behind.
        bodies: their encoded events, of the replacements first.
        known: the stored rows that carry one of their ids.
        archive: whether the leaving rows stay in the archive.
        expected_revision: what the caller expects.
        body_format: how to compare.

    Raises:
        StaleSessionError: the revision is not the expected one.
        EntryConflictError: an id stays known elsewhere in the session.
        ValueError: more replacements than places.
    """
    wanted = (*entries, *tail)
    repeated = (
        bool(wanted)
        and not purged
        and len(leaving) == len(wanted)
        and all(
            row.id == entry.id and body_format.same(row, entry)
            for row, entry in zip(leaving, wanted, strict=True)
        )
    )
    plan = SplicePlan(leaving, purged, entries, tail, bodies, repeated)
    if repeated:
        return plan
    check_revision(head, expected_revision)
    if len(entries) > len(leaving):
        raise ValueError(f"{len(entries)} replacements for {len(leaving)} freed places")
    freed = {row.id for row in (purged if archive else (*leaving, *purged))}
    for entry in wanted:
        if entry.id in known and entry.id not in freed:
            raise EntryConflictError(head.key, entry.id, "known elsewhere")
    return plan


def has_past(head: SessionHead) -> bool:
    """Tell whether a purge of the whole session has anything to set back."""
    return head.total != Counts() or head.request_n is not None


# Listings ------------------------------------------------------------------------


def check_limit(limit: int) -> None:
    """Check the limit of an expiry."""
    if limit < 0:
        raise ValueError(f"limit={limit} is negative")


def check_scan(order: str, limit: int) -> None:
    """Check the arguments of a scan."""
    if order not in {"activity", "key"}:
        raise ValueError(f"{order!r} is no order: activity or key")
    if limit < 1:
        raise ValueError(f"limit={limit} is under 1")


def write_cursor(order: str, head: SessionHead) -> str:
    """Return the cursor that stands right behind this session."""
    if order == "key":
        return f"key:{head.key}"
    return f"activity:{to_micros(head.last_active_at)}:{head.key}"


def read_cursor(order: str, cursor: str) -> tuple[int, SessionKey]:
    """Return the activity (0 in `key` order) and the key of a cursor.

    Raises:
        ValueError: it is not a cursor of this order.
    """
    try:
        kind, rest = cursor.split(":", 1)
        if kind != order:
            raise ValueError(f"made for the order {kind!r}")  # noqa: TRY301
        if order == "key":
            return 0, SessionKey.parse(rest)
        active, text = rest.split(":", 1)
        return int(active), SessionKey.parse(text)
    except ValueError as error:
        raise ValueError(f"{cursor!r} is no cursor of order {order!r}") from error
