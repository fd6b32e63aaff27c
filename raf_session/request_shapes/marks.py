"""Cache marks: where the caller asks for the prefix so far to be kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from raf_session.prefix_match import EXCLUDED
from raf_session.request_shapes.fields import is_list, is_object, only_marks
from raf_session.request_shapes.prompt import CacheMark

__all__ = (
    "block_marks",
    "header_marks",
    "last_mark",
    "mark_ttls",
    "message_marks",
    "parse_ttl",
    "strip_marks",
)

_TTL: Final = re.compile(r"([0-9]{1,9})([smhd])")
_UNIT: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_ttl(value: object) -> int | None:
    """Return the seconds of a span such as ``5m``, ``1h`` or ``24h``, or `None`."""
    match = _TTL.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) * _UNIT[match[2]] if match else None


def mark_ttls(block: Mapping[str, Any]) -> list[int | None]:
    """Return the time to live of each mark on a block or a message.

    A mark that is null is none: the SDKs send that for an absent one.
    """
    marks = [block[name] for name in block if name in EXCLUDED]
    return [
        parse_ttl(mark.get("ttl")) if is_object(mark) else None
        for mark in marks
        if mark is not None
    ]


def block_marks(blocks: Sequence[Any]) -> Iterator[tuple[int, int | None]]:
    """Yield of each mark in a list how many blocks it ends, and its time to live."""
    kept = 0
    for block in blocks:
        if not is_object(block) or EXCLUDED.isdisjoint(block):
            kept += 1
            continue
        kept += not only_marks(block)
        for ttl in mark_ttls(block):
            yield kept, ttl


def strip_marks(blocks: Sequence[Any]) -> Sequence[Any]:
    """Return the blocks without their marks: the same list where there are none.

    For lists in which the hash, which looks at ``content``, does not look for marks.
    """
    if all(not is_object(block) or EXCLUDED.isdisjoint(block) for block in blocks):
        return blocks
    return [
        {name: block[name] for name in block if name not in EXCLUDED}
        if is_object(block)
        else block
        for block in blocks
        if not only_marks(block)
    ]


def header_marks(tools: object, system: object = None) -> list[CacheMark]:
    """Return the marks in the tools and the system prompt."""
    return [
        CacheMark(None, None, ttl, in_tools=section is tools)
        for section in (tools, system)
        if is_list(section)
        for _, ttl in block_marks(section)
    ]


def message_marks(messages: Sequence[Mapping[str, Any]]) -> list[CacheMark]:
    """Return the marks on messages and in their ``content``."""
    marks: list[CacheMark] = []
    for index, message in enumerate(messages):
        content = message.get("content")
        if type(content) is str:
            if len(message) == 2:  # a role and a text: no room for a mark
                continue
        elif is_list(content):
            marks += [CacheMark(index, part, ttl) for part, ttl in block_marks(content)]
        if not EXCLUDED.isdisjoint(message):
            marks += [CacheMark(index, None, ttl) for ttl in mark_ttls(message)]
    return marks


def last_mark(body: Mapping[str, Any], count: int) -> list[CacheMark]:
    """Return the mark that a ``cache_control`` of the body itself stands for.

    It is set at the end of the last message; of the header, where there is none.
    """
    mark = body.get("cache_control")
    if mark is None:
        return []
    ttl = parse_ttl(mark.get("ttl")) if is_object(mark) else None
    return [CacheMark(count - 1 if count else None, None, ttl)]
