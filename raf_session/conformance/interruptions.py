"""Calls that are cancelled while they run, after any number of turns of the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.lowlevel import checkpoint
from hypothesis import strategies as st

__all__ = ("TURNS", "interrupted")

TURNS: Final = st.sampled_from((0, 0, 1, 1, 2, 3, 4, 6, 10, 25, 100))
"""After how many turns of the event loop a call is cancelled."""

_PATIENCE: Final = 60


async def interrupted(turns: int, call: Callable[[], Awaitable[object]]) -> None:
    """Begin the call, cancel it after that many turns, and wait until it has ended."""
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await call()

    with anyio.fail_after(_PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            for _ in range(turns):
                await checkpoint()
            scope.cancel()
