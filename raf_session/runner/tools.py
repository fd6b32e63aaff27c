"""`FunctionTool`: a Python function that a model may call."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model
from pydantic_core import to_json

if TYPE_CHECKING:
    from raf_session.runner.invocation import InvocationContext

__all__ = ("CONTEXT_PARAMETER", "FunctionTool")

CONTEXT_PARAMETER: Final = "tool_context"
"""The parameter by which a function gets the `InvocationContext`."""

_BY_NAME: Final = frozenset(
    (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
)


class FunctionTool:
    """A function, sync or async, with the schema of its arguments.

    Args:
        function: its name and docstring are what the model is told; its parameters
            are given by name, and validated by their annotations.  A parameter
            ``tool_context`` gets the `InvocationContext`, and the model does not see
            it.

    Raises:
        TypeError: parameters that have no name to be given by, or a context under
            another name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.description: str = inspect.getdoc(function) or ""
        parameters = inspect.signature(function).parameters
        hints = _hints(function)
        for name, parameter in parameters.items():
            if parameter.kind not in _BY_NAME:
                raise TypeError(f"{self.name}: {name} cannot be given by name")
            if name != CONTEXT_PARAMETER and _is_context(hints.get(name)):
                raise TypeError(
                    f"{self.name}: the context is given as {CONTEXT_PARAMETER!r}, "
                    f"not {name!r}"
                )
        self._takes_context = CONTEXT_PARAMETER in parameters
        self._arguments = _model_of(self.name, parameters, hints)

    @property
    def declaration(self) -> dict[str, Any]:
        """The tool as OpenAI's chat API takes it."""
        schema = self._arguments.model_json_schema()
        schema.pop("title", None)
        function: dict[str, Any] = {"name": self.name, "parameters": schema}
        if self.description:
            function["description"] = self.description
        return {"type": "function", "function": function}

    async def run(self, arguments: object, context: InvocationContext) -> str:
        """Call the function, and return the text of its result.

        Args:
            arguments: a JSON object, as text or as a mapping.
            context: what a parameter ``tool_context`` gets.

        Returns:
            A string as it is, anything else as JSON.

        Raises:
            ValueError: arguments that are no JSON object, or do not fit.
            Exception: what the function raised.
        """
        if isinstance(arguments, str):
            arguments = json.loads(arguments or "{}")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, Mapping):
            raise ValueError("arguments are a JSON object")  # noqa: TRY004
        given = self._arguments.model_validate({**cast("dict[str, Any]", arguments)})
        values = {name: getattr(given, name) for name in type(given).model_fields}
        if self._takes_context:
            values[CONTEXT_PARAMETER] = context
        result = self.function(**values)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, str) else to_json(result).decode()


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError:  # a name that is only there for type checkers
        return dict(getattr(target, "__annotations__", {}))


def _is_context(hint: Any) -> bool:
    if isinstance(hint, str):
        return "InvocationContext" in hint
    name = getattr(hint, "__name__", "")
    return name == "InvocationContext" or any(map(_is_context, get_args(hint)))


def _model_of(
    name: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.name != CONTEXT_PARAMETER:
            hint = hints.get(parameter.name, Any)
            required = parameter.default is inspect.Parameter.empty
            default = ... if required else parameter.default
            fields[parameter.name] = (hint, default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
