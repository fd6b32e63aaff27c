"""Journals that begin sessions wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anyio.lowlevel import checkpoint
from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Ruled
from raf_session.changes import Change
from raf_session.clock import UNIX_EPOCH
from raf_session.entries import Entry, SessionHead
from raf_session.journal import Commit
from raf_session.journals._memory_records import MemorySession
from raf_session.journals._rules import Rules, user_scope
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.options import NewSession


@fault(
    "journal",
    "create_of_a_taken_key_changes_nothing",
    machine=True,
)
class CreatesOver(MemoryJournal):
    """An existing session is wiped by `create`."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        await self.delete(new.key)
        return await super().create(new, *args, **options)


@fault("journal", "create_begins_a_session")
class ForgetsTheType(MemoryJournal):
    """The type of the session is not kept."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        return await super().create(replace(new, session_type=""), *args, **options)


@fault("journal", "create_makes_an_empty_session")
class CountsAHeaderLine(MemoryJournal):
    """Where nothing is stored yet, the header takes the first place."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        commit = await super().create(new, *args, **options)
        session = self._sessions[new.key]
        if not (args or options) and new.session_type == "":
            session.head = commit.head._replace(last_seq=1)
        return commit


@fault("journal", "create_keeps_given_times")
class ImportsAsNew(MemoryJournal):
    """A session that was copied here was created when it was copied."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        if new.created_at not in {None, UNIX_EPOCH}:
            new = replace(new, created_at=self.clock())
        return await super().create(new, *args, **options)


@fault(
    "journal",
    "create_keeps_the_epoch",
    also=("sentinels_exempt_from_their_rule",),
)
class EpochIsNone(MemoryJournal):
    """A time of 0 is taken for one that is missing."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        if new.created_at == UNIX_EPOCH:
            new = replace(new, created_at=None)
        if new.last_active_at == UNIX_EPOCH:
            new = replace(new, last_active_at=None)
        return await super().create(new, *args, **options)


@fault("journal", "create_keeps_stored_at")
class RestampsEntries(MemoryJournal):
    """Entries that are copied here are stamped anew."""

    @override
    async def create(
        self, new: NewSession, entries: Sequence[Entry] = (), **options: Any
    ) -> Commit:
        plain = [entry.plain._replace(stored_at=None) for entry in entries]
        return await super().create(new, plain, **options)


@fault("journal", "create_ignores_given_places")
class KeepsGivenPlaces(MemoryJournal):
    """Entries stand where they stood in the journal that they come from."""

    @override
    async def create(
        self, new: NewSession, entries: Sequence[Entry] = (), **options: Any
    ) -> Commit:
        commit = await super().create(new, entries, **options)
        session = self._sessions[new.key]
        for n, entry in enumerate(entries):
            if entry.seq:
                session.active[n] = session.active[n]._replace(seq=entry.seq)
        return commit


@fault("journal", "create_refuses_an_id_twice")
class KeepsTheLastOfTwo(MemoryJournal):
    """Of two entries with one id, `create` keeps the last."""

    @override
    async def create(
        self, new: NewSession, entries: Sequence[Entry] = (), **options: Any
    ) -> Commit:
        once = list({entry.id: entry for entry in entries}.values())
        return await super().create(new, once, **options)


@fault("journal", "request_of_create_keeps_nothing")
class KeepsDigestsOfNothing(MemoryJournal):
    """A new session takes a request that goes on from one it never had."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        change: Change | None = options.get("change")
        if change is not None and change.request is not None:
            request = replace(change.request, keep=0)
            options["change"] = replace(change, request=request)
        return await super().create(new, *args, **options)


@fault("journal", "a_refused_create_removes_nothing")
class RemovesBeforeItCreates(MemoryJournal):
    """An expired session is removed before the new one is known to fit."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        session = self._sessions.get(new.key)
        if session and self._rules.sessions.head_expired(session.head, self._now()):
            self._remove(new.key)
        return await super().create(new, *args, **options)


class _Numbered(Rules):
    @override
    def new_head(self, new: NewSession, *args: Any) -> SessionHead:
        head = super().new_head(new, *args)
        return head._replace(incarnation=str(hash(new.key)))


@fault("journal", "incarnations_differ")
class NamesIncarnationsByKey(Ruled):
    """A session that is made anew under its key is taken for the former one."""

    rules = _Numbered


class _Active(Rules):
    @override
    def new_head(self, new: NewSession, *args: Any) -> SessionHead:
        head = super().new_head(new, *args)
        if head.last_active_at == UNIX_EPOCH:
            return head
        return head._replace(last_active_at=self.clock())


@fault("journal", "old_times_expire_at_once")
class ImportsAreActivity(Ruled):
    """To copy a session here is activity."""

    rules = _Active


@fault("journal", "a_cancelled_create_is_whole_or_absent")
class TearsCreates(MemoryJournal):
    """The session is there before its state is."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        commit = await super().create(new, *args, **options)
        session = self._sessions[new.key]
        state, session.state = session.state, {}
        await checkpoint()
        session.state = state | session.state
        return commit


@fault("journal", "create_takes_an_expired_key")
class ExpiredKeysStayTaken(MemoryJournal):
    """A key is free only when what expired under it was swept."""

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        session = self._sessions.get(new.key)
        if session is not None:
            session.head = session.head._replace(pinned=True)
        return await super().create(new, *args, **options)


@fault(
    "journal",
    "delete_leaves_nothing",
    also=("expire_leaves_nothing",),
)
class DeletesHalf(MemoryJournal):
    """A deleted session leaves its state behind for the next of its key."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._left: dict[SessionKey, MemorySession] = {}

    @override
    def _remove(self, key: SessionKey) -> None:
        self._left[key] = self._sessions[key]
        super()._remove(key)

    @override
    async def create(self, new: NewSession, *args: Any, **options: Any) -> Commit:
        commit = await super().create(new, *args, **options)
        if new.key in self._left:
            self._sessions[new.key].state |= self._left.pop(new.key).state
        return commit


@fault("journal", "scoped_state_needs_no_session")
class DeletesUserState(MemoryJournal):
    """The user's state goes with a session."""

    @override
    async def delete(self, key: SessionKey, **options: Any) -> bool:
        done = await super().delete(key, **options)
        if done:
            self._scopes.pop(user_scope(key), None)
        return done


@fault("journal", "parallel_deletes_have_one_winner")
class DeletesTwice(MemoryJournal):
    """Each of two who delete at once says that it was the one."""

    @override
    async def delete(self, key: SessionKey, **options: Any) -> bool:
        there = key in self._sessions
        await checkpoint()
        return await super().delete(key, **options) or there


@fault("journal", "a_cancelled_delete_is_whole_or_absent")
class TearsDeletes(MemoryJournal):
    """The entries are deleted first, then the session."""

    @override
    async def delete(self, key: SessionKey, **options: Any) -> bool:
        session = self._sessions.get(key)
        if session is not None and not options:
            session.active.clear()
        await checkpoint()
        return await super().delete(key, **options)


@fault("journal", "a_stale_incarnation_touches_nothing")
class DeletesAnyIncarnation(MemoryJournal):
    """A late delete removes the session that was made since."""

    @override
    async def delete(self, key: SessionKey, **_: Any) -> bool:
        return await super().delete(key)
