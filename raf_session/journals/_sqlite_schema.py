"""The tables of a SQLite file, and who may open it."""

from __future__ import annotations

import sqlite3
from typing import Final

from raf_session.encoding import BODY_VERSION
from raf_session.errors import SchemaVersionError, StorageError
from raf_session.journals._sqlite_faults import BACKEND

__all__ = ("APPLICATION_ID", "SCHEMA_VERSION", "prepare")

APPLICATION_ID: Final = int.from_bytes(b"rafs", "big")
"""Stands in the header of the file: whose it is."""

SCHEMA_VERSION: Final = 1
"""Stands in ``PRAGMA user_version``."""

# Times are microseconds since 1970 in UTC. Unsigned 64-bit numbers are 8 bytes, the
# highest first. `sessions` and `events` are for people's own queries.
_TABLES: Final = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE heads (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice
    app TEXT NOT NULL,
    user TEXT NOT NULL,
    scope TEXT NOT NULL,
    session TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    spliced_at INTEGER NOT NULL,
    active_entries INTEGER NOT NULL,
    active_messages INTEGER NOT NULL,
    active_conversations INTEGER NOT NULL,
    active_tokens INTEGER NOT NULL,
    total_entries INTEGER NOT NULL,
    total_messages INTEGER NOT NULL,
    total_conversations INTEGER NOT NULL,
    total_tokens INTEGER NOT NULL,
    tail_at INTEGER NOT NULL,  -- when the last active entry was stored, else 0
    title TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    session_type TEXT NOT NULL,
    forked_from TEXT,
    schema INTEGER NOT NULL,
    request_n INTEGER,
    request_hash BLOB,
    request_header BLOB,
    request_format INTEGER
);
CREATE UNIQUE INDEX heads_by_key ON heads (app, user, scope, session);
CREATE INDEX heads_by_activity
    ON heads (last_active_at DESC, app, user, scope, session);
CREATE INDEX heads_by_age ON heads (created_at);

CREATE TABLE labels (
    session INTEGER NOT NULL REFERENCES heads (number) ON DELETE CASCADE,
    label TEXT NOT NULL,
    PRIMARY KEY (session, label)
) WITHOUT ROWID;
CREATE INDEX labels_by_label ON labels (label, session);

CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES heads (number) ON DELETE CASCADE,
    left_at INTEGER NOT NULL,  -- 0: active, else the revision that archived it
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    stored_at INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    conversations INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    body TEXT NOT NULL  -- JSON
);
CREATE UNIQUE INDEX entries_by_place ON entries (session, left_at, seq);
CREATE UNIQUE INDEX entries_by_id ON entries (session, id);

CREATE TABLE session_state (
    session INTEGER NOT NULL REFERENCES heads (number) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,  -- JSON
    PRIMARY KEY (session, name)
) WITHOUT ROWID;

CREATE TABLE provider_states (
    session INTEGER NOT NULL REFERENCES heads (number) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,  -- JSON
    PRIMARY KEY (session, name)
) WITHOUT ROWID;

CREATE TABLE request_digests (
    session INTEGER NOT NULL REFERENCES heads (number) ON DELETE CASCADE,
    chunk INTEGER NOT NULL,
    digests BLOB NOT NULL,  -- 8 bytes a message, 64 messages a chunk
    PRIMARY KEY (session, chunk)
) WITHOUT ROWID;

CREATE TABLE scopes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    app TEXT NOT NULL,
    of_user INTEGER NOT NULL,  -- 0: the app's own
    user TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX scopes_by_key ON scopes (app, of_user, user);
CREATE INDEX scopes_by_activity ON scopes (of_user, last_active_at);
CREATE INDEX scopes_by_age ON scopes (of_user, created_at);

CREATE TABLE scoped_state (
    scope INTEGER NOT NULL REFERENCES scopes (number) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,  -- JSON
    PRIMARY KEY (scope, name)
) WITHOUT ROWID;

CREATE VIEW sessions AS SELECT
    app AS app_name,
    user AS user_id,
    scope,
    session AS id,
    (SELECT json_group_object(name, json(value)) FROM session_state AS s
        WHERE s.session = heads.number) AS state,
    active_conversations AS conversation_count,
    strftime('%Y-%m-%d %H:%M:%f', created_at / 1e6, 'unixepoch') AS create_time,
    strftime('%Y-%m-%d %H:%M:%f', updated_at / 1e6, 'unixepoch') AS update_time
FROM heads;

CREATE VIEW events AS SELECT
    e.id,
    h.app AS app_name,
    h.user AS user_id,
    h.scope,
    h.session AS session_id,
    e.seq,
    json_extract(e.body, '$.invocation_id') AS invocation_id,
    json_extract(e.body, '$.author') AS author,
    json_extract(e.body, '$.message') AS content,
    coalesce(
        json_extract(e.body, '$.timestamp'), e.stored_at / 1e6
    ) AS timestamp
FROM entries AS e JOIN heads AS h ON h.number = e.session
WHERE e.left_at = 0;
"""


def prepare(connection: sqlite3.Connection) -> str:
    """Make the file a journal, or find that it is one; return its journal mode.

    Raises:
        SchemaVersionError: a newer library made it; it is as it was.
        StorageError: it is something else's; it is as it was.
    """
    execute = connection.execute
    execute("BEGIN")
    try:
        _check(connection)
    finally:
        execute("ROLLBACK")
    mode = str(execute("PRAGMA journal_mode = WAL").fetchone()[0])
    execute("BEGIN IMMEDIATE")
    try:
        if not _check(connection):
            _make_tables(connection)
        execute("COMMIT")
    finally:
        if connection.in_transaction:
            execute("ROLLBACK")
    return mode


def _check(connection: sqlite3.Connection) -> bool:
    application_id = _number(connection, "PRAGMA application_id")
    version = _number(connection, "PRAGMA user_version")
    if application_id == APPLICATION_ID:
        if version > SCHEMA_VERSION:
            raise SchemaVersionError(BACKEND, version, SCHEMA_VERSION)
        return True
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if application_id or version or tables:
        raise StorageError(
            BACKEND,
            f"the file is another program's database ({tables} tables and indexes, "
            f"application id {application_id:#x}); it is left as it is",
        )
    return False


def _make_tables(connection: sqlite3.Connection) -> None:
    statement = ""
    for line in _TABLES.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(
        "INSERT INTO meta VALUES ('schema', ?), ('body', ?)",
        (SCHEMA_VERSION, BODY_VERSION),
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _number(connection: sqlite3.Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])
