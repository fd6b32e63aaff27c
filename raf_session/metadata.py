"""What a session tells of itself: metadata, provider states and the snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field

from raf_session.changes import U64_LIMIT, RequestRecord
from raf_session.clock import UNIX_EPOCH, utc
from raf_session.frozen import EMPTY, STATE_DEPTH, FrozenDict, FrozenJson, freeze
from raf_session.messages import ChatMessage
from raf_session.parts import FROZEN_STATES, FrozenModel, build, frozen_object

__all__ = ("ProviderStateStore", "SessionMetadata", "SessionSnapshot")

_Time = Annotated[datetime, AfterValidator(utc)]
_Object = Annotated[Mapping[str, Any], frozen_object(1)]
_States = Annotated[Mapping[str, Any], FROZEN_STATES]


def _check_hash(value: int | None) -> int | None:
    if value is not None and not 0 <= value < U64_LIMIT:
        raise ValueError(f"{value} is not an unsigned 64-bit integer")
    return value


class SessionMetadata(FrozenModel):
    """What may be said of a session without its messages. RAF: ``SessionMetadata``."""

    created_at: _Time = UNIX_EPOCH
    """When the session began; `UNIX_EPOCH` if its implementer never said."""

    updated_at: _Time = UNIX_EPOCH
    """When its content last changed."""

    message_count: int = 0
    """The messages of the active window, a summary counting one."""

    last_request_hash: Annotated[int | None, AfterValidator(_check_hash)] = None
    """The prefix hash of the last request, unsigned 64 bits; `None`: none yet."""

    extra: _Object = EMPTY
    """Fields that a newer RAF wrote and we do not know."""


class ProviderStateStore(FrozenModel):
    """JSON values by provider name. RAF: ``ProviderStateStore``.

    Immutable, unlike RAF's: `set` and `remove` return a new one.
    """

    states: _States = EMPTY
    """The values, frozen."""

    def get(self, name: str) -> FrozenJson:
        """Return the frozen state of that name, `None` where there is none."""
        return cast("FrozenJson", self.states.get(name))

    def set(self, name: str, state: object) -> Self:
        """Return a store in which that name has a frozen copy of this JSON value.

        Raises:
            InvalidValueError: it is no JSON value, with the path.
        """
        return type(self)(
            states={**self.states, name: freeze(state, name, STATE_DEPTH)}
        )

    def remove(self, name: str) -> Self:
        """Return a store without that name."""
        return type(self)(
            states={key: value for key, value in self.states.items() if key != name}
        )

    def __len__(self) -> int:
        """How many names have a state."""
        return len(self.states)


def provider_states(states: FrozenDict[FrozenJson]) -> ProviderStateStore:
    """Return the store of these frozen states, unchecked."""
    store: ProviderStateStore = build(
        ProviderStateStore, {"states": states}, {"states"}
    )
    return store


def _as_tuple(value: object) -> object:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(cast("Sequence[object]", value))
    return value


class SessionSnapshot(FrozenModel):
    """A session at one moment, read-only. RAF: ``SessionSnapshot``.

    All of it is of the same moment, which RAF's own does not promise.
    """

    session_id: str
    metadata: SessionMetadata = Field(default_factory=SessionMetadata)
    messages: Annotated[Sequence[ChatMessage], BeforeValidator(_as_tuple)] = ()
    """The active window, as a tuple."""
    provider_states: ProviderStateStore = Field(default_factory=ProviderStateStore)
    last_active_at: Annotated[
        datetime | None, AfterValidator(lambda value: value and utc(value))
    ] = None
    """When somebody was last active; `None` where RAF wrote none."""

    request: RequestRecord | None = None
    """Ours: the last request, so that prefix tracking goes on after a restart."""
    entry_ids: Annotated[Sequence[str | None], AfterValidator(tuple)] = ()
    """Ours: the id under which a store keeps each message; empty where not known."""
    state: _States = EMPTY
    """Ours: the session's state."""
    extra: _Object = EMPTY
    """Fields that a newer writer knew and we do not, kept and written again."""

    def last_request(self) -> RequestRecord | None:
        """Return the last request; without digests where only its hash is told."""
        last = self.metadata.last_request_hash
        if self.request is None and last is not None:
            return RequestRecord(b"", last)
        return self.request
