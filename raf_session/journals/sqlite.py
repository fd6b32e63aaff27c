"""The journal in a SQLite file: the embedded default."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Sequence
from sqlite3 import Cursor
from types import TracebackType
from typing import Final, Self
from weakref import finalize

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change, StateDelta
from raf_session.clock import Clock, utc_now
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record
from raf_session.errors import JournalClosedError, StorageError
from raf_session.journal import Codec, Commit, Durability, Order, Page, ScopedState
from raf_session.journals import _checks, _splices
from raf_session.journals._base import DurableJournal
from raf_session.journals._records import NO_STATE, Found, Scoped
from raf_session.journals._rules import Rules
from raf_session.journals._sqlite_changes import NO_ALTERATION, Alteration
from raf_session.journals._sqlite_database import Database
from raf_session.journals._sqlite_entries import clamp
from raf_session.journals._sqlite_faults import BACKEND, KnownId
from raf_session.journals._sqlite_listing import Listing
from raf_session.journals._sqlite_reads import Reads
from raf_session.journals._sqlite_runner import Runner
from raf_session.journals._sqlite_scopes import (
    live_scopes,
    read_scope,
    refresh_scope,
    write_scope,
)
from raf_session.journals._sqlite_splices import Splice
from raf_session.journals._sqlite_sweep import Sweep
from raf_session.journals._sqlite_writes import Append, Create, Delete, Update
from raf_session.journals._texts import Texts, Values
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Limits, NewSession, Query, Window

__all__ = ("SqliteJournal",)


class SqliteJournal(DurableJournal):
    """Sessions in one SQLite file, shared by threads, event loops and processes.

    A short write is made on the thread of the event loop, where nothing can block it:
    it finds the file free or leaves the waiting to a thread.  Everything else runs in
    threads.

    Args:
        path: the file; it is made where it is missing, its directory is not.
        limits: what to enforce.
        clock: whose time decides.
        codec: between JSON and the stored text.
        durability: ``kill``: what was acknowledged survives the death of every
            process; ``power``: it is on the disk before it is acknowledged.
        busy_timeout_secs: how long to wait for other writers of the file.

    Raises:
        ValueError: ``:memory:``, a durability of another name, a negative time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
        busy_timeout_secs: float = 30.0,
    ) -> None:
        name = os.fsdecode(path)
        if name in {"", ":memory:"}:
            raise ValueError(f"{name!r} is no file; memory:// keeps sessions in memory")
        if not busy_timeout_secs >= 0:
            raise ValueError(f"busy_timeout_secs={busy_timeout_secs} is negative")
        self._path = os.path.abspath(name)  # noqa: PTH100  (links stay as they are)
        self._busy_timeout_secs: Final = busy_timeout_secs
        super().__init__(Rules(BACKEND, limits or Limits(), clock), durability)
        self._bodies = BodyFormat(BACKEND, codec, self.limits.max_entry_bytes)
        self._values = Values(BACKEND, codec)
        self._reads = Reads(self._rules, self._bodies, self._values)
        self._listing = Listing(self._rules, self._values)
        self._sweep = Sweep(self._rules)
        self._runner: Runner | None = None
        self._finalizer: finalize[[], Self] | None = None

    @property
    def path(self) -> str:
        """The file, absolute."""
        return self._path

    # Opening and closing ---------------------------------------------------------

    @override
    async def __aenter__(self) -> Self:
        """Open the file, or make it.

        Raises:
            RuntimeError: the journal is open already.
            StorageError: the file is not a journal's; it is left as it is.
            SchemaVersionError: a newer library made it; it is left as it is.
            StorageBusyError: others kept it locked for too long.
        """
        if self._runner is not None:
            raise RuntimeError("the sqlite journal is open already")
        kill = self._durability == "kill"
        database = Database(self._path, synced=not kill)
        runner = Runner(
            database, inline=kill, busy_timeout_secs=self._busy_timeout_secs
        )
        self._runner = runner
        try:
            await runner.open()
        except BaseException:
            self._runner = None
            await runner.close()
            raise
        self._finalizer = finalize(self, database.close)
        if not database.wal:
            warnings.warn(
                f"{self._path!r} cannot have a write-ahead log (its journal mode is "
                f"{database.mode}): readers and writers wait for one another",
                RuntimeWarning,
                stacklevel=2,
            )
        return self

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the file, once what was begun is done."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()
        if self._finalizer is not None:
            self._finalizer.detach()
            self._finalizer = None

    def _opened(self) -> Runner:
        if self._runner is None:
            raise JournalClosedError(BACKEND)
        return self._runner

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
        everything = (*archived, *entries)
        _checks.check_unique(new.key, everything)
        bodies = [self._bodies.encode(entry) for entry in everything]
        alteration = self._alteration(change)
        create = Create(self._rules, new, entries, archived, bodies, alteration)
        return await self._opened().write(
            create.run, size=_size(bodies, alteration), entries=len(bodies)
        )

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
        _checks.check_append(key, entries, trim)
        bodies = [self._bodies.encode(entry) for entry in entries]
        alteration = self._alteration(change)
        runner = self._opened()
        append = Append(
            self._rules,
            runner.database.heads,
            self._bodies,
            key,
            entries,
            bodies,
            alteration,
            trim,
            expected_revision,
            incarnation,
        )
        size = _size(bodies, alteration)
        try:
            return await runner.write(append.run, size=size, entries=len(bodies))
        except KnownId:
            append = append._replace(careful=True)
            return await runner.write(append.run, size=size, entries=len(bodies))

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
        wanted = (*entries, *tail)
        _splices.check_splice(key, first, last, wanted, archive=archive, purge=purge)
        bodies = [self._bodies.encode(entry) for entry in wanted]
        alteration = self._alteration(change)
        splice = Splice(
            self._rules,
            self._bodies,
            key,
            first,
            last,
            entries,
            tail,
            bodies,
            frozenset(keep),
            archive,
            purge,
            alteration,
            expected_revision,
            incarnation,
        )
        return await self._opened().write(
            splice.run, size=_size(bodies, alteration), entries=len(bodies)
        )

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
        alteration = self._alteration(change)
        update = Update(self._rules, key, alteration, expected_revision, incarnation)
        return await self._opened().write(update.run, size=alteration.size)

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        """Remove a session; see `Journal.delete`."""
        return await self._opened().write(Delete(self._rules, key, incarnation).run)

    def _alteration(self, change: Change | None) -> Alteration:
        if change is None or change is NO_CHANGE:
            return NO_ALTERATION
        return Alteration(change, self._values)

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
        runner = self._opened()

        def step() -> tuple[Found, Record]:
            found = runner.database.read(
                lambda cursor: self._reads.load(cursor, key, window, archived=archived)
            )
            record = self._reads.record(found)
            return found._replace(active=(), archived=()), record  # rows go here

        found, record = await runner.patiently(step)
        if not refresh:
            return record
        head = await self._opened().write(
            lambda cursor, _: self._reads.refresh(cursor, found)
        )
        return record._replace(head=head)

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
        return await self._opened().read(
            lambda c: self._listing.scan(
                c, query, after, order, clamp(limit), state=state
            )
        )

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete what has expired; see `Journal.expire`.

        It is deleted in several transactions, so that other writers get in between.
        One that fails ends the call: with its error, or, where something was deleted
        before, with that, so that nothing goes unreported.
        """
        _checks.check_limit(limit)
        runner = self._opened()
        if dry_run:
            return tuple(await runner.read(lambda c: self._sweep.find(c, clamp(limit))))
        gone: list[SessionKey | ScopeKey] = []

        try:
            await runner.patiently(
                lambda: self._sweep.remove(runner.database, limit, gone)
            )
        except StorageError:
            if not gone:
                raise
        await runner.checkpoint()
        return tuple(gone)

    # Scopes ----------------------------------------------------------------------

    @override
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; see `Journal.scoped_state`."""
        rules = self._rules

        def work(cursor: Cursor, _: bool = True) -> Scoped | None:
            now = rules.now()
            if refresh:
                refresh_scope(cursor, rules, scope, now)
            return read_scope(cursor, rules, scope, now)

        runner = self._opened()
        found = await (runner.write(work) if refresh else runner.read(work))
        return NO_STATE if found is None else found.state(scope, self._values)

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys; see `Journal.update_scoped_state`."""
        texts = Texts.of(delta, self._values)
        rules = self._rules
        await self._opened().write(
            lambda cursor, _: write_scope(cursor, rules, scope, texts, rules.now()),
            size=texts.size,
        )

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes that hold live state; see `Journal.scopes`."""
        app = ScopeKey(app).app
        rules, runner = self._rules, self._opened()
        return await runner.read(
            lambda cursor: live_scopes(cursor, rules, app, rules.now())
        )


def _size(bodies: Sequence[str], alteration: Alteration) -> int:
    return sum(map(len, bodies)) + alteration.size
