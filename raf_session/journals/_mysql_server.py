"""What a server says of itself, and whether that is enough."""

from __future__ import annotations

import re
import warnings
from typing import Final

from raf_session.errors import StorageError
from raf_session.journal import Durability
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_faults import BACKEND, code_of

__all__ = ("check_server",)

_LEAST: Final = {"MariaDB": (10, 6), "MySQL": (8, 0)}
_UNKNOWN_VARIABLE: Final = 1193


async def check_server(connection: MysqlConnection, durability: Durability) -> None:
    """Check the version of the server, and that it keeps what it acknowledges.

    Raises:
        StorageError: it is too old, or set to lose what it has acknowledged.
    """
    said = connection.driver.get_server_info()
    kind = "MariaDB" if connection.is_mariadb else "MySQL"
    match = re.search(r"(?:5\.5\.5-)?(\d+)\.(\d+)", said)
    if match is not None and (int(match[1]), int(match[2])) < _LEAST[kind]:
        least = ".".join(map(str, _LEAST[kind]))
        raise StorageError(BACKEND, f"{kind} {said} is older than {least}")
    flush = await _variable(connection, "innodb_flush_log_at_trx_commit")
    logged = await _variable(connection, "log_bin")
    if durability == "kill":
        if flush == 0:
            raise StorageError(
                BACKEND,
                "the server may lose the last second when it is killed "
                "(innodb_flush_log_at_trx_commit=0): set it to 1 or 2",
            )
    else:
        wrong = (
            [] if flush in {1, None} else [f"innodb_flush_log_at_trx_commit={flush}"]
        )
        method = await _variable(connection, "innodb_flush_method")
        if str(method).lower() == "nosync":
            wrong.append("innodb_flush_method=nosync")
        if logged and (synced := await _variable(connection, "sync_binlog")) != 1:
            wrong.append(f"sync_binlog={synced}")
        if wrong:
            raise StorageError(
                BACKEND,
                "durability='power' needs a server that syncs before it acknowledges, "
                f"and it has {', '.join(wrong)}: set innodb_flush_log_at_trx_commit=1, "
                "sync_binlog=1 and another innodb_flush_method",
            )
    if flush is None:
        warnings.warn(
            "the server does not tell innodb_flush_log_at_trx_commit: whether it keeps "
            f"durability={durability!r} is not known",
            RuntimeWarning,
            stacklevel=2,
        )
    if logged and await _variable(connection, "binlog_format") == "STATEMENT":
        raise StorageError(
            BACKEND,
            "binlog_format=STATEMENT does not go with READ COMMITTED: set it to ROW or "
            "MIXED",
        )


async def _variable(connection: MysqlConnection, name: str) -> int | str | None:
    try:
        ((value,),) = await connection.rows(f"SELECT @@{name}")
    except Exception as error:
        if code_of(error) == _UNKNOWN_VARIABLE:
            return None
        raise
    return value if isinstance(value, int) else str(value)
