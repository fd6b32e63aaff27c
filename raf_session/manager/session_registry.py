"""`SessionRegistry`: the sessions of a manager, found, made, listed and removed."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self, TypeAlias

import anyio

from raf_session.changes import Change, LabelDelta, SessionStatus
from raf_session.entries import Record
from raf_session.errors import InvalidValueError, SessionNotFoundError
from raf_session.journal import Journal
from raf_session.journaled_session import read_or_create
from raf_session.key_paths import (
    SessionScope,
    check_agent_key,
    enum_member,
    format_agent_key,
    parse_agent_key,
)
from raf_session.keys import SessionKey
from raf_session.manager.arguments import check_config, check_counter, check_journal
from raf_session.manager.config import AgentsConfig
from raf_session.manager.listing import SessionFilter, SessionList, list_page
from raf_session.manager.managed_session import ManagedSession
from raf_session.manager.records import SessionMeta, SessionState
from raf_session.manager.requests import SessionRequest
from raf_session.manager.session_cache import SessionCache
from raf_session.stores.keeper import JournalKeeper
from raf_session.stores.sweeper import Sweeper
from raf_session.tokens import EstimatingTokenCounter, TokenCounter

__all__ = ("SessionRef", "SessionRegistry", "key_of", "not_found")

SessionRef: TypeAlias = ManagedSession | SessionKey | str
"""A session: live, by its key, or by the document's text of the key."""


class SessionRegistry:
    """The half of `SessionManager` that knows nothing of messages."""

    def __init__(
        self,
        journal: Journal,
        config: AgentsConfig | None,
        counter: TokenCounter | None,
        *,
        owns_journal: bool,
    ) -> None:
        check_journal(journal)
        self.config: Final = AgentsConfig() if config is None else check_config(config)
        self.counter: Final = (
            EstimatingTokenCounter() if counter is None else check_counter(counter)
        )
        _check_limits(self.config, journal)
        self._keeper = JournalKeeper(journal, owned=owns_journal)
        self._cache = SessionCache()

    @property
    def journal(self) -> Journal:
        """Where sessions are kept."""
        return self._keeper.journal

    @property
    def _enabled(self) -> bool:
        return self.config.session.enabled

    # Sessions --------------------------------------------------------------------

    async def get_or_create(self, request: SessionRequest) -> ManagedSession:
        """Return the live session, up to date, made if missing or expired.

        Of parallel first calls one makes it, and all get the same stored session.

        Raises:
            InvalidValueError: a field that its scope names is missing or no name.
            TypeError: it is no request.
        """
        if not isinstance(request, SessionRequest):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"expected a SessionRequest, not {request!r:.100}; `get` takes a key"
            )
        key = request.key(self.config.session.default_scope)
        if not self._enabled:
            return await self._unstored(key)
        journal = await self._keeper.get()
        held = await self._held(key)
        if held is not None:
            return held
        record = await read_or_create(journal, key, ManagedSession.session_type)
        return await self._hold(self._bound(journal, record))

    async def get(self, key: SessionRef) -> ManagedSession | None:
        """Return the live session, up to date; `None`: missing or expired.

        Raises:
            InvalidValueError: it is no key of an agent's session.
            TypeError: it is no key at all.
        """
        name = key_of(key)
        if not self._enabled:
            return None
        journal = await self._keeper.get()
        held = await self._held(name)
        if held is not None:
            return held
        try:
            record = await journal.load(name)
        except SessionNotFoundError:
            return None
        return await self._hold(self._bound(journal, record))

    async def _held(self, key: SessionKey) -> ManagedSession | None:
        """Return the session that is held, up to date, if it is there still."""
        held = self._cache.get(key)
        if held is None:
            return None
        try:
            await held.refresh()
        except SessionNotFoundError:
            self._cache.remove(held)
            return None
        return held

    async def _hold(self, session: ManagedSession) -> ManagedSession:
        """Hold a session that was just read, unless it is held already."""
        held = await self._cache.add(session)
        if held.head.incarnation == session.head.incarnation:
            return held
        return await self._held(session.key) or await self._hold(session)

    async def _unstored(self, key: SessionKey) -> ManagedSession:
        from raf_session.journals.memory import MemoryJournal

        journal = MemoryJournal.opened(clock=self.journal.clock)
        record = await read_or_create(journal, key, ManagedSession.session_type)
        return self._bound(journal, record)

    def _bound(self, journal: Journal, record: Record) -> ManagedSession:
        return ManagedSession(
            journal,
            record,
            counter=self.counter,
            save_tool_calls=self.config.tool_calls.save_tool_calls,
            saved=self._saved,
        )

    async def _find(self, key: SessionRef) -> ManagedSession | None:
        """Return the live session; `None`: sessions are off, and there is none.

        Raises:
            SessionNotFoundError: missing or expired.
        """
        if isinstance(key, ManagedSession):
            return key
        session = await self.get(key)
        if session is None and self._enabled:
            raise not_found(key)
        return session

    async def update(
        self,
        key: SessionRef,
        *,
        title: str | None = None,
        model: str | None = None,
        state: SessionState | str | None = None,
        pinned: bool | None = None,
        add_labels: Iterable[str] = (),
        remove_labels: Iterable[str] = (),
    ) -> SessionMeta:
        """Alter what is named, and return what the session is then; no activity.

        A pinned session does not expire.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
            InvalidValueError: there is no such state, or it is idle, which is computed.
        """
        change = Change(
            title=title,
            model=model,
            labels=LabelDelta(add_labels, remove_labels) or None,
            pin=pinned,
            status=None if state is None else _status(state),
        )
        session = await self._find(key)
        if session is None:
            raise not_found(key)
        await session.alter(change)
        return session.meta

    async def delete(self, key: SessionRef) -> bool:
        """Remove a session with its archive; tell whether there was one."""
        name = key_of(key)
        if isinstance(key, ManagedSession):
            gone = await key.journal.delete(name, incarnation=key.head.incarnation)
            self._cache.remove(key)
            return gone
        if not self._enabled:
            return False
        gone = await (await self._keeper.get()).delete(name)
        held = self._cache.get(name)
        if held is not None:
            self._cache.remove(held)
        return gone

    async def list(
        self,
        *,
        agent_id: str | None = None,
        channel: str | None = None,
        scope: SessionScope | str | None = None,
        user_id: str | None = None,
        state: SessionState | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SessionList:
        """List sessions, last active first, a page at a time; refreshes nothing.

        A page is one scan whatever it holds, and reads no messages: `compacted_summary`
        is empty there, `meta` has it.  By channel or scope alone, and by state, a page
        may be short, even empty: the end is where its cursor is `None`.

        Raises:
            ValueError: `limit` under 1, or a cursor of no listing; no such scope or
                state.
        """
        wanted = SessionFilter(
            agent_id,
            channel,
            None if scope is None else enum_member(SessionScope, scope, "scope"),
            user_id,
            None if state is None else enum_member(SessionState, state, "state"),
        )
        if not self._enabled:
            return SessionList((), None)
        return await list_page(await self._keeper.get(), wanted, cursor, limit)

    async def meta(self, key: SessionRef) -> SessionMeta | None:
        """Return the metadata with the summary's text; `None`: missing or expired."""
        session = await self.get(key)
        return None if session is None else session.meta

    async def cleanup_expired(self) -> int:
        """Remove what has expired, and return how many sessions that were."""
        if not self._enabled:
            return 0
        gone = await Sweeper(await self._keeper.get()).sweep()
        for key in gone:
            held = self._cache.get(key)
            if held is not None:
                self._cache.remove(held)
        return len(gone)

    # Life ------------------------------------------------------------------------

    async def close(self) -> None:
        """Store the requests that are recorded, and close what is owned; idempotent."""
        try:
            with anyio.CancelScope(shield=True):
                await self._cache.clear()
        finally:
            await self._keeper.close()

    async def __aenter__(self) -> Self:
        """Open the journal, and start the sweep where anything can expire."""
        if self._enabled:
            await self._keeper.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Close the manager."""
        await self.close()

    async def _saved(self, session: ManagedSession) -> None:
        """Called after each save of a session."""


def key_of(ref: SessionRef) -> SessionKey:
    """Return the key of a session.

    Raises:
        InvalidValueError: it is no key of an agent's session.
        TypeError: it is no key at all.
    """
    if isinstance(ref, ManagedSession):
        return ref.key
    if not isinstance(ref, str | SessionKey):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"expected a session, its key or the key's text, not {ref!r:.100}"
        )
    key = parse_agent_key(ref) if isinstance(ref, str) else ref
    check_agent_key(key)
    return key


def not_found(ref: SessionRef, reason: str = "missing") -> SessionNotFoundError:
    """Return the error that names a session as the document writes its key."""
    return SessionNotFoundError(format_agent_key(key_of(ref)), reason)


def _status(state: SessionState | str) -> SessionStatus:
    found = enum_member(SessionState, state, "state")
    if found is SessionState.IDLE:
        known = ", ".join(s for s in SessionState if s is not found)
        reason = f"'{found}' is computed, not set; expected one of {known}"
        raise InvalidValueError("state", reason)
    return SessionStatus(found.value)


def _check_limits(config: AgentsConfig, journal: Journal) -> None:
    session = config.session
    wanted, given = session.limits.sessions, journal.limits.sessions
    named = {"ttl", "idle_timeout"} & session.model_fields_set
    if (
        named
        and session.enabled
        and (
            (wanted.max_idle_secs, wanted.max_lifetime_secs)
            != (given.max_idle_secs, given.max_lifetime_secs)
        )
    ):
        raise ValueError(
            "ttl and idle_timeout are not those of the journal, which decides: open it "
            "with limits=config.session.limits"
        )
