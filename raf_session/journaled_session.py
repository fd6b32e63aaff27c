"""`JournaledSession`: the trait bound to a journal."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Final, NoReturn, Self

import anyio
from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change, RequestRecord, StateDelta
from raf_session.entries import Entry, Record, SessionHead, new_id
from raf_session.errors import (
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.frozen import FrozenDict, FrozenJson
from raf_session.journal import Commit, Journal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import NewSession, Window
from raf_session.session_view import (
    MessageLog,
    SessionView,
    ViewSession,
    log_of,
    view_of,
)

__all__ = ("JournaledSession",)

EVERYTHING = (1 << 62) - 1
"""A place behind every other."""


class JournaledSession(ViewSession):
    """A session in a journal: when `add_message` returns, the message is stored.

    Awaited members see all that was committed before them, by whomever; sync members
    tell what the last awaited one left behind.  `set_provider_state` and
    `touch_request_hash` show at once and are stored, in one step with it, by the next
    write: `add_message`, a batch, `touch_last_active`, `clear`, `flush` or leaving
    ``async with``.  Where that write fails they stay pending; `dirty` tells.

    Made by `JournaledSession.open` or by a store's `open_session`.
    """

    session_type: ClassVar[str] = "AgentSession"

    def __init__(
        self, journal: Journal, record: Record, *, exclusive: bool = False
    ) -> None:
        """Bind a whole record that was just read; users call `open`."""
        self._providers = _NO_STATE  # pending, as is the request where `_requested`
        self._requested = False
        self._stored_request = record.request
        self._journal = journal
        self._exclusive = exclusive
        self._head = record.head
        super().__init__(
            record.head.key.session,
            view_of(record),
            record.request,
            clock=journal.clock,
        )

    @classmethod
    async def open(
        cls,
        journal: Journal,
        key: SessionKey,
        *,
        session_type: str = "AgentSession",
        exclusive: bool = False,
    ) -> Self:
        """Return the session of this key, made if missing or expired.

        Args:
            journal: an open journal.
            key: the session.
            session_type: the type that a store shall read it back as.
            exclusive: write only on top of what this object has seen: where somebody
                else wrote in between, a write raises `StaleSessionError`.
        """
        while True:  # until nobody deletes it between making and reading it
            try:
                record = await journal.load(key)
            except SessionNotFoundError:
                with suppress(SessionExistsError):  # somebody was faster
                    await journal.create(NewSession(key=key, session_type=session_type))
            else:
                return cls(journal, record, exclusive=exclusive)

    @property
    def key(self) -> SessionKey:
        """The key under which the journal keeps it."""
        return self._head.key

    @property
    def journal(self) -> Journal:
        """The journal that keeps it."""
        return self._journal

    @property
    def head(self) -> SessionHead:
        """What the last awaited call left behind."""
        return self._head

    @property
    def dirty(self) -> bool:
        """Whether something waits for the next write."""
        return self._requested or bool(self._providers)

    # Messages --------------------------------------------------------------------

    @override
    async def add_message(self, message: ChatMessage, /) -> None:
        """Store one message; activity.

        A message that carries an `id` is stored once, so a call whose outcome is not
        known may be repeated.

        Raises:
            EntryConflictError: its id is stored with another message.
            SessionNotFoundError: the session was deleted, replaced or has expired.
            StaleSessionError: `exclusive`, and somebody else wrote.
        """
        await self._append((message,))

    @override
    async def add_messages_batch(self, messages: Sequence[ChatMessage], /) -> None:
        """Store messages in order, all or none; activity, unless there are none.

        Raises:
            EntryConflictError: an id is stored with another message, or only some are.
            SessionNotFoundError: the session was deleted, replaced or has expired.
            StaleSessionError: `exclusive`, and somebody else wrote.
        """
        if messages:
            await self._append(messages)

    async def _append(self, messages: Sequence[ChatMessage]) -> None:
        for message in messages:
            if not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{type(message).__name__} is not a ChatMessage")
        entries = [Entry.of(m, m.id or new_id()) for m in messages]
        await self._write(
            lambda change: self._journal.append(
                self._head.key,
                entries,
                change=change,
                expected_revision=self._expected,
                incarnation=self._head.incarnation,
            )
        )

    @override
    async def get_messages(self) -> list[ChatMessage]:
        """Return all that is stored, in a new list.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        await self.refresh()
        return self._view.messages()

    @override
    async def clear(self) -> None:
        """Erase history, archive, counts and request record in one step; activity.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
            StaleSessionError: `exclusive`, and somebody else wrote.
        """
        await self._write(
            lambda change: self._journal.splice(
                self._head.key,
                1,
                EVERYTHING,
                archive=False,
                purge=True,
                change=replace(change, touch=self._clock(), request=None),
                expected_revision=self._expected,
                incarnation=self._head.incarnation,
            ),
            clears=True,
        )

    @override
    async def touch_last_active(self) -> None:
        """Move `last_active_at` to now, never back, and store what is pending.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        now = self._clock()
        await self._update(lambda change: replace(change, touch=now))

    async def flush(self) -> None:
        """Store what is pending; moves no time of activity.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        if self.dirty:
            await self._update(lambda change: change)

    async def refresh(self) -> None:
        """Read what others wrote; moves no time.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        while True:
            seen = self._head
            record = await self._journal.load(seen.key, Window(after_seq=seen.last_seq))
            whole = record.head.spliced_at != seen.spliced_at
            if whole:
                record = await self._journal.load(seen.key)
            if self._take(record, whole=whole):
                return

    async def __aenter__(self) -> Self:
        """Return the session itself; what is pending is stored at the end."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Store what is pending, in a cancelled block too."""
        with anyio.CancelScope(shield=True):
            await self.flush()

    # Pending ---------------------------------------------------------------------

    @override
    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        """Keep a frozen copy of a JSON value; stored by the next write."""
        delta = StateDelta(set={provider_name: state})
        with self._lock:
            self._providers = self._providers.then(delta)
            states: FrozenDict[FrozenJson] = FrozenDict(
                delta.apply(self._view.providers)
            )
            self._view = self._view._replace(providers=states)

    @override
    def touch_request_hash(
        self,
        messages: Sequence[ChatMessage | Mapping[str, Any]],
        /,
        *,
        header: Any = None,
    ) -> None:
        """Record the messages of a request; stored by the next write."""
        super().touch_request_hash(messages, header=header)
        self._requested = True

    @property
    def _expected(self) -> int | None:
        return self._head.revision if self._exclusive else None

    async def _update(self, also: Callable[[Change], Change]) -> None:
        await self._write(
            lambda change: self._journal.update(
                self._head.key,
                also(change),
                expected_revision=self._expected,
                incarnation=self._head.incarnation,
            )
        )

    async def _write(
        self,
        call: Callable[[Change], Awaitable[Commit]],
        *,
        clears: bool = False,
    ) -> None:
        """Run a write that carries what is pending, and take over what it did.

        Where it fails, what is pending stays so.
        """
        with self._lock:
            providers, requested = self._providers, self._requested
            self._providers, self._requested = _NO_STATE, False
            request = self.request_record if requested and not clears else None
            delta = None if request is None else request.after(self._stored_request)
        try:
            change = NO_CHANGE
            if providers or delta is not None:
                change = Change(providers=providers or None, request=delta)
            try:
                commit = await call(change)
            except StaleSessionError:
                if request is None or delta is None or not delta.keep:
                    raise
                # Another handle stored another request: send this one whole.
                commit = await call(replace(change, request=request.after(None)))
        except BaseException:
            with self._lock:
                self._providers = providers.then(self._providers)
                self._requested = self._requested or requested
            raise
        if not self._follows(commit, request, stated=bool(providers), clears=clears):
            await self.refresh()

    # The replica -----------------------------------------------------------------

    def _follows(
        self,
        commit: Commit,
        request: RequestRecord | None,
        *,
        stated: bool,
        clears: bool,
    ) -> bool:
        """Take over what a write did, unless others wrote in between: `False`.

        Args:
            commit: what the journal says of it.
            request: the request record that it carried.
            stated: whether it carried provider states.
            clears: whether it was a clear.
        """
        with self._lock:
            seen, head = self._head, commit.head
            if clears:
                self.restore_request(None)
                self._stored_request = None
            elif request is not None:
                self._stored_request = request
            if head.revision < seen.revision:
                return True  # a refresh was faster
            stored = self._stored_request
            grown = head.revision - seen.revision
            if clears:
                spliced = head.spliced_at > seen.spliced_at
                alone = grown == (spliced or stated) and not head.active.entries
            else:
                alone = (
                    not commit.repeated
                    and grown == (bool(commit.entries) or stated)
                    and head.spliced_at == seen.spliced_at
                    and head.last_seq == seen.last_seq + len(commit.entries)
                )
            if not alone or head.request_hash != (stored and stored.hash):
                return False
            log = MessageLog() if clears else self._view.log
            for entry in commit.entries:
                if entry.message is not None:
                    log.add(entry.message, entry.id)
            self._show(head, log)
            return True

    def _take(self, record: Record, *, whole: bool) -> bool:
        """Take over what was read; `False` where it does not fit and is too old."""
        with self._lock:
            seen, head = self._head, record.head
            if head.incarnation != seen.incarnation:
                raise SessionNotFoundError(head.key, "replaced")
            if head.revision < seen.revision:
                return True
            log = self._view.log
            if whole:
                log = log_of(record, log)
            elif head.spliced_at != seen.spliced_at:
                return False
            else:
                for entry in record.entries:
                    if entry.message is not None and entry.seq > seen.last_seq:
                        log.add(entry.message, entry.id)
            self._show(head, log)
            self._view = self._view._replace(
                providers=FrozenDict(self._providers.apply(record.provider_states)),
                state=record.state,
            )
            stored = self._stored_request
            if not self._requested and record.request != stored:
                self._stored_request = record.request
                self.restore_request(record.request)
            return True

    def _show(self, head: SessionHead, log: MessageLog) -> None:
        self._head = head
        view = self._view
        self._view = SessionView(
            log,
            len(log.messages),
            head.created_at,
            head.updated_at,
            head.last_active_at,
            view.providers,
            view.state,
        )

    # Not here --------------------------------------------------------------------

    @classmethod
    @override
    def deserialize(cls, data: str, /) -> Self:
        """Raise: a journaled session is opened, not made of text.

        Raises:
            TypeError: always; it names the way.
        """
        raise TypeError(
            "a JournaledSession is opened, not deserialised: use "
            "store.save_session(AgentSession.deserialize(data))"
        )

    @override
    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a JournaledSession is bound to its journal: open another one with "
            "JournaledSession.open, or copy AgentSession.from_snapshot(s.snapshot())"
        )

    def __del__(self) -> None:
        """Warn where something pending is lost."""
        if getattr(self, "_requested", False) or getattr(self, "_providers", None):
            warnings.warn(
                f"session {self.session_id!r} was dropped with provider state or a "
                "request record that no write had stored; call flush()",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )


_NO_STATE: Final = StateDelta()
