"""Gemini's ``generateContent``: the REST body, or the arguments of google-genai."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    contents = _read_contents(body.get("contents"))
    return PromptRequest(
        shape=RequestShape.GEMINI,
        header=build_header(parameters, **sections),
        messages=contents.messages,
        names=names,
        marks=None,
        places=contents.places,
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


class _Contents:
    """The messages, made as google-genai makes contents, and where they stood.

    Strings and parts that follow one another are one content: the user's, but calls are
    the model's.
    """

    def __init__(self) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.places: list[str | list[str]] = []
        self._parts: list[Mapping[str, Any]] | None = None
        self._role = ""

    def add(self, item: Any, path: str) -> None:
        """Add one element, or what stands alone."""
        if is_object(item) and ("parts" in item or "role" in item):
            self._begin(_read_content(item), path)
        elif is_list(item):
            parts = [_read_part(part, f"{path}[{i}]") for i, part in enumerate(item)]
            places = [f"{path}[{i}]" for i in range(len(item))]
            self._begin({"role": "user", "parts": parts}, places or path)
        else:
            part = _read_part(item, path)
            called = "functionCall" in part or "function_call" in part
            self._add_part(part, "assistant" if called else "user", path)

    def _begin(self, message: Mapping[str, Any], place: str | list[str]) -> None:
        self.messages.append(message)
        self.places.append(place)
        self._parts = None

    def _add_part(self, part: Mapping[str, Any], role: str, path: str) -> None:
        if self._parts is None or role != self._role:
            parts: list[Mapping[str, Any]] = []
            self._begin({"role": role, "parts": parts}, [])
            self._parts, self._role = parts, role
        self._parts.append(part)
        place = self.places[-1]
        if isinstance(place, list):
            place.append(path)


def _read_contents(contents: Any) -> _Contents:
    if contents is None:
        raise InvalidValueError("contents", "missing")
    read = _Contents()
    if not is_list(contents):
        read.add(contents, "contents")
        return read
    for index, item in enumerate(contents):
        read.add(item, f"contents[{index}]")
    return read


def _read_content(content: Mapping[str, Any]) -> Mapping[str, Any]:
    given = content.get("role")
    if given is None:
        return {**content, "role": "user"}
    role = _ROLES.get(given) if isinstance(given, str) else None
    return content if role is None else {**content, "role": role}


def _read_part(part: Any, path: str) -> Mapping[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if is_object(part):
        return part
    raise unexpected(path, part, "a content")
