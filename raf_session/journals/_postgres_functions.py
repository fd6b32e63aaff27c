"""The functions of the server by which an append is one call, and their like."""

from __future__ import annotations

from typing import Final

__all__ = ("BY_KEY", "BY_VERSION", "FUNCTIONS", "GUARDS", "RAISED")

RAISED: Final = """
    UPDATE ~heads SET
        revision = revision + 1,
        updated_at = greatest(updated_at, p_updated),
        last_active_at = greatest(last_active_at, p_touch),
        last_seq = last_seq + p_n,
        tail_at = greatest(tail_at, p_now),
        active_entries = active_entries + p_n,
        active_messages = active_messages + p_messages,
        active_conversations = active_conversations + p_conversations,
        active_tokens = active_tokens + p_tokens,
        total_entries = total_entries + p_n,
        total_messages = total_messages + p_messages,
        total_conversations = total_conversations + p_conversations,
        total_tokens = total_tokens + p_tokens
"""
"""Takes the lock of a head and counts entries in, where a condition and `GUARDS` hold.

A row that another transaction holds is waited for, and its condition looked at anew;
where it may not be written, no row is found.
"""

BY_KEY: Final = """
    WHERE app = p_app AND usr = p_usr AND scope = p_scope AND session = p_session
        AND version <= p_version
"""
BY_VERSION: Final = """
    WHERE number = p_number AND xmin = p_xmin
        AND incarnation = p_incarnation AND revision = p_revision
        AND version <= p_version
"""
"""Finds the row that is known, as long as nobody has written it since.

Incarnation and revision tell it from one that a restore has brought.
"""

GUARDS: Final = {
    "incarnation": "incarnation = p_incarnation",
    "revision": "revision = p_revision",
    "trim": "active_entries + p_n <= p_trim",
    "idle": "last_active_at >= p_idle OR last_active_at = 0 OR pinned = 1",
    "lifetime": "created_at >= p_lifetime OR created_at = 0 OR pinned = 1",
}
"""What has to hold of a head, each by the argument that asks for it."""

_GUARDED: Final = "".join(
    f"        AND (p_{name} IS NULL OR {condition})\n"
    for name, condition in GUARDS.items()
)

# What is not plain, as a session that is missing or another revision, gives NULL and
# changes nothing; the caller then looks at it statement by statement. The first
# statement takes the lock, and sees what was committed before it had it. An id that is
# known violates a unique key, and undoes all; what else is amiss is told the same way.
_APPEND: Final = f"""
CREATE FUNCTION ~append_entries(
    p_app text, p_usr text, p_scope text, p_session text,
    p_incarnation text, p_revision bigint, p_version bigint,
    p_now bigint, p_idle bigint, p_lifetime bigint, p_trim bigint,
    p_updated bigint, p_touch bigint,
    p_n bigint, p_messages bigint, p_conversations bigint, p_tokens bigint,
    p_id text, p_kind text, p_body text,  -- the only entry, else the arrays hold them
    p_ids text[], p_kinds text[], p_bodies text[],
    p_each_messages smallint[], p_each_conversations smallint[], p_each_tokens bigint[]
) RETURNS ~heads LANGUAGE plpgsql AS $function$
DECLARE
    h ~heads%ROWTYPE;
BEGIN
{RAISED}{BY_KEY}{_GUARDED}    RETURNING * INTO h;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF p_id IS NOT NULL THEN
        INSERT INTO ~entries (session, left_at, seq, stored_at, tokens, messages,
            conversations, kind, id, body)
        VALUES (h.number, 0, h.last_seq, h.tail_at, p_tokens, p_messages,
            p_conversations, p_kind, p_id, p_body);
    ELSE
        INSERT INTO ~entries (session, left_at, seq, stored_at, tokens, messages,
            conversations, kind, id, body)
        SELECT h.number, 0, h.last_seq - p_n + new.place, h.tail_at, new.tokens,
            new.messages, new.conversations, new.kind, new.id, new.body
        FROM unnest(p_ids, p_kinds, p_bodies, p_each_messages, p_each_conversations,
            p_each_tokens) WITH ORDINALITY
            AS new (id, kind, body, messages, conversations, tokens, place);
    END IF;
    RETURN h;
END
$function$;
"""  # noqa: S608  (a text of our own)

# The entries first, then the states; the scopes come last, the user's before the
# app's, as everywhere: others wait for them.
_APPEND_CHANGED: Final = """
CREATE FUNCTION ~append_changed(
    p_app text, p_usr text, p_scope text, p_session text,
    p_incarnation text, p_revision bigint, p_version bigint,
    p_now bigint, p_idle bigint, p_lifetime bigint, p_trim bigint,
    p_updated bigint, p_touch bigint,
    p_n bigint, p_messages bigint, p_conversations bigint, p_tokens bigint,
    p_id text, p_kind text, p_body text,  -- the only entry, else the arrays hold them
    p_ids text[], p_kinds text[], p_bodies text[],
    p_each_messages smallint[], p_each_conversations smallint[], p_each_tokens bigint[],
    p_title text, p_model text, p_status text, p_pin smallint,
    p_keep bigint, p_base bytea, p_request_n bigint, p_hash bytea, p_header bytea,
    p_format bigint, p_digests bytea,
    p_names text[], p_values text[], p_provider_names text[], p_provider_values text[],
    p_user_names text[], p_user_values text[], p_user_idle bigint,
    p_user_lifetime bigint,
    p_app_names text[], p_app_values text[], p_app_idle bigint, p_app_lifetime bigint
) RETURNS ~heads LANGUAGE plpgsql AS $function$
DECLARE
    h ~heads%ROWTYPE;
BEGIN
    SELECT * INTO h FROM ~append_entries(
        p_app, p_usr, p_scope, p_session, p_incarnation, p_revision, p_version, p_now,
        p_idle, p_lifetime, p_trim, p_updated, p_touch, p_n, p_messages,
        p_conversations, p_tokens, p_id, p_kind, p_body, p_ids, p_kinds, p_bodies,
        p_each_messages, p_each_conversations, p_each_tokens
    );
    IF h.number IS NULL THEN
        RETURN NULL;
    END IF;
    IF p_request_n IS NOT NULL THEN
        IF p_keep > 0 AND (p_keep > coalesce(h.request_n, 0)
            OR p_base IS DISTINCT FROM h.request_hash)
        THEN
            RAISE unique_violation;
        END IF;
        PERFORM ~write_digests(
            h.number, p_keep, p_digests, coalesce(h.request_n, 0)
        );
    END IF;
    IF num_nonnulls(p_title, p_model, p_status, p_pin, p_request_n) > 0 THEN
        UPDATE ~heads SET
            title = coalesce(p_title, title),
            model = coalesce(p_model, model),
            status = coalesce(p_status, status),
            pinned = coalesce(p_pin, pinned),
            request_n = coalesce(p_request_n, request_n),
            request_hash = coalesce(p_hash, request_hash),
            request_header =
                CASE WHEN p_request_n IS NULL THEN request_header ELSE p_header END,
            request_format = coalesce(p_format, request_format)
        WHERE number = h.number RETURNING * INTO h;
    END IF;
    IF p_names IS NOT NULL THEN
        DELETE FROM ~session_state AS s
        USING unnest(p_names, p_values) AS d (name, value)
        WHERE s.session = h.number AND s.name = d.name AND d.value IS NULL;
        INSERT INTO ~session_state (session, name, value)
        SELECT h.number, d.name, d.value
        FROM unnest(p_names, p_values) AS d (name, value)
        WHERE d.value IS NOT NULL
        ON CONFLICT (session, name) DO UPDATE SET value = excluded.value;
    END IF;
    IF p_provider_names IS NOT NULL THEN
        DELETE FROM ~provider_states AS s
        USING unnest(p_provider_names, p_provider_values) AS d (name, value)
        WHERE s.session = h.number AND s.name = d.name AND d.value IS NULL;
        INSERT INTO ~provider_states (session, name, value)
        SELECT h.number, d.name, d.value
        FROM unnest(p_provider_names, p_provider_values) AS d (name, value)
        WHERE d.value IS NOT NULL
        ON CONFLICT (session, name) DO UPDATE SET value = excluded.value;
    END IF;
    IF p_user_names IS NOT NULL THEN
        PERFORM ~write_scope(p_app, 1::smallint, p_usr, p_now, p_user_idle,
            p_user_lifetime, p_user_names, p_user_values);
    END IF;
    IF p_app_names IS NOT NULL THEN
        PERFORM ~write_scope(p_app, 0::smallint, '', p_now, p_app_idle,
            p_app_lifetime, p_app_names, p_app_values);
    END IF;
    RETURN h;
END
$function$;
"""

_WRITE_DIGESTS: Final = """
CREATE FUNCTION ~write_digests(
    p_number bigint, p_keep bigint, p_digests bytea, p_former_n bigint
) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    v_first CONSTANT bigint := p_keep / 64;
    v_inside CONSTANT int := p_keep % 64 * 8;
    v_digests bytea := p_digests;
    v_kept bytea;
    v_chunks int;
BEGIN
    IF v_inside > 0 THEN
        SELECT substring(digests FROM 1 FOR v_inside) INTO v_kept FROM ~request_digests
        WHERE session = p_number AND chunk = v_first;
        IF v_kept IS NULL OR length(v_kept) <> v_inside THEN
            RAISE unique_violation;
        END IF;
        v_digests := v_kept || p_digests;
    END IF;
    v_chunks := (length(v_digests) + 511) / 512;
    INSERT INTO ~request_digests (session, chunk, digests)
    SELECT p_number, v_first + i, substring(v_digests FROM i * 512 + 1 FOR 512)
    FROM generate_series(0, v_chunks - 1) AS i
    ON CONFLICT (session, chunk) DO UPDATE SET digests = excluded.digests;
    IF p_former_n > (v_first + v_chunks) * 64 THEN
        DELETE FROM ~request_digests
        WHERE session = p_number AND chunk >= v_first + v_chunks;
    END IF;
END
$function$;
"""

_WRITE_SCOPE: Final = """
CREATE FUNCTION ~write_scope(
    p_app text, p_of_user smallint, p_usr text, p_now bigint, p_idle bigint,
    p_lifetime bigint, p_names text[], p_values text[]
) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
    s ~scopes%ROWTYPE;
    v_sets CONSTANT boolean := cardinality(array_remove(p_values, NULL)) > 0;
BEGIN
    LOOP
        SELECT * INTO s FROM ~scopes
        WHERE app = p_app AND of_user = p_of_user AND usr = p_usr FOR UPDATE;
        IF FOUND AND (s.last_active_at < p_idle AND s.last_active_at <> 0
            OR s.created_at < p_lifetime AND s.created_at <> 0)
        THEN
            DELETE FROM ~scopes WHERE number = s.number;
        ELSIF FOUND THEN
            EXIT;
        END IF;
        IF NOT v_sets THEN
            RETURN;
        END IF;
        INSERT INTO ~scopes (app, of_user, usr, created_at, last_active_at)
        VALUES (p_app, p_of_user, p_usr, p_now, p_now)
        ON CONFLICT DO NOTHING RETURNING * INTO s;
        EXIT WHEN FOUND;  -- else another has made it meanwhile
    END LOOP;
    DELETE FROM ~scoped_state AS t USING unnest(p_names, p_values) AS d (name, value)
    WHERE t.scope = s.number AND t.name = d.name AND d.value IS NULL;
    INSERT INTO ~scoped_state (scope, name, value)
    SELECT s.number, d.name, d.value FROM unnest(p_names, p_values) AS d (name, value)
    WHERE d.value IS NOT NULL
    ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value;
    IF NOT v_sets AND NOT EXISTS (SELECT FROM ~scoped_state WHERE scope = s.number) THEN
        DELETE FROM ~scopes WHERE number = s.number;
    ELSE
        UPDATE ~scopes SET last_active_at = p_now
        WHERE number = s.number AND last_active_at < p_now;
    END IF;
END
$function$;
"""

# What a foreign key would do, but for its look at the head of each entry that is
# inserted: the head is locked then in any case, and the look costs as much again.
_DELETE_ENTRIES: Final = """
CREATE FUNCTION ~delete_entries() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        TRUNCATE ~entries;
    ELSE
        DELETE FROM ~entries WHERE session = OLD.number;
    END IF;
    RETURN NULL;
END
$function$;
CREATE TRIGGER delete_entries AFTER DELETE ON ~heads
    FOR EACH ROW EXECUTE FUNCTION ~delete_entries();
CREATE TRIGGER truncate_entries AFTER TRUNCATE ON ~heads
    FOR EACH STATEMENT EXECUTE FUNCTION ~delete_entries();
"""

FUNCTIONS: Final = (
    _APPEND + _WRITE_DIGESTS + _WRITE_SCOPE + _APPEND_CHANGED + _DELETE_ENTRIES
)
