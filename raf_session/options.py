"""Options that people hand us: time to live, limits, windows and queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator

from raf_session.clock import utc
from raf_session.errors import InvalidValueError
from raf_session.keys import SessionKey, check_names, check_part, text_of
from raf_session.parts import FrozenModel, build

__all__ = (
    "DEFAULT_MAX_ENTRY_BYTES",
    "Limits",
    "NewSession",
    "Query",
    "SessionTTLOptions",
    "Window",
)

DEFAULT_MAX_ENTRY_BYTES: Final = 15 * 1024 * 1024


def _check_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("seconds are a number")  # noqa: TRY004  (pydantic wraps it)
    if not 0 <= value < float("inf"):
        raise ValueError("seconds are finite and not negative")
    return value


def _check_interval(value: float) -> float:
    if value == 0:
        raise ValueError("an interval of 0 would never rest")
    return value


def _check_text(value: str, field: str) -> str:
    """Return a text of any length, without NUL and surrogates, as a plain `str`."""
    value = text_of(value, field)
    if "\0" in value:
        raise InvalidValueError(field, "holds a NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(field, "holds a surrogate") from None
    return value


_Seconds = Annotated[float, BeforeValidator(_check_number)]


class SessionTTLOptions(FrozenModel):
    """How long a session lives. RAF: ``SessionTTLOptions``.

    Expired is strictly later than a limit, in microseconds; `None`: off, 0: at once.
    """

    max_idle_secs: _Seconds | None = None
    """Seconds without activity; typically 3600 (an hour)."""

    max_lifetime_secs: _Seconds | None = None
    """Seconds from the creation, whatever happens; typically 86400 (a day)."""

    cleanup_interval_secs: Annotated[_Seconds, AfterValidator(_check_interval)] = 3600
    """Seconds between two sweeps; typically 3600 (an hour)."""

    @property
    def enabled(self) -> bool:
        """Whether anything can expire."""
        return self.max_idle_secs is not None or self.max_lifetime_secs is not None


NO_TTL: Final[SessionTTLOptions] = build(
    SessionTTLOptions,
    {
        "max_idle_secs": None,
        "max_lifetime_secs": None,
        "cleanup_interval_secs": 3600,
    },
    set(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a journal enforces, given when it is opened."""

    sessions: SessionTTLOptions = NO_TTL
    user_state: SessionTTLOptions = NO_TTL
    app_state: SessionTTLOptions = NO_TTL
    max_entry_bytes: int = DEFAULT_MAX_ENTRY_BYTES
    """The largest encoded entry, in bytes."""

    def __post_init__(self) -> None:
        if self.max_entry_bytes < 1:
            raise ValueError("max_entry_bytes is at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What `Journal.create` is told of a session beside its entries.

    Times and `forked_from` are given where the session existed before: saved from
    memory, copied or imported.
    """

    key: SessionKey
    session_type: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    last_active_at: datetime | None = None
    pinned: bool = False
    forked_from: str | None = None

    def __post_init__(self) -> None:
        if not self.key.session:
            raise ValueError("a session needs an id")
        object.__setattr__(
            self, "session_type", check_part(self.session_type, "session_type")
        )
        if self.forked_from is not None:
            object.__setattr__(
                self, "forked_from", _check_text(self.forked_from, "forked_from")
            )
        for name in ("created_at", "updated_at", "last_active_at"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, utc(moment))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which active entries to read; the conditions are combined, `None` is open.

    `last` counts from the end of what the other conditions leave.
    """

    last: int | None = None
    after_seq: int | None = None
    before_seq: int | None = None
    after_time: datetime | None = None
    """Stored later than that moment."""

    def __post_init__(self) -> None:
        if self.last is not None and self.last < 0:
            raise ValueError(f"last={self.last} is negative")
        if self.after_time is not None:
            object.__setattr__(self, "after_time", utc(self.after_time))


WHOLE: Final = Window()
"""Every active entry."""

HEAD_ONLY: Final = Window(last=0)
"""No entry at all."""

EVERYTHING: Final = (1 << 62) - 1
"""A place behind every other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which sessions to list; `None` is any, the conditions are combined."""

    app: str | None = None
    user: str | None = None
    scope: str | None = None
    labels: Iterable[str] = field(default=())
    """Labels that a session must all have."""
    active_since: datetime | None = None
    """Last active at that moment or later."""
    active_before: datetime | None = None
    """Last active before that moment."""

    def __post_init__(self) -> None:
        for name in ("app", "user", "scope"):
            part = getattr(self, name)
            if part is not None:
                object.__setattr__(self, name, check_part(part, name))
        object.__setattr__(self, "labels", check_names(self.labels, "labels"))
        for name in ("active_since", "active_before"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, utc(moment))


_LONGEST_SECS: Final = 1e12
"""Longer than between any two moments."""


def micros(seconds: float | None) -> int | None:
    """Return seconds as whole microseconds, `None` for off.

    What is longer than between any two moments is as long as that.
    """
    if seconds is None:
        return None
    return round(min(seconds, _LONGEST_SECS) * 1_000_000)
