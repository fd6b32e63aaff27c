"""The tables in PostgreSQL: made, brought to this version, or found to be there."""

from __future__ import annotations

from typing import Final

from raf_session.encoding import BODY_VERSION
from raf_session.errors import StorageError
from raf_session.journals._postgres_dialect import BACKEND, PERIOD_BITS, quoted
from raf_session.journals._postgres_driver import DriverConnection
from raf_session.journals._postgres_functions import FUNCTIONS
from raf_session.journals._sql_tables import check_version

__all__ = ("check", "migrate")

# Times are microseconds since 1970 in UTC; texts are compared by their bytes. The views
# `sessions` and `events` are for people's own queries. A body may hold escapes that
# PostgreSQL's JSON cannot say as text, NUL and lone surrogates: they show U+FFFD there.
_TABLES: Final = r"""
CREATE TABLE ~heads (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app text COLLATE "C" NOT NULL,
    usr text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    incarnation text NOT NULL,
    revision bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_active_at bigint NOT NULL,
    pinned smallint NOT NULL,
    last_seq bigint NOT NULL,
    spliced_at bigint NOT NULL,
    active_entries bigint NOT NULL,
    active_messages bigint NOT NULL,
    active_conversations bigint NOT NULL,
    active_tokens bigint NOT NULL,
    total_entries bigint NOT NULL,
    total_messages bigint NOT NULL,
    total_conversations bigint NOT NULL,
    total_tokens bigint NOT NULL,
    tail_at bigint NOT NULL,  -- when the last active entry was stored, else 0
    title text NOT NULL,
    model text NOT NULL,
    status text NOT NULL,
    session_type text NOT NULL,
    forked_from text,
    version bigint NOT NULL,
    labels text NOT NULL,  -- JSON; they are looked up in the table
    request_n bigint,
    request_hash bytea,
    request_header bytea,
    request_format bigint
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX heads_by_key ON ~heads (app, usr, scope, session);
CREATE INDEX heads_by_activity
    ON ~heads (last_active_at DESC, app, usr, scope, session);
CREATE INDEX heads_by_age ON ~heads (created_at);

CREATE TABLE ~labels (
    session bigint NOT NULL REFERENCES ~heads ON DELETE CASCADE,
    label text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, label)
);
CREATE INDEX labels_by_label ON ~labels (label, session);

CREATE TABLE ~entries (
    session bigint NOT NULL,  -- of a head, with which a trigger deletes it
    left_at bigint NOT NULL,  -- 0: active, else the revision that archived it
    seq bigint NOT NULL,
    stored_at bigint NOT NULL,
    tokens bigint NOT NULL,
    messages smallint NOT NULL,
    conversations smallint NOT NULL,
    kind text NOT NULL,
    id text COLLATE "C" NOT NULL,
    body text NOT NULL,  -- JSON
    CONSTRAINT entries_by_place PRIMARY KEY (session, left_at, seq)
);
-- The id first: an index by session alone is never the better one for a window.
CREATE UNIQUE INDEX entries_by_id ON ~entries (id, session);

CREATE TABLE ~session_state (
    session bigint NOT NULL REFERENCES ~heads ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,  -- JSON
    PRIMARY KEY (session, name)
);

CREATE TABLE ~provider_states (
    session bigint NOT NULL REFERENCES ~heads ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,  -- JSON
    PRIMARY KEY (session, name)
);

CREATE TABLE ~request_digests (
    session bigint NOT NULL REFERENCES ~heads ON DELETE CASCADE,
    chunk bigint NOT NULL,
    digests bytea NOT NULL,  -- 8 bytes a message, 64 messages a chunk
    PRIMARY KEY (session, chunk)
);

CREATE TABLE ~scopes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app text COLLATE "C" NOT NULL,
    of_user smallint NOT NULL,  -- 0: the app's own
    usr text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    last_active_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX scopes_by_key ON ~scopes (app, of_user, usr);
CREATE INDEX scopes_by_activity ON ~scopes (of_user, last_active_at);
CREATE INDEX scopes_by_age ON ~scopes (of_user, created_at);

CREATE TABLE ~scoped_state (
    scope bigint NOT NULL REFERENCES ~scopes ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,  -- JSON
    PRIMARY KEY (scope, name)
);

CREATE VIEW ~sessions AS SELECT
    app AS app_name,
    usr AS user_id,
    scope,
    session AS id,
    coalesce(
        (SELECT json_object_agg(name, value::json ORDER BY name)
            FROM ~session_state AS s WHERE s.session = h.number),
        '{}'::json
    ) AS state,
    active_conversations AS conversation_count,
    'epoch'::timestamptz + created_at * interval '1 microsecond' AS create_time,
    'epoch'::timestamptz + updated_at * interval '1 microsecond' AS update_time
FROM ~heads AS h;

CREATE VIEW ~events AS SELECT
    e.id,
    h.app AS app_name,
    h.usr AS user_id,
    h.scope,
    h.session AS session_id,
    e.seq,
    b.body ->> 'invocation_id' AS invocation_id,
    b.body ->> 'author' AS author,
    b.body -> 'message' AS content,
    CASE
        WHEN (b.body ->> 'timestamp')::float8 BETWEEN -6e10 AND 2e11
        THEN to_timestamp((b.body ->> 'timestamp')::float8)
        ELSE 'epoch'::timestamptz + e.stored_at * interval '1 microsecond'
    END AS timestamp
FROM ~entries AS e
JOIN ~heads AS h ON h.number = e.session
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN strpos(e.body, '\u') = 0 THEN e.body
        ELSE regexp_replace(
            e.body,
            '(?<!\\)((?:\\\\)*)\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})',
            '\1\\ufffd',
            'g'
        )
    END::json AS body
) AS b
WHERE e.left_at = 0;
"""

# A write that leaves what is indexed as it was need not touch any index of the row. The
# time of the last activity is another with each write, its period seldom.
_ACTIVE_PERIOD: Final = """
ALTER TABLE ~heads ADD COLUMN active_period bigint
    GENERATED ALWAYS AS (last_active_at >> 20) STORED;
DROP INDEX ~heads_by_activity;
CREATE INDEX heads_by_activity ON ~heads (active_period DESC);
CREATE INDEX heads_of_app_by_activity ON ~heads (app, active_period DESC);
"""

# A page sorts all of a period: a second is too long where thousands are active in it.
_ACTIVITY_PERIOD: Final = f"""
ALTER TABLE ~heads ADD COLUMN activity_period bigint
    GENERATED ALWAYS AS (last_active_at >> {PERIOD_BITS}) STORED;
ALTER TABLE ~heads DROP COLUMN active_period;
CREATE INDEX heads_by_activity ON ~heads (activity_period DESC);
CREATE INDEX heads_of_app_by_activity ON ~heads (app, activity_period DESC);
"""

STEPS: Final = (_TABLES + FUNCTIONS, _ACTIVE_PERIOD, _ACTIVITY_PERIOD)
"""What leads from each version to the next, the first from nothing."""


async def check(connection: DriverConnection, schema: str) -> bool:
    """Tell whether the tables are there and of this version.

    Raises:
        SchemaVersionError: a newer library made them.
    """
    found = await _version(connection, schema)
    return found == len(STEPS)


async def migrate(connection: DriverConnection, schema: str) -> None:
    """Bring the tables to this version, each step in a transaction of its own.

    Whoever does the same at the same moment waits. What a step has done stays where a
    later one fails, and the next call goes on from there.

    Raises:
        SchemaVersionError: a newer library made them.
        StorageError: this role may not.
    """
    done = False
    while not done:
        await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        try:
            done = await _step(connection, schema)
        except BaseException:
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")


async def _step(connection: DriverConnection, schema: str) -> bool:
    await connection.fetch(
        "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"raf_session.{schema}"
    )
    found = await _version(connection, schema)
    if found == len(STEPS):
        return True
    name = quoted(schema)
    await connection.execute("SET LOCAL standard_conforming_strings = on")
    await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
    await connection.execute(_written(STEPS[found], schema))
    if not found:
        await connection.execute(
            f"""
            CREATE TABLE {name}.meta (
                name text COLLATE "C" PRIMARY KEY, value text NOT NULL
            );
            INSERT INTO {name}.meta VALUES ('schema', '0'), ('body', '{BODY_VERSION}');
            """  # noqa: S608
        )
    await connection.fetch(
        f"UPDATE {name}.meta SET value = $1 WHERE name = 'schema'",  # noqa: S608
        str(found + 1),
    )
    return found + 1 == len(STEPS)


def _written(step: str, schema: str) -> str:
    """Return a step for this schema; no quotation of it ends within the name."""
    tag = "$function$"
    while tag in schema:
        tag = f"{tag[:-1]}_$"
    return step.replace("$function$", tag).replace("~", f"{quoted(schema)}.")


async def _version(connection: DriverConnection, schema: str) -> int:
    """Return the version of the tables, 0 where there are none.

    Raises:
        SchemaVersionError: a newer library made them.
    """
    name = quoted(schema)
    # By a query: the server answers `to_regclass` from what it remembers of before.
    if not await connection.fetch(
        """
        SELECT FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'meta'
        """,
        schema,
    ):
        return 0
    rows = await connection.fetch(
        f"SELECT value FROM {name}.meta WHERE name = 'schema'"  # noqa: S608
    )
    if len(rows) != 1 or not str(rows[0][0]).isdecimal():
        raise StorageError(
            BACKEND,
            f"the schema {schema!r} holds a table `meta` that is another program's",
        )
    found = int(rows[0][0])
    check_version(BACKEND, found, len(STEPS))
    return found
