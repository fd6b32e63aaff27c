"""Where in a request its cache marks stand, counted as providers count."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from raf_session.prefix import PrefixTracker
from raf_session.prefix_match import CacheHints, PrefixMatch
from raf_session.request_shapes import PromptRequest, RequestShape
from raf_session.request_shapes.fields import is_list, is_object, only_marks

__all__ = ("TOOLS_END", "CacheLayout", "cache_hints")

TOOLS_END: Final = -1
"""The position after the tools."""

_MARKED: Final = frozenset((RequestShape.ANTHROPIC, RequestShape.BEDROCK))
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

    names: Mapping[str, str]
    """Where in the body its fields stood."""
    model: str | None
    marks: tuple[int, ...] | None
    """The positions at which its marks end prefixes; `None`: its API needs none."""
    ttls: tuple[int | None, ...]
    """How long each of these asks for."""
    keys: Mapping[str, str]
    ttl_seconds: int | None
    explicit: bool
    images: int
    """How many images its messages hold, where marks are needed."""
    citations: int
    """How many documents are to be cited, likewise."""
    web_search: int
    """How many of its tools search the web."""

    @classmethod
    def of(cls, request: PromptRequest) -> Self:
        """Return the layout of a request."""
        model = request.header.get("model")
        positions: tuple[int, ...] | None = None
        if request.marks is not None:
            places = _Positions(request.messages)
            positions = tuple(
                places.after(mark.message, mark.part)
                if mark.message is not None
                else TOOLS_END
                if mark.in_tools
                else 0
                for mark in request.marks
            )
        counts = count_toggles(request.messages) if request.shape in _MARKED else (0, 0)
        return cls(
            request.names,
            model if isinstance(model, str) else None,
            positions,
            tuple(mark.ttl_seconds for mark in request.marks or ()),
            request.cache_keys,
            request.ttl_seconds,
            request.explicit,
            *counts,
            _web_search(request.header.get("tools")),
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
        keys={
            name: (former.keys.get(name), now.keys.get(name))
            for name in dict.fromkeys((*former.keys, *now.keys))
        },
        ttl_seconds=former.ttl_seconds,
        written_ttls=former.ttls,
        explicit=(former.explicit, now.explicit),
        toggled=_toggled(former, now),
    )


def _toggled(former: CacheLayout, now: CacheLayout) -> frozenset[str]:
    found: set[str] = set()
    if former.images != now.images:
        found.add("images")
    if former.citations != now.citations:
        found.add("citations")
    if former.web_search != now.web_search:
        found.add("web_search")
    return frozenset(found)


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
        self._inner: dict[int, list[int]] = {}

    def after(self, index: int, parts: int | None) -> int:
        """Return the position after so many parts of that message; `None`: all."""
        ends = self._ends
        for message in self._messages[len(ends) - 1 : index + 1]:
            at = ends[-1]
            for kind in _blocks(message):
                at = _next(at, kind)
            ends.append(at)
        if parts is None:
            return ends[index + 1][0]
        inner = self._inner.get(index)
        if inner is None:
            at = ends[index]
            inner = self._inner[index] = [at[0]]
            for kind in _blocks(self._messages[index]):
                at = _next(at, kind)
                inner.append(at[0])
        return inner[min(parts, len(inner) - 1)]


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


# What is looked for anywhere in the messages ----------------------------------------


def _web_search(tools: Any) -> int:
    """Return how many tools are Anthropic's own search, of whichever date."""
    if not is_list(tools):
        return 0
    kinds = [tool.get("type") for tool in tools if is_object(tool)]
    return sum(isinstance(k, str) and k.startswith("web_search") for k in kinds)


def count_toggles(messages: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return how many images the messages hold, and how many documents to be cited."""
    images = cited = 0
    lists = [content for m in messages if is_list(content := m.get("content"))]
    while lists:
        for part in lists.pop():
            if not is_object(part):
                continue
            images += part.get("type") == "image" or "image" in part
            document = part.get("document", part)
            citations = document.get("citations") if is_object(document) else None
            cited += is_object(citations) and citations.get("enabled") is True
            result = part.get("toolResult", part)
            if is_object(result) and is_list(inner := result.get("content")):
                lists.append(inner)
    return images, cited
