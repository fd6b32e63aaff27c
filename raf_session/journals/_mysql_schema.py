"""Making and checking what a MySQL or MariaDB database holds for the journal."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from raf_session.encoding import BODY_VERSION
from raf_session.errors import StorageBusyError, StorageError
from raf_session.journals._mysql_connections import MysqlConnection
from raf_session.journals._mysql_faults import BACKEND, code_of
from raf_session.journals._mysql_routine import ROUTINES
from raf_session.journals._mysql_tables import TABLES, VIEWS
from raf_session.journals._sql_tables import check_version

__all__ = ("migrate", "prepare")

SCHEMA_VERSION: Final = 1
_NO_TABLE: Final = 1146
_DENIED: Final = {1044, 1142, 1143, 1227, 1370}
_UNMADE: Final = {1304, 1064}
"""Another has made the procedure meanwhile; a server whose language lacks a part of it.

MySQL has announced that it is going to drop variables that are set within expressions.
"""
_LOCK_SECS: Final = 60


async def prepare(connection: MysqlConnection, *, may_migrate: bool) -> None:
    """Find the tables in the version that this library has, or make them so.

    Raises:
        SchemaVersionError: a newer library made them; they are as they were.
        StorageError: they are not there, and may or can not be made.
    """
    found = await _version(connection)
    if found == SCHEMA_VERSION:
        if may_migrate:
            await _make_routines(connection)
    elif may_migrate:
        await migrate(connection)
    else:
        raise StorageError(
            BACKEND,
            "the tables are missing or of an older version: run `raf-session migrate` "
            "as a user who may create them",
        )
    await connection.commit()


async def migrate(connection: MysqlConnection) -> None:
    """Make tables, views and procedures, as far as they are missing.

    One process at a time does it. Whatever interrupts it, the next one goes on.

    Raises:
        SchemaVersionError: a newer library made the tables; they are as they were.
        StorageError: the user may not make them.
    """
    async with _alone(connection):
        await _version(connection)
        try:
            for table in TABLES:
                await connection.script(table)
        except Exception as error:
            if code_of(error) not in _DENIED:
                raise
            raise StorageError(
                BACKEND,
                f"the user may not create the tables ({error}): run "
                "`raf-session migrate` as one who may",
            ) from error
        for view, select in VIEWS.items():
            await _make_view(connection, view, select)
        await _make_routines(connection)
        await connection.execute_many(
            "INSERT INTO ~meta (name, value) VALUES (?, ?) "
            "ON DUPLICATE KEY UPDATE value = VALUES(value)",
            [("schema", str(SCHEMA_VERSION)), ("body", str(BODY_VERSION))],
        )
        await connection.commit()


@asynccontextmanager
async def _alone(connection: MysqlConnection) -> AsyncGenerator[None]:
    # The name of a lock is the server's, and of at most 64 characters.
    name = "CONCAT('raf_session ', MD5(DATABASE()))"
    ((got,),) = await connection.rows(f"SELECT GET_LOCK({name}, {_LOCK_SECS})")
    if got != 1:
        raise StorageBusyError(
            BACKEND, f"another process has been migrating for {_LOCK_SECS} s"
        )
    try:
        yield
        await connection.rows(f"SELECT RELEASE_LOCK({name})")
    except BaseException:
        connection.terminate()  # and the lock is free
        raise


async def _version(connection: MysqlConnection) -> int | None:
    try:
        found = await connection.rows("SELECT value FROM ~meta WHERE name = 'schema'")
    except Exception as error:
        if code_of(error) == _NO_TABLE:
            return None
        raise
    if not found:
        return None
    version = int(found[0][0])
    check_version(BACKEND, version, SCHEMA_VERSION)
    return version


# Views and procedures ------------------------------------------------------------


async def _make_view(connection: MysqlConnection, view: str, select: str) -> None:
    found = await connection.rows(
        "SELECT view_definition FROM information_schema.tables AS t "
        "LEFT JOIN information_schema.views AS v "
        "ON v.table_schema = t.table_schema AND v.table_name = t.table_name "
        "WHERE t.table_schema = DATABASE() AND t.table_name = ?",
        view,
    )
    if found:
        definition = found[0][0]
        if definition is None or "raf_heads" not in definition:
            _warn(f"the database has a table {view!r} of another program's")
        return
    # One that tells 'a' from 'a ', as the journal does.
    exact = "nopad_bin" if connection.is_mariadb else "0900_bin"
    select = select.format(collation=f"utf8mb4_{exact}")
    try:
        await connection.script(f"CREATE SQL SECURITY INVOKER VIEW {view} AS {select}")
    except Exception as error:
        if code_of(error) not in _DENIED:
            raise
        _warn(f"the user may not create the view {view!r} ({error})")


def _warn(reason: str) -> None:
    warnings.warn(
        f"{reason}: the view for your own queries is not made; the journal does not "
        "need it",
        RuntimeWarning,
        stacklevel=2,
    )


async def _make_routines(connection: MysqlConnection) -> None:
    """Make the procedures, or do without: then an append takes more round trips."""
    found = await connection.rows(
        "SELECT routine_name FROM information_schema.routines "
        "WHERE routine_schema = DATABASE()"
    )
    names = {name for (name,) in found}
    for routine in ROUTINES:
        if routine.name in names:
            continue
        try:
            await connection.script(routine.text)
        except Exception as error:
            if code_of(error) not in {*_DENIED, *_UNMADE}:
                raise
