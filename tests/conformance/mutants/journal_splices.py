"""Journals that splice and update wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Ruled
from raf_session.changes import Change, StateDelta
from raf_session.entries import Entry, SessionHead
from raf_session.journal import Commit
from raf_session.journals._rules import Rules
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey


@fault("journal", "parallel_updates_merge")
class LosesUpdates(MemoryJournal):
    """State is read, changed and written back whole."""

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        if change.session and key in self._sessions:
            state = change.session.apply(self._sessions[key].state)
            await checkpoint()
            gone = set(self._sessions[key].state) - set(state)
            change = replace(change, session=StateDelta(state, gone))
        return await super().update(key, change, **options)


@fault(
    "journal",
    "splice_replaces_a_run",
    wide="most splices put something in the place of what leaves",
    machine=True,
)
class SplicesToTheEnd(MemoryJournal):
    """Replacements are appended instead of taking freed places."""

    @override
    async def splice(
        self,
        key: SessionKey,
        first: int,
        last: int,
        entries: Sequence[Entry] = (),
        **options: Any,
    ) -> Commit:
        options["tail"] = (*entries, *options.get("tail", ()))
        return await super().splice(key, first, last, **options)


@fault("journal", "purge_reaches_the_archive")
class PurgesTheWindowOnly(MemoryJournal):
    """`purge` leaves the archive alone."""

    @override
    async def splice(self, *args: Any, purge: bool = False, **options: Any) -> Commit:
        return await super().splice(*args, **options)


class _KeepsTheRequest(Rules):
    @override
    def spliced(self, head: SessionHead, *args: Any, **options: Any) -> SessionHead:
        spliced = super().spliced(head, *args, **options)
        return SessionHead(*spliced[:18], *head[18:])


@fault(
    "journal",
    "clear_begins_anew",
    also=("a_partial_purge_is_no_clear",),
)
class ClearKeepsTheRequest(Ruled):
    """A session that was cleared still tells of its last request."""

    rules = _KeepsTheRequest


class _CountsOn(Rules):
    @override
    def spliced(self, head: SessionHead, *args: Any, **options: Any) -> SessionHead:
        spliced = super().spliced(head, *args, **options)
        return spliced._replace(total=head.total)


@fault("journal", "clear_begins_anew")
class ClearKeepsTheTotal(Ruled):
    """What was ever appended is counted on after everything was cleared."""

    rules = _CountsOn


@fault(
    "journal",
    "splice_keeps_what_is_named",
    also=("splice_refuses_bad_arguments",),
)
class KeepsNothing(MemoryJournal):
    """What a splice was to keep goes with the rest."""

    @override
    async def splice(self, *args: Any, keep: Any = (), **options: Any) -> Commit:
        return await super().splice(*args, **options)


@fault("journal", "update_takes_the_time_told")
class ChangesNow(MemoryJournal):
    """A change was made when it was saved."""

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        return await super().update(key, replace(change, updated_at=None), **options)


class _EverythingCounts(Rules):
    @override
    def updated(self, head: SessionHead, change: Change, now: int) -> SessionHead:
        updated = super().updated(head, change, now)
        return updated._replace(revision=head.revision + bool(change))


@fault(
    "journal",
    "small_changes_keep_the_revision",
    also=("an_empty_update_changes_nothing",),
)
class TouchesCount(Ruled):
    """A touch makes every other handle stale."""

    rules = _EverythingCounts


class _TouchedBack(Rules):
    @override
    def updated(self, head: SessionHead, change: Change, now: int) -> SessionHead:
        updated = super().updated(head, change, now)
        return updated._replace(last_active_at=change.touch or updated.last_active_at)


@fault("journal", "touch_moves_only_activity")
class TouchesBack(Ruled):
    """A touch moves the activity back where its time is earlier."""

    rules = _TouchedBack


@fault("journal", "a_cancelled_update_is_whole_or_absent")
class TearsUpdates(MemoryJournal):
    """The user's state is written in a transaction of its own."""

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        commit = await super().update(key, replace(change, user=None), **options)
        await checkpoint()
        if change.user:
            await self.update_scoped_state(ScopeKey(key.app, key.user), change.user)
        return commit
