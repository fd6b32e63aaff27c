"""The stored procedures that append in one call, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from raf_session.encoding import BODY_VERSION
from raf_session.journals._mysql_heads import PACKED
from raf_session.journals._sql_tables import KEY

__all__ = ("APPEND", "APPEND_ONE", "ROUTINES", "Routine")

_KEY_TYPES: Final = {
    **{f"p_{name}": "VARBINARY(512)" for name in KEY},
    "p_incarnation": "VARBINARY(64)",  # NULL: any
}
_ENTRY_TYPES: Final = {
    "p_id": "VARBINARY(512)",  # of the one entry; of many: NULL
    "p_kind": "VARBINARY(32)",
    "p_body": "LONGBLOB",  # of the one entry; of many: one behind the other
}
_COUNT_TYPES: Final = dict.fromkeys(
    ("p_messages", "p_conversations", "p_tokens"), "BIGINT"
)

# What the row holds then is read as it is written, into variables of the connection: a
# statement of its own would cost as much as the insertion. MySQL and MariaDB assign in
# the order of the text.
_UPDATE: Final = f"""
    START TRANSACTION;
    UPDATE raf_heads SET
        revision = revision + 1,
        updated_at = GREATEST(updated_at, p_updated_at),
        last_active_at = GREATEST(last_active_at, p_active_at),
        last_seq = last_seq + p_entries,
        tail_at = GREATEST(tail_at, p_now),
        active_entries = active_entries + p_entries,
        active_messages = active_messages + p_messages,
        active_conversations = active_conversations + p_conversations,
        active_tokens = active_tokens + p_tokens,
        total_entries = total_entries + p_entries,
        total_messages = total_messages + p_messages,
        total_conversations = total_conversations + p_conversations,
        total_tokens = total_tokens + p_tokens,
        version = IF(
            (@raf_number := number) + (@raf_seq := last_seq)
                + (@raf_tail := tail_at) + LENGTH(@raf_head := {PACKED}),
            version, version
        )
    WHERE {" AND ".join(f"{name} = p_{name}" for name in KEY)}
        AND incarnation = COALESCE(p_incarnation, incarnation)
        AND version <= p_version"""  # noqa: S608  (names of our own)
_INSERT_ONE: Final = """
        INSERT INTO raf_entries (session, left_at, seq, id, kind, stored_at,
            messages, conversations, tokens, body)
        VALUES (@raf_number, 0, @raf_seq, p_id, p_kind, @raf_tail,
            p_messages, p_conversations, p_tokens, p_body);"""
_INSERT_MANY: Final = """
        INSERT INTO raf_entries (session, left_at, seq, id, kind, stored_at,
            messages, conversations, tokens, body)
        SELECT @raf_number, 0, @raf_seq - p_entries + r.place, UNHEX(r.id), r.kind,
            @raf_tail,
            r.messages, r.conversations, r.tokens,
            SUBSTRING(p_body, r.start, r.size)
        FROM JSON_TABLE(CONVERT(p_rows USING utf8mb4), '$[*]' COLUMNS (
            place FOR ORDINALITY,
            id VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[0]',
            kind VARCHAR(32) CHARACTER SET utf8mb4 PATH '$[1]',
            messages BIGINT PATH '$[2]',
            conversations BIGINT PATH '$[3]',
            tokens BIGINT PATH '$[4]',
            start BIGINT PATH '$[5]',
            size BIGINT PATH '$[6]'
        )) AS r;"""


class Routine:
    """A procedure that appends to a session that may be written.

    It holds a lock from its first statement on. Where the session may not be written,
    or its head does not fit into one value, nothing is done, and there is no head. It
    may end with an error as well, as where an id is known; the caller has to undo what
    was done then. Others decide what there is to say.

    Args:
        name: its number grows with what it does: processes of two versions may share
            tables.
        types: its parameters: each name costs time.
        update: raises the head, and takes its lock.
        insert: stores the entries.
    """

    def __init__(
        self, name: str, types: Mapping[str, str], update: str, insert: str
    ) -> None:
        self.name: Final = name
        self.call: Final = f"CALL {name}({', '.join('?' * len(types))})"
        self.text: Final = f"""
CREATE PROCEDURE {name} (
    {", ".join(f"IN {name} {kind}" for name, kind in types.items())}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN{update};
    IF ROW_COUNT() = 1 AND @raf_head IS NOT NULL THEN{insert}
        COMMIT;
        SELECT @raf_head AS head;
    ELSE
        ROLLBACK;
    END IF;
END"""


# A condition that is off has a value that every row fulfils.
APPEND: Final = Routine(
    "raf_append_2",
    {
        **_KEY_TYPES,
        "p_revision": "BIGINT",  # NULL: any
        "p_idle_since": "BIGINT",
        "p_made_since": "BIGINT",
        "p_version": "BIGINT",
        "p_room": "BIGINT",  # how many active entries there may be before
        "p_now": "BIGINT",
        "p_updated_at": "BIGINT",
        "p_active_at": "BIGINT",
        "p_entries": "BIGINT",
        **_COUNT_TYPES,
        **_ENTRY_TYPES,
        "p_rows": "LONGBLOB",  # of many: JSON, an array for each
    },
    f"""{_UPDATE}
        AND revision = COALESCE(p_revision, revision)
        AND active_entries <= p_room
        AND (pinned <> 0 OR (
            (last_active_at = 0 OR last_active_at >= p_idle_since)
            AND (created_at = 0 OR created_at >= p_made_since)
        ))""",
    f"""
        IF p_rows IS NULL THEN{_INSERT_ONE}
        ELSE{_INSERT_MANY}
        END IF;""",
)
"""Appends entries, on conditions."""

APPEND_ONE: Final = Routine(
    f"raf_append_one_{BODY_VERSION}",
    {**_KEY_TYPES, "p_now": "BIGINT", **_COUNT_TYPES, **_ENTRY_TYPES},
    _UPDATE.replace("p_updated_at", "p_now")
    .replace("p_active_at", "p_now")
    .replace("p_entries", "1")
    .replace("p_version", str(BODY_VERSION)),
    _INSERT_ONE,
)
"""Appends one entry now, which is what most appends do, with fewer names."""

ROUTINES: Final = (APPEND, APPEND_ONE)
