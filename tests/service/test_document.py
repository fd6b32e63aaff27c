"""The samples of tRPC-Agent's document, in its order, on every backend.

Import paths, URL and the model are ours, everything else is as it is printed.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from document_services import BACKENDS, Make, makers

from raf_session.errors import SessionExistsError, StateKeyMissingError
from raf_session.messages import ChatMessage
from raf_session.runner import InvocationContext, LlmAgent, Runner
from raf_session.service import (
    Event,
    EventActions,
    InMemorySessionService,
    SessionServiceConfig,
    SessionSummarizer,
    SummarizerSessionManager,
    extract_state_delta,
    set_summarizer_conversation_threshold,
    set_summarizer_events_count_threshold,
)
from raf_session.summarizers import ExtractiveSummarizer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=BACKENDS)
async def make(request: pytest.FixtureRequest) -> AsyncGenerator[Make]:
    async with makers(request.param) as make:
        yield make


def configured() -> SessionServiceConfig:
    return SessionServiceConfig(
        event_ttl_seconds=3600,
        max_events=100,
        ttl=SessionServiceConfig.create_ttl_config(
            enable=True,
            ttl_seconds=86400,
            cleanup_interval_seconds=3600,
        ),
    )


async def told(messages: list[ChatMessage]) -> str:
    """A model that says what it was told."""
    return " | ".join(f"{m.role.value}: {m.text}" for m in messages)


async def said(runner: Runner, **options: Any) -> list[Event]:
    return [event async for event in runner.run_async(**options)]


# The parts of a session ----------------------------------------------------------


async def test_a_session_has_the_documents_fields(make: Make) -> None:
    session = await make().create_session(app_name="my_app", user_id="user_001")
    assert str(uuid.UUID(session.id)) == session.id
    assert (session.app_name, session.user_id) == ("my_app", "user_001")
    assert session.save_key == "my_app/user_001"
    assert session.events == []
    assert session.state == {}
    assert session.conversation_count == 0
    assert session.last_update_time > 0


async def test_events_are_in_order_of_time_and_of_all_kinds(make: Make) -> None:
    service = make()
    session = await service.create_session(app_name="a", user_id="u")
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    await service.append_event(session, Event(author="user", content="weather?"))
    await service.append_event(
        session, Event(author="bot", content={"tool_calls": [call], "content": None})
    )
    await service.append_event(
        session, Event(author="bot", content=ChatMessage.tool("sunny", "c"))
    )
    await service.append_event(session, Event(author="bot", content="It is sunny."))
    stored = await service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert stored is not None
    assert [event.text for event in stored.events] == [
        *("weather?", "", "sunny", "It is sunny.")
    ]
    assert stored.events == session.events
    assert [event.is_final_response() for event in stored.events] == [
        *(True, False, False, True)
    ]
    assert stored.conversation_count == session.conversation_count == 1


def test_a_delta_is_split_by_the_prefixes_of_its_keys() -> None:
    entry = extract_state_delta(
        {"app:version": "1", "user:name": "Ann", "temp:x": 1, "step": None}
    )
    assert entry.app_state_delta == {"version": "1"}
    assert entry.user_state_delta == {"name": "Ann"}
    assert entry.session_state == {"step": None}


# Create, get, list, delete -------------------------------------------------------


async def test_sessions_are_created_and_read(make: Make) -> None:
    session_service = make()
    session_id = str(uuid.uuid4())
    session = await session_service.create_session(
        app_name="my_app",
        user_id="user_001",
        session_id=session_id,
        state={"initial_key": "initial_value"},
    )
    assert session.id == session_id
    assert session.state == {"initial_key": "initial_value"}
    read = await session_service.get_session(
        app_name="my_app", user_id="user_001", session_id=session_id
    )
    assert read is not None
    assert read == session
    with pytest.raises(SessionExistsError):
        await session_service.create_session(
            app_name="my_app", user_id="user_001", session_id=session_id
        )


async def test_sessions_are_listed_with_and_without_a_user(make: Make) -> None:
    session_service = make()
    for user in ("user_001", "user_002", "user_001"):
        session = await session_service.create_session(
            app_name="my_app", user_id=user, state={"k": user, "user:n": user}
        )
        await session_service.append_event(session, Event(author="user", content="hi"))
    await session_service.create_session(app_name="other_app", user_id="user_001")
    session_list = await session_service.list_sessions(
        app_name="my_app", user_id="user_001"
    )
    assert [s.user_id for s in session_list.sessions] == ["user_001", "user_001"]
    all_session_list = await session_service.list_sessions(
        app_name="my_app", user_id=None
    )
    assert len(all_session_list.sessions) == 3
    for session in all_session_list.sessions:
        assert session.events == []
        assert session.state == {"k": session.user_id, "user:n": session.user_id}


async def test_a_deleted_session_is_gone_with_its_events(make: Make) -> None:
    session_service = make()
    session = await session_service.create_session(
        app_name="my_app", user_id="user_001", state={"k": 1, "user:n": 2, "app:v": 3}
    )
    await session_service.append_event(session, Event(author="user", content="hi"))
    where = {"app_name": "my_app", "user_id": "user_001", "session_id": session.id}
    await session_service.delete_session(**where)
    assert await session_service.get_session(**where) is None
    again = await session_service.create_session(**where)  # type: ignore[arg-type]
    assert again.events == []
    assert again.state == {"user:n": 2, "app:v": 3}


# Appending -----------------------------------------------------------------------


async def test_appending_an_event(make: Make) -> None:
    service = make()
    session = await service.create_session(app_name="a", user_id="u")
    partial = Event(author="bot", content="hel", partial=True)
    assert await service.append_event(session, partial) is partial
    assert session.events == []
    event = Event(
        author="bot",
        content="hello",
        actions=EventActions(
            state_delta={
                "current_topic": "天气",
                "user:name": "Alice",
                "app:version": "1.0",
                "temp:cache": "...",
            }
        ),
    )
    assert await service.append_event(session, event) is event
    assert [e.text for e in session.events] == ["hello"]
    assert session.state["temp:cache"] == "..."
    other = await service.create_session(app_name="a", user_id="u")
    assert other.state == {"user:name": "Alice", "app:version": "1.0"}
    stranger = await service.create_session(app_name="a", user_id="v")
    assert stranger.state == {"app:version": "1.0"}
    stored = await service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert stored is not None
    assert stored.state == {
        "current_topic": "天气",
        "user:name": "Alice",
        "app:version": "1.0",
    }
    assert "temp:cache" not in stored.events[0].actions.state_delta


# Filters, time to live, summaries: the configurations as printed -----------------


async def test_the_configuration_of_event_filters(make: Make) -> None:
    service = make(
        session_config=SessionServiceConfig(
            event_ttl_seconds=3600,
            max_events=100,
            num_recent_events=10,
        )
    )
    session = await service.create_session(app_name="a", user_id="u")
    for n in range(120):
        await service.append_event(session, Event(author="user", content=f"{n}"))
    assert [event.text for event in session.events] == [str(n) for n in range(20, 120)]
    read = await service.get_session(app_name="a", user_id="u", session_id=session.id)
    assert read is not None
    assert [event.text for event in read.events] == [str(n) for n in range(110, 120)]
    assert read.conversation_count == 120


async def test_the_configuration_of_the_time_to_live(make: Make) -> None:
    service = make(session_config=configured())
    assert service.journal.limits.sessions.max_idle_secs == 86400
    session = await service.create_session(app_name="a", user_id="u")
    await service.append_event(session, Event(author="user", content="hi"))
    assert (
        await service.get_session(app_name="a", user_id="u", session_id=session.id)
        == session
    )


async def test_the_configuration_of_the_summarizer(make: Make) -> None:
    summarizer = SessionSummarizer(ExtractiveSummarizer(), keep_recent_count=2)
    summarizer_manager = SummarizerSessionManager(summarizer=summarizer)
    set_summarizer_conversation_threshold(summarizer_manager, threshold=10)
    set_summarizer_events_count_threshold(summarizer_manager, threshold=50)
    session_service = make(summarizer_manager=summarizer_manager)
    session = await session_service.create_session(app_name="a", user_id="u")
    for n in range(10):
        said = f"My order number is {n}{n}{n}. " + "Well, let me think about it. " * 9
        await session_service.append_event(session, Event(author="user", content=said))
        await session_service.append_event(session, Event(author="bot", content="Ok."))
    await session_service.summaries_done()
    read = await session_service.get_session(
        app_name="a", user_id="u", session_id=session.id
    )
    assert read is not None
    assert read.summary is read.events[0]
    assert "My order number is " in read.events[0].text
    assert len(read.events) < 20
    summary = await session_service.get_session_summary(read)
    assert summary
    assert read.events[0].text.endswith(summary)


# Basic use -----------------------------------------------------------------------


async def test_a_run_makes_its_session_on_first_use(make: Make) -> None:
    session_service = make(session_config=configured())
    runner = Runner(
        app_name="my_app",
        agent=LlmAgent("my_agent", told),
        session_service=session_service,
    )
    user_id, session_id, user_message = "user_001", "s1", "hello"
    async for event in runner.run_async(
        user_id=user_id, session_id=session_id, new_message=user_message
    ):
        assert event.text == "user: hello"
    session = await session_service.get_session(
        app_name="my_app", user_id=user_id, session_id=session_id
    )
    assert session is not None
    assert [e.author for e in session.events] == ["user", "my_agent"]
    await said(runner, user_id=user_id, session_id=session_id, new_message="again")
    await said(runner, user_id=user_id, new_message="a new one")
    listed = await session_service.list_sessions(app_name="my_app", user_id=user_id)
    assert sorted(s.conversation_count for s in listed.sessions) == [1, 2]


async def test_sessions_are_managed_by_hand(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    session_service = make()
    app_name = "SessionTest"
    user_id = "Alice"
    session_id = str(uuid.uuid4())
    session = await session_service.create_session(
        app_name=app_name,
        user_id=user_id,
        session_id=session_id,
        state={"initial_key": "initial_value"},
    )
    read = await session_service.get_session(
        app_name=app_name, user_id=user_id, session_id=session_id
    )
    assert read == session
    session_list = await session_service.list_sessions(
        app_name=app_name, user_id=user_id
    )
    print(f"Session: {session_list.sessions}")
    assert session_id in capsys.readouterr().out
    await session_service.delete_session(
        app_name=app_name, user_id=user_id, session_id=session_id
    )
    session_list = await session_service.list_sessions(
        app_name=app_name, user_id=user_id
    )
    assert session_list.sessions == []


# State ---------------------------------------------------------------------------


async def test_an_instruction_holds_values_of_the_state(make: Make) -> None:
    service = make()
    agent = LlmAgent(
        name="personalized_assistant",
        model=told,
        instruction="""你好 {user:name}！

当前任务进度：{current_step}
用户偏好语言：{user:language}

根据用户偏好为 {user:name} 提供帮助。""",
    )
    await service.create_session(
        app_name="a",
        user_id="u",
        session_id="s",
        state={
            "user:name": "张三",
            "user:language": "zh",
            "current_step": [1, {"a": 2}],
        },
    )
    runner = Runner(app_name="a", agent=agent, session_service=service)
    (event,) = await said(runner, user_id="u", session_id="s", new_message="hi")
    assert event.text == (
        'system: 你好 张三！\n\n当前任务进度：[1,{"a":2}]\n用户偏好语言：zh\n\n'
        "根据用户偏好为 张三 提供帮助。 | user: hi"
    )
    with pytest.raises(StateKeyMissingError, match="user:name"):
        await said(runner, user_id="somebody", session_id="s", new_message="hi")


async def test_an_agents_output_is_the_next_ones_input(make: Make) -> None:
    service = make()

    async def analysis(_: list[ChatMessage]) -> str:
        return "they need a boat"

    analyzer = LlmAgent(
        name="need_analyzer",
        model=analysis,
        instruction="分析用户需求并提供详细分析",
        output_key="analysis_result",
    )
    planner = LlmAgent(
        name="solution_planner",
        model=told,
        instruction="基于分析结果制定解决方案：\n\n{analysis_result}",
        output_key="solution_plan",
    )
    for agent in (analyzer, planner):
        runner = Runner(app_name="a", agent=agent, session_service=service)
        events = await said(runner, user_id="u", session_id="s", new_message="go on")
    assert events[-1].text.startswith(
        "system: 基于分析结果制定解决方案：\n\nthey need a boat | user: go on"
    )
    session = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert session is not None
    assert session.state == {
        "analysis_result": "they need a boat",
        "solution_plan": events[-1].text,
    }


async def update_user_preference(
    preference: str, value: str, tool_context: InvocationContext
) -> str:
    """更新用户偏好设置"""
    tool_context.state[f"user:{preference}"] = value
    history = tool_context.state.get("preference_history", [])
    history.append(f"更新{preference}为{value}")
    tool_context.state["preference_history"] = history
    return f"已更新偏好 {preference} = {value}"


async def test_a_tool_changes_the_state_by_its_context(make: Make) -> None:
    service = make()

    async def model(messages: list[ChatMessage]) -> dict[str, Any]:
        if messages[-1].role == "tool":
            return {"content": messages[-1].text}
        arguments = '{"preference": "theme", "value": "dark"}'
        function = {"name": "update_user_preference", "arguments": arguments}
        call = {"id": "1", "type": "function", "function": function}
        return {"content": None, "tool_calls": [call]}

    agent = LlmAgent("bot", model, tools=[update_user_preference])
    runner = Runner(app_name="a", agent=agent, session_service=service)
    for _ in range(2):
        events = await said(runner, user_id="u", session_id="s", new_message="dark!")
        assert events[-1].text == "已更新偏好 theme = dark"
    session = await service.get_session(app_name="a", user_id="u", session_id="s")
    assert session is not None
    assert session.state == {
        "user:theme": "dark",
        "preference_history": ["更新theme为dark"] * 2,
    }


def test_a_context_under_another_name_is_refused() -> None:
    async def tool(context: InvocationContext) -> str:
        return str(context)

    with pytest.raises(TypeError, match="tool_context"):
        LlmAgent("bot", told, tools=[tool])


async def test_the_state_is_set_before_and_after_a_run(make: Make) -> None:
    session_service = make()
    session = await session_service.create_session(
        app_name="my_app",
        user_id="user123",
        session_id="session456",
        state={
            "user:name": "张三",
            "user:language": "中文",
            "current_step": "started",
            "app:version": "1.0.0",
        },
    )
    agent = LlmAgent("bot", told, "{current_step}", output_key="answer")
    runner = Runner(app_name="my_app", agent=agent, session_service=session_service)
    await said(runner, user_id="user123", session_id="session456", new_message="hi")
    assert "answer" not in session.state
    read = await session_service.get_session(
        app_name="my_app", user_id="user123", session_id="session456"
    )
    assert read is not None
    assert read.state["answer"] == "system: started | user: hi"
    read.state["current_step"] = "end"
    read.state["user:language"] = "English"
    await session_service.update_session(read)
    last = await session_service.get_session(
        app_name="my_app", user_id="user123", session_id="session456"
    )
    assert last is not None
    assert last.state == read.state
    assert last.events == read.events
    (other,) = (
        await session_service.list_sessions(app_name="my_app", user_id="user123")
    ).sessions
    assert other.state["user:language"] == "English"


async def test_sessions_in_memory_end_with_the_service() -> None:
    session = await InMemorySessionService().create_session(app_name="a", user_id="u")
    assert (
        await InMemorySessionService().get_session(
            app_name="a", user_id="u", session_id=session.id
        )
        is None
    )


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "memory"])
async def test_stored_sessions_outlive_the_service(backend: str) -> None:
    async with makers(backend) as make:
        first = make()
        session = await first.create_session(
            app_name="a", user_id="u", state={"k": 1, "user:n": 2}
        )
        await first.append_event(session, Event(author="user", content="hi"))
        await first.close()
        read = await make().get_session(
            app_name="a", user_id="u", session_id=session.id
        )
        assert read == session
