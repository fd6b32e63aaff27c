"""The journals in server databases, with a fault at each statement of each call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import wraps
from itertools import count
from typing import Any

import pytest
from journal_bindings import HARNESSES

from raf_session.changes import Change, LabelDelta, RequestDelta, StateDelta
from raf_session.conformance import JournalHarness
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import batch, every, ids, said, whole
from raf_session.errors import EntryConflictError, SessionNotFoundError
from raf_session.journals._sql_dialect import Connection
from raf_session.journals._sql_journal import SqlJournal
from raf_session.keys import ScopeKey, SessionKey
from raf_session.options import Limits, NewSession, SessionTTLOptions

pytestmark = pytest.mark.anyio

SQL = [
    pytest.param(harness, id=harness.name)
    for harness in HARNESSES
    if harness.name in {"postgresql", "mariadb", "mysql"}
]
LIMITS = Limits(sessions=SessionTTLOptions(max_idle_secs=10))


class InjectedError(Exception):
    """What no driver raises."""


class Fault:
    """Strikes at one call to the server, the n-th from 0, before or after it is made.

    Attributes:
        struck: whether it has.
    """

    def __init__(self) -> None:
        self.struck = False
        self._left: int | None = None
        self._how = ""

    def arm(self, place: int, how: str) -> None:
        self.struck, self._left, self._how = False, place, how

    def disarm(self) -> None:
        self._left = None

    def around(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        @wraps(method)
        async def call(*args: Any, **options: Any) -> Any:
            if self._left is None:
                return await method(*args, **options)
            self._left -= 1
            if self._left >= 0:
                return await method(*args, **options)
            self._left, self.struck = None, True
            how, when = self._how.split()
            if when == "after":
                await method(*args, **options)
            if how == "raise":
                raise InjectedError
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            if when == "before":
                return await method(*args, **options)
            await asyncio.sleep(0)
            raise AssertionError

        return call


HOWS = ["raise before", "raise after", "cancel before", "cancel after"]
METHODS = ("begin", "rows", "execute", "execute_many", "insert", "commit", "run")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Bench:
    """A journal whose connections can be struck, and one that sees everything."""

    def __init__(self, journal: SqlJournal, viewer: SqlJournal, fault: Fault) -> None:
        self.journal = journal
        self.viewer = viewer
        self.fault = fault

    async def checked_out(self) -> int:
        runner = self.journal._runner
        assert runner is not None
        pool: Any = await runner._pools.pool()
        return len(pool._used)

    async def picture(self, key: SessionKey) -> tuple[Any, ...]:
        """Return all that can be read of a session and its scopes, but for names."""
        scopes = [
            (await self.viewer.scoped_state(scope)).state
            for scope in (ScopeKey(key.app, key.user), ScopeKey(key.app))
        ]
        try:
            record = await whole(self.viewer, key)
        except SessionNotFoundError:
            return (None, *scopes)
        head = record.head._replace(key=KEY, incarnation="")
        return (record._replace(head=head), *scopes)


async def outcome_of(call: Awaitable[object]) -> object:
    """Run it in a task of its own; return its result or its error, cancelled too."""
    (outcome,) = await asyncio.gather(
        asyncio.ensure_future(call), return_exceptions=True
    )
    return outcome


KEY = SessionKey("app", "user", "", "session")


@pytest.fixture(params=SQL)
async def bench(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Bench]:
    harness: JournalHarness = request.param
    clock = TickingClock()
    async with (
        harness.storage() as opened,
        opened(limits=LIMITS, clock=clock) as journal,
        opened(clock=clock) as viewer,
    ):
        assert isinstance(journal, SqlJournal)
        assert isinstance(viewer, SqlJournal)
        fault = Fault()
        runner = journal._runner
        assert runner is not None
        pool = await runner._pools.pool()
        connection = await pool.acquire()
        kind: type[Connection] = type(connection)
        await pool.release(connection)
        for name in METHODS:
            if hasattr(kind, name):
                monkeypatch.setattr(kind, name, fault.around(getattr(kind, name)))
        bench = Bench(journal, viewer, fault)
        yield bench
        fault.disarm()


FULL = Change(
    session=StateDelta({"s": 2, "t": [1]}, ["gone"]),
    user=StateDelta({"u": 2}),
    app=StateDelta({"a": 2}),
    providers=StateDelta({"p": 2}),
    request=RequestDelta(0, b"12345678" * 70, 1),
    title="new",
    labels=LabelDelta(added=["l"], removed=["k"]),
)
FIRST = Change(
    session=StateDelta({"s": 1, "gone": 1}),
    user=StateDelta({"u": 1}),
    request=RequestDelta(0, b"abcdefgh" * 3, 2),
    labels=LabelDelta(added=["k"]),
)
ACTS: dict[str, Callable[[SqlJournal, SessionKey], Awaitable[object]]] = {
    "append": lambda j, key: j.append(key, batch("x")),
    "append a batch": lambda j, key: j.append(key, batch("x", "y", "z")),
    "append with a change": lambda j, key: j.append(
        key, batch("x", "y"), change=FULL, trim=2
    ),
    "splice": lambda j, key: j.splice(
        key, 2, 3, batch("r"), tail=batch("x"), archive=True, change=FULL
    ),
    "clear": lambda j, key: j.splice(key, 0, 9, archive=False, purge=True),
    "update": lambda j, key: j.update(key, FULL),
    "delete": lambda j, key: j.delete(key),
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("act", ACTS)
async def test_a_fault_at_any_statement(bench: Bench, act: str, how: str) -> None:
    run = ACTS[act]
    journal, fault = bench.journal, bench.fault

    async def prepared(app: str) -> SessionKey:
        key = KEY._replace(app=app)
        await journal.create(
            NewSession(key=key), batch("a", "b", "c"), archived=batch("o"), change=FIRST
        )
        return key

    key = await prepared("model")
    before = await bench.picture(key)
    await run(journal, key)
    after = await bench.picture(key)
    assert before != after
    seen = set[bool]()
    for place in count():
        key = await prepared(f"{place}")
        fault.arm(place, how)
        outcome = await outcome_of(run(journal, key))
        fault.disarm()
        if not fault.struck:
            assert place > 0
            assert not isinstance(outcome, BaseException)
            break
        assert isinstance(outcome, InjectedError | asyncio.CancelledError)
        found = await bench.picture(key)
        assert found in (before, after), f"{act}, {how} statement {place}"
        seen.add(found == after)
        assert await bench.checked_out() == 0
        if found[0] is not None:
            added = await journal.append(key, batch("next"))
            assert ids(added.entries) == ["next"]
    assert False in seen or how != "raise before"


@pytest.mark.parametrize("how", HOWS)
async def test_a_fault_at_any_statement_of_create(bench: Bench, how: str) -> None:
    journal, fault = bench.journal, bench.fault

    async def create(key: SessionKey) -> None:
        await journal.create(
            NewSession(key=key), batch("a", "b"), archived=batch("o"), change=FULL
        )

    await create(KEY._replace(app="model"))
    after = await bench.picture(KEY._replace(app="model"))
    before = await bench.picture(KEY._replace(app="nobody"))
    for place in count():
        key = KEY._replace(app=f"{place}")
        fault.arm(place, how)
        await outcome_of(create(key))
        fault.disarm()
        if not fault.struck:
            break
        found = await bench.picture(key)
        assert found in (before, after), f"create, {how} statement {place}"
        assert await bench.checked_out() == 0
        if found == before:
            await create(key)
            assert await bench.picture(key) == after
    assert place > 5


@pytest.mark.parametrize("how", HOWS)
async def test_a_fault_at_any_statement_of_expire(bench: Bench, how: str) -> None:
    journal, viewer, fault = bench.journal, bench.viewer, bench.fault
    clock = journal.clock
    assert isinstance(clock, TickingClock)
    for place in count():
        keys = {KEY._replace(app=f"{place}", session=f"{n}") for n in range(3)}
        for key in keys:
            await journal.create(NewSession(key=key), batch("a"), change=FIRST)
        clock.tick(11)
        fault.arm(place, how)
        outcome = await outcome_of(journal.expire())
        fault.disarm()
        left = {listed.head.key for listed in await every(viewer)}
        assert left in (keys, set()), f"expire, {how} statement {place}"
        assert await bench.checked_out() == 0
        if not fault.struck:
            assert isinstance(outcome, tuple)
            assert (set(outcome), left) == (keys, set())
            break
        assert set(await journal.expire()) == left
    assert place > 2


async def test_errors_leave_no_transaction_open(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, fault = bench.journal, bench.fault
    runner = journal._runner
    assert runner is not None
    monkeypatch.setattr(runner, "_busy_timeout_secs", 5.0)
    await journal.create(NewSession(key=KEY), batch("a"))
    for n in range(30):
        with pytest.raises(EntryConflictError):
            await journal.append(KEY, [said("a", "another")])
        fault.arm(n % 3, HOWS[n % 2])
        with pytest.raises(InjectedError):
            await journal.append(KEY, batch("x"), change=FIRST)
        fault.disarm()
        assert await bench.checked_out() == 0
    await journal.append(KEY, batch("b"))
    assert ids((await journal.load(KEY)).entries) == ["a", "b"]
