"""The state of one run reaches no byte of storage, on whichever path."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import pytest
from service_bindings import ServiceHarness, ServiceOpener, on_every_service
from service_raw import stored_bytes
from service_values import APP, USER, Scribe, answered, got, made, managed, said

from raf_session.keys import SessionKey
from raf_session.service import (
    EventActions,
    Session,
    SessionService,
    SessionServiceConfig,
    extract_state_delta,
)
from raf_session.transfer import copy as copy_journal
from raf_session.transfer import dump, fork

pytestmark = pytest.mark.anyio

SECRET = "of-this-run-alone"  # noqa: S105
KEPT = "kept-for-good"
TEMPORARY: dict[str, Any] = {"temp:run": SECRET, "temp:": [SECRET, {"a": SECRET}]}
MIXED = {"a": KEPT, "user:b": KEPT, "app:c": KEPT, **TEMPORARY}


async def write_on_every_path(service: SessionService) -> Session:
    """Give temporary state wherever state can be given."""
    session = await made(service, state=MIXED)
    for number in range(40):
        await service.append_event(session, said(f"u{number}", state=TEMPORARY))
    gone = EventActions(state_deleted={"temp:run", "a"})
    await service.append_event(session, answered("gone", actions=gone))
    await service.append_events(
        session, [answered("b1", state=MIXED), answered("b2", state=TEMPORARY)]
    )
    session.state.update(TEMPORARY)
    session.state["d"] = KEPT
    await service.update_session(session)
    await service.update_session_state(session, MIXED, deleted=["temp:run"])
    await service.update_session_state(session, TEMPORARY)
    for twin in (copy(session), deepcopy(session), session.model_copy()):
        twin.state["temp:twin"] = SECRET
        twin.events[-1].actions.state_delta["temp:twin"] = SECRET
        await service.update_session(twin)
        event = twin.events[-1].model_copy(update={"id": f"again-{id(twin)}"})
        await service.append_event(twin, event)
    await service.create_session_summary(session)
    return session


async def check(opener: ServiceOpener, service: SessionService) -> None:
    stored = await stored_bytes(service, opener)
    assert KEPT.encode() in stored
    assert b"u39" in stored
    for text in (SECRET.encode(), b"temp:"):
        at = stored.find(text)
        assert at < 0, stored[max(0, at - 200) : at + 50]


@pytest.mark.parametrize("archives", [True, False], ids=["archived", "deleted"])
@on_every_service
async def test_temporary_state_reaches_no_byte_of_storage(
    bound: ServiceHarness, archives: bool
) -> None:
    config = SessionServiceConfig(max_events=4, store_historical_events=archives)
    manager = managed(Scribe())
    async with bound.storage() as opener, opener(config, manager=manager) as service:
        session = await write_on_every_path(service)
        assert session.state["temp:run"] == SECRET
        await check(opener, service)
        fresh = await got(service)
        assert not [name for name in fresh.state if name.startswith("temp:")]
        assert not [
            name
            for event in fresh.events
            for name in event.actions.state_delta
            if name.startswith("temp:")
        ]


@on_every_service
async def test_copies_forks_and_dumps_hold_no_temporary_state(
    bound: ServiceHarness,
) -> None:
    manager = managed(Scribe())
    async with (
        bound.storage() as opener,
        opener(manager=manager) as service,
        bound.storage() as other,
        other() as target,
    ):
        await write_on_every_path(service)
        key = SessionKey(app=APP, user=USER, session="s1")
        await fork(service.journal, key, SessionKey(app=APP, user=USER, session="s2"))
        await check(opener, service)
        await target.get_app_state(APP)
        await copy_journal(service.journal, target.journal)
        await check(other, target)
        dumped = "\n".join([line async for line in dump(service.journal, key)])
        assert KEPT in dumped
        assert SECRET not in dumped


@on_every_service
async def test_the_caller_sees_temporary_state_during_the_run(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        session = await made(service, state={"temp:a": [1]})
        event = said("e", state={"temp:b": 2, "c": 3})
        await service.append_event(session, event)
        assert session.state == {"temp:a": [1], "temp:b": 2, "c": 3}
        assert event.actions.state_delta == {"temp:b": 2, "c": 3}
        assert (await got(service)).state == {"c": 3}
        await service.update_session(session)
        assert session.state == {"temp:a": [1], "temp:b": 2, "c": 3}
        assert (await got(service)).state == {"c": 3}


def test_a_name_that_only_looks_temporary_is_kept() -> None:
    split = extract_state_delta({"Temp:a": 1, "temp": 2, "temporal:x": 3, "x temp:": 4})
    assert split.session_state == {
        "Temp:a": 1,
        "temp": 2,
        "temporal:x": 3,
        "x temp:": 4,
    }
