"""`arrange`: a history as a request needs it, with nothing lost that was said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from raf_session.messages import ChatMessage, MessageRole
from raf_session.toolcalls.matching import find_groups
from raf_session.toolcalls.placement import Placement
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
from raf_session.toolcalls.shapes import (
    calls_in,
    has_more_than,
    is_preamble,
    is_user_turn,
    results_in,
)
from raf_session.toolcalls.tidying import tidy

__all__ = ("arrange",)


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
    calls.  Where only some are Gemini's, the others are written as these, since Gemini
    takes no other beside them.  What else such a message said stays where it was.
    Calls without any result get a placeholder, in the shape of the call, if another
    message follows.  Results without a call leave.  A call whose id an earlier one has
    gets another, and its result too (Anthropic takes an id once in a request).

    Where the first message that is no instruction is not a user's turn, a placeholder
    of role ``user`` is put in front of it, and another one between a message of the
    assistant and its calls in the next (Gemini takes calls only behind the user and
    behind results).  Messages in which the assistant only thinks become a part of its
    next message, if nothing but results stands between (OpenAI refuses reasoning
    without what it led to); so does reasoning at the end of a message.  Where it led to
    nothing, and where nothing is said or thought, it leaves.  So do empty lists of
    calls, empty texts beside other parts, and thinking of Anthropic's that is not
    signed.  A user who says nothing is given a placeholder.

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
    tidied = [None if message is None else tidy(message) for message in messages]
    messages = [None if each is None else each.message for each in tidied]
    repairs = [
        Repair(rule, index)
        for index, each in enumerate(tidied)
        if each is not None
        for rule in each.rules
    ]
    placement = Placement(messages, find_groups(messages, long_running), repairs)
    texts = {
        RepairRule.INTERRUPTED: interrupted,
        RepairRule.STILL_RUNNING: still_running,
    }
    output: list[tuple[int, ChatMessage]] = []
    for index, message in enumerate(messages):
        group = placement.group_at.get(index)
        if group is not None:
            block = placement.block(group, texts, close_end=close_end)
            output += [(index, m) for m in block]
        elif message is not None:
            rest = placement.rest(index, message)
            if rest is not None:
                output.append((index, rest))
    joined = list(_without_silence(output, repairs))
    spoken = tuple(_with_user(joined, opening, continued, repairs))
    repairs.sort(key=lambda repair: repair.message_index)
    return Arrangement(spoken, tuple(repairs))


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
