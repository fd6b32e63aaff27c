"""How scripts reach a server: one client for each event loop that uses the journal."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from redis.exceptions import NoScriptError

from raf_session.errors import JournalClosedError, StorageError
from raf_session.journals._loop_guards import LoopGuard, close_all
from raf_session.journals._redis_clients import Client, Holder, sending
from raf_session.journals._redis_faults import (
    BACKEND,
    FAULTS,
    LOST,
    faults,
    storage_error,
)
from raf_session.journals._redis_scripts import COMMIT, Script

__all__ = ("Call", "Link", "Links")

_T = TypeVar("_T")

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
        self._calls = 0
        self._closing = False
        self._closed = False

    async def close(self) -> None:
        """Close the client; calls that are on their way close it once more at last."""
        self._closing = True
        if not self._closed:
            await self.holder.close()
            self._closed = True

    async def _counted(self, work: Coroutine[Any, Any, _T]) -> _T:
        self._calls += 1
        try:
            return await work
        finally:
            self._calls -= 1
            if self._closing and not self._calls:
                await self.holder.close()

    async def run(
        self,
        script: Script,
        keys: Sequence[Any],
        args: Sequence[Any],
        *,
        write: bool = True,
        again: bool = True,
    ) -> Any:
        """Run a script.

        Args:
            script: the script.
            keys: its keys.
            args: its arguments.
            write: whether replicas are to have it.
            again: whether it may be sent again where its answer was lost.

        Raises:
            StorageError: it could not be run, or nobody knows whether it was.
        """
        if write and self._replicas:
            run = self._confirmed
        elif self.holder.clustered and not again:
            run = self._sent_once
        else:
            run = self._run
        try:
            with nullcontext() if again else sending(again=False):
                return await self._counted(run(script, keys, args))
        except StorageError:
            raise
        except FAULTS as error:
            raise storage_error(error) from error

    async def commit(self, keys: Sequence[Any], args: Sequence[Any]) -> Any:
        """Run `COMMIT`, which knows a write that is sent again by its name.

        Raises:
            StorageError: it could not be run, or nobody knows whether it was: what is
                refused behind a lost answer may be refused because it was done.
        """
        lost: StorageError | None = None
        for secs in (*self.holder.pauses, None):
            try:
                reply = await self.run(COMMIT, keys, args, again=False)
            except StorageError as error:
                if secs is None or not isinstance(error.__cause__, LOST):
                    raise
                lost = error
                await asyncio.sleep(secs)
                continue
            if lost is not None and reply[0] not in {b"done", "done"}:
                raise lost
            return reply
        raise AssertionError("the last turn returns or raises")

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
            return await self._counted(self._run_all(calls))

    async def _run_all(self, calls: Sequence[Call]) -> list[Any]:
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
            replies = await self._counted(self._pipeline(commands))
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
        wait = ("WAIT", self._replicas, self._wait_ms)
        reply, acks = await self._together((script, keys, args), wait)
        if isinstance(acks, FAULTS) or int(acks) < self._replicas:
            found = 0 if isinstance(acks, Exception) else int(acks)
            raise StorageError(
                BACKEND,
                f"stored on the master, but {found} of {self._replicas} replicas "
                "confirmed it in time; it may be repeated under the same ids",
            ) from (acks if isinstance(acks, Exception) else None)
        return reply

    async def _sent_once(
        self, script: Script, keys: Sequence[Any], args: Sequence[Any]
    ) -> Any:
        """Run a script past the client of a cluster, which sends again by itself."""
        (reply,) = await self._together((script, keys, args))
        return reply

    async def _together(self, call: Call, *others: Sequence[Any]) -> list[Any]:
        """Run a script, and behind it what needs the same connection."""
        key = call[1][0]
        replies = await self.holder.together(key, [_command(call, text=False), *others])
        if isinstance(replies[0], NoScriptError):
            replies = await self.holder.together(
                key, [_command(call, text=True), *others]
            )
        if isinstance(replies[0], Exception):
            raise replies[0]
        return replies


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
        self._guards: dict[Link, LoopGuard] = {}
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
        guard = LoopGuard(partial(self._end, loop, link))
        await guard.begin()
        with self._lock:
            closed = self._closed
            found = link if closed else self._links.setdefault(loop, link)
            if found is link and not closed:
                self._guards[link] = guard
        if closed or found is not link:
            await guard.close()
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

    async def _end(self, loop: asyncio.AbstractEventLoop, link: Link) -> None:
        with self._lock:
            self._guards.pop(link, None)
            if self._links.get(loop) is link:
                del self._links[loop]
        await link.close()

    async def close(self) -> None:
        """Close every client that was opened here; idempotent.

        Raises:
            StorageError: a client could not be closed.
        """
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            self._closed = True
            guards, self._guards = self._guards, {}
            self._links = WeakKeyDictionary()
        try:
            await close_all([guard.close() for guard in guards.values()])
        except FAULTS as error:
            raise storage_error(error) from error


_INHERITED: Final[list[object]] = []
"""What a forked child must neither use nor close, nor let be collected."""
