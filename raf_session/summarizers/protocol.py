"""`Summarizer`: messages and the last summary in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from raf_session.messages import ChatMessage

__all__ = ("Summarizer", "check_input")


class Summarizer(Protocol):
    """Writes the summary that stands for messages which leave a session's window."""

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        """Return a summary of everything up to the last of these messages.

        It changes nothing: neither the arguments nor a session.  Whoever calls stores
        the text, or leaves the history as it was.

        Args:
            messages: what is new since `previous`, whole and in order; all of them are
                taken into account.
            previous: the summary of what came before, which the new one takes the
                place of; `None`: nothing came before.

        Returns:
            The text, which is not blank.  Without new messages it is `previous`.

        Raises:
            ValueError: there is nothing to summarise: no message and no summary.
            SummaryFailedError: there is no usable summary; any other error of an
                implementation means the same.
        """
        ...


def check_input(messages: Sequence[ChatMessage], previous: str | None) -> str:
    """Return the previous summary without blanks around it, ``""`` for none.

    Raises:
        ValueError: there is nothing to summarise: no message and no summary.
    """
    text = (previous or "").strip()
    if not messages and not text:
        raise ValueError("there is nothing to summarise: no message and no summary")
    return text
