"""Messages that can only stay or go together, found as a history is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from raf_session.messages import ChatMessage
from raf_session.toolcalls import CallShape, Mark
from raf_session.toolcalls.matching import CallSlot, ResultMatcher

__all__ = ("Bundle", "BundleReader")

_MESSAGE_SHAPES: Final = frozenset((CallShape.OPENAI, CallShape.FUNCTION))


@dataclass(slots=True, eq=False)
class Bundle:
    """Messages that can only stay or go together: calls, results, reasoning."""

    places: list[int] = field(default_factory=list[int])
    """Ascending."""
    callers: list[int] = field(default_factory=list[int])
    """Those with calls, ascending."""
    slots: list[CallSlot] = field(default_factory=list[CallSlot])
    """The calls."""
    tangled: bool = False
    """Whether `arrange` has to do more than put placeholders behind the calls."""
    gone: bool = False
    """Whether its calls are not shown any more."""

    @property
    def is_irregular(self) -> bool:
        """Whether its messages may become others, of other sizes, in a request."""
        return self.tangled or any(
            not slot.results and slot.mark.shape not in _MESSAGE_SHAPES
            for slot in self.slots
        )

    def waits(self, turn: int, long_running: frozenset[str]) -> bool:
        """Tell whether a result is still to come.

        It is of a call that is long-running, or behind which no user's turn stands.
        """
        return any(
            slot.is_open
            and (
                slot.index > turn
                or slot.mark.id in long_running
                or any(result.interim for result in slot.results)
            )
            for slot in self.slots
        )

    def absorb(self, other: Bundle) -> None:
        """Take what another bundle holds: they share a message."""
        self.places = sorted({*self.places, *other.places})
        self.callers = sorted({*self.callers, *other.callers})
        self.slots += other.slots
        self.tangled = True


class BundleReader(ResultMatcher):
    """Matches results with calls, and tells for each message what it was tied to."""

    def __init__(self, long_running: frozenset[str]) -> None:
        super().__init__(long_running)
        self.answered: list[CallSlot | None] = []
        """The calls that the results of the last message answer, result by result."""

    @override
    def read(self, index: int, message: ChatMessage) -> None:
        self.answered = []
        super().read(index, message)

    @override
    def _called(self, mark: Mark) -> CallSlot | None:
        slot = super()._called(mark)
        self.answered.append(slot)
        return slot

    @property
    def step(self) -> int | None:
        """The message with calls behind which only results have come so far."""
        return self._step

    @property
    def thoughts(self) -> tuple[int, ...]:
        """The reasoning at the end, of which it is open what it leads to."""
        return tuple(self._thoughts)

    def thoughts_of(self, index: int) -> tuple[int, ...]:
        """Return the messages of reasoning alone that led to this, the last one."""
        if self._linked and self._linked[-1][-1] == index:
            return self._linked[-1][:-1]
        return ()

    def calls_of(self, index: int) -> list[CallSlot]:
        """Return the calls of this message, the last one."""
        if self._slots and self._slots[-1][0].index == index:
            return self._slots[-1]
        return []
