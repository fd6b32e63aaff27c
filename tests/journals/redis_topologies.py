"""Several Redis servers that belong together: a cluster, and one with Sentinels."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, Self

from redis import Redis
from redis.exceptions import RedisError
from servers.private import free_port
from servers.redis import RedisServer
from typing_extensions import override

__all__ = ("Cluster", "Sentinels", "wait_until")

_REPLICATION: Final = ("--repl-diskless-sync-delay", "0")


def wait_until(true: Callable[[], object], what: str, secs: float = 60) -> None:
    """Wait until something is so, as a server tells."""
    until = time.monotonic() + secs
    while True:
        try:
            if true():
                return
        except (RedisError, OSError):
            pass
        assert time.monotonic() < until, what
        time.sleep(0.05)


def info(port: int, section: str) -> dict[str, Any]:
    """Return what a server says of itself."""
    with Redis(port=port, socket_timeout=2) as client:
        answer: dict[str, Any] = client.info(section)
        return answer


def synced(port: int) -> bool:
    """Tell whether a server is no replica, or has all that its master has."""
    found = info(port, "replication")
    return bool(found["role"] == "master" or found["master_link_status"] == "up")


def _covered(port: int) -> bool:
    with Redis(port=port, socket_timeout=2, decode_responses=True) as client:
        told: Any = client
        return bool(told.execute_command("CLUSTER INFO")["cluster_state"] == "ok")


class Topology:
    """Servers that start and end together."""

    def __init__(self, servers: Sequence[RedisServer]) -> None:
        self.servers = servers
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for server in self.servers:
            self._stack.enter_context(server)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kill_master(self, port: int) -> RedisServer:
        """Kill the server on this port."""
        (server,) = [server for server in self.servers if server.port == port]
        server.kill()
        return server


class Cluster(Topology):
    """Three masters with a replica each."""

    def __init__(self) -> None:
        super().__init__(
            [
                RedisServer(
                    *("--cluster-enabled", "yes", "--cluster-node-timeout", "1000"),
                    *("--cluster-port", str(free_port())),
                    *_REPLICATION,
                )
                for _ in range(6)
            ]
        )

    @override
    def __enter__(self) -> Self:
        super().__enter__()
        ports = [server.port for server in self.servers]
        nodes = [f"127.0.0.1:{port}" for port in ports]
        done = subprocess.run(
            [
                *("redis-cli", "--cluster", "create", *nodes),
                *("--cluster-replicas", "1", "--cluster-yes"),
            ],
            capture_output=True,
            check=False,
        )
        assert not done.returncode, done.stdout + done.stderr
        for port in ports:
            wait_until(lambda p=port: synced(p), "a replica has not synced")  # type: ignore[misc]
        wait_until(lambda: len(self.masters()) == 3, "no three masters")
        wait_until(lambda: all(map(_covered, ports)), "slots are not covered")
        return self

    @property
    def url(self) -> str:
        """Where it answers; several nodes could be asked."""
        return f"redis+cluster://127.0.0.1:{self.servers[-1].port}"

    def masters(self) -> list[int]:
        """Return the ports of the masters that are up and known to have a replica."""
        found: list[int] = []
        for server in self.servers:
            try:
                told = info(server.port, "replication")
            except (RedisError, OSError):
                continue
            if told["role"] == "master" and told["connected_slaves"]:
                found.append(server.port)
        return found


class Sentinels(Topology):
    """A master with two replicas, watched by three Sentinels."""

    def __init__(self) -> None:
        master = RedisServer(*_REPLICATION)
        behind = ("--replicaof", "127.0.0.1", str(master.port))
        super().__init__(
            [master, *(RedisServer(*_REPLICATION, *behind) for _ in range(2))]
        )
        self._watchers = [_Sentinel(master.port) for _ in range(3)]

    @override
    def __enter__(self) -> Self:
        super().__enter__()
        for server in self.servers:
            wait_until(lambda p=server.port: synced(p), "no sync")  # type: ignore[misc]
        for watcher in self._watchers:
            self._stack.enter_context(watcher)
        wait_until(
            lambda: all(watcher.sees_all() for watcher in self._watchers),
            "the Sentinels do not see one another",
        )
        return self

    @property
    def url(self) -> str:
        """Where the Sentinels answer."""
        hosts = ",".join(f"127.0.0.1:{watcher.port}" for watcher in self._watchers)
        return f"redis+sentinel://{hosts}/main"


class _Sentinel(RedisServer):
    def __init__(self, master: int) -> None:
        super().__init__()
        (self.folder / "sentinel.conf").write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor main 127.0.0.1 {master} 2\n"
            "sentinel down-after-milliseconds main 500\n"
            "sentinel failover-timeout main 3000\n"
        )

    @override
    def _command(self) -> Sequence[str]:
        return [self._program, str(self.folder / "sentinel.conf"), "--sentinel"]

    def sees_all(self) -> bool:
        told = info(self.port, "sentinel")["master0"]
        return bool(told["slaves"] == 2 and told["sentinels"] == 3)
