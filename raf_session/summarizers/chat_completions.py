"""`ChatCompletionsSummarizer`: summaries by a model behind OpenAI's chat API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

import anyio
from pydantic import BaseModel, Field, ValidationError

from raf_session.errors import SummaryFailedError
from raf_session.graphemes import cut_text, whole_characters
from raf_session.messages import ChatMessage
from raf_session.summarizers.prompt import SUMMARY_PROMPT, render_request
from raf_session.summarizers.protocol import check_input
from raf_session.summarizers.transcript import (
    CHUNK_CHARS,
    MAX_VALUE_CHARS,
    render_chunks,
)

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI, OpenAIError

__all__ = ("SUMMARY_PROMPT", "ChatCompletionsSummarizer")

_THINKING: Final = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_LONGEST_DETAIL: Final = 300


class ChatCompletionsSummarizer:
    """A `Summarizer` that asks any server with OpenAI's ``/chat/completions``.

    Each request is one of its own: the prompt as the system message, then one user
    message with the last summary and a transcript.  A transcript that is longer than
    `chunk_chars` goes in parts, each summarised onto the result of the one before, so
    every message is in some request.  Only text counts as an answer: a refusal, blank
    text, and text that was cut off at the token limit, which has lost what stood at
    its end, are failures.  A leading ``<think>`` block is no part of the text.

    The client repeats a request where the server asks for it (429, 5xx) or the
    connection broke, at most `max_retries` times and within `timeout_secs`.

    An instance belongs to the event loop on which it is used first.

    Args:
        base_url: where the API is, as ``https://api.deepseek.com/v1``; `None`: the
            client's own, or what ``OPENAI_BASE_URL`` says.
        model: the model's name.
        api_key: sent as the bearer token; `None`: the client's own, or what
            ``OPENAI_API_KEY`` says.
        prompt: the system message.
        timeout_secs: seconds that one request may take in all, repeats included.
        max_tokens: sent with each request; `None`: the server's own limit.
        chunk_chars: characters of transcript in one request, at least 1,000.
        max_value_chars: as for `render_message`.
        max_retries: how often a request is repeated; `None`: as the client does it.
        client: an open client, which is never closed here; `None`: one is made, and
            closed by `aclose`.

    Raises:
        ValueError: a limit is out of range, the model has no name, or there is no key.
        ModuleNotFoundError: the package ``openai`` is not installed.
    """

    def __init__(
        self,
        base_url: str | None,
        model: str,
        api_key: str | None = None,
        *,
        prompt: str = SUMMARY_PROMPT,
        timeout_secs: float = 120.0,
        max_tokens: int | None = None,
        chunk_chars: int = CHUNK_CHARS,
        max_value_chars: int = MAX_VALUE_CHARS,
        max_retries: int | None = None,
        client: AsyncOpenAI | None = None,
    ) -> None:
        if not model:
            raise ValueError("the model has no name")
        for name, value, least in (
            ("chunk_chars", chunk_chars, 1000),
            ("max_value_chars", max_value_chars, 0),
            ("max_tokens", 1 if max_tokens is None else max_tokens, 1),
            ("max_retries", max_retries or 0, 0),
        ):
            if value < least:
                raise ValueError(f"{name} is at least {least}, not {value}")
        if not 0 < timeout_secs < float("inf"):
            raise ValueError(f"timeout_secs is above 0 and finite, not {timeout_secs}")
        options: dict[str, Any] = {
            name: value
            for name, value in (
                ("base_url", base_url),
                ("api_key", api_key),
                ("max_retries", max_retries),
            )
            if value is not None
        }
        self._owned = client is None
        if client is None:
            self._client = _open_client(options)
        else:
            self._client = client.with_options(**options) if options else client
        self._model = model
        self._prompt = prompt
        self._timeout_secs = timeout_secs
        self._limits = None if max_tokens is None else {"max_tokens": max_tokens}
        self._chunk_chars = chunk_chars
        self._max_value_chars = max_value_chars

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client that was made here; one that was given stays open."""
        if self._owned:
            await self._client.close()

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        """Return a summary of everything up to the last of these messages.

        Raises:
            ValueError: there is no message and no summary.
            SummaryFailedError: some request got no usable answer; `reason` tells why.
        """
        summary = check_input(messages, previous)
        for chunk in render_chunks(
            messages,
            chunk_chars=self._chunk_chars,
            max_value_chars=self._max_value_chars,
        ):
            summary = await self._ask(render_request(chunk, summary))
        return summary

    async def _ask(self, request: str) -> str:
        from openai import OpenAIError

        completions = self._client.chat.completions.with_raw_response
        try:
            with anyio.fail_after(self._timeout_secs):
                answer = await completions.create(
                    model=self._model,
                    messages=[
                        {"role": "system", "content": whole_characters(self._prompt)},
                        {"role": "user", "content": request},
                    ],
                    timeout=self._timeout_secs,
                    extra_body=self._limits,
                )
        except TimeoutError as error:
            attempts = None if self._client.max_retries else 1
            raise self._timed_out(attempts) from error
        except OpenAIError as error:
            raise self._failed(error) from error
        return _text(answer.content, answer.retries_taken + 1)

    def _timed_out(self, attempts: int | None) -> SummaryFailedError:
        detail = f"no answer within {self._timeout_secs:g} seconds"
        return SummaryFailedError("timeout", detail, attempts)

    def _failed(self, error: OpenAIError) -> SummaryFailedError:
        from openai import APIError, APIStatusError, APITimeoutError

        attempts = None
        if isinstance(error, APIError):
            retries = error.request.headers.get("x-stainless-retry-count", "")
            attempts = int(retries) + 1 if retries.isdecimal() else None
        if isinstance(error, APITimeoutError):
            return self._timed_out(attempts)
        if isinstance(error, APIStatusError):
            return SummaryFailedError("status", self._status(error), attempts)
        detail = str(error.__cause__ or error) or type(error).__name__
        return SummaryFailedError("connection", self._shown(detail), attempts)

    def _status(self, error: APIStatusError) -> str:
        shown = f"HTTP {error.status_code}"
        body: object = error.body
        if not isinstance(body, Mapping):
            return shown
        said = cast("Mapping[str, object]", body).get("message")
        return f"{shown}: {self._shown(said)}" if isinstance(said, str) else shown

    def _shown(self, detail: str) -> str:
        """Return what a server said in one line, without the key."""
        key = self._client.api_key
        hidden = detail.replace(key, "***") if key else detail
        return cut_text(" ".join(whole_characters(hidden).split()), _LONGEST_DETAIL)


def _open_client(options: dict[str, Any]) -> AsyncOpenAI:
    try:
        from openai import AsyncOpenAI, OpenAIError
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise ModuleNotFoundError(
            "ChatCompletionsSummarizer needs the package openai: "
            "pip install 'raf-session[openai]'",
            name="openai",
        ) from error
    try:
        return AsyncOpenAI(**options)
    except OpenAIError as error:  # no key, neither here nor in the environment
        raise ValueError(str(error)) from error


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


def _text(body: bytes, attempts: int) -> str:
    """Return the text of an answer.

    Raises:
        SummaryFailedError: there is none, or none that can be used.
    """
    try:
        choice = _Answer.model_validate_json(body).choices[0]
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the answer"
        detail = cut_text(f"{place}: {fault['msg']}", _LONGEST_DETAIL)
        raise SummaryFailedError("malformed", detail, attempts) from error
    if choice.message.refusal or choice.finish_reason == "content_filter":
        said = choice.message.refusal or "the content filter stopped the answer"
        detail = cut_text(said, _LONGEST_DETAIL)
        raise SummaryFailedError("refused", detail, attempts)
    if choice.finish_reason == "length":
        detail = "the answer was cut off at the token limit"
        raise SummaryFailedError("truncated", detail, attempts)
    text = _THINKING.sub("", choice.message.content or "", count=1).strip()
    if not text:
        raise SummaryFailedError("empty", "the answer holds no text", attempts)
    return text
