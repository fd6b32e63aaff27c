"""`SessionSummarizer` and `SummarizerSessionManager`: how and when to summarise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from raf_session.attempts import ask_summarizer
from raf_session.messages import ChatMessage
from raf_session.service.progress import summary_progress
from raf_session.service.sessions import Session
from raf_session.summarizers.model import ModelSummarizer
from raf_session.summarizers.protocol import Summarizer

__all__ = ("SessionSummarizer", "SummarizerSessionManager")

_DEFAULT_CONVERSATIONS: Final = 100


class SessionSummarizer:
    """Writes the summaries of sessions. tRPC-Agent: ``SessionSummarizer``.

    Args:
        model: a `Summarizer`, or an async callable from messages to a message or text.
        summarizer: the same by the name of the other face.
        summarizer_prompt: what a model is told; `None`: the prompt of
            `ModelSummarizer`.
        check_summarizer_functions: triggers; see `SummarizerSessionManager`.
        max_summary_length: characters that a summary may have; longer ones are cut.
            `None`: no limit.
        keep_recent_count: how many events stay as they are, at least.
        start_by_user_turn: let these begin with a message of the user's.
        timeout_secs: how long one summary may take.

    Raises:
        ValueError: a number out of range, or a prompt for what is no model.
        TypeError: neither `model` nor `summarizer`, or both.
    """

    def __init__(
        self,
        model: Summarizer | Callable[[list[ChatMessage]], Awaitable[Any]] | None = None,
        *,
        summarizer: Summarizer | None = None,
        summarizer_prompt: str | None = None,
        check_summarizer_functions: Sequence[Callable[[Session], bool]] = (),
        max_summary_length: int | None = None,
        keep_recent_count: int = 10,
        start_by_user_turn: bool = True,
        timeout_secs: float = 120.0,
    ) -> None:
        if (model is None) == (summarizer is None):
            raise TypeError("a SessionSummarizer needs a model or a summarizer")
        if max_summary_length is not None and max_summary_length < 1:
            raise ValueError(f"max_summary_length={max_summary_length} is under 1")
        if keep_recent_count < 0:
            raise ValueError(f"keep_recent_count={keep_recent_count} is negative")
        if not 0 < timeout_secs < float("inf"):
            raise ValueError(f"timeout_secs={timeout_secs} is no time to wait")
        chosen: Any = summarizer if model is None else model
        if not hasattr(chosen, "summarize"):
            chosen = ModelSummarizer(chosen, prompt=summarizer_prompt)
        elif summarizer_prompt is not None:
            raise ValueError("summarizer_prompt is for a model; this has its own")
        self.summarizer: Summarizer = chosen
        self.check_summarizer_functions: Sequence[Callable[[Session], bool]] = tuple(
            check_summarizer_functions
        )
        self.max_summary_length = max_summary_length
        self.keep_recent_count = keep_recent_count
        self.start_by_user_turn = start_by_user_turn
        self.timeout_secs = timeout_secs

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None
    ) -> str:
        """Return the text of the summary, without blanks around it.

        Raises:
            SummaryFailedError: there is none: an error, an empty text, no answer in
                time.
        """
        text = await ask_summarizer(
            self.summarizer, messages, previous, timeout_secs=self.timeout_secs
        )
        return text[: self.max_summary_length].rstrip()


class SummarizerSessionManager:
    """Decides when sessions are summarised. tRPC-Agent: ``SummarizerSessionManager``.

    Without triggers it summarises after 100 messages of the user's.  With several, any
    of them fires, unless `set_summarizer_check_functions_by_and` combines them.

    Args:
        model: what a `SessionSummarizer` of its own stands on.
        summarizer: how to summarise.
        auto_summarize: look after each final response; else only
            `create_session_summary` summarises.

    Raises:
        TypeError: neither `model` nor `summarizer`, or both.
    """

    def __init__(
        self,
        model: Any = None,
        summarizer: SessionSummarizer | Summarizer | None = None,
        *,
        auto_summarize: bool = True,
    ) -> None:
        if isinstance(summarizer, SessionSummarizer):
            if model is not None:
                raise TypeError("a model and a SessionSummarizer are two summarizers")
            self.summarizer: SessionSummarizer = summarizer
        else:
            self.summarizer = SessionSummarizer(model, summarizer=summarizer)
        self.auto_summarize = auto_summarize
        self._checks = list(self.summarizer.check_summarizer_functions)

    @property
    def check_functions(self) -> tuple[Callable[[Session], bool], ...]:
        """The triggers, of which any fires."""
        return tuple(self._checks)

    def add_check_function(self, function: Callable[[Session], bool]) -> None:
        """Add a trigger."""
        self._checks.append(function)

    def set_check_functions(
        self, functions: Sequence[Callable[[Session], bool]]
    ) -> None:
        """Replace the triggers."""
        self._checks = list(functions)

    def should_summarize(self, session: Session) -> bool:
        """Tell whether a session, with all its events, is due."""
        if not self._checks:
            done = summary_progress(session)
            return done.conversations >= _DEFAULT_CONVERSATIONS
        return any(check(session) for check in self._checks)
