"""What an agent's run hands to the face, and gets from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Final, cast

from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, freeze
from raf_session.key_paths import SessionScope, agent_key, enum_member
from raf_session.keys import MAX_NAME_BYTES, SessionKey, check_name
from raf_session.manager.turn_request import TurnRequest
from raf_session.messages import ChatMessage, Usage

__all__ = (
    "AgentInput",
    "AgentOutput",
    "AgentPoint",
    "SessionRequest",
    "messages_of",
)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Which session is meant. The document: ``SessionRequest``.

    Raises:
        InvalidValueError: there is no such scope; `peer` and `user_id` differ; another
            field is no `str`.
    """

    agent_id: str | None = None
    """The agent; `None`: ``default``."""
    channel: str | None = None
    """Where it is talked to; `None`: ``default``."""
    scope: SessionScope | str | None = None
    """What keeps sessions apart; `None`: as configured."""
    scope_id: str | None = None
    """An id made elsewhere, taken as it is; the fields below then do not count."""
    account: str | None = field(default=None, kw_only=True)
    chat: str | None = field(default=None, kw_only=True)
    """The group or direct chat; may be absent in every scope."""
    peer: str | None = field(default=None, kw_only=True)
    """The person."""
    thread: str | None = field(default=None, kw_only=True)
    task: str | None = field(default=None, kw_only=True)
    user_id: InitVar[str | None] = field(default=None, kw_only=True)
    """Another name of `peer`, for the constructor alone."""

    def __post_init__(self, user_id: str | None) -> None:
        _check_kind(self, str, "agent_id", *_NAMES)
        object.__setattr__(self, "scope", _scope(self.scope))
        object.__setattr__(self, "peer", _peer(self.peer, user_id))

    def key(self, default_scope: SessionScope | str) -> SessionKey:
        """Return the key of the session: of the fields that its scope names alone.

        Args:
            default_scope: the scope where the request names none.

        Raises:
            InvalidValueError: a field that the scope names is missing or no name.
        """
        return agent_key(
            default_scope if self.scope is None else self.scope,
            agent=self.agent_id,
            channel=self.channel,
            scope_id=self.scope_id,
            account=self.account,
            chat=self.chat,
            peer=self.peer,
            thread=self.thread,
            task=self.task,
        )


@dataclass(frozen=True, slots=True)
class AgentPoint:
    """Where an agent runs. The document: ``AgentPoint``.

    One without a `run_id` may serve any number of runs.

    Raises:
        InvalidValueError: `run_id` is no name, another field no `str`, or `metadata` no
            JSON.
    """

    agent_id: str | None = None
    """The agent; `None`: ``default``."""
    run_id: str | None = None
    """Names one run, 1 to 480 bytes: repeated under this id, it stores nothing twice,
    and another run needs another id.  `None`: each `SessionAspect.before` or `around`
    is a run of its own."""
    model: str | None = None
    """The model's name, kept with the session, and part of each request's header for
    the prefix report; `None`: not known."""
    metadata: Mapping[str, Any] = field(default=EMPTY, kw_only=True)
    """JSON values of the caller's; not stored."""

    def __post_init__(self) -> None:
        _check_kind(self, str, "agent_id", "run_id", "model")
        _check_run_id(self.run_id)
        object.__setattr__(self, "metadata", _object(self.metadata, "metadata"))


@dataclass(frozen=True, slots=True)
class AgentInput:
    """What a run is given. The document: ``AgentInput``.

    `SessionAspect.before` returns one whose `messages` begin with the history.

    Raises:
        InvalidValueError: as `SessionRequest`; a message is none, `run_id` no name, or
            `metadata` no JSON.
    """

    channel: str | None = None
    scope: SessionScope | str | None = None
    scope_id: str | None = None
    account: str | None = field(default=None, kw_only=True)
    chat: str | None = field(default=None, kw_only=True)
    peer: str | None = field(default=None, kw_only=True)
    thread: str | None = field(default=None, kw_only=True)
    task: str | None = field(default=None, kw_only=True)
    user_id: InitVar[str | None] = field(default=None, kw_only=True)
    """Another name of `peer`, for the constructor alone."""
    messages: Sequence[ChatMessage] = field(default=(), kw_only=True)
    """What is said now, kept as a tuple; instructions are sent and not stored."""
    header: Any = field(default=None, kw_only=True)
    """What a request holds in front of its messages, for the prefix report: tools,
    parameters; the point's `model` is added to an object without one."""
    run_id: str | None = field(default=None, kw_only=True)
    """The run, where the point names none; `before` returns it."""
    metadata: Mapping[str, Any] = field(default=EMPTY, kw_only=True)
    """JSON values of the caller's; not stored."""
    history: Sequence[ChatMessage] = field(default=(), kw_only=True)
    """What `before` put in front of `messages`, kept as a tuple."""
    report: TurnRequest | None = field(default=None, kw_only=True)
    """What `before` says of the request: what left it, and what a cache reuses."""

    def __post_init__(self, user_id: str | None) -> None:
        _check_kind(self, str, *_NAMES, "run_id")
        object.__setattr__(self, "scope", _scope(self.scope))
        object.__setattr__(self, "peer", _peer(self.peer, user_id))
        _check_kind(self, TurnRequest, "report")
        _check_run_id(self.run_id)
        for name in ("messages", "history"):
            object.__setattr__(self, name, messages_of(getattr(self, name), name))
        object.__setattr__(self, "metadata", _object(self.metadata, "metadata"))

    def request(self, agent_id: str | None) -> SessionRequest:
        """Return which session an agent's run on this input belongs to."""
        return SessionRequest(
            agent_id,
            self.channel,
            self.scope,
            self.scope_id,
            account=self.account,
            chat=self.chat,
            peer=self.peer,
            thread=self.thread,
            task=self.task,
        )


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """What a run produced. The document: ``AgentOutput``.

    Raises:
        InvalidValueError: a message is none; `usage` or `model` is of another kind.
    """

    messages: Sequence[ChatMessage] = ()
    """Calls, results and the reply, in order, kept as a tuple."""
    usage: Usage | None = None
    """What the provider reported of the last model call."""
    model: str | None = None
    """The model that answered; `None`: not known."""
    is_command: bool = False
    """Whether it answers a command to the program, so that nothing is stored."""
    error: BaseException | str | None = None
    """Why the run failed; `None`: it did not.  What it said is stored in any case."""

    def __post_init__(self) -> None:
        _check_kind(self, Usage, "usage")
        _check_kind(self, str, "model")
        found = messages_of(self.messages, "messages")
        object.__setattr__(self, "messages", found)


_LONGEST_RUN_ID: Final = MAX_NAME_BYTES - 32
"""The ids of its messages are this id, ``:out:`` and a number."""
_NAMES: Final = ("channel", "scope_id", "account", "chat", "peer", "thread", "task")
"""Fields of a session's request that are texts, or missing."""
_NO_LISTS: Final = (str, bytes, bytearray, Mapping, ChatMessage)
"""Kinds of values that can be iterated over, and are one thing."""


def _check_kind(holder: object, kind: type, *names: str) -> None:
    for name in names:
        value = getattr(holder, name)
        if value is not None and not isinstance(value, kind):
            raise InvalidValueError(
                name, f"expected {kind.__name__} or None, not {type(value).__name__}"
            )


def _check_run_id(value: str | None) -> None:
    if value is not None and len(check_name(value, "run_id").encode()) > (
        _LONGEST_RUN_ID
    ):
        raise InvalidValueError("run_id", f"is longer than {_LONGEST_RUN_ID} bytes")


def _scope(value: SessionScope | str | None) -> SessionScope | None:
    return None if value is None else enum_member(SessionScope, value, "scope")


def _peer(peer: str | None, user_id: str | None) -> str | None:
    if user_id is not None and not isinstance(cast("object", user_id), str):
        kind = type(user_id).__name__
        raise InvalidValueError("user_id", f"expected str or None, not {kind}")
    if peer is not None and user_id is not None and peer != user_id:
        raise InvalidValueError("user_id", "is another than peer")
    return user_id if peer is None else peer


def messages_of(values: object, path: str) -> tuple[ChatMessage, ...]:
    """Return messages that somebody handed in, as a tuple.

    Raises:
        InvalidValueError: they are no iterable of messages, or one is none, with its
            place.
    """
    kind = type(values).__name__
    if isinstance(values, _NO_LISTS) or not isinstance(values, Iterable):
        raise InvalidValueError(path, f"expected a list of ChatMessage, not {kind}")
    found = tuple(cast("Iterable[object]", values))
    for index, message in enumerate(found):
        if not isinstance(message, ChatMessage):
            reason = f"not a ChatMessage, but {type(message).__name__}"
            raise InvalidValueError(f"{path}[{index}]", reason)
    return cast("tuple[ChatMessage, ...]", found)


def _object(value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", freeze(dict(value), path)) if value else EMPTY
