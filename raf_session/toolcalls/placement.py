"""`Placement`: results behind their calls, each once, in one shape, under fresh ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from raf_session.messages import ChatMessage
from raf_session.toolcalls.groups import Call, CallGroup, CallGroups, Result
from raf_session.toolcalls.repairs import Repair, RepairRule
from raf_session.toolcalls.results import (
    ResultParts,
    placeholder_message,
    placeholder_part,
    rename_calls,
    response_of,
    response_part,
    without_parts,
)
from raf_session.toolcalls.shapes import CallShape, has_more_than, results_in

__all__ = ("Placement",)

MAX_ID_LENGTH: Final = 40
"""How long an id of a call may be; OpenAI refuses longer ones."""


class _Run(NamedTuple):
    """What stands behind a message until something else is said."""

    carriers: list[int]
    """The messages that are nothing but results."""
    last: int | None
    """A message with results that says something too, and so ends the run."""
    at_end: bool
    """Whether nothing follows."""


class Placement:
    """Puts the results of each message with calls directly behind it.

    Args:
        messages: the history.
        groups: of its calls and results.
        repairs: where each thing that it does is noted.
    """

    def __init__(
        self,
        messages: Sequence[ChatMessage | None],
        groups: CallGroups,
        repairs: list[Repair],
    ) -> None:
        self._messages = messages
        self.group_at: Final = {group.message_index: group for group in groups.groups}
        self._repairs = repairs
        self._placed: set[int] = set()
        """Messages that say more than results and stand whole behind their calls."""
        self._chosen: dict[tuple[int, int | None], CallGroup] = {}
        """The groups of the results that stand, by message and part."""
        self._ids: dict[str, int] = {}
        """Those of the calls so far, and how many calls had them."""
        for group in groups.groups:
            for call in group.calls:
                for result in call.results[:-1]:
                    self._report(RepairRule.SUPERSEDED, result)
                for result in call.results[-1:]:
                    self._chosen[result.message_index, result.part] = group
        for result in groups.orphans:
            self._report(RepairRule.ORPHAN, result)

    def _report(self, rule: RepairRule, result: Result) -> None:
        self._repairs.append(Repair(rule, result.message_index, result.id))

    def rest(self, index: int, message: ChatMessage) -> ChatMessage | None:
        """Return what of a message without calls stays in its place, if anything."""
        results = results_in(message)
        if not results:
            return message
        if index in self._placed or not has_more_than(message, results):
            return None
        return without_parts(message, {mark.part for mark in results})

    def block(
        self, group: CallGroup, texts: Mapping[RepairRule, str], *, close_end: bool
    ) -> Iterator[ChatMessage]:
        """Yield the message with the calls, and behind it their results."""
        names = self._new_ids(group)
        for message in self._block(group, texts, close_end=close_end):
            yield rename_calls(message, names) if names else message

    def _new_ids(self, group: CallGroup) -> Mapping[str, str]:
        """Return other ids for the calls whose ids were there before."""
        names: dict[str, str] = {}
        for call in group.calls:
            if call.id is None:
                continue
            new, times = call.id, self._ids.get(call.id, 0)
            while new in self._ids:
                times += 1
                suffix = f"_{times}"
                new = call.id[: MAX_ID_LENGTH - len(suffix)] + suffix
            self._ids[call.id] = max(times, 1)
            self._ids.setdefault(new, 1)
            if new != call.id:
                names[call.id] = new
                self._repairs.append(
                    Repair(RepairRule.RENAMED, group.message_index, call.id)
                )
        return names

    def _block(
        self, group: CallGroup, texts: Mapping[RepairRule, str], *, close_end: bool
    ) -> Iterator[ChatMessage]:
        yield self._at(group.message_index)
        run = self._run(group.message_index)
        unanswered = [call for call in group.calls if not call.results]
        if run.at_end and not close_end:
            unanswered = []
        whole = None if unanswered else self._whole(group, run)
        if whole is not None:
            self._placed.update(whole)
            yield from map(self._at, whole)
            return
        shapes = {call.results[-1].shape for call in group.calls if call.results}
        shapes.update(call.shape for call in unanswered)
        mixed = CallShape.GEMINI in shapes and len(shapes) > 1
        yield from self._rebuilt(group, run, texts if unanswered else {}, mixed=mixed)

    def _at(self, index: int) -> ChatMessage:
        message = self._messages[index]
        assert message is not None  # noqa: S101  (it has calls or results)
        return message

    def _run(self, index: int) -> _Run:
        """Return what stands behind a message until something else is said."""
        carriers: list[int] = []
        for place in range(index + 1, len(self._messages)):
            message = self._messages[place]
            if message is None:
                continue
            results = results_in(message)
            if not has_more_than(message, results):
                carriers.append(place)
                continue
            return _Run(carriers, place if results else None, at_end=False)
        return _Run(carriers, None, at_end=True)

    def _whole(self, group: CallGroup, run: _Run) -> list[int] | None:
        """Return the messages that are this group's results, if they stand well."""
        own = set(group.results)
        places = [i for i in (*run.carriers, run.last) if i in own]
        if len(places) < len(own):
            return None
        parted = 0
        shapes: set[CallShape] = set()
        for index in places:
            marks = results_in(self._at(index))
            if any(self._chosen.get((index, m.part)) is not group for m in marks):
                return None
            if index == run.last and [m.part for m in marks] != [*range(len(marks))]:
                return None
            parted += marks[0].part is not None
            shapes.update(mark.shape for mark in marks)
        in_one = parted <= 1 and len(shapes) <= 1
        return places if in_one or CallShape.GEMINI not in shapes else None

    def _rebuilt(
        self,
        group: CallGroup,
        run: _Run,
        texts: Mapping[RepairRule, str],
        *,
        mixed: bool,
    ) -> Iterator[ChatMessage]:
        """Yield the results anew.

        Args:
            group: whose results.
            run: where they stand well already.
            texts: the placeholders for those that are missing; none: none is asked for.
            mixed: whether all are to be written as Gemini's.
        """
        settled = set(run.carriers)
        parts = ResultParts()
        highest = -1
        for call in group.calls:
            if not call.results:
                if texts:
                    yield from self._placeholder(call, texts, parts, mixed=mixed)
                continue
            result = call.results[-1]
            source = self._at(result.message_index)
            if mixed and result.shape is not CallShape.GEMINI:
                part = response_part(call, response_of(source, result.part))
                parts.add_new(part, self._at(call.message_index))
                self._report(RepairRule.RESHAPED, result)
                continue
            moved = (
                result.message_index not in settled or result.message_index < highest
            )
            highest = max(highest, result.message_index)
            if result.part is None:
                yield source
            else:
                moved = not parts.add(source, result.part) or moved
            if moved:
                self._report(RepairRule.MOVED, result)
        yield from parts.messages()

    def _placeholder(
        self,
        call: Call,
        texts: Mapping[RepairRule, str],
        parts: ResultParts,
        *,
        mixed: bool,
    ) -> Iterator[ChatMessage]:
        """Yield what stands for a result, or add it to the parts."""
        rule = RepairRule.STILL_RUNNING if call.long_running else RepairRule.INTERRUPTED
        self._repairs.append(Repair(rule, call.message_index, call.id))
        text = texts[rule]
        part = placeholder_part(call, text)
        if mixed:
            part = response_part(call, {"output": text})
        if part is None:
            yield placeholder_message(call, text)
        else:
            parts.add_new(part, self._at(call.message_index))
