"""`ToolCall`, a call that a message asks for, in the shape of OpenAI's chat API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self, cast

from pydantic import BeforeValidator, model_validator

from raf_session.frozen import EMPTY, FrozenDict, freeze, frozen_dict, thaw
from raf_session.parts import (
    FrozenModel,
    StrictText,
    build,
    frozen_object,
    refuse_taken,
)

__all__ = ("ToolCall", "tool_call_from_openai", "validate_call")

CALL_DEPTH: Final = 3
"""Message, list, call: the level on which a tool call stands."""


def _freeze_arguments(value: object) -> object:
    if isinstance(value, Mapping):
        items = dict(cast("Mapping[str, object]", value))
        return freeze(items, "", CALL_DEPTH + 2)
    return freeze(value, "", CALL_DEPTH + 2)


_CallExtra = Annotated[Mapping[str, Any], frozen_object(CALL_DEPTH)]
_FunctionExtra = Annotated[Mapping[str, Any], frozen_object(CALL_DEPTH + 1)] | None


class ToolCall(FrozenModel):
    """A call that the model asks for. RAF: ``ToolCall {id, name, arguments}``."""

    id: StrictText | None = None
    """What the result names; `None` where the provider gave none."""

    name: StrictText | None = None
    """The function; `None` for a call of a kind that is kept in `extra` alone."""

    arguments: Annotated[Any, BeforeValidator(_freeze_arguments)] = None
    """A JSON string as OpenAI sends it, or any frozen JSON value; `None`: absent."""

    type: StrictText | None = "function"
    """The provider's name for the kind; `None` where it gave none."""

    extra: _CallExtra = EMPTY
    """Fields of the call that this class does not declare, in their order."""

    function_extra: _FunctionExtra = None
    """Such fields of its ``function`` object; `None`: there are none."""

    @model_validator(mode="after")
    def _check_extra(self) -> Self:
        function = ("name", self.name), ("arguments", self.arguments)
        refuse_taken(
            self.function_extra or EMPTY, (n for n, v in function if v is not None)
        )
        call = ("id", self.id), ("type", self.type), ("function", self._function())
        refuse_taken(self.extra, (n for n, v in call if v is not None))
        return self

    def _function(self) -> dict[str, Any] | None:
        fields = self.__dict__
        function: dict[str, Any] = {}
        if fields["name"] is not None:
            function["name"] = fields["name"]
        if fields["arguments"] is not None:
            function["arguments"] = fields["arguments"]
        if fields["function_extra"] is not None:
            function.update(fields["function_extra"])
        elif not function:
            return None
        return function

    def wire(self) -> dict[str, Any]:
        """Return the fields as they are sent, with frozen values."""
        wire: dict[str, Any] = {}
        if self.id is not None:
            wire["id"] = self.id
        if self.type is not None:
            wire["type"] = self.type
        function = self._function()
        if function is not None:
            wire["function"] = function
        wire.update(self.extra)
        return wire

    def to_openai(self) -> dict[str, Any]:
        """Return the call as a plain dict of the caller's own."""
        return cast("dict[str, Any]", thaw(self.wire()))


def tool_call_from_openai(fields: FrozenDict[Any]) -> ToolCall:
    """Return the call of these frozen fields; what fits no field stays in `extra`."""
    values: dict[str, Any] = dict.fromkeys(_CALL_FIELDS)
    rest: dict[str, Any] = {}
    for key, value in fields.items():
        if key in {"id", "type"} and isinstance(value, str):
            values[key] = value
        elif key == "function" and isinstance(value, dict):
            _take_function(values, cast("dict[str, Any]", value))
        else:
            rest[key] = value
    given = {key for key, value in values.items() if value is not None} | {"type"}
    values["extra"] = frozen_dict(rest) if rest else EMPTY
    if rest:
        given.add("extra")
    call: ToolCall = build(ToolCall, values, given)
    return call


_CALL_FIELDS: Final = ("id", "name", "arguments", "type", "extra", "function_extra")


def _take_function(values: dict[str, Any], function: dict[str, Any]) -> None:
    rest: dict[str, Any] = {}
    for key, value in function.items():
        if (key == "name" and isinstance(value, str)) or (
            key == "arguments" and value is not None
        ):
            values[key] = value
        else:
            rest[key] = value
    if rest or not function:
        values["function_extra"] = frozen_dict(rest)


def validate_call(value: Any) -> Any:
    """Let a dict in OpenAI's or in RAF's shape stand for the call it describes."""
    if isinstance(value, Mapping):
        items = dict(cast("Mapping[str, object]", value))
        if "function" in items or not items.keys() <= set(_CALL_FIELDS):
            frozen = cast("FrozenDict[Any]", freeze(items, "", CALL_DEPTH))
            return tool_call_from_openai(frozen)
        return items
    return value
