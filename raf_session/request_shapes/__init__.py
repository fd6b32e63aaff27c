"""Request bodies of five APIs, each reduced to what a prompt cache sees of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from raf_session.request_shapes.anthropic import read_anthropic
from raf_session.request_shapes.bedrock import read_bedrock
from raf_session.request_shapes.detection import common_shape, shape_of
from raf_session.request_shapes.fields import is_object
from raf_session.request_shapes.gemini import read_gemini
from raf_session.request_shapes.openai_chat import read_openai_chat
from raf_session.request_shapes.openai_responses import read_openai_responses
from raf_session.request_shapes.prompt import CacheMark, PromptRequest, RequestShape

__all__ = (
    "CacheMark",
    "PromptRequest",
    "RequestShape",
    "common_shape",
    "read_request",
    "shape_named",
    "shape_of",
)

_READERS: Final[Mapping[RequestShape, Callable[[Mapping[str, Any]], PromptRequest]]] = {
    RequestShape.OPENAI_CHAT: read_openai_chat,
    RequestShape.OPENAI_RESPONSES: read_openai_responses,
    RequestShape.ANTHROPIC: read_anthropic,
    RequestShape.GEMINI: read_gemini,
    RequestShape.BEDROCK: read_bedrock,
}
_SHAPES: Final[Mapping[str, RequestShape]] = {
    **{shape.value: shape for shape in RequestShape},
    **dict.fromkeys(("openai", "deepseek", "vllm", "sglang"), RequestShape.OPENAI_CHAT),
}


def shape_named(name: RequestShape | str) -> RequestShape:
    """Return the API of this name, or that this provider speaks.

    Raises:
        ValueError: the name is none of the known ones.
    """
    shape = _SHAPES.get(name)
    if shape is None:
        raise ValueError(f"{name!r} is no shape; known are {', '.join(_SHAPES)}")
    return shape


def read_request(
    body: Mapping[str, Any], shape: RequestShape | str | None = None
) -> PromptRequest:
    """Return what of a request body is rendered into the prompt.

    Args:
        body: what is sent to the API, as JSON has it; it is not changed, and what is
            returned holds its values.
        shape: the API, or a name of it such as ``deepseek``; `None`: see `shape_of`.

    Raises:
        TypeError: the body is no mapping.
        ValueError: the shape is none of the known ones.
        InvalidValueError: a field is missing or of the wrong type, with its path.
    """
    if not is_object(body):
        raise TypeError(f"a request body is a mapping, not {type(body).__name__}")
    known = shape_of(body)[0] if shape is None else shape_named(shape)
    return _READERS[known](body)
