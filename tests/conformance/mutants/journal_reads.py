"""Journals that load and list wrongly."""

from __future__ import annotations

from dataclasses import replace
from pickle import PicklingError
from typing import Any, NoReturn, Self

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Bodied, Colliding
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record, SessionHead
from raf_session.errors import SessionNotFoundError
from raf_session.frozen import FrozenDict
from raf_session.journal import Page
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Query, Window


@fault("journal", "load_reads_the_window")
class ReadsTheOldest(MemoryJournal):
    """``last=n`` gives the first n."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, replace(window, last=None), **o)
        return record._replace(entries=record.entries[: window.last])


@fault("journal", "load_of_a_window_knows_the_whole_head")
class CountsTheWindow(MemoryJournal):
    """The head counts what was read, not what there is."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        active = record.head.active._replace(entries=len(record.entries))
        return record._replace(head=record.head._replace(active=active))


@fault("journal", "load_is_of_one_moment")
class LoadsInTwoSteps(MemoryJournal):
    """The entries are read after the head, in another transaction."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        await checkpoint()
        later = await super().load(key, window, **(o | {"refresh": False}))
        return later._replace(head=record.head)


@fault("journal", "load_of_many_entries_is_whole")
class ReadsOnePage(MemoryJournal):
    """Only the first page of a long history is read."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        return record._replace(entries=record.entries[:1000])


class _Row(FrozenDict[Any]):
    @override
    def __deepcopy__(self, memo: object) -> Self:
        return self

    @override
    def __reduce__(self) -> NoReturn:
        raise PicklingError("a row is bound to its connection")


@fault("journal", "what_is_read_can_be_copied")
class ReadsRows(MemoryJournal):
    """The state comes back as a row that is bound to its connection."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        return record._replace(state=_Row(record.state))


@fault("journal", "what_is_read_is_nobodys")
class SharesState(MemoryJournal):
    """What is returned is what is stored."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        state = self._sessions[key].state
        same = list(state) == list(record.state)
        return record._replace(state=state) if same else record


@fault("journal", "refresh_never_goes_back")
class RefreshesBack(MemoryJournal):
    """A refresh by a clock that was set back moves the activity back."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        if o.get("refresh"):
            head = record.head._replace(last_active_at=self.clock())
            self._sessions[key].head = head
        return record


@fault("journal", "refresh_moves_only_activity")
class RefreshCounts(MemoryJournal):
    """A refresh makes every other handle stale."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        if o.get("refresh"):
            head = record.head._replace(revision=record.head.revision + 1)
            self._sessions[key].head = head
        return record


@fault("journal", "load_of_a_missing_session_raises")
class ErrorsWithoutTheKey(MemoryJournal):
    """The error does not tell which session is missing."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        if key not in self._sessions and self._open:
            raise SessionNotFoundError("?", "missing")
        return await super().load(key, window, **o)


@fault(
    "journal",
    "archive_is_read_on_request",
    also=("create_puts_archived_entries_first",),
)
class ShowsTheArchive(MemoryJournal):
    """What left the window is read with it, asked for or not."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        return await super().load(key, window, **(o | {"archived": True}))


@fault("journal", "reads_move_nothing")
class RefreshesByListing(MemoryJournal):
    """A listing is activity."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        page = await super().scan(query, *args, **options)
        for listed in page.sessions:
            await self.load(listed.head.key, refresh=True)
        return page


@fault("journal", "scan_pages_over_equal_times")
class SkipsEqualTimes(MemoryJournal):
    """The next page begins behind a time, not behind a session."""

    @override
    async def scan(self, query: Query, cursor: str | None = None, **o: Any) -> Page:
        page = await super().scan(query, cursor, **o)
        if cursor is None or o.get("order") == "key":
            return page
        last = int(cursor.split(":")[1])
        later = [
            listed
            for listed in page.sessions
            if int(listed.head.last_active_at.timestamp() * 1_000_000) != last
        ]
        return page._replace(sessions=tuple(later))


@fault("journal", "filters_are_literal")
class PercentIsAnything(MemoryJournal):
    """A percent sign in a filter stands for anything."""

    @override
    def _matches(self, head: SessionHead, query: Query, now: int) -> bool:
        if query.user == "%":
            query = replace(query, user=None)
        return super()._matches(head, query, now)


@fault("journal", "scan_filters")
class EmptyUserIsAnyUser(MemoryJournal):
    """``''`` and `None` are one filter."""

    @override
    def _matches(self, head: SessionHead, query: Query, now: int) -> bool:
        query = replace(query, user=query.user or None)
        return super()._matches(head, query, now)


@fault("journal", "scan_lists_each_session_once")
class EndsAFullPage(MemoryJournal):
    """A page that is just full repeats its last session on the next one."""

    @override
    async def scan(self, query: Query, cursor: str | None = None, **o: Any) -> Page:
        page = await super().scan(query, cursor, **o)
        again = page.sessions[:1] if cursor is not None else ()
        return page._replace(sessions=again + page.sessions)


@fault("journal", "scan_of_nothing_is_empty")
class FailsOnNothing(MemoryJournal):
    """To list where there is nothing is an error."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        if not self._sessions and self._open:
            raise IndexError("the first of an empty list")
        return await super().scan(query, *args, **options)


@fault("journal", "scan_shows_the_head_of_now")
class ListsOldHeads(MemoryJournal):
    """The index that is listed learns nothing of labels and titles set later."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        page = await super().scan(query, *args, **options)
        old = [x._replace(head=x.head._replace(title="")) for x in page.sessions]
        return page._replace(sessions=tuple(old))


@fault("journal", "scopes_lists_what_holds_state")
class ScopesByPrefix(MemoryJournal):
    """The scopes of an app are those of all whose names begin so."""

    @override
    async def scopes(self, app: str) -> tuple[ScopeKey, ...]:
        found: list[ScopeKey] = []
        for name in sorted({app, *(scope.app for scope in self._scopes)}):
            if name.startswith(app):
                found += await super().scopes(name)
        return tuple(found)


@fault("journal", "equal_looking_keys_are_distinct")
class FoldsCase(Colliding):
    """Keys are compared by a collation."""

    @override
    def folded(self, key: SessionKey) -> Any:
        return tuple(part.casefold() for part in key)


@fault("journal", "values_come_back_exactly")
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
        return record._replace(state=FrozenDict(state))


class _Sorted(BodyFormat):
    @override
    def encode(self, entry: Entry) -> str:
        ordered = dict(sorted(entry.metadata.items()))
        return super().encode(entry._replace(metadata=ordered))


@fault("journal", "values_come_back_exactly")
class SortsKeys(Bodied):
    """Objects come back with their keys in order, as from a binary JSON column."""

    bodies = _Sorted


class _Replaced(BodyFormat):
    @override
    def encode(self, entry: Entry) -> str:
        author = entry.author and entry.author.encode(errors="replace").decode()
        return super().encode(entry._replace(author=author))


@fault("journal", "text_comes_back_exactly")
class ReplacesCharacters(Bodied):
    """A lone surrogate becomes a question mark on its way."""

    bodies = _Replaced


class _NoNulls(BodyFormat):
    @override
    def encode(self, entry: Entry) -> str:
        return super().encode(entry).replace(":null", ':""')


@fault("journal", "messages_come_back_exactly")
class NullIsEmpty(Bodied):
    """What is null in a message comes back as an empty text."""

    bodies = _NoNulls


class _Cut(BodyFormat):
    @override
    def decode(self, key: SessionKey, rows: Any) -> tuple[Entry, ...]:
        short = [row for row in rows if len(row[5]) < 1_000_000]
        return super().decode(key, short)


@fault("journal", "a_large_entry_comes_back")
class SkipsLargeEntries(Bodied):
    """An entry that is larger than a packet is stored, and not read."""

    bodies = _Cut
