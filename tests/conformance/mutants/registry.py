"""What is known of each mutant: its fault, and the check that has to catch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getsource
from typing import Any, Literal, TypeAlias, TypeVar

__all__ = ("MUTANTS", "Kind", "Mutant", "fault")

Kind: TypeAlias = Literal["journal", "store", "session"]
_T = TypeVar("_T", bound=type[Any])


@dataclass(frozen=True)
class Mutant:
    """A broken implementation.

    Attributes:
        cls: a class that passes, but for the fault.
        kind: what it implements.
        check: the check that has to catch it.
        also: checks that have no mutant of their own, and have to catch this one.
        reported: taken from what users report, whatever the checks look for.
        machine: whether the state machine of its kind has to catch it too.
        wide: why many other checks may trip; empty: they may not.
    """

    cls: type[Any]
    kind: Kind
    check: str
    also: tuple[str, ...]
    reported: bool
    machine: bool
    wide: str

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.cls.__name__

    @property
    def fault(self) -> str:
        """What is wrong, in one line."""
        return (self.cls.__doc__ or "").strip()

    @property
    def changed_lines(self) -> int:
        """How many lines stand between it and what passes."""
        parts = [part for part in vars(self.cls).values() if isinstance(part, type)]
        bodies = [getsource(self.cls).split('"""', 2)[2], *map(getsource, parts)]
        return sum(bool(line.strip()) for body in bodies for line in body.splitlines())


MUTANTS: list[Mutant] = []
"""All of them, in the order of their modules."""


def fault(
    kind: Kind,
    check: str,
    *,
    also: tuple[str, ...] = (),
    reported: bool = False,
    machine: bool = False,
    wide: str = "",
) -> Callable[[_T], _T]:
    """Register a class as a mutant; see `Mutant`."""

    def register(cls: _T) -> _T:
        MUTANTS.append(Mutant(cls, kind, check, also, reported, machine, wide))
        return cls

    return register
