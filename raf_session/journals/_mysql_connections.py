"""Connections to a MySQL or MariaDB server."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from asyncmy.errors import MySQLError
from typing_extensions import override

from raf_session.errors import StorageError
from raf_session.journals._mysql_driver import Driver, Result, Statement
from raf_session.journals._mysql_faults import (
    BACKEND,
    PacketTooLargeError,
    fault,
    is_complete,
)
from raf_session.journals._mysql_settling import Settled
from raf_session.journals._mysql_values import (
    batch,
    expanded,
    read_rows,
    translated,
    written,
)
from raf_session.journals._sql_dialect import Connection, FaultKind, Row, Value

__all__ = ("MysqlConnection",)

_STATEMENTS: Final = 128
"""How many prepared statements a connection keeps."""
_SCRIPT: Final = 100
"""How many statements travel in one text."""
_BATCH_BYTES: Final = 1024 * 1024
_MARGIN: Final = 1024
"""What a packet holds beside the values and the names of their types."""
_LEAST_PACKET: Final = 16 * 1024
"""So much a server takes until it has told."""
_KEYS: Final = {"heads_by_key", "scopes_by_key"}
_CLOSE_SECS: Final = 2.0

_INSERT: Final = re.compile(r"(\s*INSERT\b.*?\bVALUES\s*)(\([?,\s]+\))(.*)", re.DOTALL)

# A server, a user or an injected pool may have set any of these in another way.
_SETTINGS: Final = """
SET NAMES utf8mb4;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',
    sql_notes = 0, sql_safe_updates = 0, sql_big_selects = 1, completion_type = 0,
    sql_select_limit = 18446744073709551615, foreign_key_checks = 1,
    innodb_lock_wait_timeout = {wait};
SELECT @@max_allowed_packet
"""

_abandoned: Final[list[object]] = []
"""Connections of the process that this one was forked from: closing harms it."""


class MysqlConnection(Connection):
    """A connection that is set up for the journal.

    Args:
        driver: the connection of the driver.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver: Final = driver
        self.checked_at = 0.0
        """When it was set up and known to be alive, by the monotonic clock."""
        self.max_packet = _LEAST_PACKET
        """The largest statement that the server takes, in bytes."""
        self._statements: dict[str, Statement] = {}
        self._midway = False
        self._pid: Final = os.getpid()

    @property
    def reusable(self) -> bool:
        """Whether the next transaction may have it."""
        return not self._midway and self.driver.connected

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is a MariaDB, else it is a MySQL."""
        return "mariadb" in self.driver.get_server_info().lower()

    # Statements ------------------------------------------------------------------

    @override
    async def rows(self, sql: str, /, *values: Value) -> Sequence[Row]:
        """Run a statement and return all its rows."""
        return await self.texts(translated(sql), *values)

    async def texts(self, text: str, /, *values: Value) -> Sequence[Row]:
        """Run a statement of the server's own SQL and return all its rows."""
        result = await self.run(*expanded(text, values))
        return read_rows(result.rows, result.description)

    @override
    async def execute(self, sql: str, /, *values: Value) -> None:
        """Run a statement that gives no rows."""
        await self.run(*expanded(translated(sql), values))

    @override
    async def execute_many(self, sql: str, rows: Sequence[Sequence[Value]], /) -> None:
        """Run it for each of these values, in few round trips."""
        text = translated(sql)
        match = _INSERT.fullmatch(text)
        if match is None:
            for first in range(0, len(rows), _SCRIPT):
                some = rows[first : first + _SCRIPT]
                await self.script(";".join([written(text, row) for row in some]))
            return
        head, group, rest = match.groups()
        encoded = [expanded("", row)[1] for row in rows]
        max_bytes = min(_BATCH_BYTES, self.max_packet // 2)
        first = 0
        while first < len(rows):
            n = batch(encoded, first, max_bytes)
            values = tuple(value for row in encoded[first : first + n] for value in row)
            await self.run(f"{head}{', '.join([group] * n)}{rest}", values)
            first += n

    @override
    async def insert(self, sql: str, /, *values: Value) -> int | None:
        """Insert one row; return its number, `None` where its key is taken."""
        try:
            return (await self.run(*expanded(translated(sql), values))).insert_id
        except Exception as error:
            found = fault(error)
            if found is None or found.kind is not FaultKind.DUPLICATE:
                raise
            if found.constraint not in _KEYS:
                raise
            return None

    async def run(self, text: str, args: Sequence[bytes | int | None]) -> Result:
        """Run one statement of the server's own SQL, prepared.

        Raises:
            PacketTooLargeError: it is over the server's limit; nothing was sent.
        """
        size = sum([len(arg) for arg in args if type(arg) is bytes]) + 16 * len(args)
        if size + len(text) + _MARGIN > self.max_packet:
            raise PacketTooLargeError(
                f"a statement of {size} bytes, over max_allowed_packet"
                f"={self.max_packet}"
            )
        self._check_owner()
        self._midway = True
        try:
            statement = self._statements.get(text)
            if statement is None:
                statement = await self._prepare(text)
            result = await statement.execute(args)
        except Exception as error:
            self._midway = not is_complete(error)
            raise
        self._midway = False
        return result

    async def _prepare(self, text: str) -> Statement:
        while len(self._statements) >= _STATEMENTS:
            await self._statements.pop(next(iter(self._statements))).close()
        statement = await self.driver.prepare(text)
        self._statements[text] = statement
        return statement

    async def script(self, text: str) -> list[Sequence[Row]]:
        """Run a text of several statements; return the rows of each."""
        self._check_owner()
        self._midway = True
        results: list[Sequence[Row]] = []
        try:
            cursor = self.driver.cursor()
            await cursor.execute(text)
            results.append(read_rows(await cursor.fetchall(), cursor.description))
            while await cursor.nextset():
                results.append(read_rows(await cursor.fetchall(), cursor.description))
        except Exception as error:
            self._midway = not is_complete(error)
            raise
        self._midway = False
        return results

    # Transactions ----------------------------------------------------------------

    @override
    async def begin(self, *, snapshot: bool = False) -> None:
        """Begin a transaction."""
        if snapshot:
            await self.script(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
                "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            )
        elif self.driver.get_autocommit():
            await self._end(self.driver.begin)

    @override
    async def commit(self) -> None:
        """Commit it; a cancelled call waits for the answer, and raises then."""
        await Settled(self._end(self.driver.commit))

    @override
    async def rollback(self) -> None:
        """Undo it; a connection that is within an answer is closed, which does it."""
        if self.reusable:
            await self._end(self.driver.rollback)
        else:
            self.terminate()

    async def _end(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._check_owner()
        self._midway = True
        try:
            await step()
        except Exception as error:
            self._midway = not is_complete(error)
            raise
        self._midway = False

    def _check_owner(self) -> None:
        if self._pid != os.getpid():
            detail = "the connection belongs to the process that this was forked from"
            raise StorageError(BACKEND, detail)

    @override
    def terminate(self) -> None:
        """Close the connection at once, whatever state it is in."""
        self._midway = True
        if self._pid != os.getpid():
            _abandoned.append(self.driver)
            return
        try:
            self.driver.close()
        except RuntimeError:
            _abandoned.append(self.driver)  # its event loop is closed

    async def close(self) -> None:
        """Take leave of the server, and close the connection."""
        if not self.reusable or self._pid != os.getpid():
            self.terminate()
            return
        try:
            async with asyncio.timeout(_CLOSE_SECS):
                await self.driver.ensure_closed()
        except BaseException as error:
            self.terminate()
            if not isinstance(error, MySQLError | OSError):  # it is closed either way
                raise

    async def set_up(self, lock_wait_secs: float) -> None:
        """Make it independent of how server, user and pool have set it."""
        if self.driver.character_set_name() != "utf8mb4":
            raise StorageError(
                BACKEND,
                "a connection of the pool has the character set "
                f"{self.driver.character_set_name()!r}: make it with charset='utf8mb4'",
            )
        wait = max(1, round(lock_wait_secs))
        *_, ((packet,),) = await self.script(_SETTINGS.format(wait=wait))
        self.max_packet = int(packet)
        self.checked_at = time.monotonic()
