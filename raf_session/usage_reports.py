"""`read_usage`: the usage object of any provider's answer, as `Usage`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from raf_session.errors import InvalidValueError
from raf_session.messages import Usage

__all__ = ("read_usage",)


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Return the tokens of a usage object, whichever provider wrote it.

    OpenAI's Chat Completions and Responses, Anthropic's Messages, DeepSeek, Gemini
    (``usageMetadata``, in either spelling) and Bedrock's Converse are told apart by
    their names.  `prompt_tokens` is the whole prompt, and `completion_tokens` the whole
    output with its reasoning, also where the provider gives them in parts.  What the
    object does not say of the cache stays `None`; misses are those it states or, at
    Anthropic and Bedrock, the parts that are no reads.

    Raises:
        InvalidValueError: no object, none that is known, or a number of tokens that is
            no integer from 0, with its path.
    """
    if not isinstance(usage, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError("", "a usage report is an object")
    for marks, read in _READERS:
        if not marks.isdisjoint(usage):
            return read(usage)
    raise InvalidValueError("", "no usage report that is known")


def _chat(usage: Mapping[str, Any]) -> Usage:
    hit = _count(usage, "prompt_cache_hit_tokens")
    miss = _count(usage, "prompt_cache_miss_tokens")
    prompt = _count(usage, "prompt_tokens")
    if hit is None:
        hit = _count(usage, "prompt_tokens_details.cached_tokens")
    return _usage(
        (hit or 0) + (miss or 0) if prompt is None else prompt,
        _count(usage, "completion_tokens"),
        _count(usage, "total_tokens"),
        hit,
        miss,
        _count(usage, "completion_tokens_details.reasoning_tokens"),
    )


def _responses(usage: Mapping[str, Any]) -> Usage:
    return _usage(
        _count(usage, "input_tokens"),
        _count(usage, "output_tokens"),
        _count(usage, "total_tokens"),
        _count(usage, "input_tokens_details.cached_tokens"),
        None,
        _count(usage, "output_tokens_details.reasoning_tokens"),
    )


def _anthropic(usage: Mapping[str, Any]) -> Usage:
    return _parts(
        _count(usage, "input_tokens"),
        _count(usage, "cache_read_input_tokens"),
        _count(usage, "cache_creation_input_tokens"),
        _count(usage, "output_tokens"),
    )


def _bedrock(usage: Mapping[str, Any]) -> Usage:
    return _parts(
        _count(usage, "inputTokens"),
        _count(usage, "cacheReadInputTokens"),
        _count(usage, "cacheWriteInputTokens"),
        _count(usage, "outputTokens"),
    )


def _gemini(usage: Mapping[str, Any]) -> Usage:
    def count(camel: str, snake: str) -> int | None:
        value = _count(usage, camel)
        return _count(usage, snake) if value is None else value

    thoughts = count("thoughtsTokenCount", "thoughts_token_count")
    return _usage(
        count("promptTokenCount", "prompt_token_count"),
        (count("candidatesTokenCount", "candidates_token_count") or 0)
        + (thoughts or 0),
        count("totalTokenCount", "total_token_count"),
        count("cachedContentTokenCount", "cached_content_token_count"),
        None,
        thoughts,
    )


_READERS: Final = (
    (frozenset(("cache_read_input_tokens", "cache_creation_input_tokens")), _anthropic),
    (frozenset(("prompt_tokens", "prompt_cache_hit_tokens")), _chat),
    (frozenset(("input_tokens",)), _responses),
    (frozenset(("promptTokenCount", "prompt_token_count")), _gemini),
    (frozenset(("inputTokens", "cacheReadInputTokens")), _bedrock),
)
"""What a report has at least one of, and who reads it; the first that fits."""


def _parts(
    rest: int | None, read: int | None, written: int | None, output: int | None
) -> Usage:
    # The prompt in three parts that do not overlap.
    miss = (rest or 0) + (written or 0)
    return _usage(
        miss + (read or 0), output, None, read, None if read is None else miss, None
    )


def _usage(  # noqa: PLR0917  (the fields in their order)
    prompt: int | None,
    completion: int | None,
    total: int | None,
    hit: int | None,
    miss: int | None,
    reasoning: int | None,
) -> Usage:
    prompt, completion = prompt or 0, completion or 0
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion if total is None else total,
        prompt_cache_hit_tokens=hit,
        prompt_cache_miss_tokens=miss,
        reasoning_tokens=reasoning,
    )


def _count(usage: Mapping[str, Any], path: str) -> int | None:
    owner, _, name = path.rpartition(".")
    found = usage.get(owner) if owner else usage
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise InvalidValueError(owner, f"an object, not {type(found).__name__}")
    value = cast("Mapping[str, Any]", found).get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        kind = type(value).__name__
        raise InvalidValueError(path, f"a number of tokens is an integer, not {kind}")
    if value < 0:
        raise InvalidValueError(path, f"{value} tokens are less than none")
    return value
