"""Gemini's ``generateContent``: the REST body, or the arguments of google-genai."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from raf_session.errors import InvalidValueError
from raf_session.request_shapes.fields import (
    Reducer,
    build_header,
    dropping,
    inside,
    is_list,
    is_object,
    read_object,
    unexpected,
    unless,
)
from raf_session.request_shapes.prompt import PromptRequest, RequestShape

__all__ = ("read_gemini",)


def _modalities(value: Any) -> Any:
    # An empty list asks for text only, as the reference says.
    return None if is_list(value) and list(value) in ([], ["TEXT"]) else value


_CALLING: Final[Mapping[str, Reducer]] = {"mode": unless("AUTO")}

_FIELDS: Final[Mapping[str, Reducer]] = {
    **dropping("contents", "generationConfig", "config"),
    **dropping("temperature", "topP", "topK", "seed", "candidateCount"),
    **dropping("maxOutputTokens", "stopSequences", "responseLogprobs", "logprobs"),
    **dropping("presencePenalty", "frequencyPenalty", "labels", "safetySettings"),
    **dropping("modelArmorConfig", "serviceTier", "store"),
    # google-genai's own, for the client.
    **dropping("httpOptions", "automaticFunctionCalling", "shouldReturnHttpResponse"),
    # The defaults that the API reference gives.
    "responseMimeType": unless("text/plain"),
    "responseModalities": _modalities,
    "toolConfig": inside(
        {
            "functionCallingConfig": inside(_CALLING),
            "function_calling_config": inside(_CALLING),
        }
    ),
}
"""By their names in REST; the SDK's are the same in snake case."""

_SECTIONS: Final = {
    "model": "model",
    "tools": "tools",
    "systemInstruction": "system",
}
_CONFIGS: Final = ("generationConfig", "generation_config", "config")
_ROLES: Final = {"model": "assistant", "function": "tool"}


class _Field(NamedTuple):
    name: str
    path: str
    value: Any


def read_gemini(body: Mapping[str, Any]) -> PromptRequest:
    """Return the prompt of a body; ``parts`` stand in the messages as they are.

    Raises:
        InvalidValueError: a field is missing, of the wrong type, or given under both
            of its names; with its path.
    """
    sections: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    names = {"messages": "contents"}
    seen: dict[str, str] = {}
    for field in _read_fields(body):
        rest_name = _camel(field.name)
        other = seen.setdefault(rest_name, field.path)
        if other != field.path:
            raise InvalidValueError(field.path, f"given as {other} too")
        section = _SECTIONS.get(rest_name)
        reduce = _FIELDS.get(rest_name)
        value = field.value if section or reduce is None else reduce(field.value)
        if value is None:
            continue
        name = section or field.name
        (sections if section else parameters)[name] = value
        if name != field.path and rest_name != "contents":
            names[name] = field.path
    return PromptRequest(
        shape=RequestShape.GEMINI,
        header=build_header(parameters, **sections),
        messages=_read_contents(body.get("contents")),
        names=names,
        marks=None,
    )


def _read_fields(body: Mapping[str, Any]) -> Iterator[_Field]:
    """Yield the fields of the body, and those of its configuration as if its own."""
    for name, value in body.items():
        if value is not None:
            yield _Field(_text(name), name, value)
    for config in _CONFIGS:
        for name, value in read_object(body.get(config), config).items():
            if value is not None:
                yield _Field(_text(name), f"{config}.{name}", value)


def _text(name: object) -> str:
    if isinstance(name, str):
        return name
    kind = type(name).__name__
    raise InvalidValueError("", f"an object's key is {kind}, not a string")


def _camel(name: str) -> str:
    """Return the name that REST gives a field of the SDK."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


# Contents ------------------------------------------------------------------------


def _read_contents(contents: Any) -> list[Mapping[str, Any]]:
    """Return the messages, made as google-genai makes contents.

    Strings and parts that follow one another are one content: the user's, but calls are
    the model's.
    """
    if contents is None:
        raise InvalidValueError("contents", "missing")
    listed = is_list(contents)
    messages: list[Mapping[str, Any]] = []
    open_role: str | None = None
    for index, item in enumerate(contents if listed else (contents,)):
        path = f"contents[{index}]" if listed else "contents"
        if is_object(item) and ("parts" in item or "role" in item):
            messages.append(_read_content(item))
            open_role = None
        elif is_list(item):
            messages.append({"role": "user", "parts": _read_parts(item, path)})
            open_role = None
        else:
            part = _read_part(item, path)
            called = "functionCall" in part or "function_call" in part
            role = "assistant" if called else "user"
            if role != open_role:
                messages.append({"role": role, "parts": []})
                open_role = role
            messages[-1]["parts"].append(part)
    return messages


def _read_content(content: Mapping[str, Any]) -> Mapping[str, Any]:
    given = content.get("role")
    if given is None:
        return {**content, "role": "user"}
    role = _ROLES.get(given) if isinstance(given, str) else None
    return content if role is None else {**content, "role": role}


def _read_parts(parts: Sequence[Any], path: str) -> list[Mapping[str, Any]]:
    return [_read_part(part, f"{path}[{i}]") for i, part in enumerate(parts)]


def _read_part(part: Any, path: str) -> Mapping[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if is_object(part):
        return part
    raise unexpected(path, part, "a content")
