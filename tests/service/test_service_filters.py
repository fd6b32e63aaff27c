"""Limits on events: what is shown, what is stored, and what a read costs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import anyio
import pytest
from disturbed_journals import Noting, over
from hypothesis import given, settings
from hypothesis import strategies as st
from service_bindings import ServiceHarness, on_every_service
from service_values import (
    APP,
    NAME,
    USER,
    answered,
    called,
    got,
    ids,
    made,
    returned,
    said,
    shown,
)

from raf_session.clock import to_micros
from raf_session.conformance import TickingClock
from raf_session.keys import SessionKey
from raf_session.options import HEAD_ONLY
from raf_session.service import (
    Event,
    InMemorySessionService,
    Session,
    SessionService,
    SessionServiceConfig,
)
from raf_session.service.views import Filter, view_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


KEY = SessionKey(app=APP, user=USER, session=NAME)
N = 10
TURNS = [
    make(f"{make.__name__[0]}{n}") for n in range(N // 2) for make in (said, answered)
]
NAMES = [event.id for event in TURNS]


async def stored(service: SessionService) -> tuple[list[str], list[str]]:
    """Return the ids of the active entries, and of the archived ones."""
    record = await service.journal.load(KEY, archived=True)
    return [e.id for e in record.entries], [e.id for e in record.archived]


def narrowed(service: SessionService, **limits: Any) -> SessionService:
    """Return a service over the same journal with other limits."""
    return SessionService(
        service.journal, session_config=SessionServiceConfig(**limits)
    )


@on_every_service
async def test_a_read_gives_the_newest_events_in_their_order(
    bound: ServiceHarness,
) -> None:
    async with bound(clock=TickingClock()) as service:
        session = await made(service)
        await service.append_events(session, TURNS)
        for name in ("max_events", "num_recent_events"):
            for limit, expected in (
                (0, NAMES),
                (2, NAMES[-2:]),
                (3, NAMES[-2:]),  # an answer without its question is no history
                (4, NAMES[-4:]),
                (N - 1, NAMES[2:]),
                (N, NAMES),
                (N + 1, NAMES),
            ):
                narrow = narrowed(service, **{name: limit})
                assert ids(await got(narrow)) == expected, (name, limit)
            for limit in (1, 3):
                view = await got(narrowed(service, **{name: limit}))
                assert 1 <= len(view.events) <= limit
                assert any(event.is_user_turn for event in view.events)
        assert await stored(service) == (NAMES, [])


@on_every_service
async def test_a_narrow_view_never_cuts_what_is_stored(bound: ServiceHarness) -> None:
    config = SessionServiceConfig(num_recent_events=3)
    async with bound(config) as service:
        session = await made(service)
        await service.append_events(session, TURNS)
        for n in range(40):
            session = await got(service)
            assert len(session.events) <= 3
            await service.append_event(session, answered(f"more{n}"))
            session.state["n"] = n
            await service.update_session(session)
        names = [*NAMES, *(f"more{n}" for n in range(40))]
        assert await stored(service) == (names, [])
        assert ids(await got(narrowed(service))) == names


@pytest.mark.parametrize("archives", [True, False], ids=["archived", "deleted"])
@pytest.mark.parametrize("limit", [1, 3, 12, 60])
async def test_storage_is_trimmed_in_steps(limit: int, archives: bool) -> None:
    config = SessionServiceConfig(max_events=limit, store_historical_events=archives)
    service = InMemorySessionService(session_config=config)
    session = await made(service)
    step = max(32, limit // 4)
    names: list[str] = []
    sizes = [0]
    for n in range(150):
        event = (answered if n % 3 else said)(f"e{n}")
        names.append(event.id)
        await service.append_event(session, event)
        assert len(session.events) <= limit
        record = await service.journal.load(KEY, HEAD_ONLY)
        sizes.append(record.head.active.entries)
        assert sizes[-1] <= limit + step
    active, archive = await stored(service)
    assert active[0] == "e0"
    assert sorted(active + archive) == sorted(names if archives else active)
    shrunk = [(one, two) for one, two in pairwise(sizes) if two < one]
    assert all(one - two >= step - 1 for one, two in shrunk)
    assert shrunk
    assert session.conversation_count == 50


@on_every_service
async def test_the_first_question_stays_in_front_after_each_restart(
    bound: ServiceHarness,
) -> None:
    config = SessionServiceConfig(max_events=3)
    async with bound(config) as service:
        session = await made(service)
        await service.append_event(session, said("u0"))
        for round_ in range(3):
            for n in range(40):
                await service.append_event(session, answered(f"{round_}-{n}"))
            expected = ["u0", f"{round_}-38", f"{round_}-39"]
            assert ids(session) == expected
            session = await got(service)
            assert ids(session) == expected


async def test_instructions_stay_and_count() -> None:
    config = SessionServiceConfig(max_events=3, event_ttl_seconds=100)
    clock = TickingClock()
    service = InMemorySessionService(session_config=config, clock=clock)
    session = await made(service)
    content = {"role": "system", "content": "Be brief."}
    await service.append_event(session, said("sys", "system", content=content))
    for n in range(50):
        await service.append_event(session, said(f"u{n}"))
    assert ids(session) == ids(await got(service)) == ["sys", "u48", "u49"]
    clock.tick(101)
    assert ids(await got(service))[0] == "sys"


@on_every_service
async def test_an_event_ages_by_the_earlier_of_its_times(
    bound: ServiceHarness,
) -> None:
    clock = TickingClock()
    config = SessionServiceConfig(event_ttl_seconds=10)
    async with bound(config, clock=clock) as service:
        session = await made(service)
        now = clock().timestamp()
        for name, away in (("early", -4.0), ("now", 0.0), ("late", 18_000.0)):
            event = said(name, timestamp=now + away)
            await service.append_event(session, event)
        assert ids(session) == ["early", "now", "late"]
        for seconds, micros, expected in (
            (6, 0, ["early", "now", "late"]),
            (0, 1, ["now", "late"]),
            (4, -1, ["now", "late"]),
        ):
            clock.tick(seconds, microseconds=micros)
            assert ids(await got(service)) == expected
        clock.tick(0, microseconds=1)
        # All are too old: what the session began with stays.
        assert ids(await got(service)) == ["early"]
        assert [e.timestamp - now for e in (await got(narrowed(service))).events] == [
            *(-4.0, 0.0, 18_000.0)
        ]
        await service.append_event(session, said("new", timestamp=-1.0))
        assert ids(await got(narrowed(service))) == ["early", "now", "late", "new"]


async def test_events_that_are_too_old_leave_storage_in_steps() -> None:
    clock = TickingClock()
    config = SessionServiceConfig(event_ttl_seconds=10, store_historical_events=True)
    service = InMemorySessionService(session_config=config, clock=clock)
    session = await made(service)
    for n in range(200):
        await service.append_event(
            session, said(f"u{n}", timestamp=clock().timestamp())
        )
        clock.tick(1)
    active, archive = await stored(service)
    assert len(active) <= 11 + 2 * 32 + 1
    assert active[0] == "u0"
    assert sorted(active + archive) == sorted(f"u{n}" for n in range(200))
    assert ids(session) == [f"u{n}" for n in range(189, 200)]


async def test_pieces_of_a_stream_count_for_nothing() -> None:
    config = SessionServiceConfig(max_events=4)
    service = InMemorySessionService(session_config=config)
    session = await made(service)
    for n in range(50):
        assert (
            await service.append_event(session, said(f"p{n}", partial=True))
        ).partial
    await service.append_events(session, TURNS[:4])
    assert await stored(service) == (NAMES[:4], [])
    assert ids(session) == NAMES[:4]
    assert session.conversation_count == 2


# Calls and results ---------------------------------------------------------------


async def test_a_bound_is_kept_with_direct_calls_and_no_user() -> None:
    config = SessionServiceConfig(max_events=12)
    service = InMemorySessionService(session_config=config)
    session = await made(service)
    for n in range(60):
        await service.append_event(session, called(f"c{n}", f"call{n}"))
        await service.append_event(session, returned(f"r{n}", f"call{n}"))
        for view in (session, await got(service)):
            assert len(view.events) <= 12
            assert [e.id[0] for e in view.events] == ["c", "r"] * (
                len(view.events) // 2
            )
        assert len((await stored(service))[0]) < 12 + 32 + 2


async def test_one_turn_of_many_parallel_calls_stays_whole() -> None:
    config = SessionServiceConfig(max_events=12)
    service = InMemorySessionService(session_config=config)
    session = await made(service)
    await service.append_event(session, said("u0"))
    calls = [f"call{n}" for n in range(300)]
    await service.append_event(session, called("c", *calls))
    await service.append_events(
        session, [returned(f"r{n}", call) for n, call in enumerate(calls)]
    )
    names = ["u0", "c", *(f"r{n}" for n in range(300))]
    assert ids(session) == ids(await got(service)) == names
    await service.append_event(session, answered("done"))
    await service.append_event(session, said("u1"))
    fresh = await got(service)
    assert ids(fresh)[-1] == "u1"
    assert len(fresh.events) <= 12
    assert len((await stored(service))[0]) < 12 + 32 + 1


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "agent", "call", "result"]), st.integers(0, 5)),
    max_size=160,
)


def history(steps: list[Step]) -> list[Event]:
    """Return the events of a history, in which results may come late or never."""
    events: list[Event] = []
    calls: list[str] = []
    for n, (kind, which) in enumerate(steps):
        name = f"e{n}"
        if kind == "user":
            events.append(said(name))
        elif kind == "result" and calls:
            events.append(returned(name, calls.pop(-1 - which % len(calls))))
        elif kind == "call":
            new = [f"call{n}-{m}" for m in range(1 + which)]
            calls += new
            events.append(called(name, *new))
        else:
            events.append(answered(name))
    return events


@settings(max_examples=20)
@given(
    steps=STEPS,
    filler=st.sampled_from([0, 70, 90]),
    limit=st.integers(1, 12),
)
def test_a_read_from_the_end_shows_what_a_read_of_all_shows(
    steps: list[Step], filler: int, limit: int
) -> None:
    half = len(steps) // 2
    events = history([*steps[:half], *[("agent", 0)] * filler, *steps[half:]])

    anyio.run(check_recent, events, limit)


async def check_recent(events: list[Event], limit: int) -> None:
    clock = TickingClock()
    service = InMemorySessionService(clock=clock)
    session = await made(service)
    await service.append_events(session, events)
    whole = await got(service)
    view = view_of(whole.events, Filter(limit), to_micros(clock()))
    narrow = await got(narrowed(service, num_recent_events=limit))
    assert ids(narrow) == [ids(whole)[index] for index in view.kept]
    assert narrow.revision == whole.revision


PARALLEL = [f"call{n}" for n in range(100)]


@pytest.mark.parametrize(
    "events",
    [
        [
            *(said("u0"), called("c", "k", long_running_tool_ids={"k"})),
            *(answered(f"a{n}") for n in range(30)),
            returned("r", "k"),
            *(answered(f"b{n}") for n in range(100)),
            said("u1"),
        ],
        [
            *(said("u0"), called("c", *PARALLEL)),
            *(returned(f"r-{call}", call) for call in PARALLEL),
        ],
        [
            *(said("u0"), *(answered(f"a{n}") for n in range(30)), called("c", "k")),
            *(answered(f"b{n}") for n in range(100)),
            returned("r", "k"),
        ],
    ],
    ids=["answered in between", "many results", "called in between"],
)
async def test_groups_that_a_window_would_cut_are_read_whole(
    events: list[Event],
) -> None:
    await check_recent(events, 3)


@pytest.mark.parametrize("length", [200, 2000])
async def test_the_cost_of_a_read_follows_the_window(length: int) -> None:
    service = InMemorySessionService()
    session = await made(service)
    for n in range(0, length, 100):
        batch = [(answered if m % 2 else said)(f"e{n + m}") for m in range(100)]
        await service.append_events(session, batch)
    for recent in (2, 10, 50):
        narrow = narrowed(service, num_recent_events=recent)
        noting = Noting(service.journal)
        view = await got(over(noting, narrow))
        assert ids(view)[-1] == f"e{length - 1}"
        assert noting.entries_read <= recent + 64 + 8
        assert len(noting.calls) <= 2


async def test_the_cost_of_an_append_follows_no_history() -> None:
    config = SessionServiceConfig(max_events=20)
    service = InMemorySessionService(session_config=config)
    await made(service)
    noting = Noting(service.journal)
    narrow = over(noting, service)
    session: Session = await got(narrow)
    for n in range(500):
        await narrow.append_event(session, (answered if n % 2 else said)(f"e{n}"))
    reads = len(noting.named("load")) - 1
    assert reads <= 500 / 32 + 1
    assert noting.entries_read <= reads * (20 + 32 + 1)
    assert shown(session)["events"] == shown(await got(service))["events"]
