"""`Journal`, the one storage contract: an ordered log, a head and scoped state.

Every backend keeps the same promises, so everything above is written once.  Writes
are serialised per session; reads are of one moment; nothing is ever half done.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, NamedTuple, NoReturn, Self, TypeAlias

from typing_extensions import Protocol, override, runtime_checkable

from raf_session.changes import Change, StateDelta
from raf_session.clock import Clock
from raf_session.entries import Entry, Record, SessionHead
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Limits, NewSession, Query, Window

__all__ = (
    "Codec",
    "Commit",
    "Durability",
    "Journal",
    "Listed",
    "Order",
    "Page",
    "ScopedState",
)

Order: TypeAlias = Literal["activity", "key"]
"""`activity`: last active first, for people. `key`: complete, for copies and sweeps."""


Durability: TypeAlias = Literal["kill", "power"]
"""``kill``: what was acknowledged survives the end of every process; ``power``: it is
on the disk before it is acknowledged."""


class Commit(NamedTuple):
    """What a write did."""

    head: SessionHead
    """The session right after the write."""
    entries: tuple[Entry, ...] = ()
    """The entries of the call as they are stored, with place and time."""
    repeated: bool = False
    """Whether all of them were stored before, so that this call changed nothing."""


class Listed(NamedTuple):
    """One session of a listing."""

    head: SessionHead
    state: Mapping[str, Any] | None = None
    """The session's own state, where it was asked for."""


class Page(NamedTuple):
    """A part of a listing; it may be short, the end is where `cursor` is `None`."""

    sessions: tuple[Listed, ...]
    cursor: str | None


class ScopedState(NamedTuple):
    """The state of an app or of one of its users."""

    state: Mapping[str, Any]
    created_at: datetime | None
    """When its first key was set; `None` where there is no state."""
    last_active_at: datetime | None


class Codec(Protocol):
    """Bytes to bytes and back, between JSON and storage: compression, encryption."""

    @abstractmethod
    def encode(self, data: bytes, /) -> bytes:
        """Return what is to be stored for these bytes."""
        ...

    @abstractmethod
    def decode(self, data: bytes, /) -> bytes:
        """Return the bytes that `encode` was given; raise where that cannot be."""
        ...


@runtime_checkable
class Journal(Protocol):
    """Where sessions are kept.

    **Expiry.** What `limits` and `clock` call expired is invisible to every call,
    whether or not it was swept, and `create` may take its key.  A pinned session does
    not expire.  The rule is strict: later than the limit, in microseconds.

    **Identity.** A session is told from one re-created under its key by its
    incarnation; where a call names one, another is `SessionNotFoundError`.

    **Revision.** Grows by 1 with each call that changes entries, session or provider
    state, title, model, labels, pin or status; not by touch, request record, a no-op,
    or a change of user or app state alone.

    **State.** Names of states come back sorted by exact bytes; what their values hold
    keeps its order.

    **Failure.** A call that raises, or is cancelled, has done all or nothing.
    Arguments are checked before anything is touched.
    """

    @property
    @abstractmethod
    def backend(self) -> str:
        """The name of the backend, as errors carry it: ``memory``, ``sqlite``, …."""
        ...

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """What the journal enforces."""
        ...

    @property
    @abstractmethod
    def clock(self) -> Clock:
        """Whose time decides; the server's never does."""
        ...

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Open the journal; a journal that is open already raises `RuntimeError`."""
        ...

    @abstractmethod
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close it, once what was acknowledged is stored; idempotent."""
        ...

    @override
    def __reduce__(self) -> NoReturn:
        """Raise: connections and locks are neither copied nor pickled.

        Raises:
            TypeError: always; it names the way.
        """
        raise TypeError(
            f"a {type(self).__name__} is bound to its storage and cannot be copied or "
            "pickled: open another one over the same storage"
        )

    # Sessions --------------------------------------------------------------------

    @abstractmethod
    async def create(
        self,
        new: NewSession,
        entries: Sequence[Entry] = (),
        *,
        archived: Sequence[Entry] = (),
        change: Change | None = None,
    ) -> Commit:
        """Create a session with its first entries, or fail whole.

        Incarnation, revision (1), places and counts are the journal's; entries that
        bring a `stored_at` keep it.  Of parallel creators one wins.  An expired
        session of that key is removed whole in the same step.

        Args:
            new: the key and, where the session existed before, its times.
            entries: the active window, in order.
            archived: entries that left it before; they take the places in front.
            change: state, provider states, request record, … to begin with.

        Raises:
            SessionExistsError: the key is taken; nothing changed.
            EntryConflictError: an id stands twice among the entries.
            EntryTooLargeError: an encoded entry is over the limit.
            SessionDamagedError: the key holds entries that cannot be read.
        """
        ...

    @abstractmethod
    async def load(
        self,
        key: SessionKey,
        window: Window = WHOLE,
        *,
        refresh: bool = False,
        archived: bool = False,
    ) -> Record:
        """Read a session as it is at one moment; the cost follows the window.

        Args:
            key: the session.
            window: which active entries.
            refresh: move last_active_at of the session, and of the scopes that were
                read, to now; nothing else.
            archived: read what left the window as well.

        Raises:
            SessionNotFoundError: missing or expired.
            SessionDamagedError: stored data cannot be read.
        """
        ...

    @abstractmethod
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
        """Add entries at the end: all or none, at a cost that the history does not set.

        A place is drawn under the session's lock, strictly increasing.  The session's
        last_active_at and updated_at move to now, or to what the change says.
        Checks, in this order:

        1. missing, expired, other incarnation → `SessionNotFoundError`;
        2. all ids known (active or archived) with the same bodies → a no-op that
           reports the stored entries, whatever the revision;
        3. an id known with another body, or only some known → `EntryConflictError`;
        4. the revision is not the expected one → `StaleSessionError`.

        Args:
            key: the session.
            entries: not empty; `update` is for the rest.
            change: committed in the same step.
            trim: how many active entries may stay; the oldest beyond it are archived
                in the same step.
            expected_revision: `None`: appends commute.
            incarnation: the session that the caller read.

        Raises:
            SessionNotFoundError: see above.
            EntryConflictError: see above.
            StaleSessionError: see above.
            EntryTooLargeError: an encoded entry is over the limit.
            ValueError: no entries, or a negative `trim`.
        """
        ...

    @abstractmethod
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
        """Replace a run of active entries; later entries are not touched.

        The active entries with ``first <= seq <= last``, but those in `keep`, leave.
        At most as many replacements take the lowest freed places, in order.  Those
        that left are archived under the new revision, or deleted.  Counts of the
        active window are recomputed; `spliced_at` becomes the new revision.
        A splice that neither removes nor purges anything only commits its change; one
        whose run is what it would put there already is a no-op.  The same again with a
        tail that stands behind the run raises `EntryConflictError`.  The time of a
        replacement lies between those of its neighbours.

        Args:
            key: the session.
            first: the lowest place that may leave.
            last: the highest.
            entries: the replacements.
            tail: entries that are appended at the end, on new places, in the same step.
            keep: places in between that stay.
            archive: whether what leaves can still be read with ``archived=True``.
            purge: delete what stands in the archive between `first` and `last` too;
                over the whole session (no active entry is left, nor an archived one),
                counts and request record start anew: `clear`.
            change: committed in the same step.
            expected_revision: `None`: whatever it is.
            incarnation: the session that the caller read.

        Raises:
            SessionNotFoundError: missing, expired or another incarnation.
            EntryConflictError: an id of `entries` is known elsewhere in the session.
            StaleSessionError: the revision is not the expected one.
            EntryTooLargeError: an encoded entry is over the limit.
            ValueError: more replacements than places were freed, `first` > `last`, or
                `archive` together with `purge`; nothing changed.
        """
        ...

    @abstractmethod
    async def update(
        self,
        key: SessionKey,
        change: Change,
        *,
        expected_revision: int | None = None,
        incarnation: str | None = None,
    ) -> Commit:
        """Alter what the change names and nothing else.

        last_active_at and counts never go back.  A change that names nothing is a
        no-op.

        Raises:
            SessionNotFoundError: missing, expired or another incarnation.
            StaleSessionError: the revision is not the expected one.
        """
        ...

    @abstractmethod
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        """Remove a session: entries, archive, state, provider states, request, index.

        User and app state stay.  A write that comes later does not revive it.

        Returns:
            Whether there was a live session to remove, of that incarnation if named.
        """
        ...

    @abstractmethod
    async def scan(
        self,
        query: Query,
        cursor: str | None = None,
        *,
        order: Order = "activity",
        limit: int = 100,
        state: bool = False,
    ) -> Page:
        """List sessions, a page at a time, reading no entries and refreshing nothing.

        `key` order is complete: what exists throughout comes exactly once, by exact
        bytes.  `activity` order is last active first, ties by key.

        Raises:
            ValueError: `limit` under 1, or a cursor that is not of this order.
        """
        ...

    @abstractmethod
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete at most `limit` expired sessions and scoped states.

        Each is checked again as it is deleted, and is reported by one caller alone.
        A session whose last_active_at is `UNIX_EPOCH` is exempt from the idle rule,
        one whose created_at is from the lifetime rule.

        Args:
            limit: the most to delete in this call.
            dry_run: report what would go, and delete nothing.

        Raises:
            ValueError: `limit` is negative.
        """
        ...

    # Scopes ----------------------------------------------------------------------

    @abstractmethod
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; empty where there is none or it expired."""
        ...

    @abstractmethod
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys of an app's or user's state, and touch it."""
        ...

    @abstractmethod
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the app's own scope and those of its users that hold live state.

        Raises:
            ValueError: no key has an app of that name.
        """
        ...
