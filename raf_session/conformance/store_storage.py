"""Checks that open the storage of a store again."""

from __future__ import annotations

from typing import Final

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.journal_values import raises, same
from raf_session.conformance.session_values import PLAIN, SHAPES
from raf_session.conformance.store_harness import (
    StoreCapability,
    StoreCheck,
    StoreHarness,
)
from raf_session.conformance.store_values import named, read, same_session
from raf_session.errors import StaleSessionError
from raf_session.messages import ChatMessage

__all__ = ("CHECKS", "NEEDS")


async def check_what_was_saved_survives_a_restart(harness: StoreHarness) -> None:
    """What was saved is read when the storage is opened again, and goes on from there.

    What was deleted stays so, and a copy from before the restart is known.
    """
    clock = TickingClock()
    async with harness.storage() as opened:
        async with opened(clock=clock) as store:
            session = await named("s", clock, *SHAPES)
            session.set_provider_state("p", {"n": [1, 1.0, None]})
            session.touch_request_hash(PLAIN)
            await store.save_session(session)
            await store.save_session(await named("gone", clock, "one"))
            await store.delete_session("gone")
            handle = await read(store, "s")
        clock.tick(60)
        async with opened(clock=clock) as store:
            again = await read(store, "s")
            await same_session(again, session, "after the restart")
            same(await store.get_session("gone"), None, "a deleted session")
            await again.add_message(ChatMessage.user("later"))
            await store.save_session(again)
        async with opened(clock=clock) as store:
            await same_session(await read(store, "s"), again, "after the second")
            await handle.clear()
            with raises(StaleSessionError, "a clear by a copy from before"):
                await store.save_session(handle)


NEEDS: Final[dict[StoreCheck, frozenset[StoreCapability]]] = {
    check_what_was_saved_survives_a_restart: frozenset((StoreCapability.DURABLE,)),
}
"""What a store must claim for a check to apply to it."""

CHECKS: Final[tuple[StoreCheck, ...]] = tuple(NEEDS)
