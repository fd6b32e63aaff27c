"""Summaries: what they stand for, what they leave alone, and where they are kept."""

from __future__ import annotations

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
    found,
    got,
    ids,
    made,
    managed,
    returned,
    said,
    shown,
)

from raf_session.conformance import Capability
from raf_session.errors import SessionNotFoundError
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.options import EVERYTHING
from raf_session.service import (
    CompactionOutcome,
    InMemorySessionService,
    Session,
    SessionService,
    SessionServiceConfig,
)
from raf_session.service.event_entries import event_of

pytestmark = pytest.mark.anyio

KEY = SessionKey(app=APP, user=USER, session=NAME)


async def talk(
    service: SessionService, session: Session, first: int, turns: int
) -> None:
    """Append turns of a question and an answer each."""
    for n in range(first, first + turns):
        question = said(f"u{n}", text=f"question {n} of the user's")
        answer = answered(f"a{n}", text=f"answer {n} of the agent's")
        await service.append_events(session, [question, answer])


async def archived(service: SessionService) -> list[str]:
    """Return the ids in the archive, in order."""
    record = await service.journal.load(KEY, archived=True)
    events = map(event_of, record.archived)
    return ["summary" if event.is_summary else event.id for event in events]


def texts(numbers: range) -> list[str]:
    return [
        text
        for n in numbers
        for text in (f"question {n} of the user's", f"answer {n} of the agent's")
    ]


@on_every_service
async def test_a_summary_stands_in_front_and_the_originals_in_the_archive(
    bound: ServiceHarness,
) -> None:
    scribe = Scribe()
    async with bound(manager=managed(scribe)) as service:
        session = await made(service, state={"k": 1, "user:u": 2})
        await talk(service, session, 0, 4)
        other = await made(service, "other")
        await talk(service, other, 0, 4)
        assert await service.get_session_summary(session) is None
        outcome = await service.create_session_summary(session)
        assert outcome is CompactionOutcome.COMPACTED
        assert scribe.inputs == [(tuple(texts(range(3))), None)]
        assert ids(session) == ["summary", "u3", "a3"]
        fresh = await got(service)
        assert shown(fresh) == shown(session)
        assert fresh.summary is not None
        assert fresh.summary.is_user_turn
        assert fresh.summary.text == "Previous conversation summary: #1:6"
        assert fresh.conversation_count == 4
        assert fresh.state == {"k": 1, "user:u": 2}
        assert await service.get_session_summary(session) == "#1:6"
        assert await archived(service) == ["u0", "a0", "u1", "a1", "u2", "a2"]
        assert len((await got(service, "other")).events) == 8


@with_claims(Capability.DURABLE)
async def test_a_summary_survives_a_restart(bound: ServiceHarness) -> None:
    async with bound.storage() as opener:
        async with opener(manager=managed(Scribe())) as service:
            session = await made(service)
            await talk(service, session, 0, 4)
            await service.create_session_summary(session)
            before = shown(session)
        async with opener() as service:
            fresh = await got(service)
            assert shown(fresh) == before
            assert await service.get_session_summary(fresh) == "#1:6"


@on_every_service
async def test_in_five_rounds_every_message_is_summarised_once_or_verbatim(
    bound: ServiceHarness,
) -> None:
    scribe = Scribe()
    async with bound(manager=managed(scribe)) as service:
        session = await made(service)
        for n in range(5):
            await talk(service, session, 3 * n, 3)
            await service.create_session_summary(session)
            read = [text for inputs, _ in scribe.inputs for text in inputs]
            verbatim = [event.text for event in session.events if not event.is_summary]
            assert read + verbatim == texts(range(3 * n + 3))
            assert ids(session)[0] == "summary"
            assert ids(session).count("summary") == 1
        previous = [former for _, former in scribe.inputs]
        assert previous == [None, "#1:4", "#2:6", "#3:6", "#4:6"]
        stored = [name for name in await archived(service) if name != "summary"]
        assert stored == [name for n in range(14) for name in (f"u{n}", f"a{n}")]
        assert (await archived(service)).count("summary") == 4
        assert session.conversation_count == 15


# What happens while it is written ------------------------------------------------


@on_every_service
async def test_what_is_appended_meanwhile_is_kept(bound: ServiceHarness) -> None:
    scribe = Scribe()
    async with bound(manager=managed(scribe)) as service:
        session = await made(service)
        await talk(service, session, 0, 4)

        async def interfere() -> None:
            other = await got(service)
            await service.append_event(other, said("new", state={"k": 1}))
            await service.append_event(session, answered("newer"))

        scribe.act = interfere
        outcome = await service.create_session_summary(session)
        assert outcome is CompactionOutcome.COMPACTED
        fresh = await got(service)
        assert ids(fresh) == ids(session) == ["summary", "u3", "a3", "new", "newer"]
        assert fresh.state == {"k": 1}


async def _clear(service: SessionService) -> None:
    await service.journal.splice(KEY, 1, EVERYTHING, archive=False, purge=True)


async def _delete(service: SessionService) -> None:
    await service.delete_session(app_name=APP, user_id=USER, session_id=NAME)


async def _recreate(service: SessionService) -> None:
    await _delete(service)
    session = await made(service)
    await service.append_event(session, said("again"))


async def _splice(service: SessionService) -> None:
    await service.journal.splice(KEY, 1, 1, archive=True)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (_clear, []),
        (_delete, None),
        (_recreate, ["again"]),
        (_splice, ["a0", "u1", "a1", "u2", "a2", "u3", "a3"]),
    ],
    ids=["cleared", "deleted", "re-created", "spliced"],
)
@on_every_service
async def test_a_history_that_changed_meanwhile_is_left_alone(
    bound: ServiceHarness, change: Any, left: list[str] | None
) -> None:
    scribe = Scribe()
    async with bound(manager=managed(scribe)) as service:
        session = await made(service)
        await talk(service, session, 0, 4)

        async def act() -> None:
            await change(service)

        scribe.act = act
        try:
            outcome = await service.create_session_summary(session)
        except SessionNotFoundError:
            assert left is None
        else:
            assert outcome is CompactionOutcome.CONFLICT
        fresh = await found(service)
        assert (None if fresh is None else ids(fresh)) == left
        if fresh is not None:
            assert await service.get_session_summary(fresh) is None
            assert [e.id for e in fresh.events] == left


async def test_a_cancelled_summary_changes_nothing_and_frees_the_session() -> None:
    scribe = Scribe(anyio.sleep_forever)
    service = InMemorySessionService(managed(scribe))
    session = await made(service)
    await talk(service, session, 0, 4)
    before = shown(session)
    async with anyio.create_task_group() as group:
        group.start_soon(service.create_session_summary, session)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert shown(session) == before == shown(await got(service))
    scribe.act = None
    assert await service.create_session_summary(session) == "compacted"


async def test_a_second_summary_by_hand_waits_for_the_first() -> None:
    go = anyio.Event()
    scribe = Scribe(go.wait)
    service = InMemorySessionService(managed(scribe))
    session = await made(service)
    await talk(service, session, 0, 4)
    outcomes: list[CompactionOutcome] = []

    async def summarize() -> None:
        outcomes.append(await service.create_session_summary(await got(service)))

    async with anyio.create_task_group() as group:
        group.start_soon(summarize)
        group.start_soon(summarize)
        await anyio.wait_all_tasks_blocked()
        assert len(scribe.inputs) == 1
        go.set()
    assert outcomes == ["compacted", "nothing_to_do"]
    assert len(scribe.inputs) == 1


# What it may stand for -----------------------------------------------------------


@on_every_service
async def test_a_pending_call_stays_verbatim_until_its_result_comes(
    bound: ServiceHarness,
) -> None:
    scribe = Scribe()
    async with bound(manager=managed(scribe, keep=1)) as service:
        session = await made(service)
        await service.append_event(session, said("u"))
        call = called("call", "c1", long_running_tool_ids={"c1"})
        await service.append_event(session, call)
        await talk(service, session, 0, 12)
        await service.create_session_summary(session)
        assert ids(session) == ["summary", "call", "u11", "a11"]
        await service.append_event(session, returned("result", "c1"))
        assert ids(await got(service)) == [*ids(session)]
        assert ids(session)[-1] == "result"


@on_every_service
async def test_instructions_stay_in_front_of_the_summary(
    bound: ServiceHarness,
) -> None:
    async with bound(manager=managed(Scribe())) as service:
        session = await made(service)
        content = {"role": "system", "content": "Be brief."}
        await service.append_event(session, said("sys", "system", content=content))
        await talk(service, session, 0, 4)
        await service.create_session_summary(session)
        assert ids(session) == ["sys", "summary", "u3", "a3"]
        await talk(service, session, 4, 2)
        await service.create_session_summary(session)
        assert ids(session) == ["sys", "summary", "u5", "a5"]


async def test_the_summary_stands_first_in_a_narrow_view() -> None:
    config = SessionServiceConfig(num_recent_events=3)
    service = InMemorySessionService(managed(Scribe()), config)
    session = await made(service)
    await talk(service, session, 0, 4)
    await service.create_session_summary(session)
    await talk(service, session, 4, 60)
    assert ids(await got(service)) == ["summary", "u63", "a63"]


async def test_nothing_to_do_asks_for_no_summary() -> None:
    scribe = Scribe()
    service = InMemorySessionService(managed(scribe, keep=10))
    session = await made(service)
    assert await service.create_session_summary(session) == "nothing_to_do"
    await talk(service, session, 0, 5)
    before = shown(session)
    assert await service.create_session_summary(session) == "nothing_to_do"
    assert shown(session) == before == shown(await got(service))
    await talk(service, session, 5, 1)
    assert await service.create_session_summary(session) == "compacted"
    assert await service.create_session_summary(session) == "nothing_to_do"
    assert len(scribe.inputs) == 1


async def test_a_summary_is_cut_at_its_longest() -> None:
    scribe = Scribe(answer="  " + "word " * 40)
    service = InMemorySessionService(managed(scribe, max_summary_length=22))
    session = await made(service)
    await talk(service, session, 0, 10)
    assert await service.create_session_summary(session) == "compacted"
    assert await service.get_session_summary(session) == "word word word word wo"


async def test_a_service_without_a_manager_says_so() -> None:
    service = SessionService(MemoryJournal.opened())
    session = await made(service)
    with pytest.raises(ValueError, match="no summarizer manager"):
        await service.create_session_summary(session)
    manager = managed(Scribe())
    service.set_summarizer_manager(manager)
    with pytest.raises(ValueError, match="force=True"):
        service.set_summarizer_manager(manager)
    service.set_summarizer_manager(managed(Scribe()), force=True)
    assert await service.create_session_summary(session) == "nothing_to_do"
