"""`LlmAgent`: a model with an instruction and tools."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import anyio
from typing_extensions import Protocol

from raf_session.calls import ToolCall
from raf_session.keys import check_name
from raf_session.messages import ChatMessage
from raf_session.runner.invocation import InvocationContext
from raf_session.runner.streams import reading
from raf_session.runner.templates import render_instruction
from raf_session.runner.tools import FunctionTool
from raf_session.service.contents import USER_AUTHOR, message_of
from raf_session.service.events import Event
from raf_session.service.views import long_running_calls
from raf_session.toolcalls import arrange

__all__ = ("Agent", "LlmAgent", "Model")

Model: TypeAlias = Callable[..., Awaitable[Any] | AsyncIterator[Any]]
"""From a list of `ChatMessage` to a message, or to a stream of it.

A message is a `ChatMessage`, its dict in OpenAI's shape (``choices[0].message`` of an
answer of OpenAI's), text, or an `Event` that holds one.  A stream yields pieces of
text, and may end with the whole message.  A parameter ``tools`` gets the declarations
of the tools, in OpenAI's shape.
"""

_MOST_MODEL_CALLS: Final = 100


class Agent(Protocol):
    """What a `Runner` runs."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The author of its events."""
        ...

    @abstractmethod
    def run_async(self, context: InvocationContext, /) -> AsyncIterator[Event]:
        """Yield the events of a run; each is stored before the next is asked for."""
        ...


class LlmAgent:
    """Asks a model, runs the tools that it calls, and asks again. tRPC-Agent's.

    Args:
        name: the author of its events.
        model: see `Model`.
        instruction: the system message of each request; values of the state stand in
            it as `render_instruction` has them.
        tools: functions, or tools made of them.
        output_key: the key of the state that gets the text of the final answer.
        description: what it is for; for people.
        parallel_tools: run the calls of one answer side by side; else one after the
            other, so that each sees the state that the one before has left.
        max_model_calls: how often the model is asked in one run, at most.

    Raises:
        TypeError: a model or tool that cannot be called, or an instruction that is no
            text.
        ValueError: two tools of one name, a name that is empty or ``user``, a key that
            is none, or `max_model_calls` under 1.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        instruction: str = "",
        *,
        tools: Sequence[Callable[..., Any] | FunctionTool] = (),
        output_key: str | None = None,
        description: str = "",
        parallel_tools: bool = False,
        max_model_calls: int = _MOST_MODEL_CALLS,
    ) -> None:
        if not callable(model):
            raise TypeError(
                "a model is an async callable from messages to a message, as a "
                f"function that asks your provider, not {model!r}"
            )
        if not name or name == USER_AUTHOR:
            raise ValueError(f"{name!r} is no name of an agent")
        if max_model_calls < 1:
            raise ValueError("an agent asks its model at least once")
        if not isinstance(instruction, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"an instruction is text, not {instruction!r}")
        if output_key is not None:
            check_name(output_key, "output_key")
        self._name = name
        self.description = description
        self.instruction = instruction
        self.output_key = output_key
        self._model = model
        self._most = max_model_calls
        self._parallel = parallel_tools
        made = [t if isinstance(t, FunctionTool) else FunctionTool(t) for t in tools]
        self.tools: Mapping[str, FunctionTool] = {tool.name: tool for tool in made}
        if len(self.tools) < len(made):
            raise ValueError("two of the tools have the same name")
        self._takes_tools = "tools" in inspect.signature(model).parameters

    @property
    def name(self) -> str:
        """The author of its events."""
        return self._name

    async def run_async(self, context: InvocationContext) -> AsyncIterator[Event]:
        """Yield pieces, answers and results until an answer calls no tool.

        Raises:
            StateKeyMissingError: the instruction names a key that the state lacks.
            TypeError: what the model answered is no message.
            RuntimeError: the model was asked too often.
            Exception: what the model raised; the session holds what was said before.
        """
        for _ in range(self._most):
            final: Event | None = None
            async with reading(self._ask(context)) as events:
                async for event in events:
                    if not event.partial:
                        final = event
                        self._keep_output(event)
                    yield event
            calls = () if final is None or final.content is None else _calls(final)
            if not calls:
                return
            for event in await self._run_tools(context, calls):
                yield event
        raise RuntimeError(f"{self._name} asked its model {self._most} times in a run")

    def _messages(self, context: InvocationContext) -> list[ChatMessage]:
        session = context.session
        history = arrange(
            [event.content for event in session.events],
            long_running=long_running_calls(session.events),
            close_end=True,
        )
        messages = list(history.messages)
        if self.instruction:
            text = render_instruction(self.instruction, session.state)
            messages.insert(0, ChatMessage.system(text))
        return messages

    async def _ask(self, context: InvocationContext) -> AsyncIterator[Event]:
        options: dict[str, Any] = {}
        if self._takes_tools:
            options["tools"] = [tool.declaration for tool in self.tools.values()]
        answer = self._model(self._messages(context), **options)
        if inspect.isawaitable(answer):
            answer = await answer
        if not isinstance(answer, AsyncIterator):
            yield self._event(context, answer)
            return
        text = ""
        last: object = None
        async with reading(cast("AsyncIterator[object]", answer)) as pieces:
            async for piece in pieces:
                if last is not None and not isinstance(last, str):
                    raise TypeError(
                        "the model's stream goes on behind its message: it yields "
                        "pieces of text, and may end with the whole message"
                    )
                last = piece
                if isinstance(piece, str):
                    text += piece
                    yield self._event(context, piece, partial=True)
        yield self._event(context, text if isinstance(last, str) else last)

    def _event(
        self, context: InvocationContext, answer: object, *, partial: bool | None = None
    ) -> Event:
        if isinstance(answer, Event):
            answer.invocation_id = answer.invocation_id or context.invocation_id
            answer.author = answer.author or self._name
            return answer
        if answer is None or (isinstance(answer, dict) and "choices" in answer):
            raise TypeError(
                "a model answers with a message: a ChatMessage, its dict in OpenAI's "
                f"shape, text or an Event, not {answer!r:.60}"
            )
        return Event(
            invocation_id=context.invocation_id,
            author=self._name,
            content=message_of(cast("Any", answer), self._name),
            partial=partial,
        )

    def _keep_output(self, event: Event) -> None:
        if self.output_key and event.is_final_response() and event.content is not None:
            event.actions.state_delta[self.output_key] = event.text

    async def _run_tools(
        self, context: InvocationContext, calls: Sequence[ToolCall]
    ) -> list[Event]:
        """Run the calls of one answer, and return their results in their order."""
        if not self._parallel:
            return [
                await self._run_tool(context.for_call(call.id), call) for call in calls
            ]
        results: dict[int, Event] = {}

        async def run(index: int, call: ToolCall) -> None:
            results[index] = await self._run_tool(context.for_call(call.id), call)

        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(run, index, call)
        return [results[index] for index in range(len(calls))]

    async def _run_tool(self, context: InvocationContext, call: ToolCall) -> Event:
        tool = self.tools.get(call.name or "")
        try:
            if tool is None:
                raise LookupError(f"there is no tool {call.name!r}")  # noqa: TRY301
            text = await tool.run(call.arguments, context)
        except Exception as error:  # noqa: BLE001  (the model is told)
            text = f"error: {type(error).__name__}: {error}"
        return Event(
            invocation_id=context.invocation_id,
            author=self._name,
            content=ChatMessage.tool(text, call.id or ""),
            actions=context.actions,
        )


def _calls(event: Event) -> Sequence[ToolCall]:
    return () if event.content is None else event.content.tool_calls or ()
