"""The configuration: the document's YAML, and what becomes of each option."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from config_strategies import compactions, configs, durations
from document_yaml import (
    COMPACTION,
    RECOMMENDED_COMPACTION,
    RECOMMENDED_SESSION,
    SESSION,
    WHOLE,
)
from hypothesis import given
from hypothesis import strategies as st

from raf_session.errors import InvalidValueError
from raf_session.history import HistoryPolicy
from raf_session.manager import (
    AgentsConfig,
    CompactionConfig,
    CompactionMode,
    SessionConfig,
    SessionScope,
    ToolCallConfig,
)
from raf_session.manager.config_values import ConfigModel
from raf_session.options import Limits, SessionTTLOptions

# The document --------------------------------------------------------------------


def test_the_documents_session_block_is_the_default() -> None:
    session = AgentsConfig.from_yaml(SESSION).session
    assert session == SessionConfig()
    assert (session.enabled, session.storage_path) == (True, "sessions")
    assert (session.max_messages, session.max_token_count) == (200, 128_000)
    assert session.default_scope is SessionScope.PER_PEER
    assert (session.ttl, session.idle_timeout) == (
        timedelta(hours=24),
        timedelta(minutes=30),
    )


def test_the_documents_compaction_block_is_the_default() -> None:
    compaction = AgentsConfig.from_yaml(COMPACTION).compaction
    assert compaction == CompactionConfig()
    assert compaction.mode is CompactionMode.SAFEGUARD
    assert (compaction.keep_recent_count, compaction.min_messages_to_compact) == (
        10,
        20,
    )
    assert (compaction.target_tokens, compaction.target_tokens_percent) == (76_800, 60)
    assert compaction.memory_flush is True


def test_the_documents_defaults_of_tool_calls() -> None:
    found = AgentsConfig().tool_calls
    assert found == ToolCallConfig()
    assert (found.save_tool_calls, found.keep_tool_calls_count) == (True, 5)
    assert (found.max_tool_result_size, found.placeholder) == (2000, None)


def test_the_recommended_blocks_stand_alone() -> None:
    assert AgentsConfig.from_yaml(RECOMMENDED_COMPACTION) == AgentsConfig()
    config = AgentsConfig.from_yaml(RECOMMENDED_SESSION)
    assert config.session.ttl == timedelta(days=7)
    assert config.session.idle_timeout == timedelta(days=1)
    assert config.session.max_messages == 200


def test_the_recommended_blocks_stand_together() -> None:
    both = AgentsConfig.from_yaml(RECOMMENDED_COMPACTION + RECOMMENDED_SESSION)
    assert both == AgentsConfig.from_yaml(RECOMMENDED_SESSION)


def test_all_three_sections_are_read_from_one_file(tmp_path: Path) -> None:
    config = AgentsConfig.from_yaml(WHOLE)
    assert config.tool_calls == ToolCallConfig(
        save_tool_calls=False, keep_tool_calls_count=7, max_tool_result_size=900
    )
    assert (config.session, config.compaction) == (SessionConfig(), CompactionConfig())
    file = tmp_path / "agents.yaml"
    file.write_text(WHOLE, encoding="utf-8")
    assert AgentsConfig.from_yaml(file) == config
    assert AgentsConfig.from_yaml(str(file)) == config


OF_OTHERS = """
server: {port: 8080}
logging: {level: debug}
agents:
  list: [{id: main}]
  defaults:
    model: any-model
    workspace: /srv
    session: {max_messages: 7}
"""


def test_what_others_have_in_the_file_is_left_alone() -> None:
    config = AgentsConfig.from_yaml(OF_OTHERS)
    assert config == AgentsConfig(session=SessionConfig(max_messages=7))
    alone = AgentsConfig.from_yaml("agents: {list: [], defaults: {model: m}}\nx: 1")
    assert alone == AgentsConfig.from_yaml("agents:\nx: 1") == AgentsConfig()
    short = {"session": {"max_messages": 7}, "server": {"session": 1}, 1: 2}
    assert AgentsConfig.from_mapping(short) == config  # type: ignore[arg-type]
    both: dict[str, Any] = {"agents": {"defaults": {}}, "session": {"dm": "all"}}
    assert AgentsConfig.from_mapping(both) == AgentsConfig()


GO_NAMES = {
    "saveToolCalls": False,
    "keepToolCallsCount": 0,
    "maxToolResultSize": 100,
}


@pytest.mark.parametrize("section", ["tool_calls", "toolCalls"])
def test_the_documents_json_names_are_read(section: str) -> None:
    config = AgentsConfig.from_mapping({section: GO_NAMES})
    assert config.tool_calls == ToolCallConfig(
        save_tool_calls=False, keep_tool_calls_count=0, max_tool_result_size=100
    )


def test_the_names_of_go_fields_are_read() -> None:
    config = AgentsConfig.from_mapping(
        {
            "session": {"MaxMessages": 3, "MaxTokenCount": 4000},
            "tool_calls": {"KeepToolCallsCount": 2},
        }
    )
    assert (config.session.max_messages, config.session.max_token_count) == (3, 4000)
    assert config.tool_calls.keep_tool_calls_count == 2


@pytest.mark.parametrize("model", [SessionConfig, CompactionConfig, ToolCallConfig])
def test_a_name_may_stand_once_in_whatever_spelling(model: type[ConfigModel]) -> None:
    for name in model.model_fields:
        head, *rest = name.split("_")
        camel = head + "".join(map(str.title, rest))
        if camel != name:
            with pytest.raises(InvalidValueError, match=name):
                model(**{name: None, camel: None})


@pytest.mark.parametrize("text", ["", "# nothing\n", "agents:\n", "session:\n", "{}"])
def test_nothing_said_is_the_default(text: str) -> None:
    assert AgentsConfig.from_yaml(text) == AgentsConfig()


@pytest.mark.parametrize("mode", CompactionMode)
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_modes_are_read_with_and_without_quotes(mode: str, quote: str) -> None:
    config = AgentsConfig.from_yaml(f"compaction: {{mode: {quote}{mode}{quote}}}")
    assert config.compaction.mode is CompactionMode(mode)


@pytest.mark.parametrize("scope", SessionScope)
def test_every_scope_may_be_the_default(scope: str) -> None:
    config = AgentsConfig.from_yaml(f"session: {{default_scope: {scope}}}")
    assert config.session.default_scope is SessionScope(scope)


# Round trips and layers ----------------------------------------------------------


@given(configs)
def test_a_configuration_survives_its_json_and_its_pickle(config: AgentsConfig) -> None:
    assert AgentsConfig.from_mapping(json.loads(config.model_dump_json())) == config
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301
    assert AgentsConfig.from_mapping(config.model_dump()) == config


@given(configs, st.data())
def test_a_layer_changes_what_it_names_and_nothing_else(
    base: AgentsConfig, data: st.DataObject
) -> None:
    above = data.draw(configs).model_dump()
    section = data.draw(st.sampled_from(sorted(above)))
    names = data.draw(st.sets(st.sampled_from(sorted(above[section])), min_size=1))
    layer = {name: above[section][name] for name in names}
    if "target_tokens" in layer:
        layer["target_tokens_percent"] = above[section]["target_tokens_percent"]
    config = AgentsConfig.from_mapping({section: layer}, base=base)
    expected = base.model_dump()
    expected[section] |= layer
    assert config.model_dump() == expected


def test_a_configuration_cannot_be_changed() -> None:
    config = AgentsConfig()
    with pytest.raises(ValueError, match="frozen"):
        config.session.ttl = None
    changed = config.session.model_copy(update={"ttl": None})
    assert (changed.ttl, config.session.ttl) == (None, timedelta(hours=24))


# What follows from options -------------------------------------------------------


def test_ttl_is_the_lifetime_and_idle_timeout_the_idle_limit() -> None:
    assert SessionConfig().limits == Limits(
        sessions=SessionTTLOptions(max_idle_secs=1800, max_lifetime_secs=86_400)
    )
    endless = SessionConfig(ttl=None, idle_timeout=None)
    assert endless.limits == Limits()
    assert not endless.limits.sessions.enabled


@given(durations, durations)
def test_each_limit_comes_from_its_own_option(
    ttl: timedelta | None, idle: timedelta | None
) -> None:
    found = SessionConfig(ttl=ttl, idle_timeout=idle).limits.sessions
    for given_, secs in ((ttl, found.max_lifetime_secs), (idle, found.max_idle_secs)):
        assert secs == (None if given_ is None else given_.total_seconds())


@pytest.mark.parametrize(
    ("options", "window", "most"),
    [
        ({}, 128_000, 128_000),
        ({"model_context": 32_000}, 32_000, 32_000),
        ({"model_context": 200_000}, 200_000, 128_000),
        ({"model_context": 8000, "max_token_count": None}, 8000, 8000),
        ({"max_token_count": None}, None, None),
    ],
)
def test_the_window_is_the_models_context_else_max_token_count(
    options: Mapping[str, Any], window: int | None, most: int | None
) -> None:
    session = SessionConfig(**options)
    assert (session.window_tokens, session.request_tokens) == (window, most)


def test_the_percentage_wins_over_the_fixed_target() -> None:
    document = CompactionConfig(target_tokens=1, target_tokens_percent=60)
    assert document.target(128_000) == 76_800
    assert document.target(None) == 1
    fixed = CompactionConfig(target_tokens=5000, target_tokens_percent=None)
    assert (fixed.target(128_000), fixed.target(None)) == (5000, 5000)


def test_a_fixed_target_alone_is_the_target() -> None:
    assert CompactionConfig(target_tokens=5000).target(128_000) == 5000
    base = AgentsConfig.from_yaml(COMPACTION)
    above = AgentsConfig.from_mapping({"compaction": {"target_tokens": 70}}, base=base)
    assert above.compaction.target(128_000) == 70
    again = AgentsConfig.from_mapping(
        {"compaction": {"target_tokens_percent": 50}}, base=above
    )
    assert again.compaction.target(128_000) == 64_000


@given(compactions, st.integers(1, 10**9))
def test_a_target_is_within_the_window(config: CompactionConfig, window: int) -> None:
    target = config.target(window)
    if config.target_tokens_percent is None:
        assert target == config.target_tokens
    else:
        share = window * config.target_tokens_percent / 100
        assert max(share - 1, 1) <= target <= max(share, 1)


@given(configs, st.integers(0, 10**4))
def test_a_policy_of_history_has_every_option(
    config: AgentsConfig, reserved: int
) -> None:
    session, calls = config.session, config.tool_calls
    room = session.request_tokens
    assert room is not None
    assert config.history_policy(reserved) == HistoryPolicy(
        max_messages=session.max_messages,
        max_tokens=room - session.reserve_tokens - reserved,
        keep_tool_calls=calls.keep_tool_calls_count,
        max_tool_result_size=calls.max_tool_result_size,
        tool_call_placeholder=calls.placeholder,
        mode=session.window,
    )


def test_a_policy_without_limits_and_one_without_room() -> None:
    config = AgentsConfig.from_mapping(
        {
            "session": {"max_messages": None, "max_token_count": None},
            "tool_calls": {"keep_tool_calls_count": None, "max_tool_result_size": None},
        }
    )
    assert config.history_policy(10**6) == HistoryPolicy()
    assert AgentsConfig().history_policy(10**6).max_tokens == 1
