"""`Entry`, the unit of the log, and `SessionHead`, what is known without reading it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from os import urandom
from time import time_ns
from typing import Any, Final, NamedTuple, Self, cast

from typing_extensions import override

from raf_session.changes import RequestRecord, SessionStatus, StateDelta
from raf_session.clock import from_micros, to_micros, utc
from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, FrozenDict, freeze
from raf_session.keys import SessionKey, check_name
from raf_session.messages import ChatMessage, MessageRole, Usage

__all__ = ("Counts", "Entry", "EntryKind", "Record", "SessionHead")


MAX_TOKENS: Final = 1 << 40
"""The most tokens of one model call; millions of such calls can be summed up."""


class EntryKind(StrEnum):
    """What an entry is."""

    MESSAGE = "message"
    EVENT = "event"
    SUMMARY = "summary"


class _EntryFields(NamedTuple):
    id: str
    kind: EntryKind
    message: ChatMessage | None
    author: str | None
    invocation_id: str | None
    branch: str | None
    timestamp: float | None
    state_delta: StateDelta | None
    usage: Usage | None
    metadata: Mapping[str, Any]
    extra: Mapping[str, Any]
    seq: int
    stored_us: int | None
    left_at: int


class Entry(_EntryFields):
    """One line of a session's log, immutable.

    The caller gives the event: a `message`, or fields around one.  The journal gives
    `seq`, `stored_at` and `left_at`.

    Attributes:
        id: the idempotency key, 1 to 512 bytes, unique within the session.
        kind: a message, an event or a summary.
        message: what was said, if anything.
        author: who made it, as the caller says.
        invocation_id: the run that it belongs to.
        branch: the agent path within the run.
        timestamp: seconds since the epoch, as the caller says; data, never order.
        state_delta: the state that came with it, kept for the record.
        usage: the tokens of the model call, each number from 0 to 2**40.
        metadata: JSON values of the caller's.
        extra: further fields of the event, JSON values.
        seq: its place in the log, from 1; 0 before it is stored.
        stored_us: `stored_at` in microseconds since the epoch.
        left_at: the revision that archived it; 0 while it is active.
    """

    __slots__ = ()

    def __new__(  # noqa: PLR0917  (the fields of a tuple)
        cls,
        id: str,  # noqa: A002  (the field's name)
        kind: EntryKind | str = EntryKind.MESSAGE,
        message: ChatMessage | None = None,
        author: str | None = None,
        invocation_id: str | None = None,
        branch: str | None = None,
        timestamp: float | None = None,
        state_delta: StateDelta | None = None,
        usage: Usage | None = None,
        metadata: Mapping[str, Any] = EMPTY,
        extra: Mapping[str, Any] = EMPTY,
        seq: int = 0,
        stored_at: datetime | None = None,
        left_at: int = 0,
    ) -> Self:
        """Check and freeze the fields.

        Raises:
            InvalidValueError: a field does not fit, with its path.
        """
        if message is not None and not isinstance(message, ChatMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValueError("message", "not a ChatMessage")
        entry: Self = raw_tuple(
            cls,
            (
                check_name(id, "id"),
                EntryKind(kind),
                message,
                _text(author, "author"),
                _text(invocation_id, "invocation_id"),
                _text(branch, "branch"),
                cast("float | None", freeze(timestamp, "timestamp")),
                state_delta,
                None if usage is None else _tokens(usage),
                _object(metadata, "metadata"),
                _object(extra, "extra"),
                seq,
                None if stored_at is None else to_micros(utc(stored_at)),
                left_at,
            ),
        )
        return entry

    @classmethod
    def of(cls, message: ChatMessage, id: str) -> Self:  # noqa: A002
        """Return the plain entry of a message, unchecked: the id is known to be one."""
        said = id, _MESSAGE, message
        entry: Self = raw_tuple(cls, said + _NO_EVENT)
        return entry

    @classmethod
    @override
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        *fields, seq, stored_us, left_at = iterable
        made = cls(*fields, seq, None, left_at)  # type: ignore[call-arg]
        return made.stored(seq, stored_us, left_at)

    @override
    def _replace(self, **kwargs: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        fields: dict[str, Any] = self._asdict()
        del fields["stored_us"]
        fields["stored_at"] = self.stored_at
        return type(self)(**(fields | kwargs))

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return raw_entry, (tuple(self),)

    @property
    def stored_at(self) -> datetime | None:
        """The journal's clock, never before the entry in front; `None`: not stored."""
        micros = self.stored_us
        return None if micros is None else from_micros(micros)

    def stored(self, seq: int, stored_us: int, left_at: int = 0) -> Self:
        """Return it as the journal keeps it: with its place and time."""
        place = seq, stored_us, left_at
        entry: Self = raw_tuple(type(self), self[:11] + place)
        return entry

    @property
    def plain(self) -> Entry:
        """The event alone, as the caller gave it."""
        return self if not self.seq else raw_entry((*self[:11], 0, None, 0))


def new_id() -> str:
    """Return an id for an entry: the time in 64 bits, then 64 random bits.

    Ids that were drawn one after another stand together in an index.
    """
    return (time_ns().to_bytes(8, "big") + urandom(8)).hex()


_MESSAGE: Final = EntryKind.MESSAGE  # a member of an enumeration is looked up slowly
_NO_EVENT: Final = (*(None,) * 6, EMPTY, EMPTY, 0, None, 0)
"""What stands in the entry of a message alone, behind it."""
raw_tuple: Callable[[Any, tuple[Any, ...]], Any] = cast("Any", tuple).__new__
"""Makes a named tuple of fields that are known to be valid and frozen."""


def raw_entry(fields: tuple[Any, ...]) -> Entry:
    """Return the entry of all its fields in order, unchecked."""
    entry: Entry = raw_tuple(Entry, fields)
    return entry


def _text(value: str | None, path: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError(path, f"{type(value).__name__} is not a string")
    return str.__str__(value)


def _tokens(usage: Usage) -> Usage:
    for name, number in usage:
        if number is not None and not 0 <= number <= MAX_TOKENS:
            detail = f"{number} is not from 0 to {MAX_TOKENS}"
            raise InvalidValueError(f"usage.{name}", detail)
    return usage


def _object(value: Mapping[str, Any], path: str) -> FrozenDict[Any]:
    return cast("FrozenDict[Any]", freeze(dict(value), path)) if value else EMPTY


_USER: Final = MessageRole.USER  # a member of an enumeration is looked up slowly


class Counts(NamedTuple):
    """How much there is of a session."""

    entries: int = 0
    messages: int = 0
    """Entries that carry a message."""
    conversations: int = 0
    """Messages of the user's."""
    tokens: int = 0
    """The sum of `Usage.total_tokens`."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Count these entries."""
        n = messages = conversations = tokens = 0
        for entry in entries:
            n += 1
            message, usage = entry.message, entry.usage
            if message is not None:
                messages += 1
                conversations += message.role is _USER
            if usage is not None:
                tokens += usage.total_tokens
        made: Self = raw_tuple(cls, (n, messages, conversations, tokens))
        return made

    def plus(self, other: Counts) -> Counts:
        """Return the sum, field by field."""
        a, b, c, d = self
        e, f, g, h = other
        counts: Counts = raw_tuple(Counts, (a + e, b + f, c + g, d + h))
        return counts

    def minus(self, other: Counts) -> Counts:
        """Return the difference, field by field."""
        a, b, c, d = self
        e, f, g, h = other
        counts: Counts = raw_tuple(Counts, (a - e, b - f, c - g, d - h))
        return counts


class SessionHead(NamedTuple):
    """What is known of a session without reading its entries; of bounded size."""

    key: SessionKey
    incarnation: str
    """Random, drawn by `create`: tells a session from one re-created under its key."""
    revision: int
    """Grows by 1 with each call that changes entries, state or description."""
    created_at: datetime
    updated_at: datetime
    last_active_at: datetime
    pinned: bool
    last_seq: int
    """The highest place ever drawn; 0 before the first."""
    spliced_at: int
    """The last revision that moved or replaced entries; 0 before the first."""
    active: Counts
    """The active window."""
    total: Counts
    """All that was ever appended, cleared entries left out."""
    title: str
    model: str
    status: SessionStatus
    labels: frozenset[str]
    session_type: str
    """The name of the Python type that the session was saved from."""
    forked_from: str | None
    """The text form of the key that it was forked from."""
    schema: int
    """The version of the stored form."""
    request_n: int | None = None
    """The messages of the last request; `None` before the first."""
    request_hash: int | None = None
    request_header: int | None = None
    request_format: int | None = None


class Record(NamedTuple):
    """A session as `load` reads it: all of one moment."""

    head: SessionHead
    entries: tuple[Entry, ...]
    """The active entries of the window, in order."""
    archived: tuple[Entry, ...]
    """What left the window, in the order of `seq` and then of leaving, if asked for."""
    state: Mapping[str, Any]
    """The session's own state."""
    user_state: Mapping[str, Any]
    app_state: Mapping[str, Any]
    provider_states: Mapping[str, Any]
    request: RequestRecord | None
    """The last request, with the digest of each of its messages."""
