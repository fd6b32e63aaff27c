"""The journal in a server's SQL database, but for the driver and the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from typing_extensions import override

from raf_session.changes import Change, StateDelta
from raf_session.entries import Entry, Record
from raf_session.errors import JournalClosedError, StorageError
from raf_session.journal import Commit, Order, Page, ScopedState
from raf_session.journals import _checks, _splices
from raf_session.journals._records import NO_STATE, Found, Scoped, record_of
from raf_session.journals._sql_base import SqlBase
from raf_session.journals._sql_dialect import Transaction
from raf_session.journals._sql_entries import clamp
from raf_session.journals._sql_splices import Splice
from raf_session.journals._sql_sweep import BATCH, Sweep
from raf_session.journals._sql_writes import Append, Create, Delete, Update
from raf_session.journals._texts import Texts
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, NewSession, Query, Window

__all__ = ("SqlJournal",)


class SqlJournal(SqlBase):
    """The primitives of a journal, as transactions of a server database.

    A backend gives the dialect and `_prepare`, and where it can do better `_append` and
    `_read`.
    """

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
        create = Create(
            self._rules,
            self._changes,
            new,
            entries=entries,
            archived=archived,
            bodies=self._encode(everything),
            texts=self._texts(change),
        )
        return await self._write(new.key, create.run, again=True)

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
        """Add entries at the end; see `Journal.append`.

        Where the connection is lost, it is done once more: the ids tell whether it was
        stored, and the answer says `repeated` then.
        """
        _checks.check_append(key, entries, trim)
        append = Append(
            self._rules,
            self._changes,
            self._bodies,
            key,
            entries,
            self._encode(entries),
            self._texts(change),
            trim,
            expected_revision,
            incarnation,
        )
        return await self._append(append)

    async def _append(self, append: Append) -> Commit:
        return await self._write(append.key, append.run, again=True)

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
        splice = Splice(
            self._rules,
            self._changes,
            self._bodies,
            key,
            first,
            last,
            entries,
            tail,
            self._encode(wanted),
            frozenset(keep),
            archive,
            purge,
            self._texts(change),
            expected_revision,
            incarnation,
        )
        return await self._write(key, splice.run)

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
        update = Update(
            self._rules,
            self._changes,
            key,
            self._texts(change),
            expected_revision,
            incarnation,
        )
        return await self._write(key, update.run)

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        """Remove a session; see `Journal.delete`."""
        return await self._write(key, Delete(self._rules, key, incarnation).run)

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
        found = await self._read(key, window, archived=archived)
        record = record_of(found, self._bodies, self._values)
        if not refresh:
            return record
        head = await self._write(
            key, lambda tx: self._reads.refresh(tx, found), again=True
        )
        return record._replace(head=head)

    async def _read(self, key: SessionKey, window: Window, *, archived: bool) -> Found:
        return await self._opened().read(
            lambda tx: self._reads.load(tx, key, window, archived=archived)
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
        return await self._opened().read(
            lambda tx: self._listing.scan(
                tx, query, after, order, clamp(limit), state=state
            )
        )

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        """Delete what has expired; see `Journal.expire`.

        It is deleted in several transactions, so that other writers get in between;
        what they hold locked is left to the next sweep. One that fails ends the call:
        with its error, or, where something was deleted before, with that, so that
        nothing goes unreported.
        """
        _checks.check_limit(limit)
        runner, sweep = self._opened(), self._sweep
        if dry_run:
            found = await runner.read(
                lambda tx: sweep.find(tx, clamp(limit), lock=False)
            )
            return tuple(found)
        gone: list[SessionKey | ScopeKey] = []
        while len(gone) < limit:
            batch = min(BATCH, limit - len(gone))
            try:
                removed = await runner.write(_removing(sweep, batch))
            except (StorageError, JournalClosedError):
                if not gone:
                    raise
                break
            gone += removed
            if len(removed) < batch:
                break
        return tuple(gone)

    # Scopes ----------------------------------------------------------------------

    @override
    async def scoped_state(
        self, scope: ScopeKey, *, refresh: bool = False
    ) -> ScopedState:
        """Read the state of an app or user; see `Journal.scoped_state`."""
        rules, scopes = self._rules, self._changes.scopes

        async def work(tx: Transaction) -> Scoped | None:
            now = rules.now()
            if refresh:
                await scopes.refresh(tx, scope, now)
            return await scopes.read(tx, scope, now)

        runner = self._opened()
        found = await (runner.write(work, again=True) if refresh else runner.read(work))
        return NO_STATE if found is None else found.state(scope, self._values)

    @override
    async def update_scoped_state(self, scope: ScopeKey, delta: StateDelta) -> None:
        """Set and delete keys; see `Journal.update_scoped_state`."""
        texts = Texts.of(delta, self._values)
        rules, scopes = self._rules, self._changes.scopes
        await self._opened().write(
            lambda tx: scopes.write(tx, scope, texts, rules.now()), again=True
        )

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        """Return the scopes that hold live state; see `Journal.scopes`."""
        app = ScopeKey(app).app
        rules, scopes, runner = self._rules, self._changes.scopes, self._opened()
        return await runner.read(lambda tx: scopes.live(tx, app, rules.now()))


def _removing(
    sweep: Sweep, batch: int
) -> Callable[[Transaction], Awaitable[tuple[SessionKey | ScopeKey, ...]]]:
    return lambda tx: sweep.remove(tx, batch)
