"""Sessions and events are plain objects: copies, dumps, and what warns at their end."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import pytest
from service_values import APP, USER, answered, got, ids, made, said, shown

from raf_session.errors import StaleSessionError
from raf_session.service import Event, InMemorySessionService, Session

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


STATE: dict[str, Any] = {"list": [1], "user:cfg": {"t": 1}, "app:n": 1, "temp:t": [1]}

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy,
    "deepcopy": deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301
    "model_copy": lambda value: value.model_copy(),
    "model_copy deep": lambda value: value.model_copy(deep=True),
}


@pytest.mark.parametrize("way", COPIES)
async def test_a_copy_of_a_session_is_a_handle_of_its_own(way: str) -> None:
    service = InMemorySessionService()
    session = await made(service, state=STATE)
    await service.append_event(session, said("e0", state={"k": [1]}))
    twin: Session = COPIES[way](session)
    assert twin == session
    assert shown(twin) == shown(session)
    before = shown(session)
    twin.state["list"].append("twin")
    twin.state["new"] = 1
    twin.events[0].actions.state_delta["k"].append(2)
    twin.events.append(said("never"))
    assert shown(session) == before
    await service.append_event(twin, said("e1"), expected_revision=twin.revision)
    await service.update_session(twin)
    assert shown(session) == before
    with pytest.raises(StaleSessionError):
        await service.append_event(
            session, said("e2"), expected_revision=session.revision
        )
    assert ids(await got(service)) == ["e0", "e1"]
    del twin.state["temp:t"]
    assert (await got(service)).state == twin.state


@pytest.mark.parametrize("way", COPIES)
async def test_a_copy_of_an_event_is_that_event(way: str) -> None:
    service = InMemorySessionService()
    session = await made(service)
    await service.append_event(session, said("e0", long_running_tool_ids={"c"}))
    event = session.events[0]
    twin: Event = COPIES[way](event)
    assert twin == event
    assert (twin.seq, twin.age_us) == (event.seq, event.age_us)
    await service.append_event(session, twin)
    assert ids(await got(service)) == ["e0"]


async def test_a_dump_of_a_session_reads_as_the_same_session() -> None:
    service = InMemorySessionService()
    session = await made(service, state=STATE)
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]
    for event in (said("e0", content=parts), answered("e1", custom_metadata={"a": 1})):
        await service.append_event(session, event)
    assert Session.model_validate(session.model_dump()) == session
    assert Session.model_validate_json(session.model_dump_json()) == session


async def test_a_handle_dropped_with_unsaved_keys_warns_with_their_names() -> None:
    service = InMemorySessionService()
    await made(service, state={"a": 1, "b": 2, "temp:x": 1})
    for change, names in (
        ({"a": 2, "user:n": 1}, "a, user:n"),
        ({"bad": object()}, "bad"),
    ):
        session = await got(service)
        session.state.update(change)
        with pytest.warns(ResourceWarning, match=f": {names};"):
            del session
    session = await got(service)
    del session.state["b"]
    with pytest.warns(ResourceWarning, match=": b;"):
        del session
    session = await got(service)
    session.state["temp:only"] = 1
    del session
    by_hand = Session(id="x", app_name=APP, user_id=USER, state={"a": 1})
    del by_hand
