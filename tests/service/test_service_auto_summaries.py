"""Automatic summaries: when one is written, and what becomes of one that fails."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from service_bindings import ServiceHarness, on_every_service, with_claims
from service_values import (
    APP,
    NAME,
    USER,
    Scribe,
    answered,
    called,
    got,
    ids,
    made,
    managed,
    returned,
    said,
    shown,
)

from raf_session.conformance import Capability, TickingClock
from raf_session.errors import SummaryFailedError
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.service import (
    Event,
    InMemorySessionService,
    Session,
    SessionService,
    SessionSummarizer,
    SummarizerSessionManager,
    set_summarizer_conversation_threshold,
    set_summarizer_events_count_threshold,
)
from raf_session.service.summaries import FAILURES

pytestmark = pytest.mark.anyio

KEY = SessionKey(app=APP, user=USER, session=NAME)


def every(
    conversations: int, scribe: Scribe, **fields: Any
) -> SummarizerSessionManager:
    """Return a manager that summarises after so many questions."""
    manager = managed(scribe, auto_summarize=True, **fields)
    set_summarizer_conversation_threshold(manager, threshold=conversations)
    return manager


async def turn(service: SessionService, session: Session, n: int) -> None:
    """Append a question and an answer, and wait for the summary if there is one."""
    await service.append_event(session, said(f"u{n}", text=f"question {n}, a long one"))
    await service.append_event(session, answered(f"a{n}", text=f"answer {n}, as long"))
    await service.summaries_done()


@on_every_service
async def test_a_final_response_starts_one_when_the_trigger_fires(
    bound: ServiceHarness,
) -> None:
    scribe = Scribe()
    async with bound(manager=every(3, scribe)) as service:
        session = await made(service)
        for n in range(2):
            await turn(service, session, n)
        await service.append_event(session, said("u2"))
        await service.summaries_done()
        assert not scribe.inputs  # the user's message is no answer
        await service.append_event(session, answered("a2"))
        await service.summaries_done()
        assert len(scribe.inputs) == 1
        assert ids(session) == ["u0", "a0", "u1", "a1", "u2", "a2"]
        assert ids(await got(service)) == ["summary", "u2", "a2"]


async def test_one_is_not_due_again_right_after() -> None:
    scribe = Scribe()
    service = InMemorySessionService(every(3, scribe))
    session = await made(service)
    for n in range(12):
        await turn(service, session, n)
        assert len(scribe.inputs) == (n + 1) // 3
    assert ids(await got(service)) == ["summary", "u11", "a11"]


async def test_without_a_trigger_one_is_due_after_a_hundred_questions() -> None:
    scribe = Scribe()
    service = InMemorySessionService(managed(scribe, auto_summarize=True))
    session = await made(service)
    questions = [said(f"u{n}", text="a question") for n in range(98)]
    await service.append_events(session, questions)
    await turn(service, session, 98)
    assert not scribe.inputs
    await turn(service, session, 99)
    assert len(scribe.inputs) == 1


@pytest.mark.parametrize(
    "event",
    [
        called("c", "c1"),
        answered("p", partial=True),
        said("u", text="what next?"),
        said("s", content=None, state={"k": 1}),
    ],
    ids=["call", "partial", "question", "the user's state"],
)
async def test_what_is_no_final_response_starts_none(event: Event) -> None:
    scribe = Scribe()
    service = InMemorySessionService(every(1, scribe))
    session = await made(service)
    await service.append_event(session, said("u0"))
    await service.append_event(session, said("u1"))
    await service.append_event(session, said("u2"))
    await service.append_event(session, event)
    await service.summaries_done()
    assert not scribe.inputs


async def test_with_pending_calls_none_is_written() -> None:
    scribe = Scribe()
    service = InMemorySessionService(every(2, scribe, keep=1))
    session = await made(service)
    for n in range(3):
        await service.append_event(session, said(f"u{n}"))
    call = called("call", "c1", long_running_tool_ids={"c1"})
    await service.append_event(session, call)
    await service.append_event(session, answered("meanwhile"))
    await service.summaries_done()
    assert not scribe.inputs
    await service.append_event(session, returned("result", "c1"))
    await service.append_event(session, answered("done"))
    await service.summaries_done()
    assert len(scribe.inputs) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_at_a_time_is_written_while_the_conversation_goes_on() -> None:
    go = anyio.Event()
    scribe = Scribe(go.wait)
    service = InMemorySessionService(every(2, scribe))
    session = await made(service)
    for n in range(8):
        await service.append_event(session, said(f"u{n}", text="a question"))
        await service.append_event(session, answered(f"a{n}", text="an answer"))
        await anyio.wait_all_tasks_blocked()
    assert len(scribe.inputs) == 1
    assert len((await got(service)).events) == 16
    async with anyio.create_task_group() as group:
        group.start_soon(service.close)
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert ids(await got(service))[:3] == ["summary", "u1", "a1"]
    assert len((await got(service)).events) == 15


async def test_a_trigger_that_raises_harms_no_append(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: Session) -> bool:
        raise KeyError("broken trigger")

    manager = managed(Scribe(), auto_summarize=True)
    manager.add_check_function(broken)
    service = InMemorySessionService(manager)
    session = await made(service)
    with caplog.at_level(logging.ERROR, "raf_session.summary"):
        await turn(service, session, 0)
    assert ids(session) == ids(await got(service)) == ["u0", "a0"]
    assert "broken trigger" in caplog.text


# Failures ------------------------------------------------------------------------


async def _raise() -> None:
    raise ConnectionError("no network")


async def _refuse() -> None:
    raise SummaryFailedError("refused", "will not")


async def _own_timeout() -> None:
    raise TimeoutError("the model's own")


FAULTS: dict[str, tuple[Callable[[], Awaitable[None]] | None, Any, str]] = {
    "raises": (_raise, None, "raised"),
    "refuses": (_refuse, None, "refused"),
    "hangs": (anyio.sleep_forever, None, "timeout"),
    "times out": (_own_timeout, None, "timeout"),
    "empty": (None, "", "empty"),
    "blank": (None, " \n\t ", "empty"),
    "no text": (None, 7, "malformed"),
    "too long": (None, "x" * 100_000, "cannot_shrink"),
}


def faulty(scribe: Scribe, conversations: int = 2) -> SummarizerSessionManager:
    return every(conversations, scribe, timeout_secs=0.01)


@pytest.mark.parametrize("fault", FAULTS)
@on_every_service
async def test_a_failure_leaves_everything_as_it_was(
    bound: ServiceHarness, fault: str
) -> None:
    act, answer, reason = FAULTS[fault]
    scribe = Scribe(act, answer)
    clock = TickingClock()
    async with bound(manager=faulty(scribe), clock=clock) as service:
        session = await made(service, state={"k": 1})
        for n in range(2):
            await turn(service, session, n)
        assert len(scribe.inputs) == 1
        fresh = await got(service)
        assert ids(fresh) == ids(session) == ["u0", "a0", "u1", "a1"]
        assert fresh.state == {"k": 1}
        assert await service.get_session_summary(session) is None
        record = await service.journal.load(KEY, archived=True)
        assert record.archived == ()
        failed = record.provider_states[FAILURES]
        assert (failed["failures"], failed["reason"]) == (1, reason)
        outcome = await service.create_session_summary(session)
        expected = reason if reason == "cannot_shrink" else "summarizer_failed"
        assert outcome == expected
        assert ids(session) == ["u0", "a0", "u1", "a1"]


@with_claims(Capability.DURABLE)
async def test_failures_are_backed_off_after_a_restart_too(
    bound: ServiceHarness,
) -> None:
    scribe, clock = Scribe(_raise), TickingClock()
    async with bound.storage() as opener:
        async with opener(manager=faulty(scribe), clock=clock) as service:
            session = await made(service)
            for n in range(3):
                await turn(service, session, n)
            assert len(scribe.inputs) == 1
        async with opener(manager=faulty(scribe), clock=clock) as service:
            session = await got(service)
            await turn(service, session, 3)
            assert len(scribe.inputs) == 1
            clock.tick(61)
            await turn(service, session, 4)
            assert len(scribe.inputs) == 2
            scribe.act = None
            clock.tick(61)
            await turn(service, session, 5)
            assert len(scribe.inputs) == 2  # the wait has doubled
            clock.tick(60)
            await turn(service, session, 6)
            assert ids(await got(service)) == ["summary", "u6", "a6"]
            record = await service.journal.load(KEY)
            assert FAILURES not in record.provider_states


async def test_the_wait_grows_up_to_an_hour_and_a_success_ends_it() -> None:
    scribe, clock = Scribe(_raise), TickingClock()
    service = InMemorySessionService(faulty(scribe), clock=clock)
    session = await made(service)
    waits: list[float] = []
    for n in range(10):
        await turn(service, session, 2 * n)
        await turn(service, session, 2 * n + 1)
        assert len(scribe.inputs) == n + 1
        record = await service.journal.load(KEY)
        retry_at = record.provider_states[FAILURES]["retry_at"]
        waits.append(retry_at - clock().timestamp())
        clock.tick(waits[-1])
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    scribe.act = None
    await turn(service, session, 20)
    assert ids(await got(service))[0] == "summary"
    scribe.act = _raise
    await turn(service, session, 21)
    await turn(service, session, 22)
    record = await service.journal.load(KEY)
    assert record.provider_states[FAILURES]["failures"] == 1


async def test_an_attempt_counts_before_it_ends_so_that_a_restart_knows_it() -> None:
    seen: list[Any] = []

    async def look() -> None:
        seen.append((await service.journal.load(KEY)).provider_states[FAILURES])

    service = InMemorySessionService(faulty(Scribe(look)), clock=TickingClock())
    session = await made(service)
    for n in range(2):
        await turn(service, session, n)
    assert [(s["failures"], s["reason"]) for s in seen] == [(1, "interrupted")]
    assert FAILURES not in (await service.journal.load(KEY)).provider_states


async def test_a_summary_by_hand_does_not_wait_and_ends_the_wait() -> None:
    scribe, clock = Scribe(_raise), TickingClock()
    service = InMemorySessionService(faulty(scribe), clock=clock)
    session = await made(service)
    for n in range(2):
        await turn(service, session, n)
    scribe.act = None
    assert await service.create_session_summary(session) == "compacted"
    for n in range(2, 4):
        await turn(service, session, n)
    assert len(scribe.inputs) == 3


async def test_a_failure_after_summaries_keeps_the_last_one() -> None:
    scribe = Scribe()
    service = InMemorySessionService(managed(scribe), clock=TickingClock())
    session = await made(service)
    for n in range(4):
        await turn(service, session, n)
    await service.create_session_summary(session)
    for n in range(4, 8):
        await turn(service, session, n)
    before = shown(session)
    scribe.answer = ""
    assert await service.create_session_summary(session) == "summarizer_failed"
    assert shown(session) == {**before, "revision": session.revision}
    assert await service.get_session_summary(session) == "#1:6"
    scribe.answer = None
    await service.create_session_summary(session)
    assert scribe.inputs[-1][1] == "#1:6"
    assert scribe.inputs[-1][0] == scribe.inputs[-2][0]


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_model_writes_summaries_unless_it_refuses(refuses: bool) -> None:
    requests: list[list[ChatMessage]] = []

    async def model(messages: list[ChatMessage]) -> Any:
        requests.append(messages)
        return {"content": None, "refusal": "no"} if refuses else "short"

    summarizer = SessionSummarizer(model, keep_recent_count=0, summarizer_prompt="Sum.")
    manager = SummarizerSessionManager(summarizer=summarizer)
    set_summarizer_events_count_threshold(manager, threshold=4)
    service = InMemorySessionService(manager)
    session = await made(service)
    for n in range(2):
        await turn(service, session, n)
    assert len(requests) == 1
    assert requests[0][0].text == "Sum."
    assert "question 0" in requests[0][-1].text
    expected = None if refuses else "short"
    assert await service.get_session_summary(session) == expected
