"""`JournaledSession`: the trait bound to a journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, Final, NoReturn, Self, TypeAlias

import anyio
from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change
from raf_session.entries import Entry, Record, new_id
from raf_session.errors import (
    SessionExistsError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journal import Commit, Journal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import EVERYTHING, WHOLE, NewSession, Window
from raf_session.session_replica import ReplicaSession
from raf_session.turns import Turn

__all__ = ("JournaledSession", "check_messages", "read_or_create")

_TRIES: Final = 100
_Call: TypeAlias = Callable[[Change], Awaitable[Commit]]
_Also: TypeAlias = Callable[[Change], Change]


def check_messages(messages: Sequence[object]) -> None:
    """Raise `TypeError` where one of these is no `ChatMessage`."""
    for message in messages:
        if not isinstance(message, ChatMessage):
            raise _no_message(message)


def _no_message(value: object) -> TypeError:
    return TypeError(f"{type(value).__name__} is not a ChatMessage")


async def read_or_create(
    journal: Journal, key: SessionKey, session_type: str
) -> Record:
    """Return the whole session of this key, made if missing or expired.

    Of parallel callers one makes it.

    Raises:
        SessionNotFoundError: it expires at once, or somebody deletes it all the time.
    """
    for _ in range(_TRIES):
        with suppress(SessionNotFoundError):
            return await journal.load(key)
        with suppress(SessionExistsError):  # somebody was faster
            await journal.create(NewSession(key=key, session_type=session_type))
    return await journal.load(key)


class JournaledSession(ReplicaSession):
    """A session in a journal: when `add_message` returns, the message is stored.

    Awaited members see all that was committed before them, by whomever; sync members
    tell what the last awaited one left behind.  `set_provider_state` and
    `touch_request_hash` show at once and are stored, in one step with it, by the next
    write: `add_message`, a batch, `touch_last_active`, `clear`, `flush` or leaving
    ``async with``.  Where that write fails they stay pending; `dirty` tells.

    An **exclusive** session writes only on top of what it has seen, so that two runs of
    one session cannot mix their calls and results: where somebody else has written
    since, a write raises `StaleSessionError` and stores nothing.  It has seen what it
    wrote, messages included whose call was cancelled or lost its answer, and what
    `refresh` or `get_messages` read; after one of these it may go on,
    and what is pending goes with its next write.  Writes that are made through it at
    the same time take their turns.

    Made by `JournaledSession.open` or by a store's `open_session`.
    """

    session_type: ClassVar[str] = "AgentSession"

    def __init__(
        self, journal: Journal, record: Record, *, exclusive: bool = False
    ) -> None:
        """Bind a whole record that was just read; users call `open`."""
        self._journal = journal
        self._turn = Turn() if exclusive else None
        self._seen = record.head
        self._doubtful: list[str] = []
        super().__init__(record, clock=journal.clock)

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
        record = await read_or_create(journal, key, session_type)
        return cls(journal, record, exclusive=exclusive)

    @property
    def journal(self) -> Journal:
        """The journal that keeps it."""
        return self._journal

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

    def _append(self, messages: Sequence[ChatMessage]) -> Awaitable[None]:
        entries: list[Entry] = []
        for message in messages:
            if not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise _no_message(message)
            entries.append(Entry.of(message, message.id or new_id()))
        return self._append_entries(entries)

    def _append_entries(
        self, entries: Sequence[Entry], also: _Also | None = None
    ) -> Awaitable[None]:
        """Store entries, with what is pending and what `also` adds to that."""

        def call(change: Change) -> Awaitable[Commit]:
            head = self._head
            return self._journal.append(
                head.key,
                entries,
                change=change if also is None else also(change),
                expected_revision=None if self._turn is None else self._seen.revision,
                incarnation=head.incarnation,
            )

        if self._turn is None:
            return self._write_all(call)
        return self._write_in_turn(self._turn, call, entries)

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
            StaleSessionError: `exclusive`, and somebody else wrote.
        """
        now = self._clock()
        await self._update(lambda change: replace(change, touch=now))

    async def flush(self) -> None:
        """Store what is pending; moves no time of activity.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
            StaleSessionError: `exclusive`, and somebody else wrote.
        """
        if self.dirty:
            await self._update()

    async def refresh(self) -> None:
        """Read what others wrote; moves no time.

        An exclusive session may write on top of it from now on.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        await self._read()
        self._seen = self._head

    async def _read(self, *, whole: bool = False) -> None:
        while True:
            known = self._head
            window = WHOLE if whole else Window(after_seq=known.last_seq)
            record = await self._journal.load(known.key, window)
            head = record.head
            if not whole and (
                head.spliced_at != known.spliced_at or head.revision < known.revision
            ):
                whole = True
            elif self._take(record, known, whole=whole):
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

    # Writing ---------------------------------------------------------------------

    @property
    def _expected(self) -> int | None:
        return None if self._turn is None else self._seen.revision

    async def _update(self, also: _Also | None = None) -> None:
        await self._write(self._updating(also))

    def _updating(self, also: _Also | None = None) -> _Call:
        return lambda change: self._journal.update(
            self._head.key,
            change if also is None else also(change),
            expected_revision=self._expected,
            incarnation=self._head.incarnation,
        )

    def _write(self, call: _Call, *, clears: bool = False) -> Awaitable[None]:
        if self._turn is None:
            return self._write_all(call, clears=clears)
        return self._write_in_turn(self._turn, call, clears=clears)

    async def _write_in_turn(
        self,
        turn: Turn,
        call: _Call,
        entries: Sequence[Entry] = (),
        *,
        clears: bool = False,
    ) -> None:
        async with turn.taken():
            await self._settle()
            try:
                await self._write_all(call, clears=clears)
            except StaleSessionError:
                raise
            except BaseException:
                self._doubtful = [entry.id for entry in entries]
                raise

    async def _settle(self) -> None:
        """Count an append as seen whose outcome is not known, where it was stored.

        One that was cancelled, or lost its answer, may have been.
        """
        if not self._doubtful:
            return
        seen = self._seen
        record = await self._journal.load(seen.key, Window(after_seq=seen.last_seq))
        head = record.head
        if (
            head.revision == seen.revision + 1
            and head.spliced_at == seen.spliced_at
            and [entry.id for entry in record.entries] == self._doubtful
        ):
            self._seen = head
        self._doubtful = []

    async def _write_all(self, call: _Call, *, clears: bool = False) -> None:
        """Run a write that carries what is pending, and take over what it did.

        Where it fails, what is pending stays so.

        Args:
            call: the write.
            clears: whether it erases the history.
        """
        known = self._head
        pending = self._take_pending(clears=clears)
        change = pending.change
        try:
            try:
                commit = await call(change)
            except StaleSessionError:
                request = pending.request
                if request is None or change.request is None or not change.request.keep:
                    raise
                # Another handle stored another request: send this one whole.
                commit = await call(replace(change, request=request.after(None)))
        except BaseException:
            self._put_back(pending)
            raise
        if self._turn is not None:
            self._see(commit)
        if change is not NO_CHANGE and commit.repeated:
            # The entries were stored already; what is pending was not.
            self._put_back(pending)
            await self._read()
            await self._write_all(self._updating())
        elif not self._follows(commit, pending, known, clears=clears):
            await self._read(whole=pending.went_back(known, commit))

    def _see(self, commit: Commit) -> None:
        """Count a commit as seen, where only writes of this session led to it."""
        if commit.head.revision > self._seen.revision and self._own(commit):
            self._seen = commit.head

    def _own(self, commit: Commit) -> bool:
        """Tell whether nothing but this session's writes led to this commit.

        A repeated one may be a write of its own whose answer was lost.
        """
        seen, head = self._seen, commit.head
        return not commit.repeated or (
            head.revision == seen.revision + 1
            and head.spliced_at == seen.spliced_at
            and [entry.seq for entry in commit.entries]
            == list(range(seen.last_seq + 1, head.last_seq + 1))
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
