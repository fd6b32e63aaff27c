"""A MariaDB server, the MySQL that Debian has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from typing_extensions import override

from servers.private import PrivateServer, once
from servers.programs import find

__all__ = ("MariadbServer", "mysql_url", "server", "url")


class MariadbServer(PrivateServer):
    """One private MariaDB; what it acknowledged survives a kill, no power loss.

    Args:
        options: of its command line, behind ours.
    """

    def __init__(self, *options: str) -> None:
        self._program = find("mariadbd", "mariadb-server")
        self._install = find("mariadb-install-db", "mariadb-server")
        self._admin = find("mariadb-admin", "mariadb-server")
        self._options = options
        super().__init__()

    @property
    @override
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/test"

    @override
    def _command(self) -> Sequence[str]:
        data = self.folder / "data"
        if not data.exists():
            self.run(
                *(self._install, "--no-defaults", f"--datadir={data}"),
                *("--auth-root-authentication-method=normal", "--skip-test-db"),
                *("--innodb-log-file-size=8M", "--innodb-flush-method=nosync"),
                *(("--user=root",) if os.geteuid() == 0 else ()),
            )
            (self.folder / "first.sql").write_text("CREATE DATABASE IF NOT EXISTS test")
        return [
            *(self._program, "--no-defaults", f"--datadir={data}"),
            *(f"--socket={self.folder}/s", f"--pid-file={self.folder}/pid"),
            f"--tmpdir={self.folder}",  # a server that starts empties what it has
            *(f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-log-bin"),
            *("--skip-name-resolve", "--innodb-flush-method=nosync"),
            *("--innodb-log-file-size=8M", f"--init-file={self.folder}/first.sql"),
            *(("--user=root",) if os.geteuid() == 0 else ()),
            *self._options,
        ]

    @override
    def _answers(self) -> bool:
        asked = subprocess.run(
            [self._admin, "--no-defaults", f"--socket={self.folder}/s", "ping"],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return asked.returncode == 0


@once
def server() -> MariadbServer:
    """Return the MariaDB of this run."""
    private = MariadbServer()
    private.start()
    return private


def url() -> str:
    """Return ``RAF_TEST_MARIADB_URL``, else the URL of the MariaDB of this run."""
    return os.environ.get("RAF_TEST_MARIADB_URL") or server().url


def mysql_url() -> str | None:
    """Return ``RAF_TEST_MYSQL_URL``: MySQL 8, which Debian does not have."""
    return os.environ.get("RAF_TEST_MYSQL_URL") or None
