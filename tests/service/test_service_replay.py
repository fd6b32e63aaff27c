"""One history of every kind of operation, played on every backend."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

import pytest
from scripted_history import OPERATIONS, Player
from service_bindings import BY_NAME, HARNESSES, ServiceHarness, on_every_service
from service_values import Scribe, managed

from raf_session.conformance import TickingClock
from raf_session.service import SessionServiceConfig

pytestmark = pytest.mark.anyio

TTL = SessionServiceConfig.create_ttl_config
CONFIGS = {
    "plain": SessionServiceConfig(),
    "few": SessionServiceConfig(max_events=4, store_historical_events=True),
    "young": SessionServiceConfig(event_ttl_seconds=60, store_historical_events=True),
    "mixed": SessionServiceConfig(
        max_events=9,
        event_ttl_seconds=200,
        num_recent_events=2,
        ttl=TTL(ttl_seconds=230, cleanup_interval_seconds=150),
        user_state_ttl=TTL(ttl_seconds=90),
        app_state_ttl=TTL(ttl_seconds=260),
    ),
}
SEEDS = {config: seed for seed, config in enumerate(CONFIGS)}
REFERENCE: dict[str, Player] = {}
"""The history of each configuration, as the journal in memory answers."""


async def played(bound: ServiceHarness, config: str) -> Player:
    clock = TickingClock()
    async with bound(
        CONFIGS[config], manager=managed(Scribe()), clock=clock
    ) as service:
        player = Player(service, clock, SEEDS[config])
        await player.play(200)
        return player


async def reference(config: str) -> Player:
    if config not in REFERENCE:
        REFERENCE[config] = await played(BY_NAME["memory"], config)
    return REFERENCE[config]


async def compare(bound: ServiceHarness, config: str) -> None:
    expected = (await reference(config)).answers
    answers = (await played(bound, config)).answers
    for wanted, given in zip_longest(expected, answers):
        assert given == wanted


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("bound", HARNESSES, ids=lambda bound: bound.name)
async def test_a_history_comes_out_the_same_everywhere(
    bound: ServiceHarness, config: str
) -> None:
    await compare(bound, config)


@on_every_service
async def test_a_history_comes_out_the_same_on_every_event_loop(
    bound: ServiceHarness,
) -> None:
    await compare(bound, "mixed")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_histories_hold_every_operation_and_error() -> None:
    failed = Counter[str]()
    for config in CONFIGS:
        player = await reference(config)
        assert all(player.played[name] for name in OPERATIONS), player.played
        failed += player.failed
    assert failed.keys() >= {
        "SessionExistsError",
        "SessionNotFoundError",
        "StaleSessionError",
        "EntryConflictError",
    }
