"""Summaries, limits and calls together: nothing is lost unseen, no group is cut."""

from __future__ import annotations

from random import Random

import pytest
from service_values import (
    APP,
    NAME,
    USER,
    Scribe,
    answered,
    called,
    got,
    made,
    managed,
    returned,
    said,
)

from raf_session.conformance import TickingClock
from raf_session.keys import SessionKey
from raf_session.service import (
    Event,
    InMemorySessionService,
    Session,
    SessionServiceConfig,
    set_summarizer_conversation_threshold,
)
from raf_session.service.event_entries import event_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


CONFIGS = {
    "everything": SessionServiceConfig(),
    "few": SessionServiceConfig(max_events=6, store_historical_events=True),
    "recent": SessionServiceConfig(num_recent_events=4),
    "young": SessionServiceConfig(event_ttl_seconds=30, store_historical_events=True),
}


def drawn(chance: Random, number: int, waiting: list[str]) -> Event:
    """Return the next event of a conversation; calls that wait may be answered."""
    now = TickingClock().tick(number).timestamp()
    kind = chance.choice(["question", "question", "answer", "answer", "call", "result"])
    if kind == "question":
        return said(f"e{number}", text=f"question number {number}", timestamp=now)
    if kind == "call":
        waiting.append(f"call{number}")
        event = called(f"e{number}", waiting[-1])
    elif kind == "result" and waiting:
        call = waiting.pop(chance.randrange(len(waiting)))
        event = returned(f"e{number}", call, text=f"result number {number}")
    else:
        event = answered(f"e{number}", text=f"answer number {number}")
    return event.model_copy(update={"timestamp": now})


def results(events: list[Event]) -> set[str | None]:
    return {mark.id for event in events for mark in event.get_function_responses()}


def calls(events: list[Event]) -> set[str | None]:
    return {mark.id for event in events for mark in event.get_function_calls()}


def check_groups(view: Session, stored: list[Event], *, limited: bool) -> None:
    """No call is shown without its results, and no result without its call."""
    ids = [event.id for event in view.events]
    assert len(ids) == len(set(ids))
    asked, answers = calls(view.events), results(view.events)
    assert asked & results(stored) <= answers
    if limited:
        assert answers <= asked


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("config", CONFIGS)
async def test_every_message_is_summarised_or_stored_and_views_are_whole(
    config: str, seed: int
) -> None:
    chance, clock, scribe = Random(seed), TickingClock(), Scribe()
    limits = CONFIGS[config]
    manager = managed(scribe, keep=chance.choice([0, 1, 4]), auto_summarize=True)
    set_summarizer_conversation_threshold(manager, threshold=chance.choice([2, 3, 5]))
    service = InMemorySessionService(manager, limits, clock=clock)
    session = await made(service)
    texts: set[str] = set()
    waiting: list[str] = []
    for number in range(100):
        event = drawn(chance, number, waiting)
        texts.add(event.text)
        await service.append_event(session, event)
        await service.summaries_done()
        clock.tick(1)
        if chance.random() < 0.1:
            session = await got(service)
        key = SessionKey(app=APP, user=USER, session=NAME)
        record = await service.journal.load(key, archived=True)
        active = [event_of(entry) for entry in record.entries]
        archived = [event_of(entry) for entry in record.archived]
        covered = {text for inputs, _ in scribe.inputs for text in inputs}
        here = covered | {event.text for event in active}
        if config in {"everything", "recent"}:
            assert texts <= here
        assert texts <= here | {event.text for event in archived}
        assert sum(event.is_summary for event in active) <= 1
        check_groups(session, active, limited=config in {"few", "young"})
        check_groups(await got(service), active, limited=config != "everything")
    assert scribe.inputs
