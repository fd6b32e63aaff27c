"""`find_groups`: which results belong to which calls of a history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls.groups import Call, CallGroup, CallGroups, Result
from raf_session.toolcalls.reasoning import is_silent
from raf_session.toolcalls.shapes import Mark, calls_in, has_more_than, results_in

__all__ = ("CallSlot", "ResultMatcher", "find_groups")

_ASSISTANT: Final = MessageRole.ASSISTANT


def find_groups(
    messages: Sequence[ChatMessage | None], long_running: Collection[str] = ()
) -> CallGroups:
    """Return the groups of calls and results, by ids and roles alone.

    A result belongs to the nearest call in front of it that has its id and is open,
    else to the last that has its id.  A result without an id belongs to a call of its
    name: in the nearest message that has one without a result, the first such, else
    to the last of that name.  So a history may use an id again and again.

    A call is open until a final result comes.  Interim are a result with an id that
    says that more will come, and the first result of a long-running call where it
    stands directly behind its call, with nothing but results between: that is what
    the tool returned when it was started.

    Args:
        messages: the history; `None` stands for an event without a message.
        long_running: the ids of calls whose tools answer later.

    Linear in the number of messages.
    """
    matcher = ResultMatcher(frozenset(long_running))
    for index, message in enumerate(messages):
        if message is not None:
            matcher.read(index, message)
    return matcher.groups()


@dataclass(slots=True)
class CallSlot:
    """A call, with what is known of its results so far."""

    index: int
    number: int
    mark: Mark
    results: list[Result] = field(default_factory=list["Result"])
    is_open: bool = True


@dataclass(slots=True)
class _Named:
    """The calls of one name in one message; those in front of `next` are answered."""

    slots: list[CallSlot]
    next: int = 0

    def unanswered(self) -> CallSlot | None:
        while self.next < len(self.slots):
            slot = self.slots[self.next]
            if not slot.results:
                return slot
            self.next += 1
        return None


class ResultMatcher:
    """Finds for each result its call, as the messages of a history are read.

    Args:
        long_running: the ids of calls whose tools answer later.
    """

    def __init__(self, long_running: frozenset[str]) -> None:
        self._long_running = long_running
        self._slots: list[list[CallSlot]] = []
        self._orphans: list[Result] = []
        self._open: dict[str, list[CallSlot]] = {}
        self._last: dict[str, CallSlot] = {}
        self._named: dict[str, list[_Named]] = {}
        self._last_named: dict[str, CallSlot] = {}
        self._step: int | None = None
        """The message with calls behind which only results have come so far."""
        self._thoughts: list[int] = []
        """The messages of the assistant that said nothing, if the last one did not."""
        self._linked: list[tuple[int, ...]] = []

    def read(self, index: int, message: ChatMessage) -> None:
        """Read the next message, which stands at this place."""
        if message.role is _ASSISTANT:
            self._read_assistant(index, message)
            return
        results = results_in(message)
        for mark in results:
            self._read_result(index, mark)
        if has_more_than(message, results):
            self._step = None
            self._thoughts = []

    def _read_assistant(self, index: int, message: ChatMessage) -> None:
        self._step = None
        if is_silent(message):
            self._thoughts.append(index)
            return
        if self._thoughts:
            self._linked.append((*self._thoughts, index))
            self._thoughts = []
        calls = calls_in(message)
        if calls:
            self._read_calls(index, calls)
            self._step = index

    def _read_calls(self, index: int, marks: Sequence[Mark]) -> None:
        slots = [CallSlot(index, number, mark) for number, mark in enumerate(marks)]
        self._slots.append(slots)
        names: dict[str, _Named] = {}
        for slot in slots:
            ident, name = slot.mark.id, slot.mark.name
            if ident is not None:
                self._open.setdefault(ident, []).append(slot)
                self._last[ident] = slot
            if name is not None:
                names.setdefault(name, _Named([])).slots.append(slot)
                self._last_named[name] = slot
        for name, named in names.items():
            self._named.setdefault(name, []).append(named)

    def _read_result(self, index: int, mark: Mark) -> None:
        slot = self._called(mark)
        interim = slot is not None and self._is_interim(slot, mark)
        result = Result(index, mark.part, mark.id, mark.name, mark.shape, interim)
        if slot is None:
            self._orphans.append(result)
            return
        slot.results.append(result)
        if not interim:
            slot.is_open = False

    def _is_interim(self, slot: CallSlot, mark: Mark) -> bool:
        if mark.more and mark.id is not None:
            return slot.is_open
        first = not slot.results and slot.index == self._step
        return first and slot.mark.id in self._long_running

    def _called(self, mark: Mark) -> CallSlot | None:
        if mark.id is not None:
            nearest = self._open.get(mark.id, [])
            while nearest and not nearest[-1].is_open:
                nearest.pop()
            return nearest[-1] if nearest else self._last.get(mark.id)
        if mark.name is None:
            return None
        messages = self._named.get(mark.name, [])
        while messages:
            slot = messages[-1].unanswered()
            if slot is not None:
                return slot
            messages.pop()
        return self._last_named.get(mark.name)

    def groups(self) -> CallGroups:
        """Return the groups of what was read."""
        groups = (
            CallGroup(slots[0].index, tuple(map(self._call, slots)))
            for slots in self._slots
        )
        return CallGroups(tuple(groups), tuple(self._orphans), tuple(self._linked))

    def _call(self, slot: CallSlot) -> Call:
        mark = slot.mark
        named = mark.id in self._long_running
        return Call(
            slot.index,
            slot.number,
            mark.part,
            mark.id,
            mark.name,
            mark.shape,
            mark.kind,
            tuple(slot.results),
            slot.is_open,
            named or any(result.interim for result in slot.results),
        )
