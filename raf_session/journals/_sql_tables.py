"""The tables of the SQL journals: their columns, as the core names them.

Every backend makes them in its own way; the core reads and writes these columns alone.
Texts are compared by exact bytes. ``text`` is of any length, ``name`` holds up to 512
bytes, ``int`` is a signed 64-bit number, ``flag`` 0 or 1. Times are microseconds since
1970 in UTC; unsigned 64-bit numbers are 8 bytes, the highest first. What is not marked
with ``?`` is never NULL.

================  ==================================================================
table             columns
================  ==================================================================
heads             number int, drawn by the server, primary key, never given twice;
                  app, usr, scope, session name: together unique (usr is the user);
                  tail_at int; `HEAD_COLUMNS`; labels text
labels            session, label name; primary key (session, label)
entries           session, left_at, seq int; id name; kind text; stored_at int;
                  messages, conversations flag; tokens int; body text;
                  primary key (session, left_at, seq), unique (session, id)
session_state     session; name name; value text; primary key (session, name)
provider_states   the same
request_digests   session, chunk int; digests bytes; primary key (session, chunk)
scopes            number int, as in heads; app name, of_user flag, usr name: together
                  unique; created_at, last_active_at int
scoped_state      scope; name name; value text; primary key (scope, name)
meta              name name, primary key; value text
================  ==================================================================

`session` names ``heads.number`` and `scope` names ``scopes.number``, both as foreign
keys that delete their children. Of `HEAD_COLUMNS`, `incarnation`, `title`, `model`,
`status`, `session_type` and `forked_from` ? are texts, `pinned` is a flag,
`request_hash` ? and `request_header` ? are bytes, all others int, `request_n` ? and
`request_format` ? with them.

Indexes that the core expects beside the keys: heads by activity as the dialect's
`activity` says, heads (created_at), labels (label, session), scopes (of_user,
last_active_at), scopes (of_user, created_at).
"""

from __future__ import annotations

from typing import Final

from raf_session.errors import SchemaVersionError
from raf_session.journals import _heads

__all__ = ("HEAD_COLUMNS", "KEY", "TABLES", "check_version")

TABLES: Final = (
    "heads",
    "labels",
    "entries",
    "session_state",
    "provider_states",
    "request_digests",
    "scopes",
    "scoped_state",
    "meta",
)

KEY: Final = ("app", "usr", "scope", "session")
"""The columns of a session's key."""

HEAD_COLUMNS: Final = tuple(
    "version" if name == "schema" else name for name in _heads.COLUMNS
)
"""The columns of a head; ``schema`` is a word of SQL."""


def check_version(backend: str, found: int, supported: int) -> None:
    """Raise `SchemaVersionError` where a newer library made the tables.

    Each backend counts its own versions, from 1. The version stands in ``meta`` under
    ``schema``, as decimal text.
    """
    if found > supported:
        raise SchemaVersionError(backend, found, supported)
