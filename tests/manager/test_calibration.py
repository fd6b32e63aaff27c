"""What a provider reports of a session's requests narrows its window, in steps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from manager_bindings import ManagerHarness, with_claims
from manager_values import (
    ANN,
    KEY,
    CharacterCounter,
    Scribe,
    agent,
    call,
    configured,
    result,
    turns,
    user,
)

from raf_session.conformance import Capability
from raf_session.journals.memory import MemoryJournal
from raf_session.manager import AgentsConfig, ManagedSession, SessionManager
from raf_session.messages import ChatMessage, Usage
from raf_session.tokens import Calibration

pytestmark = pytest.mark.anyio

WINDOW = 3000
CONFIG = configured(
    session={
        "max_token_count": WINDOW,
        "max_messages": None,
        "ttl": None,
        "idle_timeout": None,
    },
    tool_calls={"keep_tool_calls_count": None},
)
SAID = turns(16)
"""1,280 tokens."""


def over(config: AgentsConfig = CONFIG, scribe: Scribe | None = None) -> SessionManager:
    journal = MemoryJournal.opened()
    counter = CharacterCounter()
    return SessionManager(journal, config, summarizer=scribe, counter=counter)


async def answered(
    manager: SessionManager,
    scale: float,
    reply: Sequence[ChatMessage] = (agent("yes"),),
    unsaved: Sequence[ChatMessage] = (),
) -> ManagedSession:
    """Make a request and store its answer; the provider counts so much of it."""
    session = await manager.get_or_create(ANN)
    turn = await manager.request(session, unsaved=unsaved)
    usage = Usage(prompt_tokens=round(turn.view.tokens * scale), completion_tokens=3)
    await manager.add_messages(session, reply, usage=usage)
    return session


async def test_where_the_provider_counts_more_less_history_is_shown() -> None:
    manager = over()
    await manager.add_messages(await manager.get_or_create(ANN), turns(37))
    session = await answered(manager, 1.5)
    assert session.calibration == Calibration(12)
    view = (await manager.request(session)).view
    assert view.dropped
    assert view.tokens <= WINDOW / 1.5
    assert (await manager.load_history(KEY)).tokens <= WINDOW / 1.5
    await session.flush()


async def test_where_the_provider_counts_less_the_window_is_as_configured() -> None:
    manager = over()
    await manager.add_messages(await manager.get_or_create(ANN), turns(60))
    session = await answered(manager, 0.5)
    assert session.calibration == Calibration(4)
    assert WINDOW / 2 < (await manager.load_history(KEY)).tokens <= WINDOW


async def test_small_differences_move_no_window() -> None:
    manager = over()
    await manager.add_messages(await manager.get_or_create(ANN), SAID)
    session = await answered(manager, 1.25)
    for scale in (1.2, 1.3, 1.22, 1.29, 1.25):
        await answered(manager, scale, [user("and?"), agent("so")], [user("and?")])
        turn = await manager.request(session)
        assert session.calibration == Calibration(10)
        assert turn.match.append_only
        assert not turn.view.dropped
    await session.flush()


@with_claims(Capability.DURABLE)
async def test_a_restart_does_not_forget_it(bound: ManagerHarness) -> None:
    async with bound.storage() as opener:
        async with opener(CONFIG) as manager:
            await manager.add_messages(await manager.get_or_create(ANN), SAID)
            session = await answered(manager, 2)
            assert not session.dirty  # it was stored in the same step
        async with opener(CONFIG) as manager:
            again = await manager.get_or_create(ANN)
            assert again.calibration == Calibration(16)


async def test_safeguard_compacts_before_the_providers_count_is_exceeded() -> None:
    scribe = Scribe()
    manager = over(CONFIG, scribe)
    await manager.add_messages(await manager.get_or_create(ANN), turns(30))
    session = await manager.get_or_create(ANN)
    assert await manager.compact_if_due(session) is None
    await answered(manager, 1.5)
    assert await manager.compact_if_due(session) is not None
    assert len(scribe.inputs) == 1


async def test_auto_compacts_at_the_providers_count_of_the_target() -> None:
    scribe = Scribe()
    config = AgentsConfig.from_mapping(
        {"compaction": {"mode": "auto", "target_tokens_percent": 60}}, base=CONFIG
    )
    manager = over(config, scribe)
    await manager.add_messages(await manager.get_or_create(ANN), SAID)
    assert not scribe.inputs
    await answered(manager, 1.5)
    assert len(scribe.inputs) == 1


TOOLS = [call("c1"), result("c1", "x" * 5000)]


@pytest.mark.parametrize(
    ("reply", "unsaved", "compared"),
    [
        ([agent("yes")], [], True),
        ([*TOOLS, agent("yes")], TOOLS, True),
        ([*TOOLS, agent("yes")], [], False),
        ([*TOOLS, agent("yes")], TOOLS[:1], False),
        (TOOLS, [], True),
        (TOOLS, TOOLS, False),
        ([user("yes")], [], False),
    ],
    ids=["reply", "run", "later", "half of it", "calls", "earlier", "no reply"],
)
async def test_only_the_reply_to_the_recorded_request_tells(
    reply: list[ChatMessage], unsaved: list[ChatMessage], compared: bool
) -> None:
    config = AgentsConfig.from_mapping(
        {"session": {"max_token_count": 100_000}}, base=CONFIG
    )
    manager = over(config)
    await manager.add_messages(await manager.get_or_create(ANN), SAID)
    session = await answered(manager, 3, reply, unsaved)
    assert session.calibration == Calibration(24 if compared else 8)


async def test_a_request_is_compared_once() -> None:
    manager = over()
    await manager.add_messages(await manager.get_or_create(ANN), SAID)
    session = await answered(manager, 1)
    usage = Usage(prompt_tokens=9000, completion_tokens=3)
    await manager.add_messages(session, [agent("of another request")], usage=usage)
    assert session.calibration == Calibration()


async def test_tools_beside_the_messages_take_room_and_are_compared() -> None:
    manager = over()
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(30))
    tools = {"tools": [{"name": "look", "description": "x" * 1500}]}
    turn = await manager.request(session, header=tools)
    assert turn.view.tokens <= WINDOW - 1500
    usage = Usage(prompt_tokens=turn.view.tokens + 1550, completion_tokens=3)
    await manager.add_messages(session, [agent("yes")], usage=usage)
    assert session.calibration == Calibration()


async def test_safeguard_knows_the_tools_of_the_last_request() -> None:
    scribe = Scribe()
    manager = over(CONFIG, scribe)
    session = await manager.get_or_create(ANN)
    await manager.add_messages(session, turns(30))
    await manager.request(session, header={"tools": [{"name": "x" * 500}]})
    assert await manager.compact_if_due(session) is None
    await manager.request(session, header={"tools": [{"name": "x" * 1000}]})
    assert await manager.compact_if_due(session) is not None
    assert len(scribe.inputs) == 1
    await session.flush()
