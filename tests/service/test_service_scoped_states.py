"""App and user state outside a run, and what shares nothing with its caller."""

from __future__ import annotations

from typing import Any

import pytest
from service_bindings import ServiceHarness, on_every_service
from service_values import APP, USER, got, made, said

from raf_session.errors import InvalidValueError
from raf_session.service import InMemorySessionService, SessionService

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@on_every_service
async def test_state_is_read_updated_deleted_and_listed_by_key(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        assert await service.get_app_state(APP) == {}
        assert await service.get_user_state(APP, USER) == {}
        assert await service.list_user_states(APP) == {}
        await service.update_app_state(APP, {"theme": "dark", "n": 1})
        await service.update_user_state(APP, USER, {"name": "Ann", "n": None})
        await service.update_user_state(APP, "b*b", {"x": [1]})
        await service.update_app_state(APP, {"n": 2})
        await service.update_user_state(APP, USER, {"m": 1}, deleted=["n", "none"])
        assert await service.get_app_state(APP) == {"theme": "dark", "n": 2}
        assert await service.get_user_state(APP, USER) == {"name": "Ann", "m": 1}
        assert await service.list_user_states(APP) == {
            USER: {"name": "Ann", "m": 1},
            "b*b": {"x": [1]},
        }
        await service.delete_app_state(APP, "theme")
        await service.delete_app_state(APP, "theme")
        await service.delete_user_state(APP, USER, "m")
        await service.delete_user_state(APP, "b*b", "x")
        assert await service.get_app_state(APP) == {"n": 2}
        assert await service.list_user_states(APP) == {USER: {"name": "Ann"}}
        assert await service.list_user_states("other") == {}
        assert await service.get_user_state(APP, "*") == {}


@on_every_service
async def test_sessions_show_it_at_the_next_read(bound: ServiceHarness) -> None:
    async with bound() as service:
        session = await made(service, state={"own": 1, "user:n": 1, "app:n": 1})
        await service.update_user_state(APP, USER, {"n": 2})
        await service.update_app_state(APP, {"n": 2})
        assert session.state == {"own": 1, "user:n": 1, "app:n": 1}
        state = {"own": 1, "user:n": 2, "app:n": 2}
        assert (await got(service)).state == state
        listed = await service.list_sessions(app_name=APP)
        assert [s.state for s in listed.sessions] == [state]
        # What the handle did not change is not written over what is newer.
        session.state["own"] = 2
        await service.update_session(session)
        assert (await got(service)).state == {**state, "own": 2}
        await service.delete_session(app_name=APP, user_id=USER, session_id=session.id)
        assert await service.get_user_state(APP, USER) == {"n": 2}
        assert await service.get_app_state(APP) == {"n": 2}


@on_every_service
async def test_a_prefix_of_the_scope_is_taken_off(bound: ServiceHarness) -> None:
    async with bound() as service:
        await service.update_app_state(APP, {"app:a": 1, "b": 2})
        await service.update_user_state(APP, USER, {"user:a": 3, "b": 4})
        assert await service.get_app_state(APP) == {"a": 1, "b": 2}
        assert await service.get_user_state(APP, USER) == {"a": 3, "b": 4}
        await service.delete_app_state(APP, "app:a")
        await service.delete_user_state(APP, USER, "user:a")
        assert await service.get_app_state(APP) == {"b": 2}
        assert await service.get_user_state(APP, USER) == {"b": 4}


@on_every_service
async def test_what_cannot_be_stored_changes_nothing(bound: ServiceHarness) -> None:
    async with bound() as service:
        await service.update_app_state(APP, {"a": 1})
        await service.update_user_state(APP, USER, {"a": 1})
        for delta in (
            {"a": 2, "user:x": 1, "app:y": 1},
            {"a": 2, "temp:x": 1},
            {"a": 2, "x": object()},
            {"a": 2, "x": float("nan")},
            {"a": 2, "": 1},
            {"a": 2, "x" * 513: 1},
            {"a": 2, "x\0": 1},
        ):
            with pytest.raises(ValueError, match=r"."):
                await service.update_app_state(APP, delta)
            with pytest.raises(ValueError, match=r"."):
                await service.update_user_state(APP, USER, delta)
        with pytest.raises(InvalidValueError, match="both set and deleted"):
            await service.update_app_state(APP, {"a": 2}, deleted=["app:a"])
        keys: Any = {"a": 2, 3: 4}
        with pytest.raises(InvalidValueError):
            await service.update_app_state(APP, keys)
        with pytest.raises(InvalidValueError, match="one string"):
            await service.update_app_state(APP, {}, deleted="a")
        session = await made(service, state={"a": 1})
        with pytest.raises(InvalidValueError, match="one string"):
            await service.update_session_state(session, {}, deleted="a")
        assert session.state == {"a": 1, "app:a": 1, "user:a": 1}
        assert await service.get_app_state(APP) == {"a": 1}
        assert await service.get_user_state(APP, USER) == {"a": 1}
        for app, user in (("", USER), (APP, ""), ("x" * 513, USER)):
            with pytest.raises(ValueError, match=r"."):
                await service.get_user_state(app, user)
            with pytest.raises(ValueError, match=r"."):
                await service.update_user_state(app, user, {"a": 1})
        with pytest.raises(ValueError, match="app_name"):
            await service.list_user_states("")


# Nothing is shared ---------------------------------------------------------------


def nested() -> dict[str, Any]:
    return {"own": {"l": [1]}, "user:u": {"l": [1]}, "app:a": [[1]], "temp:t": [1]}


def spoil(state: dict[str, Any]) -> None:
    """Change every value in place, and the dict."""
    for value in state.values():
        if isinstance(value, dict):
            value["l"].append("spoilt")
            value["new"] = 1
        elif isinstance(value, list):
            value.append("spoilt")
            if isinstance(value[0], list):
                value[0].append("spoilt")
    state["spoilt"] = True


async def stored(service: SessionService) -> tuple[Any, ...]:
    """Return all that is stored, as copies."""
    session = await got(service)
    return (
        session.state,
        [event.model_dump() for event in session.events],
        await service.get_app_state(APP),
        await service.get_user_state(APP, USER),
        await service.list_user_states(APP),
    )


async def test_what_is_given_is_copied() -> None:
    service = InMemorySessionService()
    given = nested()
    session = await made(service, state=given)
    before = await stored(service)
    spoil(given)
    assert await stored(service) == before
    assert session.state == nested()
    app, user = {"k": {"l": [1]}}, {"k": {"l": [1]}}
    await service.update_app_state(APP, app)
    await service.update_user_state(APP, USER, user)
    delta = {"d": {"l": [1]}}
    await service.update_session_state(session, delta)
    event = said("e", state={"user:e": {"l": [1]}}, custom_metadata={"m": [1]})
    await service.append_event(session, event)
    before, shown = await stored(service), session.model_dump()
    for value in (app, user, delta, event.actions.state_delta):
        spoil(value)
    event.actions.state_deleted.add("own")
    assert event.custom_metadata is not None
    event.custom_metadata["m"].append(2)
    event.author = "other"
    assert await stored(service) == before
    assert session.model_dump() == shown


async def test_what_is_returned_is_a_copy() -> None:
    service = InMemorySessionService()
    session = await made(service, state=nested())
    event = said("e", state={"app:e": [[1]]}, custom_metadata={"m": [1]})
    await service.append_event(session, event)
    before = await stored(service)
    listed = await service.list_sessions(app_name=APP)
    states = await service.list_user_states(APP)
    handles = [session, await got(service), *listed.sessions]
    for handle in handles:
        spoil(handle.state)
        for own in handle.events:
            spoil(own.actions.state_delta)
            assert own.custom_metadata is not None
            own.custom_metadata["m"].append(2)
        handle.events.clear()
    spoil(await service.get_app_state(APP))
    spoil(await service.get_user_state(APP, USER))
    spoil(states[USER])
    assert await stored(service) == before
    for handle in handles:
        handle.confirm_state(*handle.unsaved())


async def test_two_users_share_the_apps_state_and_nothing_else() -> None:
    service = InMemorySessionService()
    ann = await made(service, state=nested())
    ben = await service.create_session(app_name=APP, user_id="ben")
    other = await service.create_session(app_name="other", user_id=USER)
    assert ben.state == {"app:a": [[1]]}
    assert other.state == {}
    ben.state["app:a"][0].append(2)
    assert ann.state["app:a"] == [[1]]
    assert (await got(service)).state["app:a"] == [[1]]
    await service.update_session(ben)
    assert (await got(service)).state["app:a"] == [[1, 2]]
