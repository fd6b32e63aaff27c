"""Checks of saves that run in parallel."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from raf_session.agent_session import AgentSession
from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import same, together
from raf_session.conformance.store_harness import (
    StoreCapability,
    StoreCheck,
    StoreHarness,
)
from raf_session.conformance.store_values import WaitingSession, named, texts
from raf_session.errors import SessionError, StaleSessionError
from raf_session.messages import ChatMessage

__all__ = ("CHECKS", "NEEDS")


async def check_parallel_saves_of_one_object(harness: StoreHarness) -> None:
    """Saving one object many times in parallel stores each message once."""
    clock = TickingClock()
    types = (AgentSession, WaitingSession)
    async with harness(clock=clock, types=types) as store:
        for session in (await named("s", clock), WaitingSession("t")):
            for n in range(3):
                await session.add_message(ChatMessage.user("ok"))
                saves = [partial(store.save_session, session)] * 10
                same(await together(*saves), [None] * 10, "what the saves gave")
                stored = await texts(store, session.session_id)
                same(stored, ["ok"] * (n + 1), "what is stored")


async def check_an_older_save_does_not_undo_a_newer(harness: StoreHarness) -> None:
    """While an object grows, parallel saves of it end with all that it said."""
    clock = TickingClock()
    types = (AgentSession, WaitingSession)
    async with harness(clock=clock, types=types) as store:
        for session in (await named("s", clock), WaitingSession("t")):

            async def turn(
                text: str, session: AgentSession | WaitingSession = session
            ) -> None:
                await session.add_message(ChatMessage.user(text))
                await store.save_session(session)

            turns = [partial(turn, str(n)) for n in range(10)]
            same(await together(*turns), [None] * 10, "what the saves gave")
            said = [message.text for message in await session.get_messages()]
            same(await texts(store, session.session_id), said, "what is stored")


async def check_parallel_creators_make_one_session(harness: StoreHarness) -> None:
    """Of new sessions saved in parallel under one id one is stored, whole."""
    clock = TickingClock()
    async with harness(clock=clock) as store:
        sessions = [await named("s", clock, f"{n}", f"{n}") for n in range(20)]
        answers = await together(*(partial(store.save_session, s) for s in sessions))
        won = [n for n, answer in enumerate(answers) if answer is None]
        same(len(won), 1, "the number of winners")
        same(await texts(store, "s"), [f"{won[0]}"] * 2, "what is stored")
        for answer in answers:
            assert answer is None or isinstance(answer, StaleSessionError), answer


async def check_parallel_opens_make_one_session(harness: StoreHarness) -> None:
    """Opened in parallel under one id, there is one session with all that was said."""
    clock = TickingClock()
    async with harness(clock=clock) as store:

        async def write(n: int) -> None:
            session = await cast("Any", store).open_session("s")
            await session.add_message(ChatMessage.user(f"{n:02}"))

        answers: list[SessionError | None] = await together(
            *(partial(write, n) for n in range(20))
        )
        same(answers, [None] * 20, "what the writers got")
        said = sorted(await texts(store, "s") or [])
        same(said, [f"{n:02}" for n in range(20)], "what is stored")


CHECKS: Final[tuple[StoreCheck, ...]] = (
    check_parallel_saves_of_one_object,
    check_an_older_save_does_not_undo_a_newer,
    check_parallel_creators_make_one_session,
    check_parallel_opens_make_one_session,
)

_TYPES: Final = frozenset((StoreCapability.TYPES,))

NEEDS: Final[dict[StoreCheck, frozenset[StoreCapability]]] = {
    check_parallel_saves_of_one_object: _TYPES,
    check_an_older_save_does_not_undo_a_newer: _TYPES,
    check_parallel_opens_make_one_session: frozenset((StoreCapability.OPENS,)),
}
"""What a store must claim for a check to apply to it."""
