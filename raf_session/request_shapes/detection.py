"""Which API a request body is for, told by its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from raf_session.errors import InvalidValueError
from raf_session.request_shapes.fields import is_list, is_object
from raf_session.request_shapes.prompt import RequestShape

__all__ = ("common_shape", "shape_of")

_GEMINI: Final = frozenset(
    (
        *("contents", "generationConfig", "generation_config", "safetySettings"),
        *("systemInstruction", "system_instruction", "cachedContent"),
    )
)
_BEDROCK: Final = frozenset(
    (
        *("modelId", "inferenceConfig", "toolConfig", "additionalModelRequestFields"),
        *("guardrailConfig", "performanceConfig", "requestMetadata", "promptVariables"),
    )
)
_RESPONSES: Final = frozenset(
    (*("input", "instructions", "previous_response_id", "conversation"),)
)
_ANTHROPIC: Final = frozenset(
    (
        *("system", "anthropic_version", "anthropic_beta", "betas", "stop_sequences"),
        *("mcp_servers", "output_config", "output_format", "context_management"),
        *("container", "inference_geo", "diagnostics"),
    )
)
_OPENAI: Final = frozenset(
    (
        *(
            "functions",
            "function_call",
            "response_format",
            "max_completion_tokens",
            "n",
        ),
        *("stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias"),
        *(
            "logprobs",
            "top_logprobs",
            "stream_options",
            "reasoning_effort",
            "verbosity",
        ),
        *("parallel_tool_calls", "store", "user", "safety_identifier", "prediction"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
        *("modalities", "web_search_options", "chat_template_kwargs", "cache_salt"),
    )
)

_OPENAI_ROLES: Final = frozenset(("developer", "tool", "function"))
_OPENAI_MESSAGE: Final = frozenset(
    (*("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"),)
)
_PARTS: Final = {
    **dict.fromkeys(
        ("image_url", "input_audio", "file", "refusal", "video_url", "audio_url"),
        RequestShape.OPENAI_CHAT,
    ),
    **dict.fromkeys(
        (
            *("tool_use", "tool_result", "thinking", "redacted_thinking", "image"),
            *("document", "search_result", "server_tool_use", "mcp_tool_use"),
        ),
        RequestShape.ANTHROPIC,
    ),
}
_BEDROCK_BLOCKS: Final = frozenset(
    (
        *("text", "image", "document", "video", "audio", "toolUse", "toolResult"),
        *("cachePoint", "reasoningContent", "guardContent", "searchResult"),
    )
)
_CHOICES: Final = frozenset(("auto", "any", "tool", "none"))


def shape_of(body: Mapping[str, Any]) -> tuple[RequestShape, bool]:
    """Return the API that a body is for, and whether that is certain.

    A body that OpenAI's chat API and Anthropic's would both take is the former's, but
    for a model with ``claude`` in its name; neither is certain.

    Raises:
        TypeError: the body is no mapping.
    """
    if not is_object(body):
        raise TypeError(f"a request body is a mapping, not {type(body).__name__}")
    if not _BEDROCK.isdisjoint(body) and "contents" not in body:
        return RequestShape.BEDROCK, True
    if "messages" not in body:
        if not _GEMINI.isdisjoint(body):
            return RequestShape.GEMINI, True
        if not _RESPONSES.isdisjoint(body):
            return RequestShape.OPENAI_RESPONSES, True
    named = {
        shape
        for shape, names in (
            (RequestShape.ANTHROPIC, _ANTHROPIC),
            (RequestShape.OPENAI_CHAT, _OPENAI),
        )
        if not names.isdisjoint(body)
    }
    for shape in _shapes_inside(body):
        return shape, named <= {shape} or shape is RequestShape.BEDROCK
    if len(named) == 1:
        return named.pop(), True
    model = body.get("model")
    if isinstance(model, str) and "claude" in model.lower():
        return RequestShape.ANTHROPIC, False
    return RequestShape.OPENAI_CHAT, False


def common_shape(
    previous: Mapping[str, Any], current: Mapping[str, Any]
) -> RequestShape:
    """Return the API of both bodies; one that could be of several is of the other's.

    Raises:
        InvalidValueError: each is certain to be of another one.
    """
    (one, one_certain), (other, other_certain) = shape_of(previous), shape_of(current)
    if one_certain and other_certain and one is not other:
        reason = f"a request of {other} after one of {one}: they share no cache"
        raise InvalidValueError("", reason)
    return one if one_certain else other


def _shapes_inside(body: Mapping[str, Any]) -> Iterator[RequestShape]:
    """Yield what tools, system prompt and messages tell, the cheapest to find first."""
    found = chain(
        map(_tool_shape, _objects(body.get("tools"))),
        map(_block_shape, _objects(body.get("system"))),
        (_choice_shape(body.get("tool_choice")),),
        _message_shapes(body.get("messages")),
    )
    return (shape for shape in found if shape is not None)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in value if is_object(item)) if is_list(value) else iter(())


def _tool_shape(tool: Mapping[str, Any]) -> RequestShape | None:
    if "function" in tool or "custom" in tool:
        return RequestShape.OPENAI_CHAT
    if "input_schema" in tool or ("type" in tool and "name" in tool):
        return RequestShape.ANTHROPIC
    return None


def _choice_shape(choice: object) -> RequestShape | None:
    if isinstance(choice, str):
        return RequestShape.OPENAI_CHAT
    if not is_object(choice):
        return None
    kind = choice.get("type")
    if isinstance(kind, str) and kind in _CHOICES:
        return RequestShape.ANTHROPIC
    return RequestShape.OPENAI_CHAT


def _message_shapes(messages: Any) -> Iterator[RequestShape | None]:
    for index, message in enumerate(_objects(messages)):
        role = message.get("role")
        # In front it is OpenAI's: Anthropic takes such messages only later.
        if role == "system" and index == 0:
            yield RequestShape.OPENAI_CHAT
        if isinstance(role, str) and role in _OPENAI_ROLES:
            yield RequestShape.OPENAI_CHAT
        if not _OPENAI_MESSAGE.isdisjoint(message):
            yield RequestShape.OPENAI_CHAT
        content = message.get("content")
        if type(content) is not str:
            yield from map(_block_shape, _objects(content))


def _block_shape(block: Mapping[str, Any]) -> RequestShape | None:
    kind = block.get("type")
    if isinstance(kind, str):
        return _PARTS.get(kind)
    if "type" not in block and not _BEDROCK_BLOCKS.isdisjoint(block):
        return RequestShape.BEDROCK
    return None
