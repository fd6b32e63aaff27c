"""What the two APIs of OpenAI have in common: fields, defaults and cache options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from raf_session.request_shapes.fields import (
    TRANSPORT,
    Reducer,
    dropping,
    is_object,
    unexpected,
    unless,
)
from raf_session.request_shapes.marks import parse_ttl

__all__ = ("OPENAI_FIELDS", "is_explicit", "read_cache_keys", "read_ttl")

_KEYS: Final = ("prompt_cache_key", "cache_salt", "user_id")


def _forced_choice(value: Any) -> Any:
    # The caching guide names `none` and `allowed_tools` as the ways to hold tools back
    # that keep the prefix; `auto` is the default.
    if is_object(value) and value.get("type") == "allowed_tools":
        return None
    return unless("auto", "none")(value)


OPENAI_FIELDS: Final[Mapping[str, Reducer]] = {
    **dropping("metadata", "user", "safety_identifier", "store", "moderation"),
    **dropping("stream", "stream_options", "temperature", "top_p", "top_logprobs"),
    **dropping(*_KEYS, "prompt_cache_retention", "prompt_cache_options"),
    **dropping("cache_control", *TRANSPORT),
    "tool_choice": _forced_choice,
    # The defaults that the API reference gives.
    "parallel_tool_calls": unless(True),
    "service_tier": unless("auto"),
}


def read_cache_keys(body: Mapping[str, Any]) -> dict[str, str]:
    """Return what partitions the cache: OpenAI's, vLLM's or DeepSeek's field.

    Raises:
        InvalidValueError: one is no string.
    """
    keys: dict[str, str] = {}
    for name in _KEYS:
        value = body.get(name)
        if isinstance(value, str):
            keys[name] = value
        elif value is not None:
            raise unexpected(name, value, "a string")
    return keys


def is_explicit(body: Mapping[str, Any]) -> bool:
    """Whether the body asks for prefixes to be cached at its breakpoints alone."""
    options = body.get("prompt_cache_options")
    return is_object(options) and options.get("mode") == "explicit"


def read_ttl(body: Mapping[str, Any]) -> int | None:
    """Return how many seconds the body asks for the cache to be kept, or `None`."""
    options = body.get("prompt_cache_options")
    ttl = parse_ttl(options.get("ttl")) if is_object(options) else None
    # `in_memory`, the other retention, promises no time.
    return parse_ttl(body.get("prompt_cache_retention")) if ttl is None else ttl
