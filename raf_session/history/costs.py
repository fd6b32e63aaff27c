"""`TokenCosts`: the tokens of what a window may show, each counted once."""

from __future__ import annotations

from typing import Final

from raf_session.messages import ChatMessage, MessageRole
from raf_session.tokens import TokenCounter
from raf_session.toolcalls import INTERRUPTED, STILL_RUNNING, CallShape
from raf_session.toolcalls.groups import Call
from raf_session.toolcalls.matching import CallSlot
from raf_session.toolcalls.results import placeholder_message, placeholder_part

__all__ = ("TokenCosts",)


class TokenCosts:
    """Counts tokens, and remembers those of messages and of placeholders.

    Args:
        counter: what counts them.
        long_running: the ids of calls whose tools answer later.
    """

    def __init__(self, counter: TokenCounter, long_running: frozenset[str]) -> None:
        self._counter: Final = counter
        self._long_running: Final = long_running
        self._known: dict[int, tuple[ChatMessage, int]] = {}
        """By identity, which holding the message keeps unique."""
        self._placeholders: dict[tuple[CallShape, str, str | None, bool], int] = {}

    def of(self, message: ChatMessage) -> int:
        """Return the tokens of a message that is shown again and again."""
        known = self._known.get(id(message))
        if known is None:
            tokens = self._counter.count(message)
            known = self._known[id(message)] = message, tokens
        return known[1]

    def restate(self, former: ChatMessage, message: ChatMessage) -> None:
        """Take a message for one that it equals but for what is never sent."""
        self._known[id(message)] = message, self.of(former)

    def once(self, message: ChatMessage) -> int:
        """Return the tokens of a message that may be made anew for each view."""
        known = self._known.get(id(message))
        return self._counter.count(message) if known is None else known[1]

    def of_placeholder(self, slot: CallSlot) -> int:
        """Return the tokens of what stands for the result of a call, if need be."""
        mark = slot.mark
        long = mark.id in self._long_running
        key = mark.shape, mark.kind, mark.name, long
        cost = self._placeholders.get(key)
        if cost is None:
            cost = self._placeholders[key] = self._counter.count(
                _placeholder(slot, long_running=long)
            )
        return cost


def _placeholder(slot: CallSlot, *, long_running: bool) -> ChatMessage:
    call = Call(
        slot.index,
        slot.number,
        *slot.mark[:5],
        (),
        is_open=True,
        long_running=long_running,
    )
    text = STILL_RUNNING if long_running else INTERRUPTED
    part = placeholder_part(call, text)
    if part is None:
        return placeholder_message(call, text)
    return ChatMessage.from_openai({"role": MessageRole.USER.value, "content": [part]})
