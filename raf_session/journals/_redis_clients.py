"""Clients of redis-py: made of a URL, or handed in."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import PipelineCommand
from redis.asyncio.connection import Connection, ConnectionPool, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import AskError, ClusterError
from redis.exceptions import ConnectionError as RedisConnectionError
from typing_extensions import Protocol, override

from raf_session.errors import InvalidValueError
from raf_session.journals._redis_connections import direct

__all__ = ("Client", "Holder", "Pipeline", "client_maker", "handed_in", "sending")

_SCHEMES: Final = (
    "redis",
    "rediss",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "rediss+sentinel",
    "unix",
)
_REDIRECTS: Final = (AskError, ClusterError, RedisConnectionError)
"""After which the node of a key may be another."""
_TURNS: Final = 7
_PAUSES_SECS: Final = (0.05, 0.1, 0.2, 0.4)
_CLUSTER_PAUSES_SECS: Final = tuple([0.05 * 2**turn for turn in range(_TURNS)])

_AGAIN: Final[ContextVar[bool]] = ContextVar("_AGAIN", default=True)
_ONCE: Final = Retry(NoBackoff(), 0)


@contextmanager
def sending(*, again: bool) -> Generator[None]:
    """Tell clients of ours whether what is sent inside may be sent a second time."""
    token = _AGAIN.set(again)
    try:
        yield
    finally:
        _AGAIN.reset(token)


class _Retry(Retry):
    """Sends again only what may be sent again."""

    @override
    async def call_with_retry(self, *args: Any, **options: Any) -> Any:
        if _AGAIN.get():
            return await super().call_with_retry(*args, **options)
        return await _ONCE.call_with_retry(*args, **options)


class Pipeline(Protocol):
    """Commands that are sent together."""

    @abstractmethod
    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Add a command."""
        ...

    @abstractmethod
    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send them and return their replies."""
        ...


class Client(Protocol):
    """What is used of `redis.asyncio.Redis` and its likes."""

    @abstractmethod
    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]:
        """Send a command and return its reply."""
        ...

    @abstractmethod
    def pipeline(self, transaction: Any = None) -> Pipeline:
        """Begin a pipeline."""
        ...


class Holder:
    """A client, and who closes it.

    Args:
        client: the client.
        closers: what to close, in order; nothing where the client was handed in.
        pauses: how long to wait, each time that a write which knows itself is sent
            again; nothing where the client was handed in: it is its owner who decides.
    """

    def __init__(
        self,
        client: Client,
        closers: Sequence[Callable[[], Awaitable[object]]] = (),
        pauses: Sequence[float] = (),
    ) -> None:
        self.client = client
        self.pauses = pauses
        self.clustered = hasattr(client, "get_node_from_key")
        self._closers = closers

    async def close(self) -> None:
        """Close what was opened for this client."""
        for close in self._closers:
            await close()

    async def nodes(self) -> Sequence[Client]:
        """Return a client for each node that keys are stored on."""
        if not self.clustered:
            return [self.client]
        cluster = cast("RedisCluster", self.client)
        await cluster.initialize()
        return cast("Sequence[Client]", cluster.get_primaries())

    async def together(
        self, key: bytes, commands: Sequence[Sequence[Any]]
    ) -> list[Any]:
        """Send commands on one connection, to the node of this key."""
        if not self.clustered:
            pipeline = self.client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command, NEVER_DECODE=True)
            return list(await pipeline.execute(raise_on_error=False))
        return await self._on_node(key, commands)

    async def _on_node(
        self, key: bytes, commands: Sequence[Sequence[Any]]
    ) -> list[Any]:
        cluster = cast("RedisCluster", self.client)
        await cluster.initialize()
        turn = 0
        while True:
            results = await _send(cluster, key, commands)
            first = results[0]
            if not isinstance(first, _REDIRECTS) or turn == _TURNS:
                return results
            await asyncio.sleep(0.05 * 2**turn)
            turn += 1
            with sending(again=True):
                # An ordinary command finds out how the cluster looks now.
                await cluster.execute_command("EXISTS", key)
            if isinstance(first, RedisConnectionError) and not _AGAIN.get():
                return results


async def _send(
    cluster: RedisCluster, key: bytes, commands: Sequence[Sequence[Any]]
) -> list[Any]:
    node = cluster.get_node_from_key(cast("Any", key))
    if node is None:
        raise ClusterError(f"no node serves {key!r}")
    wanted = [
        PipelineCommand(n, *command, NEVER_DECODE=True)
        for n, command in enumerate(commands)
    ]
    try:
        await node.execute_pipeline(wanted)
    except _REDIRECTS as error:
        return [error] * len(wanted)
    return [command.result for command in wanted]


def handed_in(client: Client) -> Callable[[], Holder]:
    """Return a maker for the one client that its owner opened and will close."""
    home: list[asyncio.AbstractEventLoop] = []

    def make() -> Holder:
        loop = asyncio.get_running_loop()
        if home and home[0] is not loop:
            raise RuntimeError(
                "the Redis client that was handed in belongs to one event loop and "
                "process; a journal that is opened by URL makes a client for each"
            )
        home.append(loop)
        return Holder(client)

    return make


def client_maker(url: str) -> Callable[[], Holder]:
    """Return a maker of clients for a URL.

    Raises:
        InvalidValueError: it is no URL of Redis.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise InvalidValueError("url", f"{parts.scheme!r} is none of {_SCHEMES}")
    scheme, _, kind = parts.scheme.partition("+")
    plain = url.replace(f"{parts.scheme}:", f"{scheme}:", 1)
    if kind == "sentinel":
        return _sentinel_maker(plain)
    options = _options(plain)
    if kind == "cluster":
        return lambda: _of_cluster(options)
    return lambda: _of_server(options)


def _options(url: str) -> dict[str, Any]:
    try:
        return dict(parse_url(url))
    except (ValueError, TypeError) as error:
        raise InvalidValueError("url", str(error)) from error


def _retry() -> Retry:
    return _Retry(ExponentialBackoff(cap=0.4, base=0.05), 4)


def _of_server(options: dict[str, Any]) -> Holder:
    options = {**options, "retry": _retry()}
    options["connection_class"] = direct(options.get("connection_class", Connection))
    client = cast("Any", Redis).from_pool(ConnectionPool(**options))
    return Holder(client, [client.aclose], _PAUSES_SECS)


def _of_cluster(options: dict[str, Any]) -> Holder:
    options = dict(options)
    connection_class = options.pop("connection_class", None)
    client = RedisCluster(
        **options,
        ssl=connection_class is not None,
        retry=Retry(ExponentialBackoff(cap=1.0, base=0.1), 6),
    )
    return Holder(cast("Client", client), [client.aclose], _CLUSTER_PAUSES_SECS)


def _sentinel_maker(url: str) -> Callable[[], Holder]:
    parts = urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    nodes: list[tuple[str, int]] = []
    for host in hosts.split(","):
        name, _, port = host.rpartition(":")
        if not name or not port.isdecimal():
            raise InvalidValueError("url", f"{host!r} is no host:port of a Sentinel")
        nodes.append((name.strip("[]"), int(port)))
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise InvalidValueError("url", "names no master: …/name")
    login = f"{user}@" if user else ""
    query = f"?{parts.query}" if parts.query else ""
    options = _options(f"{parts.scheme}://{login}localhost/{database or 0}{query}")
    options.pop("host", None)
    secure = options.pop("connection_class", None) is not None
    kind = SentinelManagedSSLConnection if secure else SentinelManagedConnection
    options["connection_class"] = direct(kind)

    def make() -> Holder:
        sentinel = cast("Any", Sentinel)(nodes, socket_timeout=1.0)
        client = sentinel.master_for(unquote(service), retry=_retry(), **options)
        closers = [client.aclose, *(node.aclose for node in sentinel.sentinels)]
        return Holder(client, closers, _PAUSES_SECS)

    return make
