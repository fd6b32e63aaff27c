"""`compare_requests`: two whole request bodies, of whichever API."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from raf_session.body_paths import in_body, touch_body
from raf_session.cache_positions import CacheLayout, cache_hints
from raf_session.prefix import PrefixMatch, PrefixTracker
from raf_session.prefix_evidence import Evidence, Header
from raf_session.prefix_explanation import explain
from raf_session.request_shapes import (
    PromptRequest,
    RequestShape,
    common_shape,
    read_request,
)

__all__ = ("compare_requests",)


def compare_requests(
    previous: Mapping[str, Any],
    current: Mapping[str, Any],
    *,
    provider: RequestShape | str | None = None,
) -> PrefixMatch:
    """Return how much of a request body was the body sent before it.

    Each is reduced to what the provider renders, in the order in which it does; what
    its cache does not see is no difference: marks moved, metadata, sampling, limits.
    A cache key that changed is told in `PrefixMatch.caching`.

    Args:
        previous: the body as it was sent, as a JSON object.
        current: the one after it.
        provider: the API, a `RequestShape` or a provider that speaks it; by default it
            is told from the bodies.

    Raises:
        InvalidValueError: a body is not one of that API, with the path to what is
            wrong; or the bodies are of two APIs, which share no cache.
        ValueError: the provider is not known.
    """
    shape = provider if provider is not None else common_shape(previous, current)
    former = read_request(previous, shape)
    request = read_request(current, shape)
    tracker = PrefixTracker()
    touch_body(tracker, former, previous)
    before = _evidence(tracker, former)
    match = touch_body(tracker, request, current)
    if not match.append_only:  # the tracker kept no large strings of dicts
        match = explain(match, before, _evidence(tracker, request))
    layouts = CacheLayout.of(former), CacheLayout.of(request)
    hints = cache_hints(*layouts, request, match)
    return in_body(match._replace(caching=hints), request, current, former.names)


def _evidence(tracker: PrefixTracker, request: PromptRequest) -> Evidence:
    digests = tracker.digests
    numbers = struct.unpack(f"<{len(digests) // 8}Q", digests)
    messages: Sequence[Mapping[str, Any]] = request.messages
    return Evidence(numbers, messages, Header(there=True, source=request.header))
