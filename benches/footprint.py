"""Memory for each session held, and bytes stored for each byte of a message."""

from __future__ import annotations

import gc
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benches.contenders import Contender
from benches.corpus import numbered
from benches.figures import Figure
from benches.places import open_place
from benches.scope import Scope
from raf_session.json_text import dump_json

__all__ = ("STORED", "figures", "held", "stored")

STORED = "stored bytes for each byte of messages of 1 kB"

_HELD = 200
"""Messages held, in as many sessions as that makes, two at the least."""
_STOP_SECS = 20.0
"""Where appending takes longer, the rest is left out."""
_TEXT = "0123456789abcdef" * 60
"""So that a message is about 1 kB."""


async def held(cls: type[Contender], messages: Sequence[int]) -> list[Figure]:
    """Measure what Python allocates for a live session of so many messages.

    The store and the session that the caller holds both count; the texts do, as every
    library keeps them.
    """
    found: list[Figure] = []
    for count in messages:
        sessions = max(2, _HELD // count)
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            place = await stack.enter_async_context(
                open_place(cls.backend, Path(folder))
            )
            contender = await stack.enter_async_context(cls(place))
            await _held(contender, "warm", count)
            gc.collect()
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                live = [await _held(contender, f"s{n}", count) for n in range(sessions)]
                gc.collect()
                after, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert len(live) == sessions
            assert len(await contender.load("s0")) == count
        figure = Figure("memory of a session", cls.backend, cls.label, count, "B")
        figure.values.append((after - before) / sessions)
        found.append(figure)
    return found


async def _held(contender: Contender, name: str, count: int) -> object:
    session = await contender.create(name)
    for message in numbered(0, count):
        fresh = {**message, "content": f"{name} {message['content']}"}
        await contender.append(session, contender.message(fresh))
    return session


async def stored(cls: type[Contender], messages: Sequence[int]) -> list[Figure]:
    """Measure what is stored for each byte of messages of 1 kB, appended one by one."""
    found: list[Figure] = []
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        place = await stack.enter_async_context(open_place(cls.backend, Path(folder)))
        contender = await stack.enter_async_context(cls(place))
        assert place.stored is not None
        await contender.append(
            await contender.create("warm"), contender.message(_message(0))
        )
        before = await place.stored()
        session = await contender.create("s")
        body = len(dump_json({"message": _message(0)}))
        count, started = 0, time.perf_counter()
        for size in messages:
            figure = Figure(STORED, cls.backend, cls.label, size, "x")
            found.append(figure)
            while count < size and time.perf_counter() - started < _STOP_SECS:
                await contender.append(session, contender.message(_message(count)))
                count += 1
            if count < size:
                figure.note = f"stopped at {count:,}, after {_STOP_SECS:.0f} s"
                continue
            figure.values.append((await place.stored() - before) / (size * body))
        texts = [contender.text(message) for message in await contender.load("s")]
        assert texts == [_message(n)["content"] for n in range(count)]
    return found


def _message(n: int) -> dict[str, str]:
    return {"role": ("user", "assistant")[n % 2], "content": f"{n:06} {_TEXT}"}


async def figures(scope: Scope) -> list[Figure]:
    """Measure memory in memory, and bytes on every durable backend of the scope."""
    found: list[Figure] = []
    messages = (3, 6) if scope.quick else (10, 100, 400)
    if "memory" in scope.backends:
        for cls in scope.classes("memory", "bytes"):
            found += await held(cls, messages)
    for backend in scope.backends:
        if backend != "memory":
            for cls in scope.one_each(backend, "bytes"):
                found += await stored(cls, (20, 40) if scope.quick else (50, 200, 800))
    return found
