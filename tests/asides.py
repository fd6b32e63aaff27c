"""An event loop beside the tests', whose connections outlive theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

__all__ = ("aside",)

_T = TypeVar("_T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aside", daemon=True).start()
    return loop


async def aside(work: Coroutine[Any, Any, _T]) -> _T:
    """Run it on the loop that is the same for all tests."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))
