"""When a session is compacted: the modes, the window, the target, not too often."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager_bindings import ManagerHarness, on_every_manager
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    Scribe,
    call,
    configured,
    result,
    turns,
    user,
)

from raf_session.journals.memory import MemoryJournal
from raf_session.manager import (
    AgentsConfig,
    CompactionOutcome,
    CompactionReport,
    CompactionTrigger,
    ManagedSession,
    SessionManager,
)
from raf_session.messages import ChatMessage

pytestmark = pytest.mark.anyio

COMPACTED = CompactionOutcome.COMPACTED


def choosing(mode: str, **options: object) -> AgentsConfig:
    """Return a configuration with a window of 1,000 and a target of 500 tokens."""
    session: dict[str, object] = {"max_token_count": 1000}
    for name in options.keys() & {"model_context", "reserve_tokens"}:
        session[name] = options.pop(name)
    compaction: dict[str, object] = {
        "mode": mode,
        "keep_recent_count": 2,
        "target_tokens_percent": 50,
        "min_messages_to_compact": 0,
    }
    return configured(session=session, compaction=compaction | options)


async def opened(
    config: AgentsConfig, scribe: Scribe
) -> tuple[SessionManager, ManagedSession]:
    manager = SessionManager(
        MemoryJournal.opened(),
        config,
        summarizer=scribe,
        counter=CharacterCounter(),
    )
    return manager, await manager.get_or_create(ANN)


async def fill(manager: SessionManager, session: ManagedSession, tokens: int) -> None:
    """Store questions and answers of so many tokens, one at a time."""
    for message in turns(tokens // 80):
        await manager.add_message(session, message)
    if tokens % 80:
        await manager.add_message(session, user("." * (tokens % 80)))


# auto ------------------------------------------------------------------------------


@on_every_manager
async def test_auto_compacts_at_the_save_that_reaches_the_target(
    bound: ManagerHarness,
) -> None:
    scribe = Scribe()
    async with bound(choosing("auto"), summarizer=scribe) as manager:
        session = await manager.get_or_create(ANN)
        await fill(manager, session, 499)
        assert not scribe.inputs
        await manager.add_message(session, user("."))
        assert len(scribe.inputs) == 1
        assert session.summary == "#1"
        assert session.head.active.messages == 3
        last = (await manager.statistics(KEY)).last
        assert last is not None
        assert (last.outcome, last.trigger) == (COMPACTED, CompactionTrigger.AUTO)
        assert (await manager.request(session)).compaction == last
        assert (await manager.request(session)).compaction is None


async def test_auto_looks_after_the_saves_of_the_session_itself() -> None:
    scribe = Scribe()
    _, session = await opened(choosing("auto"), scribe)
    await session.add_messages_batch(turns(7))
    assert len(scribe.inputs) == 1


async def test_auto_waits_for_the_least_number_of_messages() -> None:
    scribe = Scribe()
    config = choosing("auto", min_messages_to_compact=9)
    manager, session = await opened(config, scribe)
    for message in turns(4, size=200):
        await manager.add_message(session, message)
    assert not scribe.inputs
    await manager.add_message(session, user("short"))
    assert len(scribe.inputs) == 1


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"target_tokens_percent": 60}, 600),
        ({"target_tokens_percent": 60, "target_tokens": 300}, 600),
        ({"target_tokens_percent": None, "target_tokens": 300}, 300),
        ({"target_tokens_percent": None, "target_tokens": 5000}, 1000),
        ({"target_tokens_percent": 20, "model_context": 2000}, 400),
    ],
    ids=["percent", "percent wins", "tokens", "over the window", "of the model"],
)
async def test_the_target_is_a_share_of_the_window_else_a_number(
    options: dict[str, object], target: int
) -> None:
    scribe = Scribe()
    manager, session = await opened(choosing("auto", **options), scribe)
    await fill(manager, session, target - 1)
    assert not scribe.inputs
    await manager.add_message(session, user("."))
    assert len(scribe.inputs) == 1


# safeguard -------------------------------------------------------------------------


@on_every_manager
async def test_safeguard_compacts_what_the_window_could_not_take(
    bound: ManagerHarness,
) -> None:
    scribe = Scribe()
    config = choosing("safeguard", reserve_tokens=100)
    async with bound(config, summarizer=scribe) as manager:
        session = await manager.get_or_create(ANN)
        await fill(manager, session, 800)
        assert await manager.compact_if_due(session, 100) is None
        assert not scribe.inputs
        report = await manager.compact_if_due(session, 101)
        assert report is not None
        assert (report.outcome, report.trigger) == (
            COMPACTED,
            CompactionTrigger.SAFEGUARD,
        )
        assert (await manager.request(session)).compaction == report


async def test_the_window_is_the_models_where_it_is_known() -> None:
    scribe = Scribe()
    config = choosing("safeguard", model_context=500)
    manager, session = await opened(config, scribe)
    await fill(manager, session, 500)
    assert await manager.compact_if_due(session) is None
    assert await manager.compact_if_due(session, 1) is not None


async def test_over_the_window_the_least_number_of_messages_does_not_count() -> None:
    scribe = Scribe()
    config = choosing("safeguard", min_messages_to_compact=100)
    manager, session = await opened(config, scribe)
    await manager.add_messages(session, turns(3, size=300))
    report = await manager.compact_if_due(session)
    assert report is not None
    assert report.outcome is COMPACTED


async def test_what_no_request_takes_does_not_count() -> None:
    scribe = Scribe()
    config = choosing("safeguard").from_mapping(
        {"tool_calls": {"max_tool_result_size": 200}}, base=choosing("safeguard")
    )
    manager, session = await opened(config, scribe)
    long = [user("go"), call("c1"), result("c1", "x" * 50_000), *turns(1)]
    await manager.add_messages(session, long)
    assert await manager.compact_if_due(session, 600) is None
    assert await manager.compact_if_due(session, 800) is not None


@pytest.mark.parametrize("mode", ["safeguard", "off"])
async def test_a_save_compacts_in_mode_auto_alone(mode: str) -> None:
    scribe = Scribe()
    manager, session = await opened(choosing(mode), scribe)
    await fill(manager, session, 5000)
    assert not scribe.inputs


@pytest.mark.parametrize("mode", ["auto", "off"])
async def test_a_request_compacts_in_mode_safeguard_alone(mode: str) -> None:
    scribe = Scribe()
    manager, session = await opened(choosing(mode), scribe)
    assert await manager.compact_if_due(session, 10**6) is None
    assert not scribe.inputs


async def test_off_compacts_by_hand() -> None:
    scribe = Scribe()
    manager, session = await opened(choosing("off"), scribe)
    await fill(manager, session, 400)
    assert (await manager.compact(KEY)).outcome is COMPACTED


# Not too often ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "safeguard"])
@pytest.mark.parametrize("size", [40, 400])
async def test_after_one_compaction_a_small_message_makes_no_other_due(
    mode: str, size: int
) -> None:
    """Also where what is kept is more than the target, or the window."""
    scribe = Scribe()
    manager, session = await opened(choosing(mode, keep_recent_count=3), scribe)
    await manager.add_messages(session, turns(13 if size == 40 else 3, size=size))
    await manager.compact_if_due(session)
    assert len(scribe.inputs) == 1
    for n in range(4):
        await manager.add_message(session, user(f"ok {n}"))
        assert await manager.compact_if_due(session) is None
    assert len(scribe.inputs) == 1


@given(st.lists(st.integers(1, 300), min_size=5, max_size=25), st.integers(0, 6))
def test_between_two_compactions_a_session_grows_by_an_eighth_of_the_target(
    sizes: list[int], keep: int
) -> None:
    async def check() -> None:
        scribe = Scribe()
        config = choosing("auto", keep_recent_count=keep)
        manager, session = await opened(config, scribe)
        grown = 10**9
        for size in sizes:
            before = len(scribe.inputs)
            await manager.add_message(session, user("." * size))
            grown += size
            if len(scribe.inputs) > before:
                assert grown >= 500 // 8
                grown = 0

    anyio.run(check)


async def test_after_a_clear_what_was_compacted_counts_no_more() -> None:
    scribe = Scribe()
    manager, session = await opened(choosing("auto", keep_recent_count=3), scribe)
    await manager.add_messages(session, turns(4, size=300))
    assert len(scribe.inputs) == 1
    await session.clear()
    await fill(manager, session, 500)
    assert len(scribe.inputs) == 2


async def test_a_save_does_not_wait_for_another_compaction() -> None:
    go = anyio.Event()
    scribe = Scribe(go.wait)
    manager, session = await opened(choosing("auto"), scribe)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.add_messages, session, turns(8))
        await anyio.wait_all_tasks_blocked()
        assert len(scribe.inputs) == 1
        await manager.add_message(session, ChatMessage.user("meanwhile"))
        go.set()
    assert len(scribe.inputs) == 1
    assert session.messages_now()[-1].text == "meanwhile"


async def test_compactions_of_one_session_take_turns() -> None:
    scribe = Scribe(anyio.lowlevel.checkpoint)
    manager, session = await opened(choosing("safeguard"), scribe)
    await fill(manager, session, 2000)
    reports: list[CompactionReport | None] = []

    async def look() -> None:
        reports.append(await manager.compact_if_due(session))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(look)
    assert len(scribe.inputs) == 1
    assert sum(report is not None for report in reports) == 1
