"""What was measured: one kind of work, one library on one backend, one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, Protocol, TypeAlias

__all__ = ("Figure", "Measured", "Unit", "growth", "ratio", "shown")

Unit: TypeAlias = Literal["s", "B", "x"]
"""Seconds, bytes, or a plain ratio."""


class Measured(Protocol):
    """Values of several rounds."""

    @property
    def rounds(self) -> Sequence[float]:
        """The values, round by round."""
        ...

    @property
    def best(self) -> float:
        """The lowest round: what the machine can do when nobody disturbs it."""
        ...

    @property
    def typical(self) -> float:
        """The median round."""
        ...


def ratio(one: Measured, other: Measured) -> float:
    """Return one over the other: of the same round, and of these the median.

    What disturbs a round disturbs both, while the best rounds of two may be of two
    states of the machine.  Where one took part in fewer rounds, the first ones count.
    """
    return median(
        [a / b if b else 1.0 for a, b in zip(one.rounds, other.rounds, strict=False)]
    )


@dataclass
class Figure:
    """The values of all rounds; none, and a note that says why, where it stopped."""

    work: str
    backend: str
    library: str
    size: int
    """Messages in the session, sessions in the store, writers: as the work says."""
    unit: Unit = "s"
    values: list[float] = field(default_factory=list[float])
    """For one unit of work, round by round."""
    note: str = ""

    @property
    def rounds(self) -> Sequence[float]:
        """The values."""
        return self.values

    @property
    def best(self) -> float:
        """The lowest round: what the machine can do when nobody disturbs it."""
        return min(self.values)

    @property
    def typical(self) -> float:
        """The median round."""
        return median(self.values)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What names it in any run."""
        return self.work, self.backend, self.library, self.size

    def to_json(self) -> dict[str, Any]:
        """Return the fields, with `best` and `median` where there are values."""
        found = dict(vars(self))
        if self.values:
            found |= {"best": self.best, "median": self.typical}
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Figure:
        """Read what `to_json` returned."""
        derived = {"best", "median"}
        return cls(**{k: v for k, v in found.items() if k not in derived})


def growth(series: Sequence[Figure]) -> float | None:
    """Return the last cost over the first, `None` where there are no two to compare.

    Args:
        series: figures of one work, backend and library, by size.
    """
    measured = [figure for figure in series if figure.values]
    if len(measured) < 2 or not measured[0].typical:
        return None
    return measured[-1].typical / measured[0].typical


def shown(value: float, unit: Unit) -> str:
    """Return a value with three digits and a unit that suits it."""
    if unit == "x":
        return f"{value:.2f}"
    names, step = (
        (("µs", "ms", "s"), 1e-6) if unit == "s" else (("B", "kB", "MB", "GB"), 1.0)
    )
    value /= step
    for name in names[:-1]:
        if value < 999.5:
            return f"{value:.3g} {name}"
        value /= 1000
    return f"{value:.3g} {names[-1]}"
