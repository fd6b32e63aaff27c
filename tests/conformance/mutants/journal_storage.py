"""Journals whose storage holds something else than what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Bodied
from raf_session.changes import Change, StateDelta
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry, Record
from raf_session.errors import SessionDamagedError
from raf_session.journal import Commit, ScopedState
from raf_session.journals._memory_records import MemorySession
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, Window


@fault("journal", "reads_order_by_place")
class ReadsTheArchiveAsItLeft(MemoryJournal):
    """The archive is read in the order in which entries left the window."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        left = [(row.id, row.left_at) for row in self._sessions[key].archive]
        ordered = sorted(record.archived, key=lambda e: left.index((e.id, e.left_at)))
        return record._replace(archived=tuple(ordered))


@fault(
    "journal",
    "an_append_goes_on_behind_the_rows",
    also=("a_restart_changes_no_rule", "two_handles_lose_no_write"),
)
class KnowsWhatItWrote(MemoryJournal):
    """The ids that are known are those that this object has written."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._written: set[str] = set()

    @override
    def _apply(self, session: MemorySession, change: Change, now: int) -> None:
        super()._apply(session, change, now)
        self._written |= session.by_id.keys()

    @override
    async def append(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        if key in self._sessions:
            by_id, written = self._sessions[key].by_id, self._written
            self._sessions[key].by_id = {n: by_id[n] for n in by_id if n in written}
        return await super().append(key, *args, **options)


@fault("journal", "writes_store_what_they_answer")
class LeavesWhatItReplaced(MemoryJournal):
    """What a splice took away is hidden, and still stored."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        rows = list(self._sessions[key].active) if key in self._sessions else []
        commit = await super().splice(key, *args, **options)
        session = self._sessions[key]
        if not options["archive"] and not options.get("purge"):
            gone = {row.id for row in rows} - {row.id for row in session.active}
            session.archive += [r._replace(left_at=-1) for r in rows if r.id in gone]
        return commit

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        shown = tuple(entry for entry in record.archived if entry.left_at > 0)
        return record._replace(archived=shown)


@fault("journal", "what_goes_leaves_no_row")
class ClearsOnly(MemoryJournal):
    """What is purged stays in the storage, marked as gone."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        rows = list(self._sessions[key].active) if key in self._sessions else []
        commit = await super().splice(key, *args, **options)
        session = self._sessions[key]
        if options.get("purge") and not session.active:
            session.archive = [row._replace(left_at=-1) for row in rows]
        return commit

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        shown = tuple(entry for entry in record.archived if entry.left_at > 0)
        return record._replace(archived=shown)


class _Lenient(BodyFormat):
    @override
    def decode(self, key: SessionKey, rows: Any) -> tuple[Entry, ...]:
        try:
            return super().decode(key, rows)
        except SessionDamagedError:
            return super().decode(key, [row for row in rows if row[5][-1] == row[5][0]])


@fault("journal", "damage_is_told")
class SkipsDamage(Bodied):
    """What cannot be read is left out without a word."""

    bodies = _Lenient


@fault("journal", "splice_commits_its_change")
class SplicesWithoutState(MemoryJournal):
    """A splice forgets the state that it was to commit."""

    @override
    async def splice(
        self, *args: Any, change: Change | None = None, **options: Any
    ) -> Commit:
        change = change and replace(change, session=None)
        return await super().splice(*args, change=change, **options)


@fault("journal", "a_splice_of_nothing_commits_its_change")
class SplicesNothing(MemoryJournal):
    """Where no entry comes or goes, a splice does nothing at all."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        before = self._sessions.get(key)
        run = [r for r in before.active if args[0] <= r.seq <= args[1]] if before else 1
        if not (run or args[2:] or options.get("tail") or options.get("purge")):
            options["change"] = None
        return await super().splice(key, *args, **options)


@fault("journal", "splice_conflicts_with_known_ids")
class SplicesDoubles(MemoryJournal):
    """A replacement may have the id of an entry that stays."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        session = self._sessions.get(key)
        if session is not None:
            inside = [row for row in session.active if args[0] <= row.seq <= args[1]]
            session.by_id = {row.id: row for row in inside}
        return await super().splice(key, *args, **options)


@fault("journal", "equal_looking_names_are_distinct")
class PadsNames(MemoryJournal):
    """A blank at the end of the name of a user's state does not count."""

    @override
    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        padded = {name.rstrip() or name: delta.set[name] for name in delta.set}
        super()._write_scope(scope, StateDelta(padded, delta.deleted), now)


@fault("journal", "scoped_state_is_set_and_deleted")
class DeletesToNull(MemoryJournal):
    """A key of a user's that is deleted is set to null."""

    @override
    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        nulls = dict.fromkeys(delta.deleted)
        super()._write_scope(scope, StateDelta({**nulls, **delta.set}), now)


@fault("journal", "the_empty_user_has_a_state_of_its_own")
class EmptyUserIsTheApp(MemoryJournal):
    """The state of the user without a name is the app's."""

    @override
    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        super()._write_scope(ScopeKey(scope.app, scope.user or None), delta, now)

    @override
    def _read_scope(self, scope: ScopeKey, now: int, *, refresh: bool) -> ScopedState:
        scope = ScopeKey(scope.app, scope.user or None)
        return super()._read_scope(scope, now, refresh=refresh)


@fault("journal", "scoped_lifetime_counts_from_the_first_key")
class RestartsScopes(MemoryJournal):
    """With each key that is set the state of a user begins anew."""

    @override
    def _write_scope(self, scope: ScopeKey, delta: StateDelta, now: int) -> None:
        super()._write_scope(scope, delta, now)
        if scope in self._scopes:
            self._scopes[scope].created_at = now
