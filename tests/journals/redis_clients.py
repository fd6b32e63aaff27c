"""Redis clients of a test's own, and one that fails when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from servers import redis as servers

__all__ = ("WHENS", "Faulty", "client", "fresh_prefix")

WHENS: Final = ("before", "after", "cancel before", "cancel after")


def fresh_prefix() -> str:
    """Return a prefix that nobody else has."""
    return f"test-{uuid4().hex}"


@asynccontextmanager
async def client(prefix: str = "", **options: Any) -> AsyncGenerator[Any]:
    """Hold a client of the run's server open; remove what stands under a prefix.

    It is `Any`: the driver's own types do not follow its options.
    """
    options.setdefault("retry", Retry(NoBackoff(), 0))
    async with Redis.from_url(servers.url(), **options) as held:
        yield held
        if prefix:
            async for key in held.scan_iter(f"{prefix}*", count=10_000):
                await held.delete(key)


class Faulty:
    """A client that counts round trips, and fails at one of them.

    Attributes:
        trips: how many round trips there were.
        at: which of them fails; 0: none.
        when: before it is sent or after the reply, by an error or a cancellation.
        caller: the task that a cancellation is for.
    """

    def __init__(self, real: Any) -> None:
        self._real = real
        self.trips = 0
        self.at = 0
        self.when = WHENS[0]
        self.caller: asyncio.Task[Any] | None = None

    async def _trip(self, go: Callable[[], Awaitable[Any]]) -> Any:
        self.trips += 1
        if self.trips != self.at:
            return await go()
        if self.when.endswith("before"):
            await self._fail()
        reply = await go()
        if self.when.endswith("after"):
            await self._fail()
        return reply

    async def _fail(self) -> None:
        if not self.when.startswith("cancel"):
            raise RedisConnectionError("cut by the test")
        assert self.caller is not None
        self.caller.cancel()
        await asyncio.sleep(0)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        return await self._trip(lambda: self._real.execute_command(*args, **options))

    def pipeline(self, transaction: Any = None) -> Any:
        pipeline = self._real.pipeline(transaction=transaction)
        execute = pipeline.execute

        async def counted(raise_on_error: bool = True) -> Any:
            return await self._trip(lambda: execute(raise_on_error))

        pipeline.execute = counted
        return pipeline
