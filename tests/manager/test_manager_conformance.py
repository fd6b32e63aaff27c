"""A live session of a manager keeps every promise of the traits; a race has one end."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import anyio
import anyio.to_thread
import pytest
from manager_bindings import BY_NAME, ManagerHarness, ManagerOpener, loops, with_claims
from manager_values import ANN, KEY, CharacterCounter, texts, user

from raf_session.clock import Clock
from raf_session.conformance import Capability
from raf_session.conformance.session import (
    SESSION_CHECKS,
    SESSION_CORE_CHECKS,
    run_session_check,
    session_check_applies,
)
from raf_session.conformance.session_harness import (
    CoreCheck,
    CoreFactory,
    SessionCapability,
    SessionCheck,
    SessionHarness,
)
from raf_session.manager import ManagedSession, SessionManager, SessionRequest

pytestmark = pytest.mark.anyio

CLAIMS = (
    frozenset(SessionCapability)
    - {SessionCapability.TRIO}
    - {SessionCapability.DESERIALIZES}
)


def managed(bound: ManagerHarness) -> SessionHarness:
    """Return how the kit gets at the live sessions of managers over a journal."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[CoreFactory]:
        async with AsyncExitStack() as stack:
            managers: dict[int, SessionManager] = {}

            async def make(
                session_id: str | None = None, *, clock: Clock
            ) -> ManagedSession:
                if id(clock) not in managers:
                    journal = await stack.enter_async_context(
                        bound.journal(clock=clock)
                    )
                    managers[id(clock)] = await stack.enter_async_context(
                        SessionManager(journal, counter=CharacterCounter())
                    )
                name = session_id or str(uuid4())
                request = SessionRequest("a", "c", "task", scope_id=name)
                return await managers[id(clock)].get_or_create(request)

            yield make

    return SessionHarness(f"managed-{bound.name}", opened, CLAIMS)


KIT = [
    pytest.param(
        check, managed(bound), loop, id=f"{check.__name__}-{bound.name}-{loop}"
    )
    for check in (*SESSION_CORE_CHECKS, *SESSION_CHECKS)
    for bound in (BY_NAME["memory"], BY_NAME["sqlite"])
    for loop in loops(bound)
    if session_check_applies(check, managed(bound))
]


@pytest.mark.parametrize(("check", "harness", "anyio_backend"), KIT)
async def test_session(
    check: CoreCheck | SessionCheck, harness: SessionHarness
) -> None:
    outcome = await run_session_check(check, harness)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.result == "kept"


# Processes -------------------------------------------------------------------------


CONTEXT: Final = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["raf_session.manager", "anyio._backends._asyncio"])


def say(opener: ManagerOpener, writer: int, barrier: Any, out: Any) -> None:
    """Say something in a session that may not be there yet."""

    async def run() -> None:
        async with opener() as manager:
            await manager.list()
            await anyio.to_thread.run_sync(barrier.wait, 30)
            session = await manager.get_or_create(ANN)
            await manager.add_message(session, user(f"by {writer}"))
            out.put(session.head.incarnation)

    anyio.run(run)


def race(opener: ManagerOpener) -> list[str]:
    """Let two processes say something first; return the sessions that they had."""
    barrier, out = CONTEXT.Barrier(2), CONTEXT.Queue()
    processes = [
        CONTEXT.Process(target=say, args=(opener, n, barrier, out), daemon=True)
        for n in range(2)
    ]
    for process in processes:
        process.start()
    told = [out.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    return told


@pytest.mark.skipif(os.name != "posix", reason="processes start as on POSIX")
@with_claims(Capability.DURABLE, Capability.SHARED)
async def test_of_two_processes_one_makes_the_session(bound: ManagerHarness) -> None:
    async with bound.storage() as opener:
        told = await anyio.to_thread.run_sync(race, opener)
        assert len(set(told)) == 1
        async with opener() as manager:
            session = await manager.get(KEY)
            assert session is not None
            assert sorted(texts(await session.get_messages())) == ["by 0", "by 1"]
            assert session.head.incarnation == told[0]
