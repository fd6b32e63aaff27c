"""`SessionStore`: RAF's store trait over any journal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from copy import copy
from types import TracebackType
from typing import Any, Self, cast
from weakref import WeakSet

import anyio
from typing_extensions import override

from raf_session.agent_session import AgentSession
from raf_session.base_session import restore_session, take_snapshot
from raf_session.clock import UNIX_EPOCH
from raf_session.entries import Record
from raf_session.errors import (
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
    UnknownSessionTypeError,
)
from raf_session.frozen import EMPTY
from raf_session.journal import Journal, Order, Page
from raf_session.journaled_session import JournaledSession
from raf_session.keys import SessionKey, check_name
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot
from raf_session.options import Query
from raf_session.session import SessionCore
from raf_session.session_view import ViewSession
from raf_session.store import ISessionStore
from raf_session.stores.origins import Attempt, Known, Origin, Origins
from raf_session.stores.saving import UNKNOWN_FIELDS, Saver, settle
from raf_session.stores.sweeper import Sweeper

__all__ = ("SessionStore",)

DEFAULT_TYPES: tuple[type[Any], ...] = (AgentSession,)


class SessionStore(ISessionStore):
    """Keeps sessions in a journal. RAF: ``ISessionStore``.

    Inside ``async with`` expired sessions are swept at `cleanup_interval_secs`, where
    the journal's limits let anything expire.  A journal that the caller opened stays
    open.

    Args:
        journal: where sessions are kept; its limits and its clock decide.
        types: the classes that may be saved and are read back, each under its
            `session_type` or the name of the class.
    """

    def __init__(
        self, journal: Journal, *, types: Sequence[type[Any]] = DEFAULT_TYPES
    ) -> None:
        self.journal = journal
        self._types = {type_name(cls): cls for cls in types}
        if len(self._types) < len(types):
            raise ValueError("two of the types have the same name")
        self._origins = Origins()
        self._sweeper = Sweeper(journal)
        self._stack = AsyncExitStack()
        self._live: WeakSet[JournaledSession] = WeakSet()
        self._user = ""

    def for_user(self, user: str) -> SessionStore:
        """Return a store of one user's sessions in the same journal.

        It shares types, memory and sweep with this one, and is not opened or closed.
        """
        scoped = copy(self)
        scoped._user = check_name(user, "user")  # noqa: SLF001  (our own copy)
        return scoped

    async def __aenter__(self) -> Self:
        """Start the sweep."""
        async with AsyncExitStack() as stack:
            await self._open(stack)
            await stack.enter_async_context(self._sweeper)
            self._stack = stack.pop_all()
        return self

    async def _open(self, stack: AsyncExitStack) -> None:
        """Open what the store owns; nothing here."""

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Store what live sessions left pending, stop the sweep, and close.

        Raises:
            SessionError: what is pending in a session cannot be stored, as in an
                exclusive one where somebody else wrote; what is in the others is
                stored, and the store closed. An `ExceptionGroup` where it is several.
        """
        try:
            with anyio.CancelScope(shield=True):
                await self._flush_live()
        finally:
            await self._stack.__aexit__(exc_type, exc, traceback)

    async def _flush_live(self) -> None:
        errors: list[Exception] = []
        for session in list(self._live):
            try:
                await session.flush()
            except SessionNotFoundError:
                continue  # deleted, and so is what was pending
            except Exception as error:  # noqa: BLE001  (raised below)
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup("live sessions could not be stored", errors)

    def key(self, session_id: str) -> SessionKey:
        """Return the key under which the journal keeps a session."""
        return SessionKey(user=self._user, session=session_id)

    # Saving ----------------------------------------------------------------------

    @override
    async def save_session(
        self, session: SessionCore, /, *, overwrite: bool = False
    ) -> None:
        """Store the session as it is now.

        Costs what is new: a message that was stored before costs an identity test.  A
        session that this store has neither loaded nor saved costs one read of what is
        stored under its id.

        Args:
            session: any object with the members of `SessionCore`.
            overwrite: replace what is stored where it is not what the session goes
                on from, instead of raising.

        Raises:
            StaleSessionError: what is stored is not what the session goes on from.
            SessionNotFoundError: the stored session that it was read from is gone.
            UnknownSessionTypeError: the type was not given to the store.
        """
        if isinstance(session, JournaledSession):
            await session.flush()
            await session.refresh()  # raises where it is gone
            if session.journal is self.journal and session.key == self.key(
                session.session_id
            ):
                return
        session_type = self._known_type(type(session))
        key = self.key(session.session_id)
        async with self._origins.turn(session):
            snapshot = await take_snapshot(session)
            if UNIX_EPOCH in {snapshot.metadata.created_at, snapshot.last_active_at}:
                self._sweeper.sentinel_types.add(session_type)
            saver = Saver(self.journal, key, snapshot)
            known = self._origins.get(session, key)
            try:
                origin = await self._save(saver, key, known, session_type, overwrite)
            except (StaleSessionError, SessionNotFoundError):
                raise  # refused: what is known is as it was
            except BaseException:
                if saver.attempt is not None:
                    self._origins.remember(session, saver.attempt)
                raise
            self._origins.remember(session, origin)

    async def _save(
        self,
        saver: Saver,
        key: SessionKey,
        known: Known | None,
        session_type: str,
        overwrite: bool,
    ) -> Origin:
        try:
            if isinstance(known, Attempt):
                known = await self._settled(key, known)
            if known is not None:
                return await saver.onto(known)
            return await self._first_save(saver, key, session_type)
        except (StaleSessionError, SessionNotFoundError):
            if not overwrite:
                raise
        while True:
            record = await self._load(key)
            if record is not None:
                return await saver.onto(Origin.of(record))
            with suppress(SessionExistsError):  # somebody was faster
                return await saver.create(session_type)

    async def _settled(self, key: SessionKey, attempt: Attempt) -> Origin | None:
        """Look what became of a save whose end is not known."""
        record = await self._load(key)
        if record is not None:
            return settle(attempt, record)
        if attempt.origin.incarnation:
            raise SessionNotFoundError(key)
        return None

    async def _first_save(
        self, saver: Saver, key: SessionKey, session_type: str
    ) -> Origin:
        while True:
            record = await self._load(key)
            if record is None:
                with suppress(SessionExistsError):  # somebody was faster
                    return await saver.create(session_type)
            elif saver.extends(record):
                return await saver.onto(Origin.of(record))
            else:
                raise StaleSessionError(
                    key,
                    None,
                    record.head.revision,
                    "it holds messages that this object was not read from; "
                    "overwrite=True replaces them",
                )

    def _known_type(self, cls: type[Any]) -> str:
        name = type_name(cls)
        known = self._types.get(name)
        if known is not cls and not (known and cls is JournaledSession):
            raise UnknownSessionTypeError(cls.__name__, tuple(self._types))
        return name

    # Reading ---------------------------------------------------------------------

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        """Return an independent copy, of the type that was saved.

        `None` where there is none or it expired.  Moves no time.

        Raises:
            UnknownSessionTypeError: the type was not given to the store.
        """
        record = await self._load(self.key(session_id))
        if record is None:
            return None
        cls = self._types.get(record.head.session_type)
        if cls is None:
            raise UnknownSessionTypeError(record.head.session_type, tuple(self._types))
        session = await restore_session(cls, snapshot_of(record))
        if isinstance(session, ViewSession):
            session.use_clock(self.journal.clock)
        self._origins.remember(session, Origin.of(record))
        return session

    async def open_session(
        self, session_id: str, *, exclusive: bool = False
    ) -> JournaledSession:
        """Return the live session, made if missing: messages are stored at once.

        Provider state and request record are stored with the next message, by
        `flush`, or when the session or the store is left.

        Args:
            session_id: the id.
            exclusive: write only on top of what this object has seen; where somebody
                else wrote in between, a write raises `StaleSessionError` and stores
                nothing, until `refresh` or `get_messages` has read what they wrote.
        """
        session = await JournaledSession.open(
            self.journal, self.key(session_id), exclusive=exclusive
        )
        self._live.add(session)
        return session

    async def list_sessions(
        self,
        *,
        cursor: str | None = None,
        limit: int = 100,
        order: Order = "activity",
    ) -> Page:
        """Return a page of heads, last active first; reads no messages, moves no time.

        Args:
            cursor: where the page before ended.
            limit: the most on one page.
            order: ``activity``, or ``key`` where nothing may be missed.
        """
        query = Query(app="", user=self._user, scope="")
        return await self.journal.scan(query, cursor, order=order, limit=limit)

    async def _load(self, key: SessionKey) -> Record | None:
        try:
            return await self.journal.load(key)
        except SessionNotFoundError:
            return None

    # Removing --------------------------------------------------------------------

    @override
    async def delete_session(self, session_id: str, /) -> None:
        """Remove a session and everything of it; a missing one is fine."""
        await self.journal.delete(self.key(session_id))

    @override
    async def cleanup_expired(self) -> int:
        """Remove what has expired and return how many sessions that were.

        A store of one user's counts that user's, and removes all.
        """
        gone = await self._sweeper.sweep()
        return sum(not self._user or key.user == self._user for key in gone)


def type_name(cls: type[Any]) -> str:
    """Return the name under which a store keeps a session type."""
    return getattr(cls, "session_type", "") or cls.__name__


def snapshot_of(record: Record) -> SessionSnapshot:
    """Return the snapshot of a session that was just read."""
    head = record.head
    spoken = [entry for entry in record.entries if entry.message is not None]
    state = dict(record.state)
    unknown = state.pop(UNKNOWN_FIELDS, EMPTY)
    return SessionSnapshot(
        session_id=head.key.session,
        metadata=SessionMetadata(
            created_at=head.created_at,
            updated_at=head.updated_at,
            message_count=len(spoken),
            last_request_hash=head.request_hash,
            extra=unknown.get("metadata", EMPTY),
        ),
        messages=tuple(cast("Any", entry.message) for entry in spoken),
        provider_states=ProviderStateStore(states=record.provider_states),
        last_active_at=head.last_active_at,
        request=record.request,
        entry_ids=tuple(
            None if entry.message and entry.message.id == entry.id else entry.id
            for entry in spoken
        ),
        state=state,
        extra=unknown.get("session", EMPTY),
    )
