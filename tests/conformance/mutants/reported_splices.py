"""Journals that rewrite histories as those did of which users complain."""

from __future__ import annotations

from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Ruled
from raf_session.changes import Change
from raf_session.entries import Counts, SessionHead
from raf_session.journal import Commit
from raf_session.journals._rules import Rules
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey


@fault(
    "journal",
    "splice_takes_places_that_exist",
    reported=True,
    also=("times_stay_in_order",),
)
class ReversesRewrites(MemoryJournal):
    """What stands behind a deleted entry comes back in reverse."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        commit = await super().splice(key, *args, **options)
        active = self._sessions[key].active
        later = [row for row in active if row.seq > args[1]]
        if later:
            active[-len(later) :] = reversed(later)
        return commit


@fault("journal", "splice_removes_without_archive", reported=True)
class RefusesToBeEmpty(MemoryJournal):
    """The last entry of a session cannot be taken away."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        commit = await super().splice(key, *args, **options)
        if commit.head.active == Counts() and not options.get("purge"):
            raise IndexError("the first of an empty list")
        return commit


@fault(
    "journal",
    "appends_survive_a_splice",
    reported=True,
    also=("splice_appends_its_tail", "a_repeated_splice_changes_nothing"),
)
class SummarisesWhatCameLater(MemoryJournal):
    """A summary replaces everything, entries that came while it was written too."""

    @override
    async def splice(
        self, key: SessionKey, first: int, last: int, *args: Any, **options: Any
    ) -> Commit:
        if options["archive"] and args and key in self._sessions:
            last = max(last, self._sessions[key].head.last_seq)
        return await super().splice(key, first, last, *args, **options)


@fault(
    "journal",
    "a_cancelled_splice_is_whole_or_absent",
    reported=True,
    also=("parallel_splices_happen_once",),
)
class TearsSplices(MemoryJournal):
    """What leaves is gone before what replaces it is there."""

    @override
    async def splice(
        self, key: SessionKey, first: int, last: int, *args: Any, **options: Any
    ) -> Commit:
        commit = await super().splice(key, first, last, *args, **options)
        session = self._sessions[key]
        rows, session.active = session.active, session.active[:0]
        await checkpoint()
        session.active = rows
        return commit


@fault("journal", "splice_replaces_a_run", reported=True)
class ArchivesNothing(MemoryJournal):
    """What was compacted is gone, although it was to be archived."""

    @override
    async def splice(self, key: SessionKey, *args: Any, **options: Any) -> Commit:
        commit = await super().splice(key, *args, **options)
        if options["archive"] and commit.entries:
            self._sessions[key].archive.clear()
        return commit


class _KeptCounts(Rules):
    @override
    def spliced(self, head: SessionHead, *args: Any, **options: Any) -> SessionHead:
        return super().spliced(head, *args, **options)._replace(active=head.active)


@fault(
    "journal",
    "splice_recounts_the_window",
    reported=True,
    also=("counts_follow_the_window",),
    machine=True,
)
class KeepsCounting(Ruled):
    """After a compaction the session counts as long as before."""

    rules = _KeptCounts


class _Zeroed(Rules):
    @override
    def updated(self, head: SessionHead, change: Change, now: int) -> SessionHead:
        return super().updated(head, change, now)._replace(active=Counts())


@fault(
    "journal",
    "update_touches_only_what_is_named",
    reported=True,
    also=("a_splice_of_nothing_is_no_op",),
)
class ForgetsCounts(Ruled):
    """A change of the description sets the counts to zero."""

    rules = _Zeroed
