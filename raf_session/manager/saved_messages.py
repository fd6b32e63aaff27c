"""What a session stores of messages where tool calls are not saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raf_session.history.stripping import without_calls, without_results
from raf_session.messages import ChatMessage
from raf_session.toolcalls import calls_in, find_groups, results_in

__all__ = ("without_tool_calls",)


def without_tool_calls(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return what messages say beside calls and results.

    Those that hold nothing else leave, and so does reasoning that led to calls alone.
    """
    callers = {place for place, message in enumerate(messages) if calls_in(message)}
    reasoning = {
        place
        for linked in find_groups(messages).linked
        if not callers.isdisjoint(linked)
        for place in linked
    }
    return list(_kept(messages, callers, reasoning - callers))


def _kept(
    messages: Sequence[ChatMessage], callers: set[int], reasoning: set[int]
) -> Iterator[ChatMessage]:
    for place, message in enumerate(messages):
        rest: ChatMessage | None = message
        if place in reasoning:
            continue
        if place in callers:
            rest = without_calls(message, None)
        elif results_in(message):
            rest = without_results(message)
        if rest is not None:
            yield rest
