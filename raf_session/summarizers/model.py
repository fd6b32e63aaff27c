"""`ModelSummarizer`: summaries by any model that is an async callable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from raf_session.errors import SummaryFailedError
from raf_session.messages import ChatMessage
from raf_session.summarizers.prompt import SUMMARY_PROMPT, render_request
from raf_session.summarizers.protocol import check_input
from raf_session.summarizers.transcript import CHUNK_CHARS, render_chunks

__all__ = ("ModelSummarizer",)


class ModelSummarizer:
    """A `Summarizer` that asks a model in requests of their own.

    Each request is the prompt as the system message, then one user message with the
    last summary and a transcript.  A transcript that is longer than `chunk_chars` goes
    in parts, each summarised onto the result of the one before.

    Args:
        model: from messages to a message, a dict in OpenAI's shape, or text.
        prompt: the system message; `None`: `SUMMARY_PROMPT`.
        chunk_chars: characters of transcript in one request.
    """

    def __init__(
        self,
        model: Callable[[list[ChatMessage]], Awaitable[Any]],
        *,
        prompt: str | None = None,
        chunk_chars: int = CHUNK_CHARS,
    ) -> None:
        if not callable(model):
            raise TypeError(f"a model is an async callable, not {model!r}")
        if chunk_chars < 1:
            raise ValueError(f"chunk_chars={chunk_chars} is under 1")
        self._model = model
        self._prompt = prompt or SUMMARY_PROMPT
        self._chunk_chars = chunk_chars

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        """Return a summary of everything up to the last of these messages.

        Raises:
            ValueError: there is no message and no summary.
            SummaryFailedError: an answer of the model's is no text.
        """
        summary = check_input(messages, previous)
        for chunk in render_chunks(messages, chunk_chars=self._chunk_chars):
            request = render_request(chunk, summary)
            summary = _text(
                await self._model(
                    [ChatMessage.system(self._prompt), ChatMessage.user(request)]
                )
            )
        return summary


def _text(answer: object) -> str:
    """Return the text of an answer.

    Raises:
        SummaryFailedError: there is none.
    """
    if isinstance(answer, Mapping):
        fields = cast("Mapping[str, Any]", answer)
        answer = ChatMessage.from_openai({"role": "assistant", **fields})
    if isinstance(answer, ChatMessage):
        if answer.refusal:
            raise SummaryFailedError("refused", answer.refusal)
        answer = answer.text
    if not isinstance(answer, str):
        raise SummaryFailedError("malformed", f"{type(answer).__name__} is no message")
    if not answer.strip():
        raise SummaryFailedError("empty", "the answer holds no text")
    return answer.strip()
