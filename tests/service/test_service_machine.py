"""Any calls on a few sessions, through several handles, as a small model has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from service_bindings import HARNESSES, ServiceHarness
from service_model import Given, Model, ModelHandle, Refused
from service_values import USER, forget, ids, said

from raf_session.errors import SessionError
from raf_session.service import Session, SessionService

_T = TypeVar("_T")

KEYS = st.sampled_from(["a", "b", "user:a", "user:b", "app:a", "temp:a"])
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, 1.0, True, None, "é", [1, {"z": 1}], {}]
)
STATES = st.dictionaries(KEYS, VALUES, max_size=3)
NAMES = st.sampled_from(["s1", "s2"])
SLOTS = st.integers(0, 3)


@st.composite
def events(draw: st.DrawFn) -> Given:
    state = draw(STATES)
    deleted = draw(st.frozensets(KEYS, max_size=2)) - state.keys()
    return Given(
        f"e{draw(st.integers(0, 6))}",
        draw(st.sampled_from(["user", "agent"])),
        tuple(state.items()),
        deleted,
    )


class Call(NamedTuple):
    """One call: its kind, the handle or session, and its arguments."""

    kind: str
    at: Any
    args: tuple[Any, ...] = ()


def call(kind: str, at: st.SearchStrategy[Any], *args: Any) -> st.SearchStrategy[Call]:
    return st.builds(Call, st.just(kind), at, st.tuples(*args))


FEW = st.lists(events(), min_size=1, max_size=3)
CALLS = st.lists(
    st.one_of(
        call("create", NAMES, SLOTS, STATES),
        call("update", SLOTS),
        call("append", SLOTS, FEW, st.none()),
        call("get", NAMES, SLOTS),
        call("append", SLOTS, FEW, st.sampled_from([None, None, "known", "other"])),
        call("append", SLOTS, FEW, st.none()),
        call("again", SLOTS, st.integers(0, 9)),
        call("change", SLOTS, STATES, st.frozensets(KEYS, max_size=2)),
        call("update", SLOTS),
        call("set_state", SLOTS, STATES, st.frozensets(KEYS, max_size=2)),
        call("user_state", st.none(), VALUES),
        call("delete", NAMES),
    ),
    min_size=4,
    max_size=25,
)
BEGINNING = [Call("create", "s1", (0, {"a": 1})), Call("get", "s1", (1,))]


class Pair:
    """A service and the model, which are given the same calls."""

    def __init__(self, service: SessionService, app: str) -> None:
        self._service = service
        self._app = app
        self._model = Model()
        self._handles: dict[int, tuple[Session, ModelHandle]] = {}
        self._given: list[Given] = []

    async def play(self, calls: list[Call]) -> None:
        """Play calls; after each all handles and reads are as the model has them."""
        try:
            for one in calls:
                await getattr(self, f"_{one.kind}")(one.at, *one.args)
                await self._compare(one)
        finally:
            for handle, _ in self._handles.values():
                forget(handle)

    async def _compare(self, one: Call) -> None:
        for handle, model in self._handles.values():
            assert _shown(handle) == _modelled(model), one
            assert ids(handle) == model.events, one
            assert handle.revision == model.revision, one
        listed = await self._service.list_sessions(app_name=self._app)
        assert {s.id for s in listed.sessions} == self._model.sessions.keys(), one
        for session in listed.sessions:
            assert _sorted(session.state) == _sorted(self._model.merged(session.id))
            fresh = await self._service.get_session(
                app_name=self._app, user_id=USER, session_id=session.id
            )
            wanted = self._model.get(session.id)
            assert fresh is not None
            assert wanted is not None
            assert _shown(fresh) == _modelled(wanted), one
            assert ids(fresh) == wanted.events, one
            assert fresh.revision == wanted.revision, one

    async def _both(
        self, real: Awaitable[_T], modelled: Callable[[], object]
    ) -> _T | None:
        """Do the same to both: they end alike, with the same kind of error."""
        expected = actual = None
        try:
            modelled()
        except Refused as error:
            expected = error.kind
        answer: _T | None = None
        try:
            answer = await real
        except SessionError as error:
            actual = type(error)
        assert actual == expected
        return answer

    def _keep(self, slot: int, handle: Session, model: ModelHandle) -> None:
        if slot in self._handles:
            forget(self._handles[slot][0])
        self._handles[slot] = handle, model

    async def _create(self, name: str, slot: int, state: dict[str, Any]) -> None:
        made: list[ModelHandle] = []
        handle = await self._both(
            self._service.create_session(
                app_name=self._app, user_id=USER, session_id=name, state=state
            ),
            lambda: made.append(self._model.create(name, state)),
        )
        if handle is not None:
            self._keep(slot, handle, made[0])

    async def _get(self, name: str, slot: int) -> None:
        handle = await self._service.get_session(
            app_name=self._app, user_id=USER, session_id=name
        )
        model = self._model.get(name)
        assert (handle is None) is (model is None)
        if handle is not None and model is not None:
            self._keep(slot, handle, model)

    async def _append(self, slot: int, given: list[Given], expected: Any) -> None:
        if slot not in self._handles:
            return
        handle, model = self._handles[slot]
        known = {None: None, "known": handle.revision, "other": 99}[expected]
        self._given += given
        await self._both(
            self._service.append_events(
                handle, [_event(one) for one in given], expected_revision=known
            ),
            lambda: self._model.append(model, given, known),
        )

    async def _again(self, slot: int, which: int) -> None:
        if self._given:
            await self._append(slot, [self._given[which % len(self._given)]], None)

    async def _change(
        self, slot: int, state: dict[str, Any], gone: frozenset[str]
    ) -> None:
        if slot in self._handles:
            for held in (self._handles[slot][0].state, self._handles[slot][1].state):
                for key in gone:
                    held.pop(key, None)
                held.update(state)

    async def _update(self, slot: int) -> None:
        if slot in self._handles:
            handle, model = self._handles[slot]
            await self._both(
                self._service.update_session(handle),
                lambda: self._model.update(model),
            )

    async def _set_state(
        self, slot: int, state: dict[str, Any], gone: frozenset[str]
    ) -> None:
        if slot in self._handles:
            handle, model = self._handles[slot]
            deleted = set(gone - state.keys())
            await self._both(
                self._service.update_session_state(
                    handle, state, deleted=sorted(deleted)
                ),
                lambda: self._model.set_state(model, state, deleted),
            )

    async def _user_state(self, _: None, value: Any) -> None:
        await self._service.update_user_state(self._app, USER, {"a": value})
        self._model.states.setdefault("user:", {})["a"] = value
        state = await self._service.get_user_state(self._app, USER)
        assert _sorted(state) == _sorted(self._model.states["user:"])

    async def _delete(self, name: str) -> None:
        await self._service.delete_session(
            app_name=self._app, user_id=USER, session_id=name
        )
        self._model.delete(name)


def _event(one: Given) -> Any:
    return said(one.id, one.author, state=dict(one.state), deleted=set(one.deleted))


def _sorted(state: dict[str, Any]) -> str:
    """Return a text by which 1, 1.0 and true differ."""
    return repr(sorted(state.items()))


def _shown(handle: Session) -> str:
    return _sorted(handle.state)


def _modelled(handle: ModelHandle) -> str:
    return _sorted(handle.state)


@contextmanager
def served(bound: ServiceHarness) -> Generator[Any]:
    """Hold a service on a loop of its own; yield how to play calls on it."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(bound()) as service,
    ):
        yield lambda calls: portal.call(Pair(service, uuid4().hex).play, calls)


@pytest.mark.parametrize("bound", HARNESSES, ids=lambda bound: bound.name)
def test_any_calls_do_what_the_model_does(bound: ServiceHarness) -> None:
    with served(bound) as play:

        @settings(
            max_examples=40 if bound.name == "memory" else 8,
            suppress_health_check=list(HealthCheck),
        )
        @given(calls=CALLS)
        def check(calls: list[Call]) -> None:
            play([*BEGINNING, *calls])

        check()
