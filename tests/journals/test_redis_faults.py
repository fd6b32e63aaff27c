"""What a Redis journal leaves behind where a round trip fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from redis_clients import WHENS, Faulty, client, fresh_prefix

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance import TickingClock
from raf_session.conformance.journal_values import KEY, NEW, batch, every, ids, whole
from raf_session.errors import SessionNotFoundError, StorageError
from raf_session.journal import Journal
from raf_session.journals.redis import RedisJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import NewSession

pytestmark = pytest.mark.anyio

Write: TypeAlias = Callable[[Journal], Awaitable[object]]

APP = ScopeKey("app")
USER = ScopeKey("app", "user")
CHANGE = Change(
    session=StateDelta({"s": 1}),
    user=StateDelta({"u": 1}),
    app=StateDelta({"a": 1}),
    providers=StateDelta({"p": 1}),
    request=RequestDelta(0, b"12345678", 1),
    labels=LabelDelta(added=("x",)),
    title="t",
)
OTHER = SessionKey("app", "user", "", "other")


async def append(journal: Journal) -> None:
    await journal.append(KEY, batch("x", "y"))


async def append_all(journal: Journal) -> None:
    await journal.append(KEY, batch("x", "y"), change=CHANGE, trim=2)


async def splice(journal: Journal) -> None:
    await journal.splice(KEY, 1, 2, batch("s"), archive=True, change=CHANGE)


async def clear(journal: Journal) -> None:
    await journal.splice(KEY, 1, 99, archive=False, purge=True)


async def update(journal: Journal) -> None:
    await journal.update(KEY, CHANGE)


async def create(journal: Journal) -> None:
    await journal.create(
        NewSession(key=OTHER), batch("a"), archived=batch("z"), change=CHANGE
    )


async def delete(journal: Journal) -> None:
    await journal.delete(KEY)


async def set_state(journal: Journal) -> None:
    await journal.update_scoped_state(APP, StateDelta({"a": 1}))


WRITES = (append, append_all, splice, clear, update, create, delete, set_state)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def picture(journal: Journal) -> list[Any]:
    """Return all that can be read, apart from what is drawn by chance."""
    seen: list[Any] = []
    for key in (KEY, OTHER):
        try:
            record = await whole(journal, key)
        except SessionNotFoundError:
            seen.append(None)
        else:
            head = record.head._replace(incarnation="")
            # The states of scopes are read last: what a fault left is done by then.
            seen.append(record._replace(head=head, user_state={}, app_state={}))
    for scope in (APP, USER):
        seen.append((await journal.scoped_state(scope)).state)
        seen.append(scope in await journal.scopes("app"))
    seen.append([item.head.key for item in await every(journal)])
    return seen


async def disturbed(write: Write, at: int, when: str) -> tuple[list[Any], int, object]:
    """Write with a fault at one round trip; return what is there, trips and outcome."""
    prefix = fresh_prefix()
    async with client(prefix) as real:
        faulty = Faulty(real)
        async with RedisJournal(faulty, clock=TickingClock(), prefix=prefix) as journal:
            await journal.create(NEW, batch("a", "b", "c"))
            await journal.append(KEY, batch("d"), change=Change(title="before"))
            faulty.trips, faulty.at, faulty.when = 0, at, when
            task = faulty.caller = asyncio.ensure_future(write(journal))
            outcome: object
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            trips, faulty.at = faulty.trips, 0
            seen = await picture(journal)
            try:
                commit = await journal.append(KEY, batch("next"))
                assert ids(commit.entries) == ["next"]
            except SessionNotFoundError:
                assert seen[0] is None
            pool = real.connection_pool
            assert not pool._in_use_connections, "a connection is checked out"
    return seen, trips, outcome


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_a_write_is_whole_or_absent(write: Write, when: str) -> None:
    await disturbed(write, 0, when)  # so that the server knows all scripts
    undone, _, _ = await disturbed(_nothing, 0, when)
    done, trips, outcome = await disturbed(write, 0, when)
    assert outcome is None
    assert trips
    assert done != undone
    for at in range(1, trips + 1):
        seen, _, outcome = await disturbed(write, at, when)
        assert seen in (undone, done), f"{when} trip {at} of {trips}"
        if when.startswith("cancel"):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError)
        else:
            assert isinstance(outcome, StorageError), f"trip {at}: {outcome!r}"
            assert outcome.__cause__ is not None


async def _nothing(_: Journal) -> None:
    pass


async def test_what_was_acknowledged_before_a_fault_is_known_to_a_retry() -> None:
    prefix = fresh_prefix()
    async with client(prefix) as real:
        faulty = Faulty(real)
        async with RedisJournal(faulty, prefix=prefix) as journal:
            await journal.create(NEW)
            faulty.trips, faulty.at, faulty.when = 0, 1, "after"
            with pytest.raises(StorageError):
                await journal.append(KEY, batch("a"))
            faulty.at = 0
            again = await journal.append(KEY, batch("a"))
            assert again.repeated
            assert again.head.revision == 2
