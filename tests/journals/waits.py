"""What servers tell late: they notice the end of a connection after its client."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio.lowlevel

__all__ = ("reached",)

T = TypeVar("T")
PATIENCE_SECS: Final = 10


async def reached(read: Callable[[], Awaitable[T]], fits: Callable[[T], bool]) -> T:
    """Return what is read, when it fits, or what was read last when it never did."""
    until = time.monotonic() + PATIENCE_SECS
    while not fits(found := await read()) and time.monotonic() < until:
        await anyio.lowlevel.checkpoint()
    return found
