"""Hypothesis strategies for changes, records, snapshots and options."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from raf_session.changes import (
    U64_LIMIT,
    Change,
    LabelDelta,
    RequestDelta,
    RequestRecord,
    SessionStatus,
)
from raf_session.conformance.message_strategies import messages, state_deltas
from raf_session.conformance.text_strategies import (
    json_values,
    moments,
    names,
    session_keys,
)
from raf_session.entries import Counts, SessionHead
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window

__all__ = (
    "changes",
    "counts",
    "heads",
    "label_deltas",
    "limits",
    "metadata",
    "new_sessions",
    "provider_state_stores",
    "queries",
    "request_deltas",
    "request_records",
    "snapshots",
    "ttl_options",
    "windows",
)

_HASHES = st.one_of(st.integers(0, U64_LIMIT - 1), st.sampled_from((0, U64_LIMIT - 1)))
_SECONDS = st.one_of(
    st.sampled_from((0, 0.000001, 1, 60, 3600, 86400)),
    st.floats(0, 10**9, allow_nan=False),
)
_PLACES = st.integers(0, 2**40)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


def label_deltas() -> st.SearchStrategy[LabelDelta]:
    """Labels to add and to remove, some in both."""
    labels = st.sets(st.sampled_from(("x", "y", "é", "%")), max_size=2)
    return st.builds(LabelDelta, labels, labels)


def changes() -> st.SearchStrategy[Change]:
    """Changes of state and description; times and request record are left out."""
    text = st.one_of(st.just(""), names())
    return st.builds(
        Change,
        session=_maybe(state_deltas()),
        user=_maybe(state_deltas()),
        app=_maybe(state_deltas()),
        providers=_maybe(state_deltas()),
        title=_maybe(text),
        model=_maybe(text),
        labels=_maybe(label_deltas()),
        pin=_maybe(st.booleans()),
        status=_maybe(st.sampled_from(SessionStatus)),
    )


# Requests ------------------------------------------------------------------------


def _digests() -> st.SearchStrategy[bytes]:
    return st.lists(st.binary(min_size=8, max_size=8), max_size=5).map(b"".join)


def request_records() -> st.SearchStrategy[RequestRecord]:
    """What is kept of a request, that of no messages included."""
    return st.builds(RequestRecord, _digests(), _HASHES, _maybe(_HASHES))


def request_deltas() -> st.SearchStrategy[RequestDelta]:
    """Records as "keep the first, then these"."""
    return st.builds(
        RequestDelta,
        st.integers(0, 5),
        _digests(),
        _HASHES,
        _maybe(_HASHES),
        st.just(1),
        _maybe(_HASHES),
    )


# Snapshots -----------------------------------------------------------------------


def _states() -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names(), json_values(4), max_size=3)


def provider_state_stores() -> st.SearchStrategy[ProviderStateStore]:
    """Provider states by name."""
    return st.builds(ProviderStateStore, states=_states())


def metadata() -> st.SearchStrategy[SessionMetadata]:
    """What may be said of a session without its messages."""
    return st.builds(
        SessionMetadata,
        created_at=moments(),
        updated_at=moments(),
        message_count=_PLACES,
        last_request_hash=_maybe(_HASHES),
    )


def snapshots() -> st.SearchStrategy[SessionSnapshot]:
    """Sessions at one moment, whose count and hash fit what they hold."""
    return st.builds(
        _snapshot,
        names(),
        metadata(),
        st.lists(messages(), max_size=4, unique_by=lambda m: m.id or object()),
        provider_state_stores(),
        _maybe(moments()),
        _maybe(request_records()),
        _states(),
    )


def _snapshot(  # noqa: PLR0917  (`builds` gives them in order)
    session_id: str,
    told: SessionMetadata,
    said: list[Any],
    states: ProviderStateStore,
    active: Any,
    request: RequestRecord | None,
    state: dict[str, Any],
) -> SessionSnapshot:
    last = None if request is None else request.hash
    return SessionSnapshot(
        session_id=session_id,
        metadata=told.model_copy(
            update={"message_count": len(said), "last_request_hash": last}
        ),
        messages=said,
        provider_states=states,
        last_active_at=active,
        request=request,
        state=state,
    )


# Heads and options ---------------------------------------------------------------


def counts() -> st.SearchStrategy[Counts]:
    """How much there is of a session."""
    number = st.integers(0, 2**40)
    return st.builds(Counts, number, number, number, number)


def heads() -> st.SearchStrategy[SessionHead]:
    """Heads of sessions, each field of its own."""
    text = st.one_of(st.just(""), names())
    return st.builds(
        SessionHead,
        session_keys(),
        names(),
        _PLACES,
        moments(),
        moments(),
        moments(),
        st.booleans(),
        _PLACES,
        _PLACES,
        counts(),
        counts(),
        text,
        text,
        st.sampled_from(SessionStatus),
        st.frozensets(names(), max_size=3),
        text,
        _maybe(session_keys().map(str)),
        st.just(1),
    )


def ttl_options() -> st.SearchStrategy[SessionTTLOptions]:
    """How long a session lives: off, at once, long."""
    return st.builds(
        SessionTTLOptions,
        max_idle_secs=_maybe(_SECONDS),
        max_lifetime_secs=_maybe(_SECONDS),
    )


def limits() -> st.SearchStrategy[Limits]:
    """What a journal enforces."""
    return st.builds(
        Limits,
        sessions=ttl_options(),
        user_state=ttl_options(),
        app_state=ttl_options(),
        max_entry_bytes=st.integers(1, 2**40),
    )


def new_sessions() -> st.SearchStrategy[NewSession]:
    """What a journal is told of a new session."""
    return st.builds(
        NewSession,
        key=session_keys(),
        session_type=st.one_of(st.just(""), names()),
        created_at=_maybe(moments()),
        updated_at=_maybe(moments()),
        last_active_at=_maybe(moments()),
        pinned=st.booleans(),
        forked_from=_maybe(session_keys().map(str)),
    )


def windows() -> st.SearchStrategy[Window]:
    """Which active entries to read, conditions combined."""
    return st.builds(
        Window,
        last=_maybe(st.integers(0, 10)),
        after_seq=_maybe(st.integers(0, 10)),
        before_seq=_maybe(st.integers(0, 10)),
        after_time=_maybe(moments()),
    )


def queries() -> st.SearchStrategy[Query]:
    """Which sessions to list, conditions combined."""
    part = st.one_of(st.just(""), names())
    return st.builds(
        Query,
        app=_maybe(part),
        user=_maybe(part),
        scope=_maybe(part),
        labels=st.sets(names(), max_size=2),
        active_since=_maybe(moments()),
        active_before=_maybe(moments()),
    )
