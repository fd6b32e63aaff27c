"""Amazon Bedrock's Converse API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from raf_session.request_shapes.fields import (
    Reducer,
    build_header,
    dropping,
    inside,
    is_blank,
    read_messages,
    read_object,
    reduce_fields,
    unless,
)
from raf_session.request_shapes.marks import header_marks, message_marks
from raf_session.request_shapes.prompt import PromptRequest, RequestShape

__all__ = ("read_bedrock",)

_SAMPLING: Final[Mapping[str, Reducer]] = {
    **dropping("temperature", "top_p", "topP", "top_k", "topK", "seed"),
    **dropping("max_tokens", "maxTokens", "stop_sequences", "stopSequences"),
}

_FIELDS: Final[Mapping[str, Reducer]] = {
    **dropping("modelId", "messages", "system", "toolConfig", "inferenceConfig"),
    **dropping("guardrailConfig", "requestMetadata", "performanceConfig"),
    **dropping("serviceTier", "additionalModelResponseFieldPaths", "promptVariables"),
    # Nova takes what it samples by under `inferenceConfig` in here.
    "additionalModelRequestFields": inside(
        {**_SAMPLING, "inferenceConfig": inside(_SAMPLING)}
    ),
}

# The default that the API reference gives.
_free_choice: Final = unless({"auto": {}})


def read_bedrock(body: Mapping[str, Any]) -> PromptRequest:
    """Return the prompt of a body.

    Raises:
        InvalidValueError: a field is missing or of the wrong type, with its path.
    """
    messages = read_messages(body, "messages")
    model, system = body.get("modelId"), body.get("system")
    parameters = reduce_fields(body, _FIELDS)
    names: dict[str, str] = {}
    if model is not None:
        names["model"] = "modelId"
    if isinstance(model, str) and ":prompt/" in model:
        # They are filled into the stored prompt that is named in place of a model, and
        # otherwise ignored.
        parameters |= reduce_fields(
            {"promptVariables": body.get("promptVariables")}, {}
        )
    tools = None
    for name, value in read_object(body.get("toolConfig"), "toolConfig").items():
        path = f"toolConfig.{name}"
        if name == "tools":
            tools = value
            if not is_blank(tools):
                names["tools"] = path
        elif name == "toolChoice":
            choice = _free_choice(value)
            if choice is not None:
                parameters["tool_choice"] = choice
                names["tool_choice"] = path
        elif value is not None:
            parameters[path] = value
    marks = header_marks(tools, system) + message_marks(messages)
    return PromptRequest(
        shape=RequestShape.BEDROCK,
        header=build_header(
            parameters,
            model=model,
            tools=tools,
            system=system,
            late=("tool_choice",),
        ),
        messages=messages,
        names=names,
        marks=tuple(marks),
    )
