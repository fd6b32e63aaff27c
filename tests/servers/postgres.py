"""A PostgreSQL server; it refuses to run as root, so another user does."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from collections.abc import Sequence

from typing_extensions import override

from servers.private import PrivateServer, once
from servers.programs import find

__all__ = ("PostgresServer", "server", "url")


def _user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class PostgresServer(PrivateServer):
    """One private PostgreSQL; what it acknowledged survives a kill, no power loss.

    Args:
        settings: ``name=value`` pairs, behind ours.
    """

    stop_signal = signal.SIGINT  # at SIGTERM it would wait for its clients

    def __init__(self, *settings: str) -> None:
        self._program = find("postgres", "postgresql")
        self._initdb = find("initdb", "postgresql")
        self._ready = find("pg_isready", "postgresql")
        self._settings = settings
        super().__init__(_user())

    @property
    @override
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @override
    def _command(self) -> Sequence[str]:
        data = self.folder / "data"
        if not data.exists():
            self.run(
                *(self._initdb, "-D", str(data), "-A", "trust", "-U", "postgres"),
                *("-E", "UTF8", "--no-locale", "--no-sync"),
            )
        settings = (
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
            "fsync=off",
            "synchronous_commit=on",
            "full_page_writes=off",
            "shared_buffers=32MB",
            *self._settings,
        )
        options = [part for setting in settings for part in ("-c", setting)]
        return [self._program, "-D", str(data), *options]

    @override
    def _answers(self) -> bool:
        asked = subprocess.run(
            [self._ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        )
        return asked.returncode == 0


@once
def server() -> PostgresServer:
    """Return the PostgreSQL of this run."""
    private = PostgresServer()
    private.start()
    return private


def url() -> str:
    """Return ``RAF_TEST_POSTGRES_URL``, else the PostgreSQL of this run."""
    return os.environ.get("RAF_TEST_POSTGRES_URL") or server().url
