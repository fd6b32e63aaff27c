"""Journals with one realistic fault each, so that the checks can show their teeth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from raf_session.changes import Change, StateDelta
from raf_session.clock import Clock, utc_now
from raf_session.conformance.journal_values import varied
from raf_session.entries import Entry, Record
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Codec, Commit, Listed, Order, Page
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Limits, NewSession, Query, Window

DECADE = timedelta(days=3652)
MICROSECOND = timedelta(microseconds=1)


class Skewed(MemoryJournal):
    """Base of those that tell the time wrongly in some calls."""

    skew = timedelta()

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
    ) -> None:
        self._off = timedelta()
        super().__init__(limits=limits, clock=self._tell, codec=codec)
        self._true = clock

    def _tell(self) -> datetime:
        return self._true() + self._off

    async def _load_skewed(self, key: SessionKey, **options: Any) -> Record:
        self._off = self.skew
        try:
            return await super().load(key, **options)
        finally:
            self._off = timedelta()


class ReadsExpired(Skewed):
    """Only the sweeper knows of expiry; a read returns what it has not reached."""

    skew = -DECADE

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        return await self._load_skewed(key, window=window, **o)


class ExpiresLate(ReadsExpired):
    """The limit is one microsecond too long."""

    skew = -MICROSECOND


class ExpiresAtTheLimit(ReadsExpired):
    """``>=`` where the rule is ``>``."""

    skew = MICROSECOND


class ListsExpired(Skewed):
    """A listing shows what has expired and was not swept."""

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
        self._off = -DECADE
        page = await super().scan(query, cursor, order=order, limit=limit, state=state)
        self._off = timedelta()
        return page


class RefreshesByListing(MemoryJournal):
    """A listing is activity."""

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
        page = await super().scan(query, cursor, order=order, limit=limit, state=state)
        for listed in page.sessions:
            await self.load(listed.head.key, refresh=True)
        return page


class SkipsEqualTimes(MemoryJournal):
    """The next page begins behind a time, not behind a session."""

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
        page = await super().scan(query, cursor, order=order, limit=limit, state=state)
        if cursor is None or order == "key":
            return page
        last = int(cursor.split(":")[1])
        later: list[Listed] = [
            listed
            for listed in page.sessions
            if int(listed.head.last_active_at.timestamp() * 1_000_000) != last
        ]
        return page._replace(sessions=tuple(later))


class FiltersByPattern(MemoryJournal):
    """Filters are handed on as patterns."""

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
        wide = replace(query, app=None, user=None, scope=None)
        page = await super().scan(wide, cursor, order=order, limit=limit, state=state)
        asked = (query.app, query.user, query.scope)
        found = [
            listed
            for listed in page.sessions
            if all(
                pattern is None or fnmatchcase(part, pattern)
                for part, pattern in zip(listed.head.key, asked, strict=False)
            )
        ]
        return page._replace(sessions=tuple(found))


class EmptyUserIsAnyUser(MemoryJournal):
    """``''`` and `None` are one filter."""

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
        query = replace(query, user=query.user or None)
        return await super().scan(query, cursor, order=order, limit=limit, state=state)


class Appender(MemoryJournal):
    """Base of those whose `append` is wrong."""

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
        return await self.wrong(
            key,
            entries,
            change=change,
            trim=trim,
            expected_revision=expected_revision,
            incarnation=incarnation,
        )

    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        return await super().append(key, entries, **options)


class LosesUpdates(Appender):
    """State is read, changed and written back whole."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change | None = options["change"]
        if change is None or not change.session:
            return await super().wrong(key, entries, **options)
        state = change.session.apply((await self.load(key)).state)
        await checkpoint()
        now = (await self.load(key)).state
        whole = StateDelta(state, [name for name in now if name not in state])
        options["change"] = replace(change, session=whole)
        return await super().wrong(key, entries, **options)


class TearsBatches(Appender):
    """A batch is stored one by one."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        stored: list[Entry] = []
        commit = await super().wrong(key, entries[:1], **options)
        stored += commit.entries
        for entry in entries[1:]:
            await checkpoint()
            commit = await super().wrong(key, [entry], trim=options["trim"])
            stored += commit.entries
        return commit._replace(entries=tuple(stored))


class RevivesSessions(Appender):
    """An append to a session that is gone makes it anew."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        try:
            return await super().wrong(key, entries, **options)
        except SessionNotFoundError as error:
            if error.reason != "missing":
                raise
            return await self.create(
                NewSession(key=key), entries, change=options["change"]
            )


class ForgetsArchivedIds(Appender):
    """Only active ids are known."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        given = {entry.id for entry in entries}
        for entry in (await self.load(key, archived=True)).archived:
            if entry.id in given:
                await self.splice(key, entry.seq, entry.seq, archive=False, purge=True)
        return await super().wrong(key, entries, **options)


class AcceptsAnyIncarnation(Appender):
    """The incarnation is not looked at."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        options["incarnation"] = None
        return await super().wrong(key, entries, **options)


class AcceptsAnyRevision(Appender):
    """The expected revision is not looked at."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        options["expected_revision"] = None
        return await super().wrong(key, entries, **options)


class ChecksRevisionFirst(Appender):
    """A retry under its old revision is called stale."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        await self.update(key, Change(), expected_revision=options["expected_revision"])
        return await super().wrong(key, entries, **options)


class WritesScopesFirst(Appender):
    """The user's state is written before the append is known to succeed."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change | None = options["change"]
        if change is not None and change.user is not None:
            scope = ScopeKey(key.app, key.user)
            await self.update_scoped_state(scope, change.user)
        return await super().wrong(key, entries, **options)


class OverwritesTitles(Appender):
    """An append writes the head that was read when the session was opened."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change = options["change"] or Change()
        options["change"] = replace(change, title=change.title or "")
        return await super().wrong(key, entries, **options)


class TrimsForGood(Appender):
    """What `trim` takes out of the window is deleted."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        trim: int | None = options.pop("trim")
        commit = await super().wrong(key, entries, **options)
        if trim is None:
            return commit
        active = (await self.load(key)).entries
        excess = active[: max(0, len(active) - trim)]
        if not excess:
            return commit
        cut = await self.splice(key, 1, excess[-1].seq, archive=False)
        head = cut.head._replace(revision=commit.head.revision)
        return commit._replace(head=head)


class CountsRepeatsAsActivity(Appender):
    """A repeated append moves last_active_at."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().wrong(key, entries, **options)
        if commit.repeated:
            await self.update(key, Change(touch=self.clock()))
        return commit


class ComparesIdsAlone(Appender):
    """A known id is a repetition, whatever its body."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        record = await self.load(key, archived=True)
        stored = {e.id: e for e in (*record.archived, *record.entries)}
        known = [stored.get(entry.id, entry).plain for entry in entries]
        return await super().wrong(key, known, **options)


class ReplacesCharacters(Appender):
    """A lone surrogate becomes a question mark on its way."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        clean = [
            varied(
                entry,
                author=None
                if entry.author is None
                else entry.author.encode(errors="replace").decode(),
            )
            for entry in entries
        ]
        return await super().wrong(key, clean, **options)


class SortsKeys(Appender):
    """Objects come back with their keys in order, as from a binary JSON column."""

    @override
    async def wrong(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        ordered = [
            varied(entry, metadata=dict(sorted(entry.metadata.items())))
            for entry in entries
        ]
        return await super().wrong(key, ordered, **options)


class CreatesOver(MemoryJournal):
    """An existing session is wiped by `create`."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        await self.delete(new.key)
        return await super().create(new, *args, **options)


class RoundsNumbers(MemoryJournal):
    """Large integers pass through a float."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        state = {
            name: float(value)
            if isinstance(value, int) and 2**53 < value < 2**70
            else value
            for name, value in record.state.items()
        }
        return record._replace(state=state)


class SharesState(MemoryJournal):
    """What is returned is what is stored."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._live: dict[SessionKey, dict[str, Any]] = {}

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        return record._replace(state=self._live.setdefault(key, dict(record.state)))


class ReadsTheOldest(MemoryJournal):
    """``last=n`` gives the first n."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, replace(window, last=None), **o)
        return record._replace(entries=record.entries[: window.last])


class DeletesHalf(MemoryJournal):
    """A deleted session leaves its state behind for the next of its key."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._left: dict[SessionKey, dict[str, Any]] = {}

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        try:
            self._left[key] = dict((await self.load(key)).state)
        except SessionNotFoundError:
            return False
        return await super().delete(key, incarnation=incarnation)

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        left = self._left.pop(new.key, {})
        change: Change = options.get("change") or Change()
        session = StateDelta(left).then(change.session or StateDelta())
        options["change"] = replace(change, session=session)
        return await super().create(new, *args, **options)


class DeletesUserState(MemoryJournal):
    """The user's state goes with a session."""

    @override
    async def delete(self, key: SessionKey, *, incarnation: str | None = None) -> bool:
        done = await super().delete(key, incarnation=incarnation)
        scope = ScopeKey(key.app, key.user)
        if done:
            state = (await self.scoped_state(scope)).state
            await self.update_scoped_state(scope, StateDelta({}, state))
        return done


class SweepsWhenDry(MemoryJournal):
    """A dry run deletes."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        return await super().expire(limit)


class ReportsWhatOthersSwept(MemoryJournal):
    """What was found expired is reported, whoever deleted it."""

    @override
    async def expire(
        self, limit: int = 1000, *, dry_run: bool = False
    ) -> tuple[SessionKey | ScopeKey, ...]:
        found = await super().expire(limit, dry_run=True)
        await checkpoint()
        if not dry_run:
            await super().expire(limit)
        return found


class FoldsCase(MemoryJournal):
    """Keys are compared by a collation."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        return await super().load(self._folded(key), window, **o)

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        new = replace(new, key=self._folded(new.key))
        return await super().create(new, *args, **options)

    def _folded(self, key: SessionKey) -> SessionKey:
        return SessionKey(*(part.casefold() for part in key))


class SplicesToTheEnd(MemoryJournal):
    """Replacements are appended instead of taking freed places."""

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
        **options: Any,
    ) -> Commit:
        return await super().splice(
            key, first, last, tail=(*entries, *tail), keep=keep, **options
        )


class PurgesTheWindowOnly(MemoryJournal):
    """`purge` leaves the archive alone."""

    @override
    async def splice(self, *args: Any, purge: bool = False, **options: Any) -> Commit:
        return await super().splice(*args, **options)


class NeverCloses(MemoryJournal):
    """A closed journal goes on."""

    @override
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        return None
