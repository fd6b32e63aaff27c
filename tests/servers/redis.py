"""A Redis server, with an append-only file that a kill cannot hurt."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from typing_extensions import override

from servers.private import PrivateServer, once
from servers.programs import find

__all__ = ("RedisServer", "server", "url")


class RedisServer(PrivateServer):
    """One private Redis.

    Args:
        options: of its command line, behind ours.
    """

    def __init__(self, *options: str) -> None:
        self._program = find("redis-server", "redis-server")
        self._options = options
        super().__init__()

    @property
    @override
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @override
    def _command(self) -> Sequence[str]:
        return [
            self._program,
            *("--port", str(self.port), "--bind", "127.0.0.1"),
            *("--dir", str(self.folder), "--daemonize", "no"),
            *("--save", "", "--appendonly", "yes", "--appendfsync", "no"),
            *("--enable-debug-command", "yes"),
            *self._options,
        ]

    @override
    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@once
def server() -> RedisServer:
    """Return the Redis of this run."""
    private = RedisServer()
    private.start()
    return private


def url() -> str:
    """Return the URL of ``RAF_TEST_REDIS_URL``, else of the Redis of this run."""
    return os.environ.get("RAF_TEST_REDIS_URL") or server().url
