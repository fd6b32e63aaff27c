"""The document's summary message: made, recognised and read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from raf_session.history import SUMMARY_TYPE
from raf_session.messages import ChatMessage, MessageRole

__all__ = (
    "SUMMARY_HEADING",
    "is_summary",
    "original_count",
    "summary_message",
    "summary_of",
    "summary_text",
)

SUMMARY_HEADING: Final = "[历史摘要]"
"""What a summary's text begins with, as the document prints it."""


def summary_message(text: str, count: int, moment: datetime) -> ChatMessage:
    """Return the summary message of the document.

    Args:
        text: the summary.
        count: how many messages it stands for.
        moment: when it was written, aware; stored to the second.
    """
    return ChatMessage(
        role=MessageRole.ASSISTANT,
        content=f"{SUMMARY_HEADING} {text}",
        metadata={
            "type": SUMMARY_TYPE,
            "original_count": count,
            "compacted_at": f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        },
        created_at=moment,
    )


def is_summary(message: ChatMessage | None) -> bool:
    """Tell whether this message is a summary."""
    return message is not None and message.metadata.get("type") == SUMMARY_TYPE


def summary_text(message: ChatMessage) -> str:
    """Return the text of a summary without its heading."""
    return message.text.removeprefix(SUMMARY_HEADING).strip()


def original_count(message: ChatMessage) -> int:
    """Return how many messages a summary stands for; 0 where it does not say."""
    count = message.metadata.get("original_count")
    return count if isinstance(count, int) else 0


def summary_of(messages: Iterable[ChatMessage | None]) -> str:
    """Return the text of the summaries among these messages, ``""`` without one."""
    found = [summary_text(m) for m in messages if m is not None and is_summary(m)]
    return "\n\n".join(filter(None, found))
