"""`ReplicaSession`: what a live session shows of a stored one, and holds back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from typing_extensions import override

from raf_session.changes import NO_CHANGE, Change, RequestRecord, StateDelta
from raf_session.clock import Clock
from raf_session.entries import Record, SessionHead, raw_tuple
from raf_session.errors import SessionNotFoundError
from raf_session.frozen import FrozenDict, FrozenJson
from raf_session.journal import Commit
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.session_view import (
    MessageLog,
    SessionView,
    ViewSession,
    log_of,
    view_of,
)

__all__ = ("Pending", "ReplicaSession")

_NO_STATE: Final = StateDelta()


class Pending(NamedTuple):
    """What a write carries that sync setters left for it."""

    providers: StateDelta
    requested: bool
    """Whether a request was recorded."""
    request: RequestRecord | None
    """It, unless the write clears it anyway."""
    change: Change
    """What stores it; `NO_CHANGE` where there is nothing to store."""

    def went_back(self, known: SessionHead, commit: Commit) -> bool:
        """Tell whether the storage has lost what was there when the write began.

        A failover to a replica that lacked it does that.
        """
        grows = not commit.repeated and bool(commit.entries or self.providers)
        return commit.head.revision < known.revision + grows


_NOTHING: Final = Pending(_NO_STATE, requested=False, request=None, change=NO_CHANGE)


class ReplicaSession(ViewSession):
    """The half of a live session that waits for nothing.

    It publishes what the journal was last seen to hold, with what is pending on top.
    """

    def __init__(self, record: Record, *, clock: Clock) -> None:
        """Show a whole record that was just read."""
        self._providers = _NO_STATE  # pending, as is the request where `_requested`
        self._requested = False
        self._stored_request = record.request
        self._head = record.head
        super().__init__(
            record.head.key.session, view_of(record), record.request, clock=clock
        )

    @property
    def key(self) -> SessionKey:
        """The key under which the journal keeps it."""
        return self._head.key

    @property
    def head(self) -> SessionHead:
        """What the last awaited call left behind."""
        return self._head

    @property
    def dirty(self) -> bool:
        """Whether something waits for the next write."""
        return self._requested or bool(self._providers)

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

    def _take_pending(self, *, clears: bool) -> Pending:
        """Return what is pending, which a write is going to store."""
        if not self._requested and self._providers is _NO_STATE:
            return _NOTHING
        with self._lock:
            providers, requested = self._providers, self._requested
            self._providers, self._requested = _NO_STATE, False
            request = self.request_record if requested and not clears else None
            delta = None if request is None else request.after(self._stored_request)
            change = NO_CHANGE
            if providers or delta is not None:
                change = Change(providers=providers or None, request=delta)
            return Pending(providers, requested, request, change)

    def _put_back(self, pending: Pending) -> None:
        """Let what a write did not store be pending again."""
        if pending is not _NOTHING:
            with self._lock:
                self._providers = pending.providers.then(self._providers)
                self._requested = self._requested or pending.requested

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

    # The replica -----------------------------------------------------------------

    def _follows(
        self, commit: Commit, pending: Pending, known: SessionHead, *, clears: bool
    ) -> bool:
        """Take over what a write did, unless others wrote in between: `False`.

        Args:
            commit: what the journal says of it.
            pending: what it carried.
            known: what was known when it began.
            clears: whether it was a clear.
        """
        with self._lock:
            seen = self._head
            head, entries, repeated = commit
            revision = head.revision
            if clears:
                self.restore_request(None)
                self._stored_request = None
            elif pending.request is not None:
                self._stored_request = pending.request
            if revision <= known.revision and pending.went_back(known, commit):
                return False
            if revision < seen.revision:
                return True  # a refresh was faster
            stored = self._stored_request
            stated = pending is not _NOTHING and bool(pending.providers)
            grown = revision - seen.revision
            if clears:
                spliced = head.spliced_at > seen.spliced_at
                alone = grown == (spliced or stated) and not head.active.entries
            else:
                alone = (
                    not repeated
                    and grown == (bool(entries) or stated)
                    and head.spliced_at == seen.spliced_at
                    and head.last_seq == seen.last_seq + len(entries)
                )
            if not alone or head.request_hash != (stored and stored.hash):
                return False
            log = MessageLog() if clears else self._view.log
            for entry in entries:
                message = entry.message
                if message is not None:
                    log.add(message, entry.id)
            self._show(head, log)
            return True

    def _take(self, record: Record, known: SessionHead, *, whole: bool) -> bool:
        """Take over what was read; `False` where it does not fit and is too old.

        Args:
            record: what was read.
            known: what was known before.
            whole: whether it is all of the session.
        """
        with self._lock:
            seen, head = self._head, record.head
            if head.incarnation != seen.incarnation:
                raise SessionNotFoundError(head.key, "replaced")
            if head.revision < seen.revision and not (whole and seen is known):
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
        kept = self._view[5:]  # the states
        shown = (
            log,
            len(log.messages),
            head.created_at,
            head.updated_at,
            head.last_active_at,
        )
        self._view = raw_tuple(SessionView, shown + kept)
