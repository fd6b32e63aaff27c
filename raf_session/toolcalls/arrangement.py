"""`arrange`: a history as a request needs it, with nothing lost that was said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls.empties import without_empties
from raf_session.toolcalls.groups import Call, CallGroup, CallGroups, Result
from raf_session.toolcalls.matching import find_groups
from raf_session.toolcalls.reasoning import (
    holds_thoughts,
    is_silent,
    with_thoughts,
    without_last_thoughts,
)
from raf_session.toolcalls.repairs import (
    CONTINUED,
    INTERRUPTED,
    OPENING,
    STILL_RUNNING,
    Arrangement,
    Repair,
    RepairRule,
)
from raf_session.toolcalls.results import (
    ResultParts,
    placeholder_message,
    placeholder_part,
    rename_calls,
    without_parts,
)
from raf_session.toolcalls.shapes import (
    CallShape,
    calls_in,
    has_more_than,
    is_preamble,
    is_user_turn,
    results_in,
)

__all__ = ("arrange",)

MAX_ID_LENGTH: Final = 40
"""How long an id of a call may be; OpenAI refuses longer ones."""


def arrange(
    messages: Sequence[ChatMessage | None],
    *,
    long_running: Collection[str] = (),
    close_end: bool = False,
    interrupted: str = INTERRUPTED,
    still_running: str = STILL_RUNNING,
    opening: str = OPENING,
    continued: str = CONTINUED,
) -> Arrangement:
    """Return the messages in an order and completeness that providers accept.

    Directly behind a message with calls stand their results, the last one of each
    call.  A group that is so already is left alone; else its results are put there,
    those that are parts of messages as parts of one message, in the order of the
    calls.  What else such a message said stays where it was.  Calls without any
    result get a placeholder, in the shape of the call, if another message follows.
    Results without a call leave.  A call whose id an earlier one has gets another, and
    its result too (Anthropic takes an id once in a request).  Where the first message
    that is no instruction is not a user's turn, a placeholder of role ``user`` is put
    in front of it, and another one between a message of the assistant and its calls in
    the next (Gemini takes calls only behind the user and behind results).  Messages in
    which the assistant only thinks become a part of its next message, if nothing but
    results stands between (OpenAI refuses reasoning without what it led to); so does
    reasoning at the end of a message.  Where it led to nothing, and where nothing is
    said or thought, it leaves.  So do empty lists of calls, and empty texts beside
    other parts.

    Messages that need none of this are the same objects, and to arrange what was
    arranged changes nothing.  System messages in the middle stay where they are (a
    result that had one in front of it moves before it): providers that take none
    there get them moved by whoever writes the request.

    Args:
        messages: the history, or a part of it; `None`, an event without a message, is
            left out.
        long_running: the ids of calls whose tools answer later.
        close_end: whether calls at the very end get placeholders too; by default
            their results are still to come.
        interrupted: the placeholder for a result.
        still_running: that of a long-running call.
        opening: the placeholder for the user's first turn.
        continued: that between the assistant and its calls.

    Raises:
        ValueError: a placeholder is empty, which providers refuse.
    """
    if not (interrupted and still_running and opening and continued):
        raise ValueError("a placeholder needs text")
    groups = find_groups(messages, long_running)
    arranger = _Arranger(messages, groups)
    texts = {
        RepairRule.INTERRUPTED: interrupted,
        RepairRule.STILL_RUNNING: still_running,
    }
    output: list[tuple[int, ChatMessage]] = []
    for index, message in enumerate(messages):
        group = arranger.group_at.get(index)
        if group is not None:
            block = arranger.block(group, texts, close_end=close_end)
            output += [(index, m) for m in block]
        elif message is not None:
            rest = arranger.rest(index, message)
            if rest is not None:
                output.append((index, rest))
    tidy = _without_empties(output, arranger.repairs)
    joined = list(_without_silence(tidy, arranger.repairs))
    spoken = list(_with_user(joined, opening, continued, arranger.repairs))
    repairs = sorted(arranger.repairs, key=lambda repair: repair.message_index)
    return Arrangement(tuple(spoken), tuple(repairs))


def _without_empties(
    output: Iterable[tuple[int, ChatMessage]], repairs: list[Repair]
) -> Iterator[tuple[int, ChatMessage]]:
    for index, message in output:
        tidy = without_empties(message)
        if tidy is not message:
            repairs.append(Repair(RepairRule.EMPTY, index))
        yield index, tidy


def _without_silence(
    output: Iterable[tuple[int, ChatMessage]], repairs: list[Repair]
) -> Iterator[tuple[int, ChatMessage]]:
    """Yield the messages, reasoning in the ones that it led to."""
    silent: list[tuple[int, ChatMessage]] = []
    for index, message in output:
        if message.role is not MessageRole.ASSISTANT:
            if silent and has_more_than(message, results_in(message)):
                repairs += [Repair(RepairRule.SILENT, place) for place, _ in silent]
                silent.clear()
            yield index, message
        elif is_silent(message):
            silent.append((index, message))
        else:
            joined = with_thoughts([thought for _, thought in silent], message)
            for place, thought in silent:
                led = holds_thoughts(thought)
                rule = RepairRule.JOINED if led else RepairRule.SILENT
                repairs.append(Repair(rule, place))
            shown, last = without_last_thoughts(joined)
            silent = [] if last is None else [(index, last)]
            yield index, shown
    repairs += [Repair(RepairRule.SILENT, place) for place, _ in silent]


def _with_user(
    output: Sequence[tuple[int, ChatMessage]],
    opening: str,
    continued: str,
    repairs: list[Repair],
) -> Iterator[ChatMessage]:
    """Yield the messages, and placeholders where a turn of the user's is missing."""
    former: ChatMessage | None = None
    for index, message in output:
        if not is_preamble(message):
            if former is None and not is_user_turn(message):
                repairs.append(Repair(RepairRule.OPENING, index))
                yield ChatMessage.user(opening)
            elif former is not None and _goes_on(former, message):
                repairs.append(Repair(RepairRule.CONTINUED, index))
                yield ChatMessage.user(continued)
            former = message
        yield message


def _goes_on(former: ChatMessage, message: ChatMessage) -> bool:
    """Whether the assistant asks for calls behind something that it said."""
    return former.role is MessageRole.ASSISTANT and bool(calls_in(message))


def _missing(call: Call) -> RepairRule:
    return RepairRule.STILL_RUNNING if call.long_running else RepairRule.INTERRUPTED


class _Run(NamedTuple):
    """What stands behind a message until something else is said."""

    carriers: list[int]
    """The messages that are nothing but results."""
    last: int | None
    """A message with results that says something too, and so ends the run."""
    at_end: bool
    """Whether nothing follows."""


class _Arranger:
    def __init__(
        self, messages: Sequence[ChatMessage | None], groups: CallGroups
    ) -> None:
        self._messages = messages
        self.group_at: Final = {group.message_index: group for group in groups.groups}
        self.repairs: Final[list[Repair]] = []
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
        self.repairs.append(Repair(rule, result.message_index, result.id))

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
                self.repairs.append(
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
        yield from self._rebuilt(group, run, texts if unanswered else {})

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
        gemini = False
        for index in places:
            marks = results_in(self._at(index))
            if any(self._chosen.get((index, m.part)) is not group for m in marks):
                return None
            if index == run.last and [m.part for m in marks] != [*range(len(marks))]:
                return None
            parted += marks[0].part is not None
            gemini = gemini or any(m.shape is CallShape.GEMINI for m in marks)
        return None if gemini and parted > 1 else places

    def _rebuilt(
        self, group: CallGroup, run: _Run, texts: Mapping[RepairRule, str]
    ) -> Iterator[ChatMessage]:
        settled = set(run.carriers)
        parts = ResultParts()
        highest = -1
        for call in group.calls:
            if call.results:
                result = call.results[-1]
                moved = (
                    result.message_index not in settled
                    or result.message_index < highest
                )
                highest = max(highest, result.message_index)
                if result.part is None:
                    yield self._at(result.message_index)
                else:
                    source = self._at(result.message_index)
                    moved = not parts.add(source, result.part) or moved
                if moved:
                    self._report(RepairRule.MOVED, result)
            elif texts:
                rule = _missing(call)
                self.repairs.append(Repair(rule, call.message_index, call.id))
                part = placeholder_part(call, texts[rule])
                if part is None:
                    yield placeholder_message(call, texts[rule])
                else:
                    parts.add_new(part, self._at(call.message_index))
        yield from parts.messages()
