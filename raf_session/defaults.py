"""What a session gets for free: one mixin a concern, and `BaseSession` of them all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Self, TypeVar, cast
from uuid import uuid4

from typing_extensions import Protocol, override

from raf_session.changes import RequestRecord
from raf_session.clock import UNIX_EPOCH, utc_now
from raf_session.errors import InvalidValueError, SnapshotUnavailableError
from raf_session.frozen import EMPTY, STATE_DEPTH, FrozenDict, FrozenJson, freeze
from raf_session.json_text import dump_json, load_json
from raf_session.keys import check_name
from raf_session.messages import ChatMessage
from raf_session.metadata import (
    ProviderStateStore,
    SessionMetadata,
    SessionSnapshot,
    provider_states,
)
from raf_session.prefix import FORMAT_VERSION, PrefixMatch, PrefixTracker
from raf_session.raf_json import snapshot_from_raf, snapshot_to_raf
from raf_session.session import ISession, SessionCore

__all__ = (
    "BaseSession",
    "BatchDefaults",
    "MetadataDefaults",
    "ProviderStateDefaults",
    "ReadDefaults",
    "RequestDefaults",
    "SerializeDefaults",
    "TimeDefaults",
    "make_snapshot",
    "restore_session",
    "take_snapshot",
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

    def get_message_count(self: _Readable) -> int:
        """Return the number of messages.

        *Default:* counts `messages_now`.  *Override* where a count is at hand.
        """
        return len(self.messages_now())


class MetadataDefaults:
    """`metadata` and `snapshot` of what the other members tell."""

    def metadata(self: _Readable) -> SessionMetadata:
        """Return times, count and request hash.

        *Default:* derived; `updated_at` is `last_active_at`, the best that is known.
        *Override* where the session keeps the time of its last change.
        """
        return SessionMetadata(
            created_at=self.created_at,
            updated_at=self.last_active_at,
            message_count=self.get_message_count(),
            last_request_hash=self.get_last_request_hash(),
        )

    def snapshot(self: _Readable) -> SessionSnapshot:
        """Return the whole session.

        *Default:* put together member by member, so it is of one moment only where
        nothing else runs in between.  *Override* where other threads write.
        """
        return make_snapshot(self, self.messages_now(), self.metadata())


class SerializeDefaults:
    """`serialize` and `deserialize` by way of the snapshot."""

    def serialize(self: _Readable) -> str:
        """Return the JSON of `snapshot`, which RAF reads."""
        return dump_json(snapshot_to_raf(self.snapshot()))

    @classmethod
    def deserialize(cls, data: str, /) -> Self:
        """Return a session of the JSON that `serialize` or RAF wrote.

        *Default:* ``cls.from_snapshot(snapshot)`` where the class has one, else
        ``cls(session_id)`` and its own methods.  *Override* where these wait.

        Raises:
            InvalidValueError: the text is no session, with the path to the fault.
            SchemaVersionError: a newer library wrote it.
            SnapshotUnavailableError: the class's methods wait.
        """
        snapshot = read_snapshot(data)
        try:
            return cast("Self", run_now(restore_session(cls, snapshot)))
        except Suspended as error:
            raise SnapshotUnavailableError(cls.__name__, "from_snapshot") from error


def read_snapshot(data: str) -> SessionSnapshot:
    """Return the snapshot of serialised JSON text; see `ISession.deserialize`."""
    try:
        value = load_json(data)
    except ValueError as error:
        raise InvalidValueError("", f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidValueError("", "a serialised session is an object")
    return snapshot_from_raf(cast("dict[str, Any]", value))


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
        """How the last request compared with the one before it; `None`: none yet."""
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


class BaseSession(
    BatchDefaults,
    ReadDefaults,
    MetadataDefaults,
    SerializeDefaults,
    ProviderStateDefaults,
    RequestDefaults,
    TimeDefaults,
    ISession,
):
    """``impl ISession for T``: give `add_message`, `get_messages`, `clear`, no more.

    A subclass may have an ``__init__`` of its own that does not call this one, and may
    assign `session_id` in it.  A store reads it back by ``cls.from_snapshot(snapshot)``
    where there is one, else by ``cls(session_id)``.

    Args:
        session_id: `None`: a UUID v4.
    """

    session_type: ClassVar[str] = ""
    """The name under which a store keeps the type; ``""``: the name of the class."""

    def __init__(self, session_id: str | None = None) -> None:
        if session_id is not None:
            self.session_id = session_id

    @property  # type: ignore[explicit-override]  # (overlooked where there is a setter)
    @override
    def session_id(self) -> str:
        """What identifies the session; a UUID v4 where nobody assigned another."""
        session_id: str | None = self.__dict__.get("_session_id")
        if session_id is None:
            session_id = self.__dict__["_session_id"] = str(uuid4())
        return session_id

    @session_id.setter
    @override
    def session_id(self, session_id: str) -> None:
        self.__dict__["_session_id"] = session_id


class _Readable(SessionCore, Protocol):
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


# Snapshots -----------------------------------------------------------------------


def make_snapshot(
    session: SessionCore, messages: Sequence[ChatMessage], metadata: SessionMetadata
) -> SessionSnapshot:
    """Return a snapshot of these messages and of what else the session tells."""
    states = getattr(session, "provider_states", None)
    return SessionSnapshot(
        session_id=session.session_id,
        metadata=metadata,
        messages=messages,
        provider_states=states
        if isinstance(states, ProviderStateStore)
        else ProviderStateStore(),
        last_active_at=getattr(session, "last_active_at", None),
        request=getattr(session, "request_record", None),
    )


async def take_snapshot(session: SessionCore) -> SessionSnapshot:
    """Return a snapshot of any session, one whose `get_messages` waits included.

    Its own `snapshot()` where its class has one that is not our default; else the
    messages of ``await session.get_messages()``, and times, request hash and provider
    states of those members that it has.

    Raises:
        TypeError: its `snapshot()` gives something else.
    """
    own: object = getattr(type(session), "snapshot", None)
    if own is not None and own is not MetadataDefaults.__dict__["snapshot"]:
        try:
            snapshot = cast("Any", session).snapshot()
        except SnapshotUnavailableError:  # a wrapper around one that waits
            return await _awaited_snapshot(session)
        if not isinstance(snapshot, SessionSnapshot):
            raise TypeError(
                f"{type(session).__name__}.snapshot() gave {type(snapshot).__name__}, "
                "not a SessionSnapshot"
            )
        return snapshot
    return await _awaited_snapshot(session)


async def _awaited_snapshot(session: SessionCore) -> SessionSnapshot:
    messages = await session.get_messages()
    request_hash = getattr(session, "get_last_request_hash", lambda: None)()
    created_at = getattr(session, "created_at", UNIX_EPOCH)
    last_active_at = getattr(session, "last_active_at", created_at)
    return make_snapshot(
        session,
        messages,
        SessionMetadata(
            created_at=created_at,
            updated_at=last_active_at,
            message_count=len(messages),
            last_request_hash=request_hash,
        ),
    )


async def restore_session(cls: type[Any], snapshot: SessionSnapshot) -> SessionCore:
    """Return a session of a class, as the snapshot tells it.

    ``cls.from_snapshot(snapshot)`` if there is one; else ``cls(session_id)``, and the
    messages by its `add_messages_batch` or `add_message` where it has none yet.
    Provider states, request record and activity are restored where the class keeps
    them as `BaseSession` does, or has `set_provider_state`.
    """
    from_snapshot = getattr(cls, "from_snapshot", None)
    if from_snapshot is not None:
        return cast("SessionCore", from_snapshot(snapshot))
    session: Any = cls(snapshot.session_id)
    if snapshot.messages and not await session.get_messages():
        batch = getattr(session, "add_messages_batch", None)
        if batch is not None:
            await batch(list(snapshot.messages))
        else:
            for message in snapshot.messages:
                await session.add_message(message)
    set_state = getattr(session, "set_provider_state", None)
    if set_state is not None:
        for name, state in snapshot.provider_states.states.items():
            set_state(name, state)
    if isinstance(session, RequestDefaults):
        session.restore_request(snapshot.last_request())
    if isinstance(session, TimeDefaults) and snapshot.last_active_at is not None:
        session._last_active_at = snapshot.last_active_at  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return cast("SessionCore", session)
