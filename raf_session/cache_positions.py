"""Where in a request its cache marks stand, counted as providers count."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from raf_session.prefix import PrefixTracker
from raf_session.prefix_match import CacheHints, PrefixMatch
from raf_session.request_shapes import PromptRequest
from raf_session.request_shapes.fields import is_list, is_object, only_marks

__all__ = ("TOOLS_END", "CacheLayout", "cache_hints")

TOOLS_END: Final = -1
"""The position after the tools, where a system prompt follows."""

_CALL: Final = "call"
_RESULT: Final = "result"
_RUNS: Final = frozenset((_CALL, _RESULT))
_ONE_RESULT: Final = (_RESULT,)
_ONE_TEXT: Final = ("",)
_CALL_FIELDS: Final = frozenset(("toolUse", "functionCall", "function_call"))
_RESULT_FIELDS: Final = frozenset(
    ("toolResult", "functionResponse", "function_response")
)


class CacheLayout(NamedTuple):
    """What is kept of a request to say of the next one what a cache can reuse."""

    model: str | None
    marks: tuple[int, ...] | None
    """The positions at which its marks end prefixes; `None`: its API needs none."""
    key: str | None
    ttl_seconds: int | None

    @classmethod
    def of(cls, request: PromptRequest) -> Self:
        """Return the layout of a request."""
        model = request.header.get("model")
        ttl = request.ttl_seconds
        positions: tuple[int, ...] | None = None
        if request.marks is not None:
            places = _Positions(request.messages)
            front = TOOLS_END if "system" in request.header else 0
            positions = tuple(
                places.after(mark.message, mark.part)
                if mark.message is not None
                else front
                if mark.in_tools
                else 0
                for mark in request.marks
            )
            asked = [m.ttl_seconds for m in request.marks if m.ttl_seconds is not None]
            ttl = max(asked, default=ttl)
        return cls(
            model if isinstance(model, str) else None,
            positions,
            request.cache_key,
            ttl,
        )


_PART: Final = re.compile(r"messages\[\d+]\.(?:content|parts)\[(\d+)]")


def cache_hints(
    former: CacheLayout, now: CacheLayout, request: PromptRequest, match: PrefixMatch
) -> CacheHints:
    """Return what two requests tell of caching beside their match.

    Args:
        former: the layout of the request before.
        now: that of this one.
        request: this one.
        match: how they compare, before its paths are told in the body's names.
    """
    places = _Positions(request.messages)
    shared = places.after(match.shared_messages - 1, None)
    difference = match.first_difference
    if difference is not None and difference.section == "messages":
        inner = _PART.match(difference.path)
        if inner is not None and match.shared_messages < len(request.messages):
            shared = places.after(match.shared_messages, int(inner[1]))
    return CacheHints(
        model=now.model,
        shared=shared,
        total=places.after(len(request.messages) - 1, None),
        written=former.marks,
        read=now.marks,
        tools_bytes=_tools_bytes(request),
        keys=(former.key, now.key),
        ttl_seconds=former.ttl_seconds,
    )


def _tools_bytes(request: PromptRequest) -> int:
    header = request.header
    if "tools" not in header:
        return 0
    front = {name: header[name] for name in ("model", "tools") if name in header}
    return PrefixTracker().touch((), front).header_bytes


class _Positions:
    """Counts the blocks of messages, a run of calls or of results as one."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages = messages
        self._ends: list[tuple[int, str]] = [(0, "")]

    def after(self, index: int, parts: int | None) -> int:
        """Return the position after so many parts of that message; `None`: all."""
        ends = self._ends
        for message in self._messages[len(ends) - 1 : index + (parts is None)]:
            at = ends[-1]
            for kind in _blocks(message):
                at = _next(at, kind)
            ends.append(at)
        if parts is None:
            return self._ends[index + 1][0]
        at = self._ends[index]
        for kind in _blocks(self._messages[index])[:parts]:
            at = _next(at, kind)
        return at[0]


def _next(at: tuple[int, str], kind: str) -> tuple[int, str]:
    position, last = at
    return (position if kind == last and kind in _RUNS else position + 1), kind


def _blocks(message: Mapping[str, Any]) -> Sequence[str]:
    """Return the kind of each block of a message."""
    if message.get("role") == "tool":
        return _ONE_RESULT
    content = message.get("content")
    calls = message.get("tool_calls")
    if isinstance(content, str) and not calls:
        return _ONE_TEXT
    if content is None:
        content = message.get("parts")
    kinds: list[str] = []
    if is_list(content):
        kinds += [_kind(part) for part in content if not only_marks(part)]
    elif content is not None or ("type" not in message and not calls):
        kinds.append("")
    if (is_list(calls) and calls) or _kind(message) == _CALL:
        kinds.append(_CALL)
    return kinds


def _kind(block: Any) -> str:
    if not is_object(block):
        return ""
    kind = block.get("type")
    if isinstance(kind, str):
        if kind.endswith(("tool_use", "_call")):
            return _CALL
        if kind.endswith(("tool_result", "_output")):
            return _RESULT
    if not _CALL_FIELDS.isdisjoint(block):
        return _CALL
    return "" if _RESULT_FIELDS.isdisjoint(block) else _RESULT
