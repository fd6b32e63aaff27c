"""Time as an argument: UTC, in whole microseconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

__all__ = ("UNIX_EPOCH", "Clock", "from_micros", "to_micros", "utc", "utc_now")

Clock: TypeAlias = Callable[[], datetime]
"""A function that tells the time, aware."""

UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The sentinel of RAF: "never told"."""

_MICROSECOND: Final = timedelta(microseconds=1)


def utc_now() -> datetime:
    """Return the time of this machine, in UTC."""
    return datetime.now(UTC)


def utc(moment: datetime) -> datetime:
    """Return the same moment in UTC.

    Raises:
        ValueError: the moment is naive, so nobody knows when it is, or out of range.
    """
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        raise ValueError(f"a naive datetime says no moment: {moment!r}")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment!r} is out of range in UTC") from error


def to_micros(moment: datetime) -> int:
    """Return the microseconds between `UNIX_EPOCH` and an aware moment."""
    return (moment - UNIX_EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment that many microseconds after `UNIX_EPOCH`."""
    # A product: `timedelta` itself takes twice as long to take its arguments.
    return UNIX_EPOCH + _MICROSECOND * micros
