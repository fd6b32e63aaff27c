"""OpenAI's Responses API, where the whole history is sent as ``input``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from raf_session.errors import InvalidValueError
from raf_session.request_shapes.fields import (
    Reducer,
    build_header,
    drop,
    dropping,
    inside,
    is_blank,
    is_list,
    is_object,
    read_messages,
    reduce_fields,
    unless,
)
from raf_session.request_shapes.marks import (
    block_marks,
    header_marks,
    last_mark,
    message_marks,
    strip_marks,
)
from raf_session.request_shapes.openai_fields import (
    OPENAI_FIELDS,
    is_explicit,
    read_cache_keys,
    read_ttl,
)
from raf_session.request_shapes.prompt import CacheMark, PromptRequest, RequestShape

__all__ = ("read_openai_responses",)

_FIELDS: Final[Mapping[str, Reducer]] = {
    **OPENAI_FIELDS,
    **dropping("model", "input", "tools", "instructions"),
    **dropping("previous_response_id", "conversation", "background", "include"),
    **dropping("max_output_tokens", "max_tool_calls"),
    # A summary is written of the reasoning; it tells the model nothing.  The default of
    # `effort` depends on the model.
    "reasoning": inside({"summary": drop, "generate_summary": drop}),
    # The defaults that the API reference gives.
    "text": inside(
        {"format": unless({"type": "text"}), "verbosity": unless("medium")},
    ),
    "truncation": unless("disabled"),
}


def read_openai_responses(body: Mapping[str, Any]) -> PromptRequest:
    """Return the prompt of a body; an item without a role is given one.

    Raises:
        InvalidValueError: a field is missing or of the wrong type, or the history is
            kept by the provider; with the path.
    """
    for name in ("previous_response_id", "conversation"):
        if body.get(name) is not None:
            raise InvalidValueError(
                name, "the history is the provider's, so the body is not the prompt"
            )
    tools, system = _without_secrets(body.get("tools")), body.get("instructions")
    names = {"messages": "input"}
    if not is_blank(system):
        names["system"] = "instructions"
    messages, output_marks = _read_items(_read_input(body))
    marks = message_marks(messages)
    if output_marks:
        marks = sorted([*marks, *output_marks], key=_index)
    marks = header_marks(tools, system) + marks + last_mark(body, len(messages))
    explicit = is_explicit(body)
    return PromptRequest(
        shape=RequestShape.OPENAI_RESPONSES,
        header=build_header(
            reduce_fields(body, _FIELDS),
            model=body.get("model"),
            tools=tools,
            system=system,
        ),
        messages=messages,
        names=names,
        marks=tuple(marks) if marks or explicit else None,
        cache_keys=read_cache_keys(body),
        explicit=explicit,
        ttl_seconds=read_ttl(body),
    )


def _without_secrets(tools: Any) -> Any:
    """Return the tools without what an MCP server is told and the model is not."""
    if not is_list(tools) or not any(
        is_object(tool) and tool.get("type") == "mcp" for tool in tools
    ):
        return tools
    secrets = dropping("authorization", "headers")
    return [
        reduce_fields(tool, secrets)
        if is_object(tool) and tool.get("type") == "mcp"
        else tool
        for tool in tools
    ]


def _read_input(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if given is None and body.get("prompt") is not None:
        return []  # a stored template may be all of the prompt
    return read_messages(body, "input")


def _read_items(
    items: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[CacheMark]]:
    """Return the items with roles, and the marks inside of results."""
    messages: list[Mapping[str, Any]] = []
    marks: list[CacheMark] = []
    for index, item in enumerate(items):
        message = item
        if item.get("role") is None:
            message = {**item, "role": _role(item.get("type"))}
        output = item.get("output")
        if is_list(output):
            marks += [CacheMark(index, None, ttl) for _, ttl in block_marks(output)]
            message = {**message, "output": strip_marks(output)}
        messages.append(message)
    return messages, marks


def _role(kind: object) -> str:
    if isinstance(kind, str) and kind.endswith(("_output", "_response")):
        return "tool"
    return "assistant"


def _index(mark: CacheMark) -> int:
    return -1 if mark.message is None else mark.message
