"""`PromptRequest`: what of a request body a prompt cache sees, in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from raf_session.frozen import EMPTY

__all__ = ("CacheMark", "PromptRequest", "RequestShape")


class RequestShape(StrEnum):
    """The APIs whose request bodies can be read."""

    OPENAI_CHAT = "openai-chat"
    """Chat Completions; also DeepSeek, vLLM, SGLang and whoever speaks it."""

    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    """The Messages API."""

    GEMINI = "gemini"
    """``generateContent``, as REST takes it or as google-genai's arguments."""

    BEDROCK = "bedrock"
    """The Converse API."""


class CacheMark(NamedTuple):
    """A mark of the caller's: the prefix that ends here is to be cached."""

    message: int | None
    """The message that it stands in or on; `None`: the tools or the system prompt."""

    part: int | None
    """The parts of that message up to and with the marked one; `None`: all of them.

    Counted as in the reduced message, where a mark is no part.
    """

    ttl_seconds: int | None
    """How long it asks for; `None`: the provider's default."""

    in_tools: bool = False
    """Whether it stands in the tools."""


class PromptRequest(NamedTuple):
    """A request body, reduced to what is rendered into the prompt.

    `PrefixTracker.touch` takes the messages and the header.  Nothing is copied that
    need not be: the values inside are the body's own.
    """

    shape: RequestShape
    header: Mapping[str, Any]
    """What is rendered in front of the messages, or changes how, in reading order.

    ``model``, ``tools`` and ``system`` under these names, parameters under their own.
    What is absent, null, or the provider's documented default is left out.
    """

    messages: Sequence[Mapping[str, Any]]
    """Each as `ChatMessage.from_openai` takes it: a role that we know was added or put
    in place of the provider's, and nothing else was renamed."""

    names: Mapping[str, str]
    """Where in the body a header field, or ``messages``, stands, if not under its name:
    ``{"messages": "input", "tools": "toolConfig.tools"}``."""

    marks: tuple[CacheMark, ...] | None
    """The cache marks, in order; `None` where none is set and the API needs none."""

    cache_keys: Mapping[str, str] = EMPTY
    """What partitions a cache, by its field; never rendered.

    ``prompt_cache_key``, ``cache_salt``, DeepSeek's ``user_id``.
    """

    places: Sequence[str | Sequence[str]] | None = None
    """Where in the body each message stands, if not at its index; of one that was made
    of several elements, where each of its parts does."""

    explicit: bool = False
    """Whether the body asks for prefixes to be cached at its marks alone."""

    ttl_seconds: int | None = None
    """How long the body asks for the cache to be kept, apart from its marks."""
