"""What one write alters beside entries: state, request record, title and the like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, cast

from raf_session.clock import utc
from raf_session.errors import InvalidValueError
from raf_session.frozen import EMPTY, freeze_states
from raf_session.keys import check_name, check_names

__all__ = (
    "NO_CHANGE",
    "U64_LIMIT",
    "Change",
    "LabelDelta",
    "RequestDelta",
    "RequestRecord",
    "SessionStatus",
    "StateDelta",
)

U64_LIMIT: Final = 1 << 64
"""RAF's ``u64`` is an `int` below this."""
_SIZE_LIMIT: Final = 1 << 62
"""Numbers below this, and the sum of two, fit every journal."""


class SessionStatus(StrEnum):
    """What was done to a session; idle and expired are computed, not stored."""

    ACTIVE = "active"
    COMPACTED = "compacted"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class StateDelta:
    """Keys to set and keys to delete in one scope of state.

    Keys are 1 to 512 bytes of UTF-8; values are JSON values, copied in and frozen.

    Raises:
        InvalidValueError: a key or a value does not fit, with its path; a key that is
            both set and deleted.
    """

    set: Mapping[str, Any] = EMPTY
    deleted: Iterable[str] = ()

    def __post_init__(self) -> None:
        names = check_names(self.deleted, "deleted")
        values = freeze_states(self.set)
        for name in values:
            check_name(name, name)
            if name in names:
                raise InvalidValueError(name, "both set and deleted")
        object.__setattr__(self, "set", values)
        object.__setattr__(self, "deleted", names)

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.set) or bool(self.deleted)

    def apply(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a new dict: the state after this delta."""
        kept = {key: value for key, value in state.items() if key not in self.names}
        return kept | dict(self.set)

    @property
    def names(self) -> frozenset[str]:
        """Every key that the delta touches."""
        return frozenset(self.set) | cast("frozenset[str]", self.deleted)

    def then(self, later: StateDelta) -> StateDelta:
        """Return the delta that does what this one and then ``later`` does."""
        deleted = cast("frozenset[str]", self.deleted)
        return StateDelta(
            set=later.apply(self.set),
            deleted=(deleted - frozenset(later.set)) | frozenset(later.deleted),
        )


@dataclass(frozen=True, slots=True)
class LabelDelta:
    """Labels to add and labels to remove; adding wins where one is in both."""

    added: Iterable[str] = ()
    removed: Iterable[str] = ()

    def __post_init__(self) -> None:
        for name in ("added", "removed"):
            object.__setattr__(self, name, check_names(getattr(self, name), name))

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.added) or bool(self.removed)

    def apply(self, labels: frozenset[str]) -> frozenset[str]:
        """Return the labels after this delta."""
        return (labels - frozenset(self.removed)) | frozenset(self.added)


def _common(one: bytes, other: bytes) -> int:
    """Return how many digests two requests have in common at their beginning."""
    if other.startswith(one):  # a request that only appended
        return len(one) // 8
    low, high = 0, min(len(one), len(other)) // 8
    while low < high:
        middle = (low + high + 1) // 2
        if one[8 * low : 8 * middle] == other[8 * low : 8 * middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _check_digests(digests: bytes) -> None:
    if len(digests) % 8:
        raise InvalidValueError("digests", "8 bytes for each message")


def _check_size(value: int, path: str) -> None:
    if not 0 <= value < _SIZE_LIMIT:
        raise InvalidValueError(path, f"{value} is not an integer from 0 of 62 bits")


def _check_u64(value: int | None, path: str) -> None:
    if value is not None and not 0 <= value < U64_LIMIT:
        raise InvalidValueError(path, f"{value} is not an unsigned 64-bit integer")


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What is kept of the last request, so that the next can be compared with it."""

    digests: bytes
    """The digest of each message, 8 bytes little-endian."""

    hash: int
    """The last link of the prefix chain, unsigned 64 bits."""

    header: int | None = None
    """The digest of the header, `None` where there was none."""

    format: int = 1
    """The version of the encoding."""

    def __post_init__(self) -> None:
        _check_digests(self.digests)
        _check_u64(self.hash, "hash")
        _check_u64(self.header, "header")
        _check_size(self.format, "format")

    @property
    def n(self) -> int:
        """The number of messages."""
        return len(self.digests) // 8

    def after(self, former: RequestRecord | None) -> RequestDelta:
        """Return the smallest delta that turns the former record into this one."""
        keep = 0 if former is None else _common(former.digests, self.digests)
        return RequestDelta(
            keep,
            self.digests[8 * keep :],
            self.hash,
            self.header,
            self.format,
            None if former is None else former.hash,
        )


@dataclass(frozen=True, slots=True)
class RequestDelta:
    """A request record as "keep the first digests, then these"."""

    keep: int
    digests: bytes
    hash: int
    header: int | None = None
    format: int = 1
    base: int | None = None
    """The hash of the record whose first digests are kept.

    Where another record is stored, the write that carries this delta raises
    `StaleSessionError`; without digests to keep it fits any.
    """

    def __post_init__(self) -> None:
        _check_size(self.keep, "keep")
        _check_digests(self.digests)
        _check_u64(self.hash, "hash")
        _check_u64(self.header, "header")
        _check_u64(self.base, "base")
        _check_size(self.format, "format")

    @property
    def n(self) -> int:
        """The number of messages after it was applied."""
        return self.keep + len(self.digests) // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Everything that a call may alter beside entries; what is `None` stays.

    All of it is committed with the entries of the same call.
    """

    session: StateDelta | None = None
    """Keys of the session's state."""
    user: StateDelta | None = None
    """Keys of its user's state."""
    app: StateDelta | None = None
    """Keys of its app's state."""
    providers: StateDelta | None = None
    """Provider states, by provider name."""
    request: RequestDelta | None = None
    """The request record."""
    touch: datetime | None = None
    """Activity at that moment: last_active_at moves there, and never back."""
    updated_at: datetime | None = None
    """When the change was made, where that was before the call: a session that was
    changed in memory and is saved now. `None`: the journal's clock says."""
    title: str | None = None
    """The title; ``""`` removes it."""
    model: str | None = None
    """The model's name; ``""`` removes it."""
    labels: LabelDelta | None = None
    """Labels to add and to remove."""
    pin: bool | None = None
    """A pinned session does not expire."""
    status: SessionStatus | None = None
    """Active, compacted or archived."""

    def __post_init__(self) -> None:
        for name in ("touch", "updated_at"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, utc(moment))
        for name in ("title", "model"):
            if text := getattr(self, name):
                check_name(text, name)
        if self.status is not None:
            object.__setattr__(self, "status", SessionStatus(self.status))

    def __bool__(self) -> bool:
        """Whether it names anything."""
        return any(getattr(self, name) is not None for name in _CHANGE_FIELDS)

    @property
    def counts(self) -> bool:
        """Whether it makes the revision grow: more than touch, request or scopes."""
        return (
            bool(self.session)
            or bool(self.providers)
            or bool(self.labels)
            or self.title is not None
            or self.model is not None
            or self.pin is not None
            or self.status is not None
        )


_CHANGE_FIELDS: Final = tuple(f.name for f in fields(Change))
NO_CHANGE: Final = Change()
"""The change that names nothing."""
