"""Time to live: what counts as access, what has expired, and when it is swept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from disturbed_journals import Noting, over
from pydantic import ValidationError
from service_bindings import ServiceHarness, on_every_service
from service_values import APP, NAME, USER, Scribe, found, got, made, managed, said

from raf_session.conformance import TickingClock
from raf_session.errors import SessionNotFoundError
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.options import HEAD_ONLY, Query
from raf_session.service import (
    InMemorySessionService,
    Session,
    SessionService,
    SessionServiceConfig,
    Ttl,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


KEY = SessionKey(app=APP, user=USER, session=NAME)
TTL = SessionServiceConfig.create_ttl_config
IDLE = SessionServiceConfig(ttl=TTL(ttl_seconds=10, cleanup_interval_seconds=1e9))


async def listed(service: SessionService) -> list[str]:
    """Return the ids of all sessions of the app."""
    answer = await service.list_sessions(app_name=APP)
    return [session.id for session in answer.sessions]


@on_every_service
async def test_the_edge_is_one_microsecond_wide(bound: ServiceHarness) -> None:
    clock = TickingClock()
    async with bound(IDLE, clock=clock) as service:
        await made(service)
        clock.tick(10)
        assert await listed(service) == [NAME]
        assert await found(service) is not None
        clock.tick(10, microseconds=1)
        assert await listed(service) == []
        assert await found(service) is None


Access = Callable[[SessionService, Session], Awaitable[Any]]


async def _get(service: SessionService, _: Session) -> None:
    await got(service)


async def _append(service: SessionService, session: Session) -> None:
    await service.append_event(session, said(f"e{service.journal.clock()}"))


async def _update(service: SessionService, session: Session) -> None:
    session.state["n"] = session.state.get("n", 0) + 1
    await service.update_session(session)


async def _set_state(service: SessionService, session: Session) -> None:
    moment = str(service.journal.clock())
    await service.update_session_state(session, {"k": moment})


async def _set_user_state(service: SessionService, session: Session) -> None:
    moment = str(service.journal.clock())
    await service.update_session_state(session, {"user:k": moment})


@pytest.mark.parametrize(
    "access", [_get, _append, _update, _set_state, _set_user_state]
)
@on_every_service
async def test_access_keeps_a_session_alive(
    bound: ServiceHarness, access: Access
) -> None:
    clock = TickingClock()
    async with bound(IDLE, clock=clock) as service:
        session = await made(service)
        for _ in range(4):
            clock.tick(8)
            await access(service, session)
        clock.tick(10)
        assert await listed(service) == [NAME]
        clock.tick(0, microseconds=1)
        assert await found(service) is None


@on_every_service
async def test_a_listing_is_no_access(bound: ServiceHarness) -> None:
    clock = TickingClock()
    async with bound(IDLE, clock=clock) as service:
        await made(service, state={"user:u": 1, "app:a": 1})
        for _ in range(3):
            clock.tick(4)
            await listed(service)
            await service.list_sessions(app_name=APP, user_id=USER, limit=1)
            await service.list_user_states(APP)
        assert await listed(service) == []
        assert await service.list_user_states(APP) == {}
        assert await found(service) is None
        assert await service.get_app_state(APP) == {}


@on_every_service
async def test_each_scope_has_a_limit_of_its_own(bound: ServiceHarness) -> None:
    clock = TickingClock()
    config = SessionServiceConfig(
        ttl=TTL(ttl_seconds=10),
        user_state_ttl=TTL(ttl_seconds=20),
        app_state_ttl=TTL(ttl_seconds=30),
    )
    async with bound(config, clock=clock) as service:
        state = {"own": 1, "user:u": 2, "app:a": 3}
        for seconds, user, app in (
            (10, {"u": 2}, {"a": 3}),
            (11, {"u": 2}, {"a": 3}),
            (20, {"u": 2}, {"a": 3}),
            (21, {}, {"a": 3}),
            (30, {}, {"a": 3}),
            (31, {}, {}),
        ):
            name = f"after {seconds}"
            session = await service.create_session(
                app_name=name, user_id=USER, session_id=NAME, state=state
            )
            clock.tick(seconds)
            read = await service.get_session(
                app_name=name, user_id=USER, session_id=NAME
            )
            assert (read is not None) is (seconds <= 10), name
            if read is not None:
                assert read.state == session.state
            assert await service.get_user_state(name, USER) == user, name
            assert await service.get_app_state(name) == app, name


@on_every_service
async def test_access_to_scoped_state_keeps_it_alive(bound: ServiceHarness) -> None:
    clock = TickingClock()
    async with bound(IDLE, clock=clock) as service:
        await service.update_user_state(APP, USER, {"u": 1})
        await service.update_app_state(APP, {"a": 1})
        for _ in range(3):
            clock.tick(8)
            assert await service.get_user_state(APP, USER) == {"u": 1}
            assert await service.get_app_state(APP) == {"a": 1}
        clock.tick(8)
        await made(service)  # it reads both
        clock.tick(8)
        assert (await got(service)).state == {"user:u": 1, "app:a": 1}
        clock.tick(10)
        assert await service.list_user_states(APP) == {USER: {"u": 1}}
        clock.tick(0, microseconds=1)
        assert await service.list_user_states(APP) == {}
        assert await service.get_user_state(APP, USER) == {}
        assert await service.get_app_state(APP) == {}


@on_every_service
async def test_what_has_expired_is_invisible_everywhere(
    bound: ServiceHarness,
) -> None:
    clock = TickingClock()
    manager = managed(Scribe())
    async with bound(IDLE, clock=clock, manager=manager) as service:
        session = await made(service, state={"k": 1})
        await service.append_event(session, said("old"))
        clock.tick(11)
        for call in (
            service.append_event(session, said("e")),
            service.append_event(session, said("old")),
            service.append_events(session, [said("e1"), said("e2")]),
            service.update_session_state(session, {"k": 2}),
            service.create_session_summary(session),
            service.get_session_summary(session),
        ):
            with pytest.raises(SessionNotFoundError):
                await call
        assert await found(service) is None
        assert await listed(service) == []
        await service.delete_session(app_name=APP, user_id=USER, session_id=NAME)
        fresh = await made(service)
        assert (fresh.state, fresh.events) == ({}, [])
        with pytest.raises(SessionNotFoundError):
            await service.append_event(session, said("late"))
        assert (await got(service)).events == []


@on_every_service
async def test_what_has_expired_is_swept_at_the_interval(
    bound: ServiceHarness,
) -> None:
    clock = TickingClock()
    config = SessionServiceConfig(ttl=TTL(ttl_seconds=10, cleanup_interval_seconds=100))
    async with bound.storage() as opener:
        service = opener(config, clock=clock)
        await made(service)
        clock.tick(99)
        await made(service, "other")
        expired = (KEY,)
        assert await service.journal.expire(dry_run=True) == expired
        clock.tick(1)
        await made(service, "another")
        # In Redis keys expire by themselves, and nothing sweeps.
        left = expired if bound.name == "redis" else ()
        assert await service.journal.expire(dry_run=True) == left
        await service.close()


@pytest.mark.parametrize(
    "config",
    [
        SessionServiceConfig(),
        SessionServiceConfig(ttl=TTL(enable=False, ttl_seconds=1)),
        SessionServiceConfig(ttl=TTL(ttl_seconds=0, cleanup_interval_seconds=1)),
    ],
    ids=["not asked for", "not enabled", "no limit"],
)
async def test_nothing_expires_and_nothing_sweeps_when_that_is_off(
    config: SessionServiceConfig,
) -> None:
    clock = TickingClock()
    noting = Noting(MemoryJournal.opened(limits=config.limits, clock=clock))
    service = over(noting, InMemorySessionService(session_config=config))
    assert not config.expires
    async with service:
        await made(service, state={"user:u": 1, "app:a": 1})
        clock.tick(1e9)
        assert (await got(service)).state == {"user:u": 1, "app:a": 1}
        assert await listed(service) == [NAME]
    assert not noting.named("expire")


async def test_one_call_of_each_interval_sweeps() -> None:
    clock = TickingClock()
    config = SessionServiceConfig(ttl=TTL(ttl_seconds=10, cleanup_interval_seconds=100))
    noting = Noting(MemoryJournal.opened(limits=config.limits, clock=clock))
    service = over(noting, InMemorySessionService(session_config=config))
    for sweeps in range(4):
        for _ in range(3):
            await listed(service)
        assert len(noting.named("expire")) == sweeps
        clock.tick(100)


@on_every_service
async def test_a_refresh_never_goes_back(bound: ServiceHarness) -> None:
    clock = TickingClock()
    async with bound(IDLE, clock=clock) as service:
        await made(service)
        start = clock()
        clock.tick(5)
        await got(service)
        clock.set(start)
        await got(service)
        record = await service.journal.load(KEY, HEAD_ONLY)
        assert (record.head.last_active_at - start).total_seconds() == 5
        page = await service.journal.scan(Query(app=APP))
        assert page.sessions[0].head.last_active_at == record.head.last_active_at


# Numbers -------------------------------------------------------------------------

BAD = (-1, -0.5, float("nan"), float("inf"), "60", True, None)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", ["ttl_seconds", "cleanup_interval_seconds"])
def test_a_time_to_live_is_a_finite_number_from_zero(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        TTL(**{name: value})
    with pytest.raises(ValidationError):
        Ttl(**{name: value})


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(
    "name", ["max_events", "event_ttl_seconds", "num_recent_events"]
)
def test_a_limit_is_a_finite_number_from_zero(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        SessionServiceConfig(**{name: value})


def test_an_interval_of_zero_is_refused_and_a_limit_of_zero_is_none() -> None:
    with pytest.raises(ValidationError):
        TTL(cleanup_interval_seconds=0)
    with pytest.raises(ValidationError):
        SessionServiceConfig(max_events=1.5)  # type: ignore[arg-type]
    assert not SessionServiceConfig(ttl=TTL(ttl_seconds=0)).expires
    assert SessionServiceConfig(ttl=TTL(ttl_seconds=0.4)).expires
    assert SessionServiceConfig(ttl=TTL()).ttl.ttl_seconds == 86400
    assert TTL().cleanup_interval_seconds == 3600


def test_scopes_live_as_long_as_sessions_unless_told() -> None:
    limits = SessionServiceConfig(ttl=TTL(ttl_seconds=5)).limits
    assert limits.user_state.max_idle_secs == 5
    assert limits.app_state.max_idle_secs == 5
    config = SessionServiceConfig(user_state_ttl=TTL(ttl_seconds=7))
    assert config.expires
    assert config.limits.sessions.max_idle_secs is None
    assert config.limits.user_state.max_idle_secs == 7


def test_a_service_does_not_promise_what_its_journal_does_not_keep() -> None:
    journal = MemoryJournal.opened(limits=IDLE.limits)
    SessionService(journal, session_config=IDLE)
    SessionService(journal)
    with pytest.raises(ValueError, match="not that of the journal"):
        SessionService(
            journal, session_config=SessionServiceConfig(ttl=TTL(ttl_seconds=11))
        )
    with pytest.raises(ValueError, match="not that of the journal"):
        SessionService(MemoryJournal.opened(), session_config=IDLE)


@pytest.mark.parametrize("size", [0, 2, 30])
async def test_sessions_expire_each_by_itself(size: int) -> None:
    clock = TickingClock()
    service = InMemorySessionService(session_config=IDLE, clock=clock)
    for n in range(size):
        await made(service, f"s{n}")
    for n in range(0, size, 2):
        clock.tick(0.1)
        await got(service, f"s{n}")
    clock.tick(10.05 - 0.1 * len(range(0, size, 2)))
    left = {f"s{n}" for n in range(0, size, 2)}
    assert set(await listed(service)) == left
