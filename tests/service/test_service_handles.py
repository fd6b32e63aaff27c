"""Sessions as their callers hold them: what is written, and what changes them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import anyio
import pytest
from disturbed_journals import Failing, Noting, over
from service_bindings import ServiceHarness, on_every_service
from service_values import (
    APP,
    NAME,
    USER,
    answered,
    forget,
    found,
    got,
    ids,
    made,
    said,
    shown,
)

from raf_session.errors import (
    EntryConflictError,
    InvalidValueError,
    SessionNotFoundError,
    StaleSessionError,
    StorageError,
)
from raf_session.service import InMemorySessionService, SessionServiceConfig

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


STATE: dict[str, Any] = {
    "n": 1,
    "list": [1, {"a": [2]}],
    "user:name": "Ann",
    "user:cfg": {"t": 1},
    "app:cfg": {"t": 1},
    "gone": True,
}


def _reassign(state: dict[str, Any]) -> None:
    copied = dict(state, y=1)
    state.clear()
    state.update(copied)


def _order(state: dict[str, Any]) -> None:
    state["user:cfg"] = {"b": 1, "a": 2}


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], set[str]]] = {
    "setitem": (lambda s: s.__setitem__("n", 2), {"n"}),
    "the type": (lambda s: s.__setitem__("n", 1.0), {"n"}),
    "to true": (lambda s: s.__setitem__("n", True), {"n"}),
    "to none": (lambda s: s.__setitem__("n", None), {"n"}),
    "a list inside": (lambda s: s["list"].append(3), {"list"}),
    "far inside": (lambda s: s["list"][1]["a"].insert(0, 0), {"list"}),
    "the user's": (lambda s: s["user:cfg"].update(u=1), {"user:cfg"}),
    "the app's": (lambda s: s["app:cfg"].pop("t"), {"app:cfg"}),
    "the order": (_order, {"user:cfg"}),
    "ior": (lambda s: s.__ior__({"x": 1, "n": 1}), {"x"}),
    "popitem": (lambda s: s.popitem(), {"gone"}),
    "del": (lambda s: s.__delitem__("user:name"), {"user:name"}),
    "clear": (lambda s: s.clear(), set(STATE)),
    "setdefault": (lambda s: s.setdefault("d", []).append(1), {"d"}),
    "rebuilt": (_reassign, {"y"}),
    "nothing": (lambda s: s["list"].append(s["list"].pop()), set()),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_update_session_writes_what_changed_and_nothing_else(change: str) -> None:
    alter, names = CHANGES[change]
    service = InMemorySessionService()
    await made(service, state=STATE)
    noting = Noting(service.journal)
    session = await got(over(noting, service))
    session.state = deepcopy(dict(sorted(session.state.items())))
    session.state["gone"] = session.state.pop("gone")
    alter(session.state)
    await over(noting, service).update_session(session)
    written: set[str] = set()
    for args, _ in noting.named("update"):
        for scope, prefix in (("session", ""), ("user", "user:"), ("app", "app:")):
            delta = getattr(args[1], scope)
            written |= {prefix + name for name in delta.names} if delta else set()
    assert written == names
    assert not noting.named("splice")
    assert not noting.named("append")
    fresh = await got(service)
    assert fresh.state == session.state
    assert repr(sorted(fresh.state.items())) == repr(sorted(session.state.items()))
    await over(noting, service).update_session(session)
    assert len(noting.named("update")) == bool(names)


@on_every_service
async def test_each_key_goes_to_its_scope(bound: ServiceHarness) -> None:
    async with bound() as service:
        session = await made(service, state=STATE)
        other = await made(service, "s2")
        apart = await service.create_session(app_name=APP, user_id="ben")
        session.state["user:new"] = [1]
        session.state["app:new"] = {"a": None}
        session.state["own"] = "mine"
        del session.state["app:cfg"], session.state["gone"]
        await service.update_session(session)
        shared = {"user:new": [1], "app:new": {"a": None}}
        assert (await got(service)).state == session.state
        for_user = {"user:name": "Ann", "user:cfg": {"t": 1}, **shared}
        assert (await got(service, "s2")).state == for_user
        fresh = await service.get_session(
            app_name=APP, user_id="ben", session_id=apart.id
        )
        assert fresh is not None
        assert fresh.state == {"app:new": {"a": None}}
        assert other.state == {n: v for n, v in STATE.items() if ":" in n}


@on_every_service
async def test_two_handles_lose_nothing_of_each_other(bound: ServiceHarness) -> None:
    async with bound() as service:
        await made(service, state={"x": 0})
        one, two = await got(service), await got(service)
        before = shown(two)
        one.state["a"] = 1
        await service.update_session(one)
        await service.append_event(one, said("e1", state={"c": 3}))
        assert shown(two) == before
        two.state["b"] = 2
        await service.update_session(two)
        await service.append_event(two, said("e2"))
        fresh = await got(service)
        assert fresh.state == {"x": 0, "a": 1, "b": 2, "c": 3}
        assert ids(fresh) == ["e1", "e2"]
        assert ids(one) == ["e1"]
        assert ids(two) == ["e2"]


@on_every_service
async def test_an_event_is_stored_once_through_two_handles(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        await made(service)
        one, two = await got(service), await got(service)
        event = said("x", state={"n": 1})
        await service.append_event(one, event)
        await service.append_event(one, said("y", state={"n": 2}))
        await service.append_event(two, event)
        await service.append_event(one, event)
        fresh = await got(service)
        assert ids(fresh) == ids(one) == ["x", "y"]
        assert fresh.state == one.state == {"n": 2}
        assert ids(two) == ["x"]


@on_every_service
async def test_another_body_under_a_stored_id_is_a_conflict(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        session = await made(service)
        await service.append_event(session, said("x", text="first"))
        before = shown(session)
        others = [
            said("x", text="second"),
            answered("x", text="first"),
            said("x", text="first", state={"n": 1}),
            said("x", text="first", timestamp=1.0),
        ]
        for other in others:
            with pytest.raises(EntryConflictError):
                await service.append_event(session, other)
        with pytest.raises(EntryConflictError):
            await service.append_events(session, [said("new"), said("x", text="first")])
        assert shown(session) == before == shown(await got(service))


@on_every_service
async def test_a_cancelled_append_is_whole_or_nothing_and_may_be_repeated(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        session = await made(service)
        for n in range(3):
            event = said(f"e{n}", state={f"k{n}": n})
            with anyio.CancelScope() as scope:
                scope.cancel()
                await service.append_event(session, event)
            await service.append_event(session, event)
        fresh = await got(service)
        assert ids(session) == ids(fresh) == ["e0", "e1", "e2"]
        assert session.state == fresh.state == {"k0": 0, "k1": 1, "k2": 2}


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "answer lost"])
@on_every_service
async def test_a_handle_is_as_it_was_after_a_failed_append(
    bound: ServiceHarness, lost: bool
) -> None:
    async with bound() as service:
        failing = Failing(service.journal)
        service_over = over(failing, service)
        session = await made(service, state={"n": 0})
        before = shown(session)
        event = said("e1", state={"n": 1, "user:m": 2, "temp:t": 3})
        given = event.model_dump()
        errors = failing.after if lost else failing.before
        errors["append"] = [StorageError("test", "away")]
        with pytest.raises(StorageError):
            await service_over.append_event(session, event)
        assert shown(session) == before
        assert event.model_dump() == given
        assert not any(session.unsaved())
        assert await service_over.append_event(session, event) is event
        fresh = await got(service)
        assert ids(session) == ids(fresh) == ["e1"]
        assert fresh.state == {"n": 1, "user:m": 2}
        assert session.state == {**fresh.state, "temp:t": 3}
        assert session.conversation_count == fresh.conversation_count == 1


@on_every_service
async def test_a_batch_is_stored_whole_or_not_at_all(bound: ServiceHarness) -> None:
    async with bound() as service:
        session = await made(service)
        before = shown(session)
        bad = said("bad", state={"k": float("nan")})
        with pytest.raises(InvalidValueError) as caught:
            await service.append_events(session, [said("good", state={"n": 1}), bad])
        assert caught.value.path == "k"
        with pytest.raises(InvalidValueError):
            await service.append_events(session, [said("good"), said("x" * 513)])
        assert shown(session) == before == shown(await got(service))
        await service.append_events(session, [])
        await service.append_events(session, [said("p", partial=True)])
        assert shown(session) == before == shown(await got(service))


@on_every_service
async def test_a_failed_update_leaves_the_keys_unsaved(bound: ServiceHarness) -> None:
    async with bound() as service:
        failing = Failing(service.journal)
        session = await made(service, state={"n": 0, "d": 1})
        session.state["n"] = 1
        del session.state["d"]
        for errors in (failing.before, failing.after):
            errors["update"] = [StorageError("test", "away")]
            with pytest.raises(StorageError):
                await over(failing, service).update_session(session)
            values, deleted = session.unsaved()
            assert (dict(values), set(deleted)) == ({"n": 1}, {"d"})
        await over(failing, service).update_session(session)
        assert not any(session.unsaved())
        assert (await got(service)).state == {"n": 1}


@on_every_service
async def test_a_value_that_is_no_json_is_refused_with_its_path(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        session = await made(service)
        for value in (object(), {1: 2}, float("inf"), {"a": {1}}, b"x", lambda: 0):
            session.state["user:k"] = [value]
            with pytest.raises(InvalidValueError) as caught:
                await service.update_session(session)
            assert caught.value.path.startswith("user:k[0]")
            with pytest.raises(InvalidValueError):
                await service.update_session_state(session, {"temp:k": value})
            with pytest.raises(InvalidValueError):
                await made(service, "s2", state={"k": value})
        del session.state["user:k"]
        assert (await got(service)).state == {}
        assert await found(service, "s2") is None


# Sessions that are gone ----------------------------------------------------------


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "re-created"])
@on_every_service
async def test_a_handle_of_a_session_that_is_gone_writes_nothing(
    bound: ServiceHarness, again: bool
) -> None:
    async with bound() as service:
        session = await made(service, state={"n": 1, "user:u": 1})
        await service.append_event(session, said("e0"))
        await service.delete_session(app_name=APP, user_id=USER, session_id=NAME)
        if again:
            await made(service)
        before = shown(session)
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("e1", state={"user:u": 2}))
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("e0"))
        with pytest.raises(SessionNotFoundError):
            await service.update_session_state(session, {"app:a": 1})
        assert shown(session) == before
        session.state["user:u"] = 3
        with pytest.raises(SessionNotFoundError):
            await service.update_session(session)
        forget(session)
        fresh = await found(service)
        assert (fresh is not None) is again
        if fresh is not None:
            assert fresh.state == {"user:u": 1}
            assert not fresh.events
        assert await service.get_app_state(APP) == {}


@on_every_service
async def test_an_exclusive_append_is_refused_after_anothers(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        one = await made(service)
        two = await got(service)
        await service.append_event(one, said("a"), expected_revision=one.revision)
        with pytest.raises(StaleSessionError) as caught:
            await service.append_event(two, said("b"), expected_revision=two.revision)
        assert caught.value.expected == two.revision
        assert caught.value.actual == one.revision
        assert ids(two) == []
        await service.append_event(two, said("c"))
        with pytest.raises(StaleSessionError):
            # It never saw what the other has appended.
            await service.append_event(two, said("d"), expected_revision=two.revision)
        fresh = await got(service)
        await service.append_event(fresh, said("d"), expected_revision=fresh.revision)
        assert ids(fresh) == ["a", "c", "d"]


@on_every_service
async def test_a_run_that_writes_alone_is_never_stale(bound: ServiceHarness) -> None:
    config = SessionServiceConfig(max_events=4)
    async with bound(config) as service:
        session = await made(service)
        for n in range(90):
            await service.append_event(
                session, said(f"e{n}"), expected_revision=session.revision
            )
            if n % 10 == 0:
                session.state["n"] = n
                await service.update_session(session)
                await service.update_session_state(session, {"user:n": n})
        assert session.revision == (await got(service)).revision
