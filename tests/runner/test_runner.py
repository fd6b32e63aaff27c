"""Runs: what is stored when, and what is left when they end otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from runner_agents import WHERE, Script, asks, read, run

from raf_session.errors import SessionNotFoundError, StaleSessionError
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.runner import InvocationContext, LlmAgent, Runner
from raf_session.service import Event, InMemorySessionService, Session
from raf_session.validity import (
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def service() -> InMemorySessionService:
    return InMemorySessionService()


def runner_of(
    service: InMemorySessionService, model: Any, *tools: Any, **options: Any
) -> Runner:
    exclusive = options.pop("exclusive", False)
    agent = LlmAgent("bot", model, tools=tools, **options)
    return Runner(
        app_name="a", agent=agent, session_service=service, exclusive=exclusive
    )


async def test_the_users_message_is_stored_before_the_model_is_asked(
    service: InMemorySessionService,
) -> None:
    async def model(messages: list[ChatMessage]) -> str:
        stored = await read(service)
        assert [e.text for e in stored.events] == ["hi"]
        assert stored.state == {"k": 1}
        assert [m.text for m in messages] == ["hi"]
        return "hello"

    runner = runner_of(service, model)
    (event,) = await run(runner, state_delta={"k": 1, "temp:t": 2})
    session = await read(service)
    assert [e.text for e in session.events] == ["hi", "hello"]
    assert {e.invocation_id for e in session.events} == {event.invocation_id}
    assert session.state == {"k": 1}


async def test_a_stream_shows_its_pieces_and_stores_the_whole(
    service: InMemorySessionService,
) -> None:
    async def model(_: list[ChatMessage]) -> AsyncIterator[str]:
        for piece in ("hel", "lo ", "you"):
            yield piece

    events = await run(runner_of(service, model, output_key="answer"))
    assert [(e.partial, e.text) for e in events] == [
        *((True, "hel"), (True, "lo "), (True, "you"), (None, "hello you"))
    ]
    session = await read(service)
    assert [e.text for e in session.events] == ["hi", "hello you"]
    assert session.state == {"answer": "hello you"}


async def test_a_stream_may_end_with_its_message(
    service: InMemorySessionService,
) -> None:
    async def answer() -> AsyncIterator[object]:
        yield "hel"
        yield Event(content="hello", usage_metadata=Usage(total_tokens=7))

    events = await run(runner_of(service, Script(answer())))
    assert [(e.partial, e.text) for e in events] == [(True, "hel"), (None, "hello")]
    stored = (await read(service)).events[-1]
    assert stored.author == "bot"
    assert stored.usage_metadata == Usage(total_tokens=7)


async def test_calls_are_run_side_by_side_and_answered_in_their_order(
    service: InMemorySessionService,
) -> None:
    begun: list[str] = []
    all_begun = anyio.Event()

    async def wait(name: str, tool_context: InvocationContext) -> str:
        begun.append(name)
        if len(begun) == 3:
            all_begun.set()
        await all_begun.wait()
        tool_context.state[name] = tool_context.function_call_id
        return f"{name} is done"

    model = Script(
        asks(
            ("1", "wait", '{"name": "a"}'),
            ("2", "wait", '{"name": "b"}'),
            ("3", "wait", '{"name": "c"}'),
        ),
        "all done",
    )
    with anyio.fail_after(5):
        events = await run(runner_of(service, model, wait, parallel_tools=True))
    assert [e.text for e in events[1:]] == [
        *("a is done", "b is done", "c is done", "all done")
    ]
    assert [t["function"]["name"] for t in model.tools] == ["wait"]
    session = await read(service)
    assert session.state == {"a": "1", "b": "2", "c": "3"}
    assert [m.role for m in model.requests[1]] == [
        *(MessageRole.USER, MessageRole.ASSISTANT, *[MessageRole.TOOL] * 3)
    ]


async def test_calls_of_one_answer_see_what_the_one_before_left(
    service: InMemorySessionService,
) -> None:
    async def note(text: str, tool_context: InvocationContext) -> str:
        notes = tool_context.state.get("notes", [])
        await anyio.lowlevel.checkpoint()
        notes.append(text)
        tool_context.state["notes"] = notes
        tool_context.state.setdefault("more", []).append(text)
        return "ok"

    model = Script(
        asks(*((str(n), "note", f'{{"text": "{n}"}}') for n in range(3))), "done"
    )
    await run(runner_of(service, model, note))
    state = (await read(service)).state
    assert state == {"notes": ["0", "1", "2"], "more": ["0", "1", "2"]}


@pytest.mark.parametrize(
    "answer", [None, {"choices": [{"message": {"content": "hi"}}]}, 3, ("a", "b")]
)
async def test_what_is_no_message_is_no_answer(
    service: InMemorySessionService, answer: Any
) -> None:
    if answer == ("a", "b"):
        await run(runner_of(service, Script(answer)))  # parts of text are a message
        assert (await read(service)).events[-1].text == "ab"
        return
    with pytest.raises((TypeError, ValueError)):
        await run(runner_of(service, Script(answer)))
    assert [e.text for e in (await read(service)).events] == ["hi"]


@pytest.mark.parametrize(
    "pieces",
    [
        (),
        (ChatMessage.assistant("He"), ChatMessage.assistant("llo")),
        (ChatMessage.assistant("He"), "llo"),
        ({"choices": []},),
    ],
)
async def test_a_stream_that_is_no_message_is_refused(
    service: InMemorySessionService, pieces: tuple[Any, ...]
) -> None:
    async def stream(_: list[ChatMessage]) -> AsyncIterator[Any]:
        for piece in pieces:
            yield piece

    with pytest.raises(TypeError, match="model"):
        await run(runner_of(service, stream))
    assert [e.text for e in (await read(service)).events] == ["hi"]


async def test_a_tool_that_fails_is_told_to_the_model(
    service: InMemorySessionService,
) -> None:
    def broken() -> str:
        raise OSError("no disk")

    model = Script(
        asks(("1", "broken", ""), ("2", "unknown", "{}"), ("3", "broken", '{"x": 1}')),
        "sorry",
    )
    events = await run(runner_of(service, model, broken))
    results = [e.text for e in events[1:4]]
    assert results[0] == "error: OSError: no disk"
    assert "unknown" in results[1]
    assert "ValidationError" in results[2]
    assert events[-1].text == "sorry"


async def test_a_model_that_fails_leaves_a_history_that_goes_on(
    service: InMemorySessionService,
) -> None:
    def look() -> str:
        return "seen"

    model = Script(
        RuntimeError("down"), asks(("1", "look", "")), RuntimeError("down again"), "ok"
    )
    runner = runner_of(service, model, look)
    for message in ("one", "two"):
        with pytest.raises(RuntimeError, match="down"):
            await run(runner, message)
    assert (await run(runner, "three"))[-1].text == "ok"
    request = model.requests[-1]
    assert [m.text for m in request if m.role == "user"] == ["one", "two", "three"]
    for violations in (openai_violations, anthropic_violations, gemini_violations):
        assert violations(request) == ()


async def test_a_run_that_is_cut_short_in_a_tool_goes_on(
    service: InMemorySessionService,
) -> None:
    async def hang() -> str:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    model = Script(asks(("1", "hang", "")), "never mind")
    runner = runner_of(service, model, hang)
    with anyio.CancelScope() as scope:
        await run(runner)
    assert len((await read(service)).events) == 2
    await run(runner, "and now?")
    request = model.requests[-1]
    assert [m.role for m in request] == ["user", "assistant", "tool", "user"]
    for violations in (openai_violations, anthropic_violations, gemini_violations):
        assert violations(request) == ()


async def test_keys_set_on_the_session_are_stored_at_the_end_of_a_run(
    service: InMemorySessionService,
) -> None:
    def change(tool_context: InvocationContext) -> str:
        state = tool_context.session.state
        state["list"].append(2)
        state["user:direct"] = True
        state["temp:x"] = 1
        del state["gone"]
        return "ok"

    await service.create_session(**WHERE, state={"list": [1], "gone": 1})
    model = Script(asks(("1", "change", "")), RuntimeError("down"))
    with pytest.raises(RuntimeError, match="down"):
        await run(runner_of(service, model, change))
    assert (await read(service)).state == {"list": [1, 2], "user:direct": True}


async def test_temporary_state_lives_for_one_run(
    service: InMemorySessionService,
) -> None:
    def keep(tool_context: InvocationContext) -> str:
        tool_context.state["temp:found"] = "it"
        return "ok"

    model = Script(asks(("1", "keep", "")), "done", "again")
    runner = runner_of(service, model, keep, instruction="found: {temp:found?}")
    await run(runner)
    assert [r[0].text for r in model.requests] == ["found: ", "found: it"]
    await run(runner)
    assert model.requests[-1][0].text == "found: "


async def test_two_first_messages_share_one_session(
    service: InMemorySessionService,
) -> None:
    runner = runner_of(service, Script(*["ok"] * 20))
    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(run, runner, f"m{n}")
    session = await read(service)
    assert session.conversation_count == 20
    assert len(session.events) == 40


async def test_of_two_exclusive_runs_the_later_fails(
    service: InMemorySessionService,
) -> None:
    gate = anyio.Event()

    async def slow(_: list[ChatMessage]) -> str:
        await gate.wait()
        return "late"

    late = runner_of(service, slow, exclusive=True)
    failed: list[Exception] = []

    async def fail() -> None:
        with pytest.raises(StaleSessionError) as caught:
            await run(late, "first")
        failed.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(fail)
        await anyio.wait_all_tasks_blocked()
        await run(runner_of(service, Script("quick"), exclusive=True), "second")
        gate.set()
    assert failed
    assert [e.text for e in (await read(service)).events] == [
        *("first", "second", "quick")
    ]


async def test_a_session_that_is_deleted_in_a_run_stays_deleted(
    service: InMemorySessionService,
) -> None:
    async def model(_: list[ChatMessage]) -> str:
        await service.delete_session(**WHERE)
        return "hello?"

    with pytest.raises(SessionNotFoundError):
        await run(runner_of(service, model))
    assert await service.get_session(**WHERE) is None


async def test_a_model_that_calls_for_ever_is_stopped(
    service: InMemorySessionService,
) -> None:
    model = Script(*[asks((str(n), "again", "")) for n in range(5)])
    runner = runner_of(service, model, lambda: "x", max_model_calls=3)
    runner.agent.tools  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(RuntimeError, match="3 times"):
        await run(runner)
    assert len(model.requests) == 3


async def test_a_run_without_a_message_goes_on(
    service: InMemorySessionService,
) -> None:
    runner = runner_of(service, Script("one", "two"))
    await run(runner)
    await run(runner, None)
    assert [e.text for e in (await read(service)).events] == ["hi", "one", "two"]
    with pytest.raises(ValueError, match="state_delta"):
        await run(runner, None, state_delta={"k": 1})


async def test_contents_of_other_libraries_are_read(
    service: InMemorySessionService,
) -> None:
    runner = runner_of(service, Script("ok"))
    await run(runner, {"role": "user", "parts": [{"text": "from "}, {"text": "there"}]})
    assert (await read(service)).events[0].text == "from there"


async def test_any_agent_can_be_run(service: InMemorySessionService) -> None:
    class Echo:
        name = "echo"

        async def run_async(self, context: InvocationContext) -> AsyncIterator[Event]:
            assert context.user_content is not None
            yield Event(content=context.user_content.text, author="echo")

    runner = Runner(app_name="a", agent=Echo(), session_service=service)
    events = await run(runner)
    assert [(e.author, e.text) for e in events] == [("echo", "hi")]
    assert events[0].invocation_id


@pytest.mark.parametrize(
    "options",
    [
        {"session_service": None},
        {"session_service": "memory://"},
        {"agent": Script()},
        {"app_name": ""},
    ],
)
def test_a_runner_needs_what_it_runs(
    service: InMemorySessionService, options: dict[str, Any]
) -> None:
    given: dict[str, Any] = {
        "app_name": "a",
        "agent": LlmAgent("bot", Script()),
        "session_service": service,
    }
    Runner(**given)
    with pytest.raises((TypeError, ValueError)):
        Runner(**(given | options))


@pytest.mark.parametrize(
    "options",
    [{"name": ""}, {"name": "user"}, {"instruction": len}, {"output_key": ""}],
)
def test_an_agent_needs_a_name_and_text(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"name": "bot", "model": Script()} | options
    with pytest.raises((TypeError, ValueError)):
        LlmAgent(**given)


@pytest.mark.parametrize("name", ["deepseek-chat", None, 3])
def test_a_model_is_no_name(name: Any) -> None:
    with pytest.raises(TypeError, match="async callable"):
        LlmAgent("bot", name)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        LlmAgent("bot", Script(), tools=[lambda: 1, lambda: 2])


def test_sessions_of_tests_are_plain() -> None:
    assert Session(id="s", app_name="a", user_id="u").save_key == "a/u"
