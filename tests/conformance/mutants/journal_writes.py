"""Journals that append wrongly."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from raf_session.changes import Change
from raf_session.entries import Entry
from raf_session.errors import SessionNotFoundError
from raf_session.journal import Commit
from raf_session.journals._rules import user_scope
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession


@fault(
    "journal",
    "a_cancelled_append_is_whole_or_absent",
    wide="answer, revision and conflicts of every longer batch differ",
)
class TearsBatches(MemoryJournal):
    """A batch is stored one by one."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries[:1], **options)
        stored = list(commit.entries)
        for entry in entries[1:]:
            await checkpoint()
            commit = await super().append(key, [entry], trim=options.get("trim"))
            stored += commit.entries
        return commit._replace(entries=tuple(stored))


@fault(
    "journal",
    "a_late_write_revives_nothing",
    machine=True,
)
class RevivesSessions(MemoryJournal):
    """An append to a session that is gone makes it anew."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        try:
            return await super().append(key, entries, **options)
        except SessionNotFoundError as error:
            if error.reason != "missing":
                raise
            change = options.get("change")
            return await self.create(NewSession(key=key), entries, change=change)


@fault("journal", "an_archived_id_is_known")
class ForgetsArchivedIds(MemoryJournal):
    """Only active ids are known."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        session = self._sessions.get(key)
        if session is not None:
            session.by_id = {row.id: row for row in session.active}
        return await super().append(key, entries, **options)


@fault("journal", "a_stale_incarnation_touches_nothing")
class AcceptsAnyIncarnation(MemoryJournal):
    """The incarnation is not looked at."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        options["incarnation"] = None
        return await super().append(key, entries, **options)


@fault(
    "journal",
    "one_of_equal_revisions_wins",
    also=("append_checks_the_revision",),
    machine=True,
)
class AcceptsAnyRevision(MemoryJournal):
    """The expected revision is not looked at."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        options["expected_revision"] = None
        return await super().append(key, entries, **options)


@fault("journal", "append_checks_in_order")
class ChecksRevisionFirst(MemoryJournal):
    """A retry under its old revision is called stale."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        revision = options.get("expected_revision")
        await self.update(key, Change(), expected_revision=revision)
        return await super().append(key, entries, **options)


@fault(
    "journal",
    "append_commits_its_change",
    wide="every append that is refused leaves the user's state behind",
)
class WritesScopesFirst(MemoryJournal):
    """The user's state is written before the append is known to succeed."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change | None = options.get("change")
        if change is not None and change.user is not None:
            await self.update_scoped_state(user_scope(key), change.user)
        return await super().append(key, entries, **options)


@fault("journal", "append_leaves_the_description")
class OverwritesTitles(MemoryJournal):
    """An append writes the head that was read when the session was opened."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change = options.get("change") or Change()
        options["change"] = replace(change, title=change.title or "")
        return await super().append(key, entries, **options)


@fault("journal", "append_reports_what_is_stored")
class AnswersWithOldTimes(MemoryJournal):
    """The answer tells when the session was changed before."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        before = (await self.load(key)).head.updated_at
        commit = await super().append(key, entries, **options)
        return commit._replace(head=commit.head._replace(updated_at=before))


@fault("journal", "trim_archives_the_oldest")
class TrimsForGood(MemoryJournal):
    """What `trim` takes out of the window is deleted."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        if options.get("trim") is not None:
            self._sessions[key].archive.clear()
        return commit


@fault("journal", "trim_to_nothing_archives_all")
class TrimToNothingIsNoTrim(MemoryJournal):
    """A window of 0 is no window."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        options["trim"] = options.get("trim") or None
        return await super().append(key, entries, **options)


@fault("journal", "a_repeated_append_changes_nothing")
class CountsRepeatsAsActivity(MemoryJournal):
    """A repeated append moves last_active_at."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        if commit.repeated:
            await self.update(key, Change(touch=self.clock()))
        return commit


@fault(
    "journal",
    "another_body_conflicts",
    also=("null_and_absent_content_differ", "an_edit_keeps_its_id"),
)
class ComparesIdsAlone(MemoryJournal):
    """A known id is a repetition, whatever its body."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        record = await self.load(key, archived=True)
        stored = {e.id: e for e in (*record.archived, *record.entries)}
        known = [stored.get(entry.id, entry).plain for entry in entries]
        return await super().append(key, known, **options)


@fault("journal", "a_partly_known_batch_conflicts")
class StoresTheRest(MemoryJournal):
    """Of a batch that is known in part the rest is stored."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        session = self._sessions.get(key)
        known = set(session.by_id) if session else set()
        new = [entry for entry in entries if entry.id not in known]
        return await super().append(key, new or entries, **options)


@fault("journal", "a_follower_misses_nothing")
class DrawsPlacesEarly(MemoryJournal):
    """A place is drawn before it is the turn of its entry to be stored."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        active = self._sessions[key].active
        if commit.head.last_seq % 3 == 0 and len(entries) == 1 and not options:
            row = active.pop()
            await checkpoint()
            await checkpoint()
            insort(active, row)
        return commit


@fault("journal", "what_is_given_stays_the_callers")
class KeepsTheCallersList(MemoryJournal):
    """What the caller adds to the list after the call is stored with the next read."""

    _given: tuple[SessionKey, Sequence[Entry], int] | None = None

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        self._given = (key, entries, len(entries))
        return await super().append(key, entries, **options)

    @override
    async def load(self, key: SessionKey, *args: Any, **options: Any) -> Any:
        if self._given and self._given[0] == key:
            later = self._given[1][self._given[2] :]
            if later:
                await self.append(key, later)
        return await super().load(key, *args, **options)
