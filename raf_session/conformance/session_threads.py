"""Checks of sessions that may be used from any thread."""

from __future__ import annotations

from functools import partial
from typing import Final

import anyio
import anyio.lowlevel

from raf_session.conformance.clock import TickingClock
from raf_session.conformance.findings import elsewhere, running_loop
from raf_session.conformance.journal_values import same
from raf_session.conformance.session_harness import (
    CoreCheck,
    CoreFactory,
    SessionCapability,
    SessionCheck,
)
from raf_session.messages import ChatMessage
from raf_session.session import SessionCore

__all__ = ("CHECKS", "NEEDS")


async def _write(session: SessionCore, writer: str) -> None:
    for n in range(20):
        await session.add_message(ChatMessage.user(f"{writer}{n}"))
        await anyio.lowlevel.checkpoint()


async def check_threads_may_share_a_session(make: CoreFactory) -> None:
    """Writers in other threads, with event loops of their own, lose no message."""
    session = await make("s", clock=TickingClock())
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for writer in ("x", "y", "z"):
                write = partial(_write, session, writer)
                group.start_soon(partial(elsewhere, write, loop=running_loop()))
            group.start_soon(_write, session, "here")
    said = [message.text for message in await session.get_messages()]
    same(len(said), 80, "the number of messages")
    for writer in ("here", "x", "y", "z"):
        own = [text for text in said if text.startswith(writer)]
        same(own, [f"{writer}{n}" for n in range(20)], f"those of writer {writer}")


CHECKS: Final[tuple[CoreCheck, ...]] = (check_threads_may_share_a_session,)

NEEDS: Final[dict[SessionCheck | CoreCheck, frozenset[SessionCapability]]] = {
    check_threads_may_share_a_session: frozenset((SessionCapability.THREADS,)),
}
"""What a session must claim for a check to apply to it."""
