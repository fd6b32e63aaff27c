"""What happens between two round trips to Redis, and answers that are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Self, TypeAlias

__all__ = ("Hooked", "Lossy", "When", "uses")

Then: TypeAlias = Callable[[], Awaitable[object]]
When: TypeAlias = Callable[[Sequence[Sequence[Any]]], bool]


def uses(word: object) -> When:
    """Match a round trip one of whose commands holds this word."""
    return lambda commands: any(word in command for command in commands)


class Hooked:
    """A client that does something else right before a round trip, once.

    Args:
        real: the client.
    """

    def __init__(self, real: Any) -> None:
        self._real = real
        self._when: When | None = None
        self._then: Then | None = None
        self._behind = False

    def arm(self, when: When, then: Then, *, behind: bool = False) -> None:
        """Do `then` before, or right behind, the next round trip that matches."""
        self._when, self._then, self._behind = when, then, behind

    async def _trip(
        self, commands: Sequence[Sequence[Any]], go: Callable[[], Awaitable[Any]]
    ) -> Any:
        then = self._then
        if self._when is None or then is None or not self._when(commands):
            return await go()
        self._when = None
        if self._behind:
            reply = await go()
            await then()
            return reply
        await then()
        return await go()

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        return await self._trip(
            [args], lambda: self._real.execute_command(*args, **options)
        )

    def pipeline(self, transaction: Any = None) -> Any:
        pipeline = self._real.pipeline(transaction=transaction)
        execute, add = pipeline.execute, pipeline.execute_command
        commands: list[Sequence[Any]] = []

        def adding(*args: Any, **options: Any) -> Any:
            commands.append(args)
            return add(*args, **options)

        async def counted(raise_on_error: bool = True) -> Any:
            return await self._trip(commands, lambda: execute(raise_on_error))

        pipeline.execute_command = adding
        pipeline.execute = counted
        return pipeline


class Lossy:
    """A proxy that loses one answer: it cuts the connection in its place.

    Args:
        port: of the server behind it.

    Attributes:
        lost: how many answers were lost.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._needle: bytes | None = None
        self._between: Then | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.lost = 0

    def arm(self, needle: str, between: Then | None = None) -> None:
        """Lose the answer to the next request that holds these words.

        Args:
            needle: the words.
            between: what happens behind the request, before the connection is cut.
        """
        self._needle, self._between = needle.encode(), between

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        behind, forward = await asyncio.open_connection("127.0.0.1", self._target)
        losing = asyncio.Event()
        both = [
            asyncio.ensure_future(self._requests(reader, forward, losing)),
            asyncio.ensure_future(self._answers(behind, writer, losing)),
        ]
        self._tasks.update(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for stream in (forward, writer):
            stream.close()
            with suppress(OSError):
                await stream.wait_closed()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        forward: asyncio.StreamWriter,
        losing: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 22):
                if self._needle is not None and self._needle in data:
                    self._needle = None
                    losing.set()
                forward.write(data)
                await forward.drain()

    async def _answers(
        self,
        behind: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        losing: asyncio.Event,
    ) -> None:
        with suppress(OSError):
            while data := await behind.read(1 << 20):
                if losing.is_set():
                    if self._between is not None:
                        await self._between()
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()
