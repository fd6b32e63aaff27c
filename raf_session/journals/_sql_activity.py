"""When sessions were active: order and bounds that an index answers."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

__all__ = ("Activity", "Term")

Term: TypeAlias = tuple[str, *tuple[Any, ...]]
"""A condition, and the values of its marks."""


class Activity:
    """Sorts and bounds heads by `last_active_at`.

    Args:
        period_bits: where it is `None`, an index holds `last_active_at`. Else one holds
            `activity_period`, which is `last_active_at` without so many of its lowest
            bits: most writes then leave the index alone. The server sorts within a
            period.

    Attributes:
        in_periods: whether there are periods.
        newest_first: for ``ORDER BY``; what was active at the same moment stands in no
            order.
        oldest_first: the other way round.
    """

    def __init__(self, period_bits: int | None) -> None:
        self._bits = period_bits
        self.in_periods: Final = period_bits is not None
        columns = ["last_active_at"]
        if period_bits is not None:
            columns.insert(0, "activity_period")
        self.newest_first: Final = ", ".join(f"{column} DESC" for column in columns)
        self.oldest_first: Final = ", ".join(columns)

    def since(self, micros: int) -> Term:
        """Return the condition of what was active then or later."""
        return self._bounded("last_active_at >= ?", "activity_period >= ?", micros)

    def before(self, micros: int) -> Term:
        """Return the condition of what was last active before."""
        return self._bounded("last_active_at < ?", "activity_period <= ?", micros)

    def until(self, micros: int) -> Term:
        """Return the condition of what was last active then or before."""
        return self._bounded("last_active_at <= ?", "activity_period <= ?", micros)

    def _bounded(self, moment: str, period: str, micros: int) -> Term:
        if self._bits is None:
            return moment, micros
        return f"{period} AND {moment}", micros >> self._bits, micros
