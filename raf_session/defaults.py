"""What a session gets for free: one mixin a concern."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar, cast

from typing_extensions import Protocol

from raf_session.changes import RequestRecord
from raf_session.clock import UNIX_EPOCH, utc_now
from raf_session.errors import SnapshotUnavailableError
from raf_session.frozen import EMPTY, STATE_DEPTH, FrozenDict, FrozenJson, freeze
from raf_session.keys import check_name
from raf_session.messages import ChatMessage
from raf_session.metadata import (
    ProviderStateStore,
    SessionMetadata,
    SessionSnapshot,
    provider_states,
)
from raf_session.prefix import FORMAT_VERSION, PrefixMatch, PrefixTracker
from raf_session.session import SessionCore

__all__ = (
    "BatchDefaults",
    "ProviderStateDefaults",
    "ReadDefaults",
    "RequestDefaults",
    "TimeDefaults",
)

_T = TypeVar("_T")


class Suspended(Exception):  # noqa: N818  (a signal, not a fault)
    """An awaitable could not finish without an event loop."""


def run_now(awaitable: Awaitable[_T]) -> _T:
    """Return the result of an awaitable that has no need to wait.

    Raises:
        Suspended: it waits, or asks for an event loop; it has been closed.
    """
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as done:
        return cast("_T", done.value)
    except RuntimeError as error:  # how asyncio, trio and anyio say "no event loop"
        raise Suspended from error
    close = getattr(steps, "close", None)
    if close is not None:
        close()
    raise Suspended


class BatchDefaults:
    """`add_messages_batch` for a session that cannot do better."""

    async def add_messages_batch(
        self: SessionCore, messages: Sequence[ChatMessage], /
    ) -> None:
        """Append messages in order.

        *Default:* one `add_message` each, so a failure leaves a prefix behind.
        *Override* to write all or none.
        """
        for message in messages:
            await self.add_message(message)


class ReadDefaults:
    """What the sync members read."""

    def messages_now(self: SessionCore) -> Sequence[ChatMessage]:
        """Return the messages without waiting.

        *Default:* runs `get_messages` one step, which is enough where it does no I/O.
        *Override* in a session that does: with what the last awaited call left behind.

        Raises:
            SnapshotUnavailableError: `get_messages` waits.
        """
        try:
            return run_now(self.get_messages())
        except Suspended as error:
            raise SnapshotUnavailableError(type(self).__name__) from error

    def get_message_count(self: Readable) -> int:
        """Return the number of messages.

        *Default:* counts `messages_now`.  *Override* where a count is at hand.
        """
        return len(self.messages_now())


class ProviderStateDefaults:
    """Provider states in an attribute that is made on first use."""

    _provider_states: FrozenDict[FrozenJson] = EMPTY

    @property
    def provider_states(self) -> ProviderStateStore:
        """Every provider's state, frozen."""
        return provider_states(self._provider_states)

    def get_provider_state(self, provider_name: str, /) -> FrozenJson:
        """Return the frozen state of a provider, `None` where there is none."""
        return self._provider_states.get(provider_name)

    def set_provider_state(self, provider_name: str, state: Any, /) -> None:
        """Keep a frozen copy of a JSON value for a provider."""
        name = check_name(provider_name, "provider_name")
        states = {**self._provider_states, name: freeze(state, name, STATE_DEPTH)}
        self._provider_states = FrozenDict(states)


class RequestDefaults:
    """Prefix tracking by a tracker that is made on first use."""

    _tracker: PrefixTracker | None = None
    _told_hash: int | None = None  # of a request whose messages are not known

    def restore_request(self, record: RequestRecord | None) -> None:
        """Go on from a stored request.

        Where its digests do not lead to its hash, as in what RAF itself wrote, the
        hash is told as it is, and the next request is compared with nothing.
        """
        self._tracker = None
        self._told_hash = None if record is None else record.hash
        if record is not None and record.format == FORMAT_VERSION:
            with suppress(ValueError):
                self._tracker = PrefixTracker.restore(
                    record.digests, record.header, record.hash
                )

    def touch_request_hash(
        self,
        messages: Sequence[ChatMessage | Mapping[str, Any]],
        /,
        *,
        header: Any = None,
    ) -> None:
        """Record the messages of a request, and its header where one is given.

        Args:
            messages: the whole list that is sent, in order.
            header: model, tools, … as any JSON value; `None`: not told.
        """
        if self._tracker is None:
            self._tracker = PrefixTracker()
        self._tracker.touch(messages, header)

    def get_last_request_hash(self) -> int | None:
        """Return the prefix hash of the last request, `None` before the first."""
        return self._told_hash if self._tracker is None else self._tracker.hash

    @property
    def prefix_match(self) -> PrefixMatch | None:
        """How the last request of this process compared with the one before it."""
        return None if self._tracker is None else self._tracker.last

    @property
    def request_record(self) -> RequestRecord | None:
        """What a store keeps of the last request."""
        if self._tracker is not None:
            return record_of(self._tracker)
        return None if self._told_hash is None else RequestRecord(b"", self._told_hash)


def record_of(tracker: PrefixTracker) -> RequestRecord | None:
    """Return what is kept of a tracker's last request, `None` before the first."""
    last = tracker.hash
    if last is None:
        return None
    return RequestRecord(tracker.digests, last, tracker.header_digest)


class TimeDefaults:
    """Times that are RAF's sentinel until somebody tells better."""

    def now(self) -> datetime:
        """Return the time that `touch_last_active` records; a test may override it."""
        return utc_now()

    _last_active_at: datetime = UNIX_EPOCH

    @property
    def created_at(self) -> datetime:
        """`UNIX_EPOCH`, which exempts from the lifetime limit.

        *Override* with the time at which the session began.
        """
        return UNIX_EPOCH

    @property
    def last_active_at(self) -> datetime:
        """When `touch_last_active` was last called; `UNIX_EPOCH`: never.

        *Override* where `add_message` records activity.
        """
        return self._last_active_at

    async def touch_last_active(self) -> None:
        """Move `last_active_at` to now, never back."""
        self._last_active_at = max(self._last_active_at, self.now())


class Readable(SessionCore, Protocol):
    """What the derived members need."""

    @abstractmethod
    def messages_now(self) -> Sequence[ChatMessage]: ...
    @abstractmethod
    def get_message_count(self) -> int: ...
    @abstractmethod
    def get_last_request_hash(self) -> int | None: ...
    @abstractmethod
    def metadata(self) -> SessionMetadata: ...
    @abstractmethod
    def snapshot(self) -> SessionSnapshot: ...
    @property
    @abstractmethod
    def created_at(self) -> datetime: ...
    @property
    @abstractmethod
    def last_active_at(self) -> datetime: ...
