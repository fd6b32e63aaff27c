"""Triggers: when a session is due for a summary, in both forms of call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from service_values import Scribe, answered, got, made, managed, said

from raf_session.conformance import TickingClock
from raf_session.service import (
    CheckSummarizerFunction,
    Event,
    InMemorySessionService,
    Session,
    SessionServiceConfig,
    SessionSummarizer,
    SummarizerSessionManager,
    set_summarizer_check_functions_by_and,
    set_summarizer_check_functions_by_or,
    set_summarizer_content_length_threshold,
    set_summarizer_conversation_threshold,
    set_summarizer_events_count_threshold,
    set_summarizer_important_content_threshold,
    set_summarizer_time_interval_threshold,
    set_summarizer_token_threshold,
    summary_progress,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


USAGE = {"prompt_tokens": 30, "completion_tokens": 20}
TURN: tuple[Event, ...] = (
    said("u", text="x" * 60),
    answered("a", text="y" * 40, usage_metadata=USAGE),
)
SETTERS: dict[str, tuple[Callable[..., CheckSummarizerFunction], str, float]] = {
    "conversations": (
        set_summarizer_conversation_threshold,
        "conversation_count",
        3,
    ),
    "events": (set_summarizer_events_count_threshold, "event_count", 6),
    "time": (set_summarizer_time_interval_threshold, "time_interval", 30),
    "length": (set_summarizer_content_length_threshold, "content_length", 300),
    "tokens": (set_summarizer_token_threshold, "token_count", 150),
}
"""Each with the threshold that three turns, 10 seconds apart, reach exactly."""


def manager() -> SummarizerSessionManager:
    return managed(Scribe(), auto_summarize=False)


async def after_turns(count: int, clock: TickingClock) -> list[Session]:
    """Return the handle that wrote so many turns, and the session as it is read."""
    service = InMemorySessionService(clock=clock)
    session = await made(service)
    for n in range(count):
        for event in TURN:
            fields = {"id": f"{event.id}{n}", "timestamp": clock().timestamp()}
            clock.tick(5)
            await service.append_event(session, event.model_copy(update=fields))
    # The handle knows the time of its last write.
    await service.update_session_state(session, {"user:seen": count})
    return [session, await got(service)]


@pytest.mark.parametrize("kind", SETTERS)
async def test_reached_is_at_least_the_threshold(kind: str) -> None:
    setter, keyword, threshold = SETTERS[kind]
    clock = TickingClock()
    for session in await after_turns(3, clock):
        for limit, due in ((threshold, True), (threshold + 1, False), (1, True)):
            checks = [
                setter(limit),
                setter(**{keyword: limit}),
                setter(threshold=limit),
                setter(manager(), threshold=limit),
                setter(manager(), limit),
                setter(manager(), **{keyword: limit}),
            ]
            assert [check(session) for check in checks] == [due] * len(checks)


async def test_a_long_text_is_important() -> None:
    for session in await after_turns(2, TickingClock()):
        for limit, due in ((59, True), (60, True), (61, False)):
            setter = set_summarizer_important_content_threshold
            assert setter(limit)(session) is due
            assert setter(important_content_count=limit)(session) is due
            assert setter(manager(), threshold=limit)(session) is due


async def test_the_documents_form_registers_with_the_manager() -> None:
    for session in await after_turns(3, TickingClock()):
        for kind, (setter, _, threshold) in SETTERS.items():
            own = manager()
            setter(own, threshold=threshold)
            assert own.should_summarize(session), kind
            own = manager()
            setter(own, threshold=threshold + 1)
            assert not own.should_summarize(session), kind
            own = manager()
            setter(threshold)
            assert own.check_functions == ()


def due(_: Session) -> bool:
    return True


def never(_: Session) -> bool:
    return False


@pytest.mark.parametrize("session", [Session(id="s", app_name="a", user_id="u")])
def test_any_trigger_fires_unless_all_must(session: Session) -> None:
    for functions, any_due, all_due in (
        ([due, never], True, False),
        ([due, due], True, True),
        ([never, never], False, False),
    ):
        for combine, expected in (
            (set_summarizer_check_functions_by_or, any_due),
            (set_summarizer_check_functions_by_and, all_due),
        ):
            assert combine(functions)(session) is expected
            own = manager()
            own.add_check_function(due)
            combine(own, functions)
            assert own.should_summarize(session) is expected
        own = manager()
        for function in functions:
            own.add_check_function(function)
        assert own.should_summarize(session) is any_due
        own.set_check_functions([never])
        assert own.should_summarize(session) is False


def test_triggers_of_the_summarizer_are_the_managers() -> None:
    session = Session(id="s", app_name="a", user_id="u")
    for functions, expected in (([due], True), ([never], False), ([never, due], True)):
        summarizer = SessionSummarizer(Scribe(), check_summarizer_functions=functions)
        own = SummarizerSessionManager(summarizer=summarizer)
        assert own.should_summarize(session) is expected


@pytest.mark.parametrize("kind", SETTERS)
@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), True])
def test_a_threshold_is_positive_and_finite(kind: str, limit: Any) -> None:
    setter = SETTERS[kind][0]
    with pytest.raises(ValueError, match="threshold"):
        setter(limit)
    with pytest.raises(ValueError, match="threshold"):
        setter(manager(), threshold=limit)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(TypeError):
        set_summarizer_events_count_threshold(3, 4)
    for combine in (
        set_summarizer_check_functions_by_and,
        set_summarizer_check_functions_by_or,
    ):
        with pytest.raises(ValueError, match="no trigger"):
            combine([])
        with pytest.raises(ValueError, match="no trigger"):
            combine(manager())
    with pytest.raises(TypeError):
        SessionSummarizer()
    with pytest.raises(TypeError):
        SessionSummarizer(Scribe(), summarizer=Scribe())
    with pytest.raises(TypeError):
        SummarizerSessionManager()
    with pytest.raises(TypeError):
        SummarizerSessionManager(Scribe(), SessionSummarizer(Scribe()))
    for fields in (
        {"max_summary_length": 0},
        {"keep_recent_count": -1},
        {"timeout_secs": 0},
        {"timeout_secs": float("nan")},
        {"summarizer_prompt": "for a model alone"},
    ):
        with pytest.raises(ValueError, match=next(iter(fields))):
            SessionSummarizer(Scribe(), **fields)


async def test_progress_counts_what_came_since_the_last_summary() -> None:
    clock = TickingClock()
    service = InMemorySessionService(managed(Scribe(), keep=2), clock=clock)
    session = await made(service)
    assert summary_progress(session) == (0, 0, 0, 0, 0, 0.0)
    for n in range(4):
        for event in TURN:
            fields = {"id": f"{event.id}{n}", "timestamp": clock().timestamp()}
            await service.append_event(session, event.model_copy(update=fields))
    clock.tick(100)
    fresh = await got(service)
    assert summary_progress(fresh) == (4, 8, 200, 400, 60, 100.0)
    assert summary_progress(session)[:5] == summary_progress(fresh)[:5]
    await service.create_session_summary(session)
    # What stays verbatim was counted before; its texts are there still.
    assert summary_progress(session) == (0, 0, 0, 100, 60, 0.0)
    clock.tick(7)
    await service.append_event(session, said("new", text="z" * 70))
    for handle in (session, await got(service)):
        assert summary_progress(handle) == (1, 1, 0, 170, 70, 7.0)


async def test_progress_counts_events_that_were_trimmed_away() -> None:
    config = SessionServiceConfig(max_events=5)
    service = InMemorySessionService(session_config=config, clock=TickingClock())
    session = await made(service)
    for n in range(60):
        await service.append_event(session, said(f"u{n}"))
    for handle in (session, await got(service)):
        assert len(handle.events) <= 5
        assert summary_progress(handle)[:2] == (60, 60)


async def test_progress_of_a_session_made_by_hand_counts_its_events() -> None:
    session = Session(id="s", app_name="a", user_id="u")
    for event in TURN:
        session.add_event(event.model_copy(update={"timestamp": 100.0}))
    assert summary_progress(session, now=130.0) == (1, 2, 50, 100, 60, 30.0)
