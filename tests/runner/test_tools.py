"""Functions as tools: their schema, their arguments, their results."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from raf_session.runner import FunctionTool, InvocationContext
from raf_session.service import InMemorySessionService, Session

pytestmark = pytest.mark.anyio


def context() -> InvocationContext:
    return InvocationContext(
        invocation_id="i",
        session=Session(id="s", app_name="a", user_id="u"),
        session_service=InMemorySessionService(),
        agent_name="bot",
    )


class Place(BaseModel):
    city: str
    floor: int = 0


def find(
    place: Place,
    kind: Literal["near", "far"],
    count: Annotated[int, Field(ge=1)] = 3,
    *,
    note: str | None = None,
) -> dict[str, Any]:
    """Find things.

    In all places.
    """
    return {"city": place.city, "kind": kind, "count": count, "note": note}


def test_a_declaration_has_name_docstring_and_schema() -> None:
    declaration = FunctionTool(find).declaration
    assert declaration["type"] == "function"
    function = declaration["function"]
    assert function["name"] == "find"
    assert function["description"] == "Find things.\n\nIn all places."
    parameters = function["parameters"]
    assert parameters["required"] == ["place", "kind"]
    assert list(parameters["properties"]) == ["place", "kind", "count", "note"]
    assert parameters["properties"]["kind"]["enum"] == ["near", "far"]
    assert parameters["properties"]["count"]["minimum"] == 1
    assert json.loads(json.dumps(declaration)) == declaration


async def test_arguments_are_validated_and_given_by_name() -> None:
    tool = FunctionTool(find)
    text = '{"place": {"city": "Rome"}, "kind": "far", "note": "n"}'
    expected = '{"city":"Rome","kind":"far","count":3,"note":"n"}'
    assert await tool.run(text, context()) == expected
    assert await tool.run(json.loads(text), context()) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        '{"kind": "far"}',
        '{"place": {"city": "R"}, "kind": "far", "more": 1}',
        '{"place": {"city": "R"}, "kind": "far", "count": 0}',
        *("[]", "{", "1", [1]),
    ],
)
async def test_arguments_that_do_not_fit_are_refused(arguments: object) -> None:
    with pytest.raises((ValidationError, ValueError)):
        await FunctionTool(find).run(arguments, context())


@pytest.mark.parametrize("arguments", ["", "{}", None, {}])
async def test_a_function_without_parameters_takes_nothing(arguments: object) -> None:
    assert await FunctionTool(lambda: "done").run(arguments, context()) == "done"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        *(("plain", "plain"), (None, "null"), (1.5, "1.5"), ([1, "é"], '[1,"é"]')),
        (Place(city="R"), '{"city":"R","floor":0}'),
    ],
)
async def test_results_are_text(result: object, text: str) -> None:
    async def later() -> object:
        return result

    assert await FunctionTool(lambda: result).run({}, context()) == text
    assert await FunctionTool(later).run({}, context()) == text


async def test_the_context_is_given_and_not_declared() -> None:
    def tool(x: int, tool_context: InvocationContext) -> str:
        tool_context.state["x"] = x
        return tool_context.user_id

    made = FunctionTool(tool)
    assert list(made.declaration["function"]["parameters"]["properties"]) == ["x"]
    run = context()
    assert await made.run({"x": 2}, run) == "u"
    assert run.session.state == {"x": 2}
    assert run.actions.state_delta == {"x": 2}
    with pytest.raises(ValidationError):
        await made.run({"x": 2, "tool_context": None}, run)


async def test_objects_that_can_be_called_are_tools() -> None:
    class Adder:
        def __call__(self, a: int, b: int = 1) -> int:
            return a + b

    assert FunctionTool(Adder()).name == "Adder"
    assert await FunctionTool(Adder()).run({"a": 2}, context()) == "3"
    partly = functools.partial(Adder(), 4)
    assert await FunctionTool(partly).run({"b": 5}, context()) == "9"


def any_number(*numbers: int) -> int:
    return sum(numbers)


def by_place(x: int, /) -> int:
    return x


def whatever(**values: int) -> int:
    return len(values)


def other_name(run: InvocationContext) -> str:
    return run.user_id


def optional_other_name(run: InvocationContext | None = None) -> str:
    return str(run)


@pytest.mark.parametrize(
    "function", [any_number, by_place, whatever, other_name, optional_other_name]
)
def test_functions_that_cannot_be_called_by_name_are_refused(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        FunctionTool(function)
