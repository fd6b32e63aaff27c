"""Many writers of one session: nothing is lost, and nothing is refused as stale."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from service_bindings import ServiceHarness, on_every_service, with_claims
from service_values import APP, USER, answered, found, got, ids, made, said
from service_writers import in_processes, in_threads, judge

from raf_session.conformance import Capability
from raf_session.errors import SessionExistsError
from raf_session.service import Event, Session, SessionServiceConfig

pytestmark = pytest.mark.anyio


@with_claims(Capability.DURABLE, Capability.SHARED)
async def test_two_processes_lose_nothing(bound: ServiceHarness) -> None:
    async with bound.storage() as opener, opener() as service:
        await made(service)
        await anyio.to_thread.run_sync(in_processes, opener, range(2))
        judge(await got(service), range(2))


@with_claims(Capability.THREADS)
async def test_eight_threads_with_loops_of_their_own_lose_nothing(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        await made(service)
        await anyio.to_thread.run_sync(in_threads, service, range(8))
        judge(await got(service), range(8))


@on_every_service
async def test_appends_through_one_handle_at_once_are_all_shown(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        session = await made(service)
        names = [f"e{n}" for n in range(30)]
        async with anyio.create_task_group() as group:
            for name in names:
                event = said(name, state={name: 1, f"user:{name}": 2})
                group.start_soon(service.append_event, session, event)
        fresh = await got(service)
        assert sorted(ids(fresh)) == sorted(names)
        assert ids(session) == ids(fresh)
        assert session.state == fresh.state
        assert session.conversation_count == fresh.conversation_count == 30
        assert session.revision == fresh.revision
        assert session.last_update_time == fresh.last_update_time


@on_every_service
async def test_keys_that_branches_set_at_once_are_all_kept(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        await made(service)

        async def branch(name: str) -> None:
            session = await got(service)
            session.state[name] = name
            await service.update_session(session)

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(branch, name)
        assert (await got(service)).state == {"a": "a", "b": "b", "c": "c"}


@on_every_service
async def test_of_many_creators_at_once_one_wins(bound: ServiceHarness) -> None:
    async with bound() as service:
        outcomes: list[str] = []

        async def create(n: int) -> None:
            try:
                await made(service, state={"by": n})
            except SessionExistsError:
                outcomes.append("late")
            else:
                outcomes.append("made")
            session = await got(service)
            await service.append_event(session, said(f"e{n}"))

        async with anyio.create_task_group() as group:
            for n in range(10):
                group.start_soon(create, n)
        assert outcomes.count("made") == 1
        listed = await service.list_sessions(app_name=APP, user_id=USER)
        assert len(listed.sessions) == 1
        assert len((await got(service)).events) == 10


async def test_who_iterates_sees_one_history_while_others_append() -> None:
    config = SessionServiceConfig(max_events=10)
    from raf_session.service import InMemorySessionService

    async with InMemorySessionService(session_config=config) as service:
        session = await made(service)
        await service.append_event(session, said("u0"))
        seen: list[list[str]] = []

        async def iterate() -> None:
            for _ in range(60):
                names: list[str] = []
                for event in session.events:
                    names.append(event.id)
                    await anyio.lowlevel.checkpoint()
                seen.append(names)

        async def write() -> None:
            for n in range(300):
                await service.append_event(session, answered(f"a{n}"))

        async with anyio.create_task_group() as group:
            group.start_soon(iterate)
            group.start_soon(write)
        for names in seen:
            _check_unbroken(names[1:])


def _check_unbroken(names: Sequence[str]) -> None:
    numbers = [int(name[1:]) for name in names]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True


@on_every_service
async def test_a_write_after_the_end_of_a_session_revives_nothing(
    bound: ServiceHarness,
) -> None:
    async with bound() as service:
        session = await made(service)
        gone = {"app_name": APP, "user_id": USER, "session_id": session.id}
        event = said("e")

        async def late(write: Event | Session) -> None:
            if isinstance(write, Event):
                await service.append_event(session, write)
            else:
                write.state["x"] = 1
                await service.update_session(write)

        await service.delete_session(**gone)
        for write in (event, session):
            with pytest.raises(LookupError):
                await late(write)
            assert await found(service) is None
        del session.state["x"]
