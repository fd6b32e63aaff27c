"""Durations as Go and the document write them: ``24h``, ``30m``, ``1h30m``."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Final

__all__ = ("format_duration", "parse_duration")

_MICROS: Final = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "\u00b5s": Fraction(1),  # micro sign
    "\u03bcs": Fraction(1),  # Greek mu
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
    "d": Fraction(86_400_000_000),
}
_LONGEST: Final = 100
"""No duration is written in more characters."""
_PART: Final = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h|d)"
)
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_UNITS: Final = (("h", 3_600_000_000), ("m", 60_000_000))


def parse_duration(value: object) -> timedelta:
    """Return a duration, rounded to a microsecond.

    Args:
        value: a `timedelta`; seconds as a number, or as the text of one; or numbers
            with units as Go's ``time.ParseDuration`` reads them: ``ns``, ``us``,
            ``ms``, ``s``, ``m``, ``h``, and ``d`` for 24 hours.

    Raises:
        ValueError: it is none, is negative, not finite, or longer than a `timedelta`
            can be.
    """
    try:
        duration = _read(value)
    except (OverflowError, ValueError):  # no finite number, or out of range
        duration = None
    if duration is None or duration < timedelta(0):
        raise ValueError(_refusal(value))
    return duration


def _read(value: object) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of(Fraction(value) * 1_000_000)
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return _of(Fraction(text) * 1_000_000)
    if not text or _PART.sub("", text):
        return None
    return _of(
        sum(
            (Fraction(n) * _MICROS[unit] for n, unit in _PART.findall(text)), Fraction()
        )
    )


def _of(micros: Fraction) -> timedelta:
    return timedelta(microseconds=round(micros))


def _refusal(value: object) -> str:
    return (
        "expected a duration such as '24h', '30m' or '1h30m', or seconds from 0, "
        f"not {value!r:.60}"
    )


def format_duration(duration: timedelta) -> str:
    """Return the shortest text of hours, minutes and seconds: ``24h``, ``1h30m``."""
    micros = duration // timedelta(microseconds=1)
    parts: list[str] = []
    for unit, size in _UNITS:
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count}{unit}")
    if micros or not parts:
        seconds = f"{micros // 1_000_000}.{micros % 1_000_000:06d}".rstrip("0")
        parts.append(f"{seconds.rstrip('.')}s")
    return "".join(parts)
