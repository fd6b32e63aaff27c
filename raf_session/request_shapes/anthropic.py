"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from raf_session.prefix_match import EXCLUDED
from raf_session.request_shapes.fields import (
    TRANSPORT,
    Reducer,
    build_header,
    drop,
    dropping,
    each,
    inside,
    is_list,
    is_object,
    only_marks,
    read_messages,
    reduce_fields,
    unless,
)
from raf_session.request_shapes.marks import (
    block_marks,
    header_marks,
    last_mark,
    mark_ttls,
    strip_marks,
)
from raf_session.request_shapes.prompt import CacheMark, PromptRequest, RequestShape

__all__ = ("read_anthropic",)

_DEPTH: Final = 4
"""How deep blocks stand in one another: a document in a search's result in a message's
content.  What is deeper is kept as it is."""


def _container(value: Any) -> Any:
    # The id names a sandbox, and is known from the second request on; skills are
    # described in the prompt.
    return None if isinstance(value, str) else inside({"id": drop})(value)


def _tool_choice(value: Any) -> Any:
    reduced = inside({"disable_parallel_tool_use": unless(False)})(value)
    return unless({"type": "auto"})(reduced)


_FIELDS: Final[Mapping[str, Reducer]] = {
    **dropping("model", "messages", "tools", "system", "cache_control"),
    **dropping("max_tokens", "stop_sequences", "stream", "metadata", "user_profile_id"),
    **dropping("temperature", "top_k", "top_p", "service_tier", "inference_geo"),
    **dropping("diagnostics", "fallbacks", "fallback_credit_token"),
    **dropping("anthropic_version", *TRANSPORT),
    "container": _container,
    "mcp_servers": each({"authorization_token": drop}),
    # The defaults that the guides on effort and on fast mode give, and the reference
    # for `tool_choice`.  What thinking is by default depends on the model.
    "output_config": inside({"effort": unless("high")}),
    "speed": unless("standard"),
    "tool_choice": _tool_choice,
}

_LATE: Final = frozenset(("context_management", "tool_choice"))
"""The parameters whose change leaves tools and system prompt cached."""


def read_anthropic(body: Mapping[str, Any]) -> PromptRequest:
    """Return the prompt of a body.

    A text as a string and as the only block are one to the API, and one here.

    Raises:
        InvalidValueError: a field is missing or of the wrong type, with its path.
    """
    given = read_messages(body, "messages")
    tools, system = body.get("tools"), body.get("system")
    marks = header_marks(tools, system)
    if is_list(system):
        system = _only_text(system)
    messages: list[Mapping[str, Any]] = []
    for index, message in enumerate(given):
        if len(message) == 2 and type(message.get("content")) is str:
            messages.append(message)  # a role and a text: no room for a mark
        else:
            messages.append(_read_message(index, message, marks))
    marks += last_mark(body, len(messages))
    return PromptRequest(
        shape=RequestShape.ANTHROPIC,
        header=build_header(
            reduce_fields(body, _FIELDS),
            model=body.get("model"),
            tools=tools,
            system=system,
            late=_LATE,
        ),
        messages=messages,
        names={},
        marks=tuple(marks),
    )


def _read_message(
    index: int, message: Mapping[str, Any], marks: list[CacheMark]
) -> Mapping[str, Any]:
    """Return a message as it is hashed, and add its marks."""
    content = message.get("content")
    reduced = message
    if type(content) is not str and is_list(content):
        blocks = _read_blocks(index, content, marks)
        if blocks is not content:
            reduced = {**message, "content": blocks}
    if len(message) > 2 and not EXCLUDED.isdisjoint(message):
        marks += [CacheMark(index, None, ttl) for ttl in mark_ttls(message)]
    return reduced


def _read_blocks(index: int, blocks: Sequence[Any], marks: list[CacheMark]) -> Any:
    """Return a message's blocks without the marks inside of them, and add all marks."""
    if len(blocks) == 1 and (text := _plain_text(blocks[0])) is not None:
        return text
    changed: dict[int, Any] = {}
    kept = 0
    for position, block in enumerate(blocks):
        if not is_object(block):
            kept += 1
            continue
        marked = not EXCLUDED.isdisjoint(block)
        kept += not (marked and only_marks(block))
        if "content" in block or "source" in block:
            ttls: list[int | None] = []
            inner = _strip_block(block, ttls, _DEPTH)
            if inner is not block:
                changed[position] = inner
            if ttls:
                marks += [CacheMark(index, kept, ttl) for ttl in ttls]
        if marked:
            marks += [CacheMark(index, kept, ttl) for ttl in mark_ttls(block)]
    if changed:
        return [changed.get(position, block) for position, block in enumerate(blocks)]
    return _only_text(blocks) if kept == 1 else blocks


def _strip_block(
    block: Mapping[str, Any], ttls: list[int | None], depth: int
) -> Mapping[str, Any]:
    """Return a block without the marks on the blocks that it holds, and add these.

    They stand in its ``content`` and in that of its ``source``, and nowhere else: a
    ``cache_control`` in a tool's input is the model's own.
    """
    content, source = block.get("content"), block.get("source")
    if type(content) is not str and is_list(content):
        stripped = _strip_list(content, ttls, depth)
        if stripped is not content:
            block = {**block, "content": stripped}
    if source is not None and is_object(source) and is_list(source.get("content")):
        inner = _strip_block(source, ttls, depth)
        if inner is not source:
            block = {**block, "source": inner}
    return block


def _strip_list(blocks: Sequence[Any], ttls: list[int | None], depth: int) -> Any:
    if not depth:
        return blocks
    if len(blocks) == 1 and (text := _plain_text(blocks[0])) is not None:
        return text
    ttls += [ttl for _, ttl in block_marks(blocks)]
    stripped = strip_marks(blocks)
    changed = False
    inner: list[Any] = []
    for block in stripped:
        new = block
        if is_object(block) and ("content" in block or "source" in block):
            new = _strip_block(block, ttls, depth - 1)
            changed = changed or new is not block
        inner.append(new)
    return _only_text(inner if changed else stripped)


def _only_text(blocks: Sequence[Any]) -> Any:
    """Return the text of the only block, if it is a plain text; else the blocks."""
    kept = [block for block in blocks if not only_marks(block)]
    if len(kept) != 1:
        return blocks
    text = _plain_text(strip_marks(kept)[0])
    return blocks if text is None else text


def _plain_text(block: Any) -> str | None:
    """Return the text of a block that holds nothing else."""
    if is_object(block) and len(block) == 2 and block.get("type") == "text":
        text = block.get("text")
        return text if isinstance(text, str) else None
    return None
