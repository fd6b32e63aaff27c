"""How scripts reach a server: one client for each event loop that uses the journal."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from redis.exceptions import NoScriptError

from raf_session.errors import JournalClosedError, StorageError
from raf_session.journals._redis_clients import Client, Holder
from raf_session.journals._redis_faults import BACKEND, FAULTS, faults, storage_error
from raf_session.journals._redis_scripts import Script

__all__ = ("Call", "Link", "Links")

Call: TypeAlias = tuple[Script, Sequence[Any], Sequence[Any]]
"""A script, its keys and its arguments."""

_RAW: Final[dict[str, Any]] = {"NEVER_DECODE": True}


class Link:
    """One client on its event loop.

    Args:
        holder: the client and how to close it.
        one_slot: whether a script may touch keys of different slots.
        replicas: how many replicas must have a write before it counts.
        wait_ms: how long to wait for them.
    """

    def __init__(
        self, holder: Holder, *, one_slot: bool, replicas: int, wait_ms: int
    ) -> None:
        self.holder = holder
        self.client: Client = holder.client
        self.one_slot = one_slot
        self._replicas = replicas
        self._wait_ms = wait_ms

    async def run(
        self,
        script: Script,
        keys: Sequence[Any],
        args: Sequence[Any],
        *,
        write: bool = True,
    ) -> Any:
        """Run a script.

        Raises:
            StorageError: it could not be run, or nobody knows whether it was.
        """
        try:
            if write and self._replicas:
                return await self._confirmed(script, keys, args)
            return await self._run(script, keys, args)
        except StorageError:
            raise
        except FAULTS as error:
            raise storage_error(error) from error

    async def _run(
        self, script: Script, keys: Sequence[Any], args: Sequence[Any]
    ) -> Any:
        execute = self.client.execute_command
        try:
            return await execute("EVALSHA", script.sha, len(keys), *keys, *args, **_RAW)
        except NoScriptError:
            return await execute("EVAL", script.text, len(keys), *keys, *args, **_RAW)

    async def run_all(self, calls: Sequence[Call]) -> list[Any]:
        """Run scripts that only read, in one round trip, and return their replies.

        Raises:
            StorageError: one of them could not be run.
        """
        with faults():
            if self.holder.clustered:
                return list(await asyncio.gather(*[self._run(*call) for call in calls]))
            commands = [_command(call, text=False) for call in calls]
            replies = await self._pipeline(commands)
            for n, reply in enumerate(replies):
                if isinstance(reply, NoScriptError):
                    replies[n] = await self._run(*calls[n])
                elif isinstance(reply, Exception):
                    raise reply
            return replies

    async def commands(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Run commands that only read, each on one key, in one round trip.

        Raises:
            StorageError: one of them failed.
        """
        if not commands:
            return []
        with faults():
            replies = await self._pipeline(commands)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
            return replies

    async def _pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        pipeline = self.client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command, **_RAW)
        return list(await pipeline.execute(raise_on_error=False))

    async def nodes(self) -> Sequence[Client]:
        """Return a client for each node that keys are stored on."""
        with faults():
            return await self.holder.nodes()

    async def on_node(self, node: Client, *command: Any) -> Any:
        """Run a command on one node.

        Raises:
            StorageError: it failed.
        """
        with faults():
            return await node.execute_command(*command, **_RAW)

    # Replicas --------------------------------------------------------------------

    async def _confirmed(
        self, script: Script, keys: Sequence[Any], args: Sequence[Any]
    ) -> Any:
        call = (script, keys, args)
        wait = ("WAIT", self._replicas, self._wait_ms)
        reply, acks = await self.holder.together(
            keys[0], [_command(call, text=False), wait]
        )
        if isinstance(reply, NoScriptError):
            reply, acks = await self.holder.together(
                keys[0], [_command(call, text=True), wait]
            )
        if isinstance(reply, Exception):
            raise reply
        if isinstance(acks, FAULTS) or int(acks) < self._replicas:
            found = 0 if isinstance(acks, Exception) else int(acks)
            raise StorageError(
                BACKEND,
                f"stored on the master, but {found} of {self._replicas} replicas "
                "confirmed it in time; it may be repeated under the same ids",
            ) from (acks if isinstance(acks, Exception) else None)
        return reply


def _command(call: Call, *, text: bool) -> tuple[Any, ...]:
    script, keys, args = call
    name, body = ("EVAL", script.text) if text else ("EVALSHA", script.sha)
    return (name, body, len(keys), *keys, *args)


class Links:
    """The links of an open journal, by event loop.

    Args:
        make: opens a client on the running event loop.
        replicas: how many replicas must have a write before it counts.
        wait_ms: how long to wait for them.
    """

    def __init__(
        self, make: Callable[[], Holder], *, replicas: int, wait_ms: int
    ) -> None:
        self._make = make
        self._replicas = replicas
        self._wait_ms = wait_ms
        self._lock = threading.Lock()
        self._links: WeakKeyDictionary[asyncio.AbstractEventLoop, Link] = (
            WeakKeyDictionary()
        )
        self._guards: dict[Link, AsyncGenerator[None]] = {}
        self._process = os.getpid()
        self._closed = False
        self.one_slot = False

    async def get(self) -> Link:
        """Return the link of the running event loop.

        Raises:
            JournalClosedError: the journal was closed.
            RuntimeError: no asyncio event loop is running, or the client that was
                handed in belongs to another one.
        """
        loop = asyncio.get_running_loop()
        if self._process != os.getpid():
            self._forget()
        link = self._links.get(loop)
        if link is None:
            link = await self._open(loop)
        return link

    async def _open(self, loop: asyncio.AbstractEventLoop) -> Link:
        with faults():
            holder = self._make()
        link = Link(
            holder,
            one_slot=self.one_slot,
            replicas=self._replicas,
            wait_ms=self._wait_ms,
        )
        guard = _guard(holder)
        await anext(guard)
        with self._lock:
            closed = self._closed
            found = link if closed else self._links.setdefault(loop, link)
            if found is link and not closed:
                self._guards[link] = guard
        if closed or found is not link:
            await guard.aclose()
        if closed:
            raise JournalClosedError(BACKEND)
        return found

    def _forget(self) -> None:
        """Begin anew in a forked child: its parent's connections are the parent's."""
        with self._lock:
            if self._process == os.getpid():
                return
            _INHERITED.extend(self._guards.items())
            self._links = WeakKeyDictionary()
            self._guards = {}
            self._process = os.getpid()

    async def close(self) -> None:
        """Close every client that was opened here; idempotent.

        Raises:
            StorageError: a client could not be closed.
        """
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            self._closed = True
            links = dict(self._links)
            guards, self._guards = self._guards, {}
            self._links = WeakKeyDictionary()
        here = asyncio.get_running_loop()
        for loop, link in links.items():
            guard = guards[link]
            try:
                if loop is here:
                    await guard.aclose()
                elif loop.is_running():
                    done = asyncio.run_coroutine_threadsafe(guard.aclose(), loop)
                    await asyncio.wait_for(asyncio.wrap_future(done), 5)
            except FAULTS as error:
                raise storage_error(error) from error


async def _guard(holder: Holder) -> AsyncGenerator[None]:
    """Close the client when the journal is closed, or when its event loop ends.

    An event loop that ends, as `asyncio.run` does it, finishes the asynchronous
    generators that were begun on it.
    """
    try:
        yield
    finally:
        await holder.close()


_INHERITED: Final[list[object]] = []
"""What a forked child must neither use nor close, nor let be collected."""
