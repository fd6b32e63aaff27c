"""Hypothesis strategies for the configuration."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from raf_session.history import WindowMode
from raf_session.manager import (
    AgentsConfig,
    CompactionConfig,
    CompactionMode,
    SessionConfig,
    SessionScope,
    ToolCallConfig,
)

said = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1
).filter(str.strip)
limits = st.one_of(st.none(), st.integers(1, 10**9))
counts = st.integers(0, 10**9)
durations = st.one_of(st.none(), st.timedeltas(timedelta(0), timedelta(days=10**6)))
sessions: st.SearchStrategy[SessionConfig] = st.builds(
    SessionConfig,
    enabled=st.booleans(),
    storage_path=said,
    max_messages=limits,
    max_token_count=st.integers(10**6, 10**9),
    default_scope=st.sampled_from(SessionScope),
    ttl=durations,
    idle_timeout=durations,
    model_context=st.one_of(st.none(), st.integers(10**6, 10**9)),
    reserve_tokens=st.integers(0, 10**5),
    window=st.sampled_from(WindowMode),
)
compactions: st.SearchStrategy[CompactionConfig] = st.builds(
    CompactionConfig,
    mode=st.sampled_from(CompactionMode),
    keep_recent_count=counts,
    target_tokens=st.integers(1, 10**9),
    target_tokens_percent=st.one_of(st.none(), st.floats(1, 100)),
    min_messages_to_compact=counts,
    memory_flush=st.booleans(),
    summary_timeout=st.one_of(st.none(), st.timedeltas(timedelta(microseconds=1))),
)
tool_calls: st.SearchStrategy[ToolCallConfig] = st.builds(
    ToolCallConfig,
    save_tool_calls=st.booleans(),
    keep_tool_calls_count=st.one_of(st.none(), counts),
    max_tool_result_size=limits,
    placeholder=st.one_of(st.none(), said),
)
configs: st.SearchStrategy[AgentsConfig] = st.builds(
    AgentsConfig, session=sessions, compaction=compactions, tool_calls=tool_calls
)
