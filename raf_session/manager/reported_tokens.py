"""What providers report of requests, and what it says of our count of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from raf_session.frozen import freeze
from raf_session.json_text import dump_json
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.tokens import Calibration, TokenCounter

__all__ = ("CALIBRATION", "CountedRequest", "header_tokens", "stored_calibration")

CALIBRATION: Final = "raf_session.calibration"
"""The provider state that holds the `Calibration` of a session: its ``eighths``."""


def stored_calibration(state: Any) -> Calibration:
    """Return what a session's `CALIBRATION` state says."""
    if not isinstance(state, Mapping):
        return Calibration()
    return Calibration(cast("Mapping[str, int]", state)["eighths"])


def header_tokens(header: Any, counter: TokenCounter) -> int:
    """Return about how many tokens tools and what else stands beside messages are."""
    if not header:
        return 0
    return counter.count(ChatMessage.user(dump_json(freeze(header, "header"))))


class CountedRequest(NamedTuple):
    """A request that was recorded, until the provider's usage of it is known."""

    tokens: int
    """Of all of it, by the counter."""
    unsaved: Sequence[ChatMessage]
    """What of it was not stored yet."""

    def led_to(self, messages: Sequence[ChatMessage]) -> bool:
        """Tell whether the last reply among these answers the request.

        It does not where the request had it already, or had not what stands in front of
        it: there was another request, of which nothing is known.
        """
        replies = [i for i, m in enumerate(messages) if m.role is MessageRole.ASSISTANT]
        if not replies:
            return False
        sent = [message.wire() for message in self.unsaved]
        reply, front = messages[replies[-1]], messages[: replies[-1]]
        return reply.wire() not in sent and all(m.wire() in sent for m in front)

    def calibrated(self, former: Calibration, reported: Usage) -> Calibration:
        """Return the calibration that the provider's usage of this request makes."""
        return former.observed(self.tokens, reported.prompt_tokens)
