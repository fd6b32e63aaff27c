"""A Redis journal that is closed in the midst of calls, and event loops that end."""

from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import suppress

import pytest
from redis import Redis
from redis_clients import fresh_prefix
from servers import redis as servers
from servers.redis import RedisServer
from waits import reached

from raf_session.conformance.journal_values import KEY, NEW, said
from raf_session.errors import JournalClosedError, StorageError
from raf_session.journals.redis import RedisJournal

pytestmark = pytest.mark.anyio

ENDS = (JournalClosedError, StorageError)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_calls_in_flight_leave_no_connection_behind_a_close() -> None:
    with RedisServer() as server, Redis(port=server.port) as watcher:
        journal = RedisJournal(server.url)

        async def count() -> int:
            return len(watcher.client_list())

        async with journal:
            await journal.create(NEW)
            calls = [
                journal.append(KEY, [said(f"{n}", "x" * 200_000)]) for n in range(10)
            ]
            tasks = [asyncio.ensure_future(call) for call in calls]
            assert await reached(count, lambda n: n > 3) > 3
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        faults = [found for found in outcomes if isinstance(found, BaseException)]
        assert all(isinstance(fault, ENDS) for fault in faults), faults
        assert await reached(count, lambda n: n == 1) == 1
        async with journal:
            assert len((await journal.load(KEY)).entries) >= 10 - len(faults)


async def test_a_close_is_not_cancelled_by_the_end_of_another_event_loop() -> None:
    for _ in range(5):
        journal = RedisJournal(servers.url(), prefix=fresh_prefix())
        async with journal:
            await journal.create(NEW)
            busy = [threading.Event() for _ in range(3)]
            threads = [
                threading.Thread(target=_write, args=(journal, event)) for event in busy
            ]
            for thread in threads:
                thread.start()
            for event in busy:
                await asyncio.to_thread(event.wait)
        for thread in threads:
            await asyncio.to_thread(thread.join)


def _write(journal: RedisJournal, busy: threading.Event) -> None:
    async def go() -> None:
        n = 0
        while True:
            n += 1
            await journal.append(KEY, [said(f"{threading.get_ident()}-{n}")])
            busy.set()

    with suppress(*ENDS):
        asyncio.run(go())


async def test_event_loops_that_end_leave_nothing_in_the_journal() -> None:
    async with RedisJournal(servers.url(), prefix=fresh_prefix()) as journal:
        await journal.create(NEW)

        async def load() -> None:
            await journal.load(KEY)

        for _ in range(10):
            await asyncio.to_thread(lambda: asyncio.run(load()))
        gc.collect()
        links = journal._links
        assert links is not None
        assert (len(links._guards), len(links._links)) == (1, 1)
