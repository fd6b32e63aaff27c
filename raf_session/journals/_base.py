"""`BaseJournal` and `DurableJournal`: what journals show of how they were made."""

from __future__ import annotations

from typing_extensions import override

from raf_session.clock import Clock
from raf_session.journal import Durability, Journal
from raf_session.journals._rules import Rules
from raf_session.options import Limits

__all__ = ("BaseJournal", "DurableJournal")


class BaseJournal(Journal):
    """A journal that applies these rules."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    @property
    @override
    def backend(self) -> str:
        """The name of the backend."""
        return self._rules.backend

    @property
    @override
    def limits(self) -> Limits:
        """What the journal enforces."""
        return self._rules.limits

    @property
    @override
    def clock(self) -> Clock:
        """Whose time decides."""
        return self._rules.clock


class DurableJournal(BaseJournal):
    """A journal that outlives its process.

    Raises:
        ValueError: a durability of another name.
    """

    def __init__(self, rules: Rules, durability: Durability) -> None:
        if durability not in {"kill", "power"}:
            raise ValueError(f"{durability!r} is no durability: kill or power")
        super().__init__(rules)
        self._durability: Durability = durability

    @property
    def durability(self) -> Durability:
        """What an acknowledged write survives."""
        return self._durability
