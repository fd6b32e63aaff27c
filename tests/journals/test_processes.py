"""Eight writers in processes of their own, while writers and servers are killed."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from disturbances import SERVERS, Disturbed
from journal_bindings import HARNESSES
from servers.private import PrivateServer
from writers import WRITERS, judge, kill, prepare, read_all, start, wait_for

from raf_session.conformance import Capability, JournalHarness, JournalOpener

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does"),
]

SHARED = [
    pytest.param(harness, id=harness.name)
    for harness in HARNESSES
    if {Capability.DURABLE, Capability.SHARED} <= harness.capabilities
]
"""Those that processes can share."""
KINDS = [pytest.param(kind, id=name) for name, kind in SERVERS.items()]
MANY = 2 * WRITERS
ONE_SOON = [
    pytest.param(1, id="one"),
    pytest.param(MANY, id="many", marks=pytest.mark.slow),
]
MANY_SOON = [
    pytest.param(1, id="one", marks=pytest.mark.slow),
    pytest.param(MANY, id="many"),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def write_under_fire(opener: JournalOpener, folder: Path, sessions: int) -> None:
    job = prepare(opener, folder, sessions, kills=2)
    killed = kill(job, start(job))
    judge(job, read_all(job), killed)


@pytest.mark.parametrize("harness", SHARED)
@pytest.mark.parametrize("sessions", ONE_SOON)
async def test_writers_are_killed(
    harness: JournalHarness, sessions: int, tmp_path: Path
) -> None:
    async with harness.storage() as opener:
        await anyio.to_thread.run_sync(write_under_fire, opener, tmp_path, sessions)


def write_through(
    opener: JournalOpener, folder: Path, server: PrivateServer, sessions: int
) -> None:
    """Kill the server in the midst of the work and start it again."""
    job = prepare(opener, folder, sessions)
    writers = start(job)
    for share in (4, 2):
        wait_for(job, 0, job.appends // share)
        server.kill()
        time.sleep(0.05)
        server.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    judge(job, read_all(job))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sessions", MANY_SOON)
async def test_the_server_is_killed(
    kind: Disturbed, sessions: int, tmp_path: Path
) -> None:
    with kind.server() as server:
        async with kind.storage(server.url) as opener:
            await anyio.to_thread.run_sync(
                write_through, opener, tmp_path, server, sessions
            )


def write_on(
    opener: JournalOpener, folder: Path, kind: Disturbed, url: str, sessions: int
) -> None:
    """Cut all connections again and again, and kill two writers."""
    job = prepare(opener, folder, sessions, kills=2)
    writers = start(job)
    for share in (8, 6, 4):
        wait_for(job, 0, job.appends // share)
        anyio.run(partial(kind.sever, url))
    killed = kill(job, writers)
    judge(job, read_all(job), killed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sessions", ONE_SOON)
async def test_connections_are_cut(
    kind: Disturbed, sessions: int, tmp_path: Path
) -> None:
    with kind.server() as server:
        async with kind.storage(server.url) as opener:
            await anyio.to_thread.run_sync(
                write_on, opener, tmp_path, kind, server.url, sessions
            )
