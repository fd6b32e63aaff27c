"""Journals that write as those did of which users complain."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Bodied
from raf_session.changes import Change
from raf_session.encoding import BodyFormat
from raf_session.entries import Entry
from raf_session.errors import EntryTooLargeError, SessionNotFoundError
from raf_session.journal import Commit
from raf_session.journals._memory_records import MemorySession
from raf_session.journals._rules import user_scope
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import NewSession


@fault(
    "journal",
    "appends_without_revision_commute",
    reported=True,
    also=("parallel_retries_store_once",),
)
class RewritesTheSession(MemoryJournal):
    """The whole session is read, and written back with what is new in it."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        before = deepcopy(self._sessions.get(key))
        await checkpoint()
        if before is not None and key in self._sessions:
            self._sessions[key] = before
        return await super().append(key, entries, **options)


@fault("journal", "equal_messages_are_kept_apart", reported=True)
class DropsRepeatedTexts(MemoryJournal):
    """A message that says what was said before is taken for a repetition."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        record = await self.load(key)
        said = {entry.message: entry.id for entry in record.entries if entry.message}
        again = [said.get(entry.message) for entry in entries if entry.message]
        if None not in again and again and entries[0].id not in again:
            return Commit(record.head, tuple(entries), repeated=True)
        return await super().append(key, entries, **options)


@fault("journal", "append_to_a_missing_session_raises", reported=True)
class LosesLateAppends(MemoryJournal):
    """An append to a session that was deleted is dropped without a word."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        try:
            return await super().append(key, entries, **options)
        except SessionNotFoundError as error:
            if error.reason != "missing":
                raise
            head = self._rules.new_head(NewSession(key=key), [], [], Change(), 1)
            return Commit(head, tuple(entries))


@fault("journal", "the_callers_time_decides_nothing", reported=True)
class OrdersByTheCallersTime(MemoryJournal):
    """Events stand in the order of the timestamps that came with them."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        ordered = sorted(entries, key=lambda entry: entry.timestamp or 0.0)
        commit = await super().append(key, ordered, **options)
        by_id = {entry.id: entry for entry in commit.entries}
        return commit._replace(entries=tuple(by_id[entry.id] for entry in entries))


@fault("journal", "the_callers_time_decides_nothing", reported=True)
class BelievesTheCallersTime(MemoryJournal):
    """A message from the future keeps its session alive until then."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change = options.get("change") or Change()
        told = [e.message.created_at for e in entries if e.message]
        if told and told[-1]:
            options["change"] = replace(change, touch=told[-1])
        return await super().append(key, entries, **options)


@fault("journal", "append_keeps_the_order", reported=True)
class SwapsBatches(MemoryJournal):
    """What was stored at the same time is ordered by its random id."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        entries = sorted(entries, key=lambda entry: entry.id)
        return await super().append(key, entries, **options)


@fault("journal", "too_large_is_refused_before_storing", reported=True)
class StoresWhatFits(MemoryJournal):
    """A batch in which one entry is too large is stored without it, up to there."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        try:
            return await super().append(key, entries, **options)
        except EntryTooLargeError as error:
            fit = [entry for entry in entries if entry.id != error.entry_id]
            await super().append(key, fit, **options)
            raise


@fault(
    "journal",
    "append_commits_its_change",
    reported=True,
    wide="an append that sets a user's first key fails",
)
class NeedsTheScopesRow(MemoryJournal):
    """Where the user has no state yet, an append with some fails."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        change: Change | None = options.get("change")
        if change and change.user and user_scope(key) not in self._scopes:
            raise SessionNotFoundError(key, "missing")
        return await super().append(key, entries, **options)


@fault("journal", "a_deleted_key_is_no_null", reported=True)
class KeepsTheOldestState(MemoryJournal):
    """A key of the user's that has a value already keeps it."""

    @override
    def _apply(self, session: MemorySession, change: Change, now: int) -> None:
        kept = self._scopes.get(user_scope(session.head.key))
        before = dict(kept.state) if kept else {}
        super()._apply(session, change, now)
        if kept and change.user:
            kept.state.update(before)


@fault("journal", "a_repeated_append_changes_nothing", reported=True)
class AppliesRepeatsTwice(MemoryJournal):
    """A repeated append applies its change again."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        if commit.repeated and options.get("change"):
            self._apply(self._sessions[key], options["change"], self._now())
        return commit


@fault("journal", "places_are_never_drawn_twice", reported=True)
class NumbersByCount(MemoryJournal):
    """The next place is the number of entries."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        session = self._sessions.get(key)
        if session is not None:
            n = len(session.active) + len(session.archive)
            session.head = session.head._replace(last_seq=n)
        return await super().append(key, entries, **options)


@fault(
    "journal",
    "append_moves_times_as_told",
    reported=True,
    also=("activity_keeps_a_session",),
)
class AppendsWithoutActivity(MemoryJournal):
    """Only an append that changes state too keeps the session alive."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        before = (await self.load(key)).head.last_active_at
        commit = await super().append(key, entries, **options)
        if options.get("change") or commit.repeated:
            return commit
        head = commit.head._replace(last_active_at=before)
        self._sessions[key].head = head
        return commit._replace(head=head)


@fault("journal", "writes_touch_no_scope_unnamed", reported=True)
class TouchesTheApp(MemoryJournal):
    """Each append writes the rows of user and app, which are not concerned."""

    @override
    async def append(
        self, key: SessionKey, entries: Sequence[Entry], **options: Any
    ) -> Commit:
        commit = await super().append(key, entries, **options)
        for scope in (user_scope(key), ScopeKey(key.app)):
            if scope in self._scopes:
                self._scopes[scope].last_active_at = self._now()
        return commit


@fault(
    "journal",
    "parallel_creators_have_one_winner",
    reported=True,
    also=("two_handles_have_one_creator",),
)
class CreatesTwice(MemoryJournal):
    """Two who create at once both see that nothing is there, and both win."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        taken = new.key in self._sessions
        await checkpoint()
        if not taken and new.key in self._sessions:
            self._remove(new.key)
        return await super().create(new, *args, **options)


@fault("journal", "create_of_a_taken_key_changes_nothing", reported=True)
class MergesOnCreate(MemoryJournal):
    """To create what exists merges the state into it."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        session = self._sessions.get(new.key)
        if session and not self._rules.sessions.head_expired(session.head, self._now()):
            return await self.update(new.key, options.get("change") or Change())
        return await super().create(new, *args, **options)


@fault("journal", "a_late_write_revives_nothing", reported=True)
class UpdatesWhatIsGone(MemoryJournal):
    """An update of a session that was deleted brings it back, empty."""

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        if key not in self._sessions:
            await self.create(NewSession(key=key))
        return await super().update(key, change, **options)


class _Narrow(BodyFormat):
    @override
    def encode(self, entry: Entry) -> str:
        return "".join(c if ord(c) < 65536 else "?" for c in super().encode(entry))


@fault("journal", "text_comes_back_exactly", reported=True)
class NarrowCharacters(Bodied):
    """An emoji is stored as a question mark, as by a narrow character set."""

    bodies = _Narrow


class _Recoded(BodyFormat):
    @override
    def encode(self, entry: Entry) -> str:
        return super().encode(entry).replace("e\u0301", "\u00e9")


@fault("journal", "text_comes_back_exactly", reported=True)
class ComposesAccents(Bodied):
    """Text is normalised on its way."""

    bodies = _Recoded
