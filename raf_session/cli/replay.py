"""Playing conversations and request logs into a store, as an agent would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from anyio.lowlevel import checkpoint

from raf_session.changes import Change
from raf_session.cli.conversations import Conversation
from raf_session.cli.faults import Fault
from raf_session.cli.meter import Meter, Played
from raf_session.cli.request_logs import Request, RequestLog
from raf_session.entries import Entry, Record
from raf_session.errors import (
    EntryConflictError,
    EntryTooLargeError,
    InvalidValueError,
    SessionNotFoundError,
    StaleSessionError,
)
from raf_session.journaled_session import JournaledSession
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage, MessageRole
from raf_session.options import EVERYTHING
from raf_session.stores import SessionStore

__all__ = ("replay",)

Step = Callable[[], object]
"""Called after each step, for whoever shows progress."""

_THE_SOURCE = (
    EntryConflictError,
    EntryTooLargeError,
    InvalidValueError,
    SessionNotFoundError,
    StaleSessionError,
)
"""Errors that are about this conversation, not about the store."""


async def replay(
    store: SessionStore, source: Conversation | RequestLog, step: Step
) -> Played:
    """Play one source; what is stored of it already is measured and not written.

    Raises:
        Fault: the source cannot be read on, or the store holds something else under
            its id; what was played before is stored.
    """
    try:
        session = await store.open_session(source.id, exclusive=True)
        if isinstance(source, RequestLog):
            return await _play_log(session, source, step)
        return await _play_conversation(session, source, step)
    except _THE_SOURCE as error:
        raise Fault(source.place, str(error)) from error


async def _play_conversation(
    session: JournaledSession, source: Conversation, step: Step
) -> Played:
    """Append turn by turn: what the model was told and what it said, in one step.

    The request that lies between is recorded in the same step.
    """
    known = session.messages_now()
    said: list[ChatMessage] = []
    turn: list[ChatMessage] = []
    meter = Meter()
    written = writes = 0

    async def store_turn() -> None:
        nonlocal written, writes
        if turn:
            await session.add_messages_batch(turn)
            written += len(turn)
            writes += 1
            turn.clear()

    try:
        for message in source.messages:
            index = len(said)
            new = index >= len(known)
            if not new and not _same(known[index], message):
                raise _other_messages(source, index)
            answer = message.role is MessageRole.ASSISTANT
            if answer:
                await checkpoint()  # an interrupt may come here
                meter.measure(said)
                if new:
                    session.touch_request_hash(said)
            said.append(message)
            if new:
                turn.append(message)
                if answer:
                    await store_turn()
            step()
    except Fault:
        await store_turn()  # a line that cannot be read; what is before it is stored
        raise
    if len(said) < len(known):
        raise _other_messages(source, len(said))
    await store_turn()
    return Played.of(
        source.id, source.place, len(said), meter, written=written, writes=writes
    )


def _other_messages(source: Conversation, index: int) -> Fault:
    return Fault(
        source.place,
        f"the store holds another session {source.id!r}: its messages[{index}] differs",
    )


def _same(one: ChatMessage, other: ChatMessage) -> bool:
    # Exactly: Python says 1 == 1.0 == True, JSON does not.
    return one is other or (
        one.id == other.id and dump_json(one.wire()) == dump_json(other.wire())
    )


# Request logs --------------------------------------------------------------------


async def _play_log(
    session: JournaledSession, source: RequestLog, step: Step
) -> Played:
    """Bring the session to each request, in one step together with its record."""
    record = await session.journal.load(session.key)
    player = _LogPlayer(session, record)
    for request in source.requests[player.reached(source) :]:
        await checkpoint()
        await player.bring(request)
        step()
    length = len(source.requests[-1].messages) if source.requests else 0
    return Played.of(
        source.id,
        source.place,
        length,
        source.meter,
        written=player.written,
        writes=player.writes,
    )


class _LogPlayer:
    """A stored session that follows a log."""

    def __init__(self, session: JournaledSession, record: Record) -> None:
        self.written = 0
        self.writes = 0
        self._journal = session.journal
        self._key = session.key
        self._head = record.head
        self._seqs = [e.seq for e in record.entries]
        self._messages = [e.message for e in record.entries if e.message is not None]
        self._request = record.request

    def reached(self, source: RequestLog) -> int:
        """Return how many of the requests are stored already.

        Raises:
            Fault: the session was never brought to one of them.
        """
        if not self._seqs and self._request is None:
            return 0
        for count in range(len(source.requests), 0, -1):
            request = source.requests[count - 1]
            if request.record == self._request and self._holds(request.messages):
                return count
        raise Fault(
            source.place,
            f"the store holds another session {source.id!r}: it stands at none of "
            "these requests",
        )

    def _holds(self, messages: Sequence[ChatMessage]) -> bool:
        return len(messages) == len(self._seqs) == len(self._messages) and len(
            messages
        ) == _common(self._messages, messages)

    async def bring(self, request: Request) -> None:
        """Make the session hold the messages of this request, and its record.

        A repeated request is a no-op.
        """
        messages, record = request
        stored = self._messages
        common = _common(stored, messages)
        entries = [Entry.of(m, str(m.id)) for m in messages[common:]]
        if not entries and common == len(stored) and record == self._request:
            return
        change = Change(
            request=None if record is None else record.after(self._request),
            touch=self._journal.clock(),
        )
        revision, incarnation = self._head.revision, self._head.incarnation
        freed = len(stored) - common
        if freed:
            commit = await self._journal.splice(
                self._key,
                self._seqs[common],
                EVERYTHING,
                entries[:freed],
                tail=entries[freed:],
                archive=False,
                change=change,
                expected_revision=revision,
                incarnation=incarnation,
            )
        elif entries:
            commit = await self._journal.append(
                self._key,
                entries,
                change=change,
                expected_revision=revision,
                incarnation=incarnation,
            )
        else:
            commit = await self._journal.update(
                self._key, change, expected_revision=revision, incarnation=incarnation
            )
        self._head = commit.head
        self._seqs[common:] = [entry.seq for entry in commit.entries]
        self._messages[common:] = messages[common:]
        self._request = record
        self.written += len(entries)
        self.writes += 1


def _common(one: Sequence[ChatMessage], other: Sequence[ChatMessage]) -> int:
    """Return how many messages both begin with."""
    count = 0
    for left, right in zip_longest(one, other):
        if left is None or right is None or not _same(left, right):
            break
        count += 1
    return count
