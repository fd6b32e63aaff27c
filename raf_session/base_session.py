"""`BaseSession`, ``impl ISession for T``, and snapshots of any session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast
from uuid import uuid4

from typing_extensions import override

from raf_session.clock import UNIX_EPOCH
from raf_session.defaults import (
    BatchDefaults,
    ProviderStateDefaults,
    Readable,
    ReadDefaults,
    RequestDefaults,
    Suspended,
    TimeDefaults,
    run_now,
)
from raf_session.errors import InvalidValueError, SnapshotUnavailableError
from raf_session.json_text import dump_json, load_json
from raf_session.messages import ChatMessage
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot
from raf_session.raf_json import snapshot_from_raf, snapshot_to_raf
from raf_session.session import ISession, SessionCore

__all__ = (
    "BaseSession",
    "MetadataDefaults",
    "SerializeDefaults",
    "make_snapshot",
    "read_snapshot",
    "restore_session",
    "take_snapshot",
)


class MetadataDefaults:
    """`metadata` and `snapshot` of what the other members tell."""

    def metadata(self: Readable) -> SessionMetadata:
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

    def snapshot(self: Readable) -> SessionSnapshot:
        """Return the whole session.

        *Default:* put together member by member, so it is of one moment only where
        nothing else runs in between.  *Override* where other threads write.
        """
        return make_snapshot(self, self.messages_now(), self.metadata())


class SerializeDefaults:
    """`serialize` and `deserialize` by way of the snapshot."""

    def serialize(self: Readable) -> str:
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
    try:
        session: Any = cls(snapshot.session_id)
    except TypeError as error:
        raise TypeError(
            f"{cls.__name__}(session_id) makes no session ({error}): give the class "
            "a from_snapshot(snapshot)"
        ) from error
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
