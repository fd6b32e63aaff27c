"""Journals that read, list and expire as those did of which users complain."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from typing_extensions import override

from mutants.registry import fault
from mutants.scaffolds import Colliding, Ruled
from raf_session.changes import Change, StateDelta
from raf_session.entries import Record, SessionHead
from raf_session.errors import SessionNotFoundError
from raf_session.expiry import ExpiryRule
from raf_session.frozen import FrozenDict
from raf_session.journal import Commit, Listed, Page, ScopedState
from raf_session.journals._memory_records import MemorySession
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import WHOLE, NewSession, Query, SessionTTLOptions, Window


@fault("journal", "equal_looking_keys_are_distinct", reported=True)
class JoinsKeys(Colliding):
    """App, user and session are joined by a colon that each may hold."""

    @override
    def folded(self, key: SessionKey) -> Hashable:
        return ":".join(key)


@fault("journal", "equal_looking_keys_are_distinct", reported=True)
class TrimsKeys(Colliding):
    """A trailing space does not count, as by the collation of a server."""

    @override
    def folded(self, key: SessionKey) -> Hashable:
        return tuple(part.rstrip() for part in key)


@fault(
    "journal",
    "equal_looking_keys_are_distinct",
    reported=True,
    also=("scoped_state_is_shared",),
)
class SharesUsers(Colliding):
    """A session is found by its id, whoever asks."""

    @override
    def folded(self, key: SessionKey) -> Hashable:
        return key.app, key.session


@fault("journal", "equal_looking_keys_are_distinct", reported=True)
class FileNames(Colliding):
    """Characters that a file name must not have become underscores."""

    @override
    def folded(self, key: SessionKey) -> Hashable:
        return tuple("".join(c if c.isalnum() else "_" for c in p) for p in key)


@fault("journal", "load_reads_the_window", reported=True)
class ReadsDestroy(MemoryJournal):
    """What a window of the last n does not show is deleted."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        if window.last:
            self._sessions[key].active = self._sessions[key].active[-window.last :]
        return record


@fault("journal", "load_reads_the_window", reported=True)
class NothingIsEverything(MemoryJournal):
    """The last 0 entries are all of them."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        window = replace(window, last=window.last or None)
        return await super().load(key, window, **o)


@fault("journal", "load_reads_the_window", reported=True)
class AfterIncludes(MemoryJournal):
    """What is after a place begins with that place."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        if window.after_seq:
            window = replace(window, after_seq=window.after_seq - 1)
        return await super().load(key, window, **o)


@fault("journal", "load_reads_the_window", reported=True)
class AfterIncludesTheMoment(MemoryJournal):
    """What was stored after a moment includes what was stored at it."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        if window.after_time:
            moment = window.after_time - timedelta(microseconds=1)
            window = replace(window, after_time=moment)
        return await super().load(key, window, **o)


@fault("journal", "small_changes_keep_the_revision", reported=True)
class RemembersTheApp(MemoryJournal):
    """A session shows the app state of the time when it was created."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._seen: dict[str, Any] = {}

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        name = record.head.incarnation
        return record._replace(app_state=self._seen.setdefault(name, record.app_state))


@fault("journal", "what_is_read_is_nobodys", reported=True)
class SharesUserState(MemoryJournal):
    """The state of a user that is returned is the one that is kept."""

    @override
    async def scoped_state(self, scope: ScopeKey, **options: Any) -> ScopedState:
        found = await super().scoped_state(scope, **options)
        kept = self._scopes.get(scope)
        return found._replace(state=kept.state) if kept and found.state else found


@fault("journal", "values_come_back_exactly", reported=True)
class TellsTextsOfTruths(MemoryJournal):
    """True and false of a user's state come back as text."""

    @override
    async def scoped_state(self, scope: ScopeKey, **options: Any) -> ScopedState:
        found = await super().scoped_state(scope, **options)
        texts = {k: str(v) if type(v) is bool else v for k, v in found.state.items()}
        return found._replace(state=FrozenDict(texts))


@fault("journal", "scan_reads_state_on_request", reported=True)
class ListsWithoutState(MemoryJournal):
    """A listing that was asked for the state shows it empty."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        page = await super().scan(query, *args, **options)
        if not options.get("state"):
            return page
        empty: FrozenDict[Any] = FrozenDict()
        return page._replace(
            sessions=tuple(listed._replace(state=empty) for listed in page.sessions)
        )


@fault("journal", "filters_are_literal", reported=True)
class MatchesUnderscores(MemoryJournal):
    """An underscore in a user's name stands for any character."""

    @override
    def _matches(self, head: SessionHead, query: Query, now: int) -> bool:
        user = query.user
        if user and "_" in user and len(user) == len(head.key.user):
            pairs = zip(user, head.key.user, strict=True)
            if all(a in {"_", b} for a, b in pairs):
                query = replace(query, user=None)
        return super()._matches(head, query, now)


@fault("journal", "filters_are_literal", reported=True)
class PrefixesUsers(MemoryJournal):
    """The listing of a user begins with the name, so bob sees bobby's sessions."""

    @override
    def _matches(self, head: SessionHead, query: Query, now: int) -> bool:
        if query.user and head.key.user.startswith(query.user):
            query = replace(query, user=None)
        return super()._matches(head, query, now)


class _WholeSeconds(ExpiryRule):
    @override
    def expired(self, created_at: int, last_active_at: int, now: int) -> bool:
        second = 1_000_000
        idle, life = self.max_idle, self.max_lifetime
        return (
            idle is not None and (now - last_active_at) // second > idle // second
        ) or (life is not None and (now - created_at) // second > life // second)


@fault("journal", "expiry_is_strict_to_the_microsecond", reported=True)
class WholeSeconds(Ruled):
    """Ages are cut to whole seconds before they are compared."""

    expiry = _WholeSeconds


@fault("journal", "lifetime_ends_a_busy_session", reported=True)
class BusyForEver(Ruled):
    """Whoever stays active is never measured by the lifetime."""

    @override
    def ttl(self, options: SessionTTLOptions) -> SessionTTLOptions:
        idle = options.max_idle_secs
        return options if idle is None else SessionTTLOptions(max_idle_secs=idle)


@fault("journal", "expiry_is_strict_to_the_microsecond", reported=True)
class ZeroIsOff(Ruled):
    """A limit of 0 is no limit."""

    @override
    def ttl(self, options: SessionTTLOptions) -> SessionTTLOptions:
        return SessionTTLOptions() if options.max_idle_secs == 0 else options


@fault("journal", "a_very_long_limit_expires_nothing", reported=True)
class HugeIsOver(Ruled):
    """A very long limit overflows, and everything has expired."""

    @override
    def ttl(self, options: SessionTTLOptions) -> SessionTTLOptions:
        nanoseconds = (options.max_idle_secs or 0) * 10**9
        over = SessionTTLOptions(max_idle_secs=0)
        return options if nanoseconds < 2**63 else over


@fault("journal", "refresh_moves_only_activity", reported=True)
class SharesActivity(MemoryJournal):
    """What is done to one session keeps all of them alive."""

    @override
    def _find(
        self, key: SessionKey, now: int, incarnation: str | None
    ) -> MemorySession:
        found = super()._find(key, now, incarnation)
        latest = max(s.head.last_active_at for s in self._sessions.values())
        for session in self._sessions.values():
            session.head = session.head._replace(last_active_at=latest)
        return found


@fault(
    "journal",
    "expired_is_invisible_to_every_call",
    reported=True,
    also=("delete_of_an_expired_session_says_no",),
)
class ReadsWakeTheDead(MemoryJournal):
    """To ask for an expired session makes it young again."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        try:
            return await super().load(key, window, **o)
        except SessionNotFoundError as error:
            if error.reason == "expired":
                head = self._sessions[key].head
                head = head._replace(last_active_at=self.clock())
                self._sessions[key].head = head
            raise


@fault("journal", "delete_leaves_nothing", reported=True)
class KeepsOldEntries(MemoryJournal):
    """The entries of a deleted session stand in the next one of its key."""

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
        if new.key in self._left and not commit.entries:
            self._sessions[new.key].active = self._left.pop(new.key).active
        return commit


@fault("journal", "delete_leaves_nothing", reported=True)
class ListsDeleted(MemoryJournal):
    """The index still names a session that was deleted."""

    _gone: tuple[Listed, ...] = ()

    @override
    async def delete(self, key: SessionKey, **options: Any) -> bool:
        session = self._sessions.get(key)
        done = await super().delete(key, **options)
        if done and session is not None:
            self._gone += (Listed(session.head),)
        return done

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        page = await super().scan(query, *args, **options)
        return page._replace(sessions=page.sessions + self._gone)


@fault("journal", "activity_order_is_last_first", reported=True)
class SortsOldestFirst(MemoryJournal):
    """A page of the most active shows the least active first."""

    @override
    async def scan(self, query: Query, *args: Any, **options: Any) -> Page:
        page = await super().scan(query, *args, **options)
        if options.get("order") == "key":
            return page
        return page._replace(sessions=page.sessions[::-1])


@fault("journal", "a_deleted_key_is_no_null", reported=True)
class DropsNulls(MemoryJournal):
    """A key of the state whose value is null is as good as missing."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        state = {k: v for k, v in record.state.items() if v is not None}
        return record._replace(state=FrozenDict(state))


@fault("journal", "values_come_back_exactly", reported=True)
class MixesTrueWithOne(MemoryJournal):
    """True comes back as 1, as from a column of numbers."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        state = {k: 1 if v is True else v for k, v in record.state.items()}
        return record._replace(state=FrozenDict(state))


@fault(
    "journal",
    "create_commits_its_change",
    reported=True,
    also=("request_keeps_the_first_digests",),
)
class ShortHashes(MemoryJournal):
    """The request hash is kept as a signed integer of 64 bits."""

    @override
    async def load(self, key: SessionKey, window: Window = WHOLE, **o: Any) -> Record:
        record = await super().load(key, window, **o)
        if record.request is None or record.request.hash < 2**63:
            return record
        request = replace(record.request, hash=record.request.hash - 2**63)
        return record._replace(request=request)


@fault("journal", "update_touches_only_what_is_named", reported=True)
class ReplacesTheState(MemoryJournal):
    """To set one key of a session's state is to forget the others."""

    @override
    async def update(self, key: SessionKey, change: Change, **options: Any) -> Commit:
        session = self._sessions.get(key)
        if session and change.session:
            others = StateDelta({}, session.state)
            change = replace(change, session=others.then(change.session))
        return await super().update(key, change, **options)
