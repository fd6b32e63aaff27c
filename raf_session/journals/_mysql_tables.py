"""The tables and views of a MySQL or MariaDB database."""

from __future__ import annotations

from typing import Final

__all__ = ("TABLES", "VIEWS")

_NAME: Final = "VARBINARY(512) NOT NULL"
_INT: Final = "BIGINT NOT NULL"
_FLAG: Final = "TINYINT NOT NULL"
_ENGINE: Final = "ENGINE = InnoDB ROW_FORMAT = DYNAMIC"


def _state(name: str, owner: str, parent: str) -> str:
    return f"""
CREATE TABLE IF NOT EXISTS raf_{name} (
    {owner} {_INT},
    name {_NAME},
    value LONGBLOB NOT NULL,
    PRIMARY KEY ({owner}, name),
    CONSTRAINT raf_{name}_owner
        FOREIGN KEY ({owner}) REFERENCES raf_{parent} (number) ON DELETE CASCADE
) {_ENGINE}"""


# Texts are bytes of UTF-8: a column of characters would compare them by a collation, in
# which 'a' = 'a ', and would depend on the character set of database and connection.
# The longest key, of a session, has 2,056 of the 3,072 bytes that InnoDB allows.
TABLES: Final = (
    f"""
CREATE TABLE IF NOT EXISTS raf_meta (
    name VARBINARY(64) NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL
) {_ENGINE}""",
    f"""
CREATE TABLE IF NOT EXISTS raf_heads (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app {_NAME},
    usr {_NAME},
    scope {_NAME},
    session {_NAME},
    tail_at {_INT},
    incarnation VARBINARY(64) NOT NULL,
    revision {_INT},
    created_at {_INT},
    updated_at {_INT},
    last_active_at {_INT},
    pinned {_FLAG},
    last_seq {_INT},
    spliced_at {_INT},
    active_entries {_INT},
    active_messages {_INT},
    active_conversations {_INT},
    active_tokens {_INT},
    total_entries {_INT},
    total_messages {_INT},
    total_conversations {_INT},
    total_tokens {_INT},
    title {_NAME},
    model {_NAME},
    status VARBINARY(32) NOT NULL,
    session_type MEDIUMBLOB NOT NULL,
    forked_from MEDIUMBLOB,
    version {_INT},
    request_n BIGINT,
    request_hash BINARY(8),
    request_header BINARY(8),
    request_format BIGINT,
    labels LONGBLOB NOT NULL,
    UNIQUE KEY heads_by_key (app, usr, scope, session),
    KEY heads_by_activity (last_active_at DESC, app, usr, scope, session),
    KEY heads_by_age (created_at)
) {_ENGINE}""",
    f"""
CREATE TABLE IF NOT EXISTS raf_labels (
    session {_INT},
    label {_NAME},
    PRIMARY KEY (session, label),
    KEY labels_by_label (label, session),
    CONSTRAINT raf_labels_owner
        FOREIGN KEY (session) REFERENCES raf_heads (number) ON DELETE CASCADE
) {_ENGINE}""",
    f"""
CREATE TABLE IF NOT EXISTS raf_entries (
    session {_INT},
    left_at {_INT},
    seq {_INT},
    id {_NAME},
    kind VARBINARY(32) NOT NULL,
    stored_at {_INT},
    messages {_FLAG},
    conversations {_FLAG},
    tokens {_INT},
    body LONGBLOB NOT NULL,
    PRIMARY KEY (session, left_at, seq),
    UNIQUE KEY entries_by_id (session, id),
    CONSTRAINT raf_entries_owner
        FOREIGN KEY (session) REFERENCES raf_heads (number) ON DELETE CASCADE
) {_ENGINE}""",
    _state("session_state", "session", "heads"),
    _state("provider_states", "session", "heads"),
    f"""
CREATE TABLE IF NOT EXISTS raf_request_digests (
    session {_INT},
    chunk {_INT},
    digests VARBINARY(1024) NOT NULL,
    PRIMARY KEY (session, chunk),
    CONSTRAINT raf_request_digests_owner
        FOREIGN KEY (session) REFERENCES raf_heads (number) ON DELETE CASCADE
) {_ENGINE}""",
    f"""
CREATE TABLE IF NOT EXISTS raf_scopes (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app {_NAME},
    of_user {_FLAG},
    usr {_NAME},
    created_at {_INT},
    last_active_at {_INT},
    UNIQUE KEY scopes_by_key (app, of_user, usr),
    KEY scopes_by_activity (of_user, last_active_at),
    KEY scopes_by_age (of_user, created_at)
) {_ENGINE}""",
    _state("scoped_state", "scope", "scopes"),
)


def _text(column: str) -> str:
    return f"CONVERT({column} USING utf8mb4) COLLATE {{collation}}"


def _moment(micros: str) -> str:
    return f"TIMESTAMP'1970-01-01 00:00:00' + INTERVAL {micros} MICROSECOND"


def _json(column: str, path: str) -> str:
    # What a server's JSON does not take (a lone surrogate) must not fail a query.
    text = f"CONVERT({column} USING utf8mb4)"
    return f"IF(JSON_VALID({text}), JSON_EXTRACT({text}, '{path}'), NULL)"


VIEWS: Final = {
    "sessions": f"""
SELECT
    {_text("h.app")} AS app_name,
    {_text("h.usr")} AS user_id,
    {_text("h.scope")} AS scope,
    {_text("h.session")} AS id,
    COALESCE((
        SELECT JSON_OBJECTAGG({_text("s.name")}, {_json("s.value", "$")})
        FROM raf_session_state AS s WHERE s.session = h.number
    ), JSON_OBJECT()) AS state,
    h.active_conversations AS conversation_count,
    {_moment("h.created_at")} AS create_time,
    {_moment("h.updated_at")} AS update_time
FROM raf_heads AS h""",  # noqa: S608  (names of our own)
    "events": f"""
SELECT
    {_text("e.id")} AS id,
    {_text("h.app")} AS app_name,
    {_text("h.usr")} AS user_id,
    {_text("h.scope")} AS scope,
    {_text("h.session")} AS session_id,
    e.seq AS seq,
    JSON_UNQUOTE({_json("e.body", "$.invocation_id")}) AS invocation_id,
    JSON_UNQUOTE({_json("e.body", "$.author")}) AS author,
    {_json("e.body", "$.message")} AS content,
    {
        _moment(f'''COALESCE(
        ROUND({_json("e.body", "$.timestamp")} * 1000000), e.stored_at
    )''')
    } AS timestamp
FROM raf_entries AS e JOIN raf_heads AS h ON h.number = e.session
WHERE e.left_at = 0""",  # noqa: S608
}
"""For people's own queries; times are UTC. They want a `collation`."""
