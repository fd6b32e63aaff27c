"""Hypothesis strategies for every value that sessions, stores and journals are given.

Text that breaks encoders, JSON that is deep, names full of separators and dots, times
that come again, and each of them empty and huge.
"""

from __future__ import annotations

from raf_session.conformance.message_strategies import (
    entries,
    messages,
    parts,
    state_deltas,
    tool_calls,
    usages,
)
from raf_session.conformance.record_strategies import (
    changes,
    counts,
    heads,
    label_deltas,
    limits,
    metadata,
    new_sessions,
    provider_state_stores,
    queries,
    request_deltas,
    request_records,
    snapshots,
    ttl_options,
    windows,
)
from raf_session.conformance.text_strategies import (
    hostile_text,
    json_values,
    moments,
    names,
    objects,
    scope_keys,
    session_keys,
)

__all__ = (
    "changes",
    "counts",
    "entries",
    "heads",
    "hostile_text",
    "json_values",
    "label_deltas",
    "limits",
    "messages",
    "metadata",
    "moments",
    "names",
    "new_sessions",
    "objects",
    "parts",
    "provider_state_stores",
    "queries",
    "request_deltas",
    "request_records",
    "scope_keys",
    "session_keys",
    "snapshots",
    "state_deltas",
    "tool_calls",
    "ttl_options",
    "usages",
    "windows",
)
