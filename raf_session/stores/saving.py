"""How a session in memory becomes what is stored: by append, by splice, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from raf_session.changes import Change, RequestDelta, RequestRecord, StateDelta
from raf_session.clock import UNIX_EPOCH
from raf_session.entries import Entry, Record, new_id
from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.frozen import EMPTY
from raf_session.journal import Commit, Journal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.metadata import SessionSnapshot
from raf_session.options import EVERYTHING, NewSession
from raf_session.stores.origins import Attempt, Origin

__all__ = ("UNKNOWN_FIELDS", "Saver", "settle")

UNSEEN: Final = -1
"""A revision that is never the stored one."""

NOTHING: Final = Origin(
    SessionKey(session="-"), "", UNSEEN, (), (), (), EMPTY, EMPTY, None
)
"""What a session goes on from that is new."""


class _Step(NamedTuple):
    """The messages from `first` on differ from those that are stored."""

    first: int
    entries: list[Entry]
    cleared: bool


class Saver:
    """One save of one snapshot.

    Args:
        journal: where to.
        key: under which key.
        snapshot: what to store.
    """

    def __init__(
        self, journal: Journal, key: SessionKey, snapshot: SessionSnapshot
    ) -> None:
        self._journal = journal
        self._key = key
        self._snapshot = snapshot
        self._state = state_of(snapshot)
        self.attempt: Attempt | None = None
        """The write that was begun, and not refused."""
        ids = snapshot.entry_ids or (None,) * len(snapshot.messages)
        self._given_ids = [
            entry_id or message.id
            for entry_id, message in zip(ids, snapshot.messages, strict=True)
        ]

    async def create(self, session_type: str) -> Origin:
        """Store a session that is new.

        Raises:
            SessionExistsError: it is not.
        """
        snapshot = self._snapshot
        metadata = snapshot.metadata
        new = NewSession(
            key=self._key,
            session_type=session_type,
            created_at=metadata.created_at,
            updated_at=metadata.updated_at,
            last_active_at=snapshot.last_active_at or metadata.created_at,
        )
        step = _Step(0, self._entries_from(0), cleared=False)
        nothing = NOTHING._replace(key=self._key)
        self._begin(nothing, step)
        commit = await self._journal.create(
            new, step.entries, change=self._change(None, cleared=False)
        )
        return self._next(nothing, step, commit, alone=True)

    async def onto(self, origin: Origin) -> Origin:
        """Store what is new since the origin, and return the origin of the next save.

        New messages at the end are appended, whatever others appended meanwhile;
        anything else is spliced under the revision that the session has seen.

        Raises:
            StaleSessionError: messages were edited or removed here, and others wrote.
            SessionNotFoundError: the session is gone or another one.
        """
        step = self._step(origin)
        change = self._change(origin, cleared=step.cleared)
        self._begin(origin, step)
        try:
            commit = await self._write(origin, step, change)
        except StaleSessionError:
            if change.request is None or not change.request.keep:
                raise
            # Another handle stored another request: send this one whole.
            change = replace(change, request=self._request(None))
            commit = await self._write(origin, step, change)
        alone = commit.head.revision == origin.revision + (
            bool(commit.entries) or step.first < len(origin.messages) or change.counts
        )
        return self._next(origin, step, commit, alone=alone)

    def _begin(self, origin: Origin, step: _Step) -> None:
        self.attempt = Attempt(
            origin, step.first, step.entries, self._snapshot.messages
        )

    async def _write(self, origin: Origin, step: _Step, change: Change) -> Commit:
        journal, key, incarnation = self._journal, self._key, origin.incarnation
        stored = len(origin.messages)
        if step.first < stored:
            freed = stored - step.first
            return await journal.splice(
                key,
                origin.seqs[step.first] if step.first else 1,
                EVERYTHING,
                step.entries[:freed],
                tail=step.entries[freed:],
                archive=False,
                purge=step.cleared,
                change=change,
                expected_revision=origin.revision,
                incarnation=incarnation,
            )
        if step.entries:
            return await journal.append(
                key, step.entries, change=change, incarnation=incarnation
            )
        return await journal.update(key, change, incarnation=incarnation)

    def _step(self, origin: Origin) -> _Step:
        """Find the first message that is not the stored one."""
        first = 0
        messages = self._snapshot.messages
        for now, then in zip(messages, origin.messages, strict=False):
            if now is not then and not self._same(first, now, then, origin):
                break
            first += 1
        # Nothing of what is stored came back: the session was cleared.
        cleared = not first and not set(origin.ids).intersection(self._given_ids)
        return _Step(first, self._entries_from(first), cleared)

    def _same(
        self, index: int, now: ChatMessage, then: ChatMessage, origin: Origin
    ) -> bool:
        # Rebuilt since, as a session does that keeps no objects.  Where both have an
        # id it decides which message this is; the place does where they have none.
        given = self._given_ids[index]
        return (given is None or given == origin.ids[index]) and now == then

    def _entries_from(self, first: int) -> list[Entry]:
        messages = self._snapshot.messages
        return [
            Entry.of(messages[i], self._given_ids[i] or new_id())
            for i in range(first, len(messages))
        ]

    def _change(self, origin: Origin | None, *, cleared: bool) -> Change:
        snapshot = self._snapshot
        states = snapshot.provider_states.states
        if origin is None:
            return Change(
                providers=_delta(states, {}),
                session=_delta(self._state, {}),
                request=self._request(None),
            )
        updated = snapshot.metadata.updated_at
        return Change(
            providers=_delta(states, origin.provider_states),
            session=_delta(self._state, origin.state),
            request=self._request(None if cleared else origin.request),
            # Always, or the time of the save would stand for that of the message.
            touch=snapshot.last_active_at or UNIX_EPOCH,
            updated_at=None if updated == UNIX_EPOCH else updated,
        )

    def _request(self, former: RequestRecord | None) -> RequestDelta | None:
        request = self._snapshot.last_request()
        if request is None or request == former:
            return None
        return request.after(former)

    def _next(
        self, origin: Origin, step: _Step, commit: Commit, *, alone: bool
    ) -> Origin:
        snapshot = self._snapshot
        return Origin(
            origin.key,
            commit.head.incarnation,
            # Where others wrote too, the session has not seen what is stored now.
            commit.head.revision if alone else UNSEEN,
            snapshot.messages,
            [*origin.seqs[: step.first], *(entry.seq for entry in commit.entries)],
            [*origin.ids[: step.first], *(entry.id for entry in commit.entries)],
            snapshot.provider_states.states,
            self._state,
            snapshot.last_request() or origin.request,
        )

    # A session whose origin is not known ------------------------------------------

    def extends(self, record: Record) -> bool:
        """Tell whether the stored messages are the first ones of this session, by id.

        Never by content without an id: two people may each have said "ok".
        """
        stored = Origin.of(record)
        if len(stored.messages) > len(self._snapshot.messages):
            return False
        pairs = zip_longest(
            stored.ids, stored.messages, self._given_ids[: len(stored.ids)]
        )
        return all(
            given == entry_id and self._snapshot.messages[i] == message
            for i, (entry_id, message, given) in enumerate(pairs)
        )


def settle(attempt: Attempt, record: Record) -> Origin:
    """Return what a session goes on from, whose last save may have been stored.

    Raises:
        SessionNotFoundError: the stored session is another one.
        StaleSessionError: it holds neither what it held before nor what was saved.
    """
    before, head = attempt.origin, record.head
    if before.incarnation and before.incarnation != head.incarnation:
        raise SessionNotFoundError(head.key, "replaced")
    stored = {entry.id: entry.seq for entry in record.entries if entry.message}
    first, entries = attempt.first, attempt.entries
    if entries:
        done = entries[0].id in stored
    else:
        done = first == len(before.ids) or before.ids[first] not in stored
    ids: Sequence[str] = before.ids
    if done:
        ids = [*ids[:first], *(entry.id for entry in entries)]
    if not stored.keys() >= set(ids):
        raise StaleSessionError(head.key, before.revision, head.revision)
    return Origin(
        head.key,
        head.incarnation,
        head.revision if len(ids) == len(stored) else UNSEEN,
        attempt.messages if done else before.messages,
        [stored[name] for name in ids],
        ids,
        record.provider_states,
        record.state,
        record.request,
    )


UNKNOWN_FIELDS: Final = "raf_session:unknown_fields"
"""The name in the session's state for fields of the JSON that we do not know."""


def state_of(snapshot: SessionSnapshot) -> Mapping[str, Any]:
    """Return the state to be stored: the session's, and the fields we do not know."""
    unknown = {"session": snapshot.extra, "metadata": snapshot.metadata.extra}
    if not any(unknown.values()):
        return snapshot.state
    return {**snapshot.state, UNKNOWN_FIELDS: unknown}


def _delta(now: Mapping[str, Any], then: Mapping[str, Any]) -> StateDelta | None:
    """Return what turns one state into the other, `None` where they are the same."""
    if now is then:
        return None
    changed = {
        name: value
        for name, value in now.items()
        if name not in then or repr(value) != repr(then[name])
    }
    return StateDelta(set=changed, deleted=then.keys() - now.keys()) or None
