"""The stored procedure that appends in one call, and what it answers."""

from __future__ import annotations

from typing import Final

from raf_session.journals._mysql_heads import PACKED
from raf_session.journals._sql_tables import KEY

__all__ = ("CALL", "NAME", "PARAMETERS", "ROUTINE")

NAME: Final = "raf_append_1"
"""Its number grows with what it does: processes of two versions may share tables."""

_TYPES: Final = {
    **{f"p_{name}": "VARBINARY(512)" for name in KEY},
    "p_incarnation": "VARBINARY(64)",  # NULL: any
    "p_revision": "BIGINT",  # NULL: any
    "p_idle_since": "BIGINT",  # NULL: nothing expires so
    "p_made_since": "BIGINT",  # NULL: nothing expires so
    "p_version": "BIGINT",
    "p_trim": "BIGINT",  # NULL: no limit
    "p_now": "BIGINT",
    "p_updated_at": "BIGINT",
    "p_active_at": "BIGINT",
    "p_entries": "BIGINT",
    "p_messages": "BIGINT",
    "p_conversations": "BIGINT",
    "p_tokens": "BIGINT",
    "p_id": "VARBINARY(512)",  # of the one entry; of many: NULL
    "p_kind": "VARBINARY(32)",
    "p_body": "LONGBLOB",  # of the one entry; of many: one behind the other
    "p_rows": "LONGBLOB",  # of many: JSON, an array for each
}
PARAMETERS: Final = tuple(_TYPES)
CALL: Final = f"CALL {NAME}({', '.join('?' * len(PARAMETERS))})"


_WHERE: Final = " AND ".join(f"{name} = p_{name}" for name in KEY)

ROUTINE: Final = f"""
CREATE PROCEDURE {NAME} (
    {", ".join(f"IN {name} {kind}" for name, kind in _TYPES.items())}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_number, v_seq, v_tail BIGINT;
    DECLARE v_head LONGBLOB;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;
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
        total_tokens = total_tokens + p_tokens
    WHERE {_WHERE}
        AND (p_incarnation IS NULL OR incarnation = p_incarnation)
        AND (p_revision IS NULL OR revision = p_revision)
        AND version <= p_version
        AND (p_trim IS NULL OR active_entries + p_entries <= p_trim)
        AND (pinned <> 0 OR (
            (p_idle_since IS NULL OR last_active_at = 0
                OR last_active_at >= p_idle_since)
            AND (p_made_since IS NULL OR created_at = 0
                OR created_at >= p_made_since)
        ));
    IF ROW_COUNT() = 1 THEN
        SELECT number, last_seq - p_entries, tail_at, {PACKED}
            INTO v_number, v_seq, v_tail, v_head
            FROM raf_heads WHERE {_WHERE};
        IF p_rows IS NULL THEN
            INSERT INTO raf_entries (session, left_at, seq, id, kind, stored_at,
                messages, conversations, tokens, body)
            VALUES (v_number, 0, v_seq + 1, p_id, p_kind, v_tail,
                p_messages, p_conversations, p_tokens, p_body);
        ELSE
            INSERT INTO raf_entries (session, left_at, seq, id, kind, stored_at,
                messages, conversations, tokens, body)
            SELECT v_number, 0, v_seq + r.place, UNHEX(r.id), r.kind, v_tail,
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
            )) AS r;
        END IF;
        COMMIT;
    ELSE
        ROLLBACK;
    END IF;
    SELECT v_head AS head;
END"""  # noqa: S608  (names of our own)
"""Appends to a session that may be written, under a lock from its first statement on.

Where it may not be, or an id is known, nothing is done; the head is NULL then, or the
error that of a key taken twice. Others decide then what there is to say.
"""
