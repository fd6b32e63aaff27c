"""The configuration from environment variables: one for each option."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
from config_strategies import configs
from hypothesis import given
from hypothesis import strategies as st

from raf_session.errors import InvalidValueError
from raf_session.history import WindowMode
from raf_session.manager import (
    AgentsConfig,
    CompactionConfig,
    CompactionMode,
    SessionConfig,
    SessionScope,
    ToolCallConfig,
    format_duration,
)
from raf_session.manager.environment import PREFIX, variable_names

PAGE = Path(__file__).parents[2] / "docs" / "tpclaw.md"
VARIABLES = variable_names(AgentsConfig, PREFIX)
EVERY_VARIABLE = {
    "RAF_SESSION_ENABLED": "false",
    "RAF_SESSION_STORAGE_PATH": "/var/sessions",
    "RAF_SESSION_MAX_MESSAGES": "50",
    "RAF_SESSION_MAX_TOKEN_COUNT": "64000",
    "RAF_SESSION_DEFAULT_SCOPE": "thread",
    "RAF_SESSION_TTL": "168h",
    "RAF_SESSION_IDLE_TIMEOUT": "90",
    "RAF_SESSION_MODEL_CONTEXT": "32000",
    "RAF_SESSION_RESERVE_TOKENS": "1000",
    "RAF_SESSION_WINDOW": "sliding",
    "RAF_SESSION_COMPACTION_MODE": "auto",
    "RAF_SESSION_COMPACTION_KEEP_RECENT_COUNT": "4",
    "RAF_SESSION_COMPACTION_TARGET_TOKENS": "5000",
    "RAF_SESSION_COMPACTION_TARGET_TOKENS_PERCENT": "12.5",
    "RAF_SESSION_COMPACTION_MIN_MESSAGES_TO_COMPACT": "8",
    "RAF_SESSION_COMPACTION_MEMORY_FLUSH": "no",
    "RAF_SESSION_COMPACTION_SUMMARY_TIMEOUT": "2m",
    "RAF_SESSION_TOOL_CALLS_SAVE_TOOL_CALLS": "0",
    "RAF_SESSION_TOOL_CALLS_KEEP_TOOL_CALLS_COUNT": "0",
    "RAF_SESSION_TOOL_CALLS_MAX_TOOL_RESULT_SIZE": "300",
    "RAF_SESSION_TOOL_CALLS_PLACEHOLDER": "true",
}
CONFIGURED = AgentsConfig(
    session=SessionConfig(
        enabled=False,
        storage_path="/var/sessions",
        max_messages=50,
        max_token_count=64_000,
        default_scope=SessionScope.THREAD,
        ttl=timedelta(days=7),
        idle_timeout=timedelta(seconds=90),
        model_context=32_000,
        reserve_tokens=1000,
        window=WindowMode.SLIDING,
    ),
    compaction=CompactionConfig(
        mode=CompactionMode.AUTO,
        keep_recent_count=4,
        target_tokens=5000,
        target_tokens_percent=12.5,
        min_messages_to_compact=8,
        memory_flush=False,
        summary_timeout=timedelta(minutes=2),
    ),
    tool_calls=ToolCallConfig(
        save_tool_calls=False,
        keep_tool_calls_count=0,
        max_tool_result_size=300,
        placeholder="true",
    ),
)


def test_every_option_has_a_variable() -> None:
    assert set(VARIABLES) == set(EVERY_VARIABLE)
    assert AgentsConfig.from_env(EVERY_VARIABLE) == CONFIGURED


@pytest.mark.parametrize("variable", EVERY_VARIABLE)
def test_a_variable_alone_changes_its_option_alone(variable: str) -> None:
    option = VARIABLES[variable]
    config = AgentsConfig.from_env({variable: EVERY_VARIABLE[variable]})
    configured = getattr(CONFIGURED, option.section)
    expected = AgentsConfig().model_dump()
    expected[option.section][option.name] = getattr(configured, option.name)
    if option.name == "target_tokens":
        expected[option.section]["target_tokens_percent"] = None
    assert config.model_dump() == expected


def test_the_variables_of_the_process_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert AgentsConfig.from_env() == AgentsConfig()
    monkeypatch.setenv("RAF_SESSION_TTL", "1h")
    assert AgentsConfig.from_env().session.ttl == timedelta(hours=1)
    assert "RAF_SESSION_TTL" in os.environ


def test_another_prefix_may_be_chosen() -> None:
    environ = {"BOT_MAX_MESSAGES": "7", "RAF_SESSION_MAX_MESSAGES": "8"}
    config = AgentsConfig.from_env(environ, prefix="BOT_")
    assert config.session.max_messages == 7


@given(configs)
def test_variables_stand_above_a_base(above: AgentsConfig) -> None:
    environ: dict[str, str] = {}
    for variable, option in VARIABLES.items():
        value = getattr(getattr(above, option.section), option.name)
        text = format_duration(value) if isinstance(value, timedelta) else str(value)
        environ[variable] = text
    placeholder = above.tool_calls.placeholder or ""
    if placeholder.strip().lower() in {"null", "none"}:
        environ["RAF_SESSION_TOOL_CALLS_PLACEHOLDER"] = "…"
    config = AgentsConfig.from_env(environ, base=CONFIGURED)
    assert config.session == above.session
    assert config.compaction == above.compaction
    for nothing in ("", " \n"):
        empty = dict.fromkeys(environ, nothing)
        assert AgentsConfig.from_env(empty, base=above) == above


@pytest.mark.parametrize("variable", EVERY_VARIABLE)
def test_blanks_around_a_value_are_no_part_of_it(variable: str) -> None:
    text = EVERY_VARIABLE[variable]
    option = VARIABLES[variable]
    config = AgentsConfig.from_env({variable: f" {text}\n"})
    found = getattr(getattr(config, option.section), option.name)
    if str in option.kinds:  # where they are a part of it
        assert found == f" {text}\n"
    else:
        assert found == getattr(getattr(CONFIGURED, option.section), option.name)


@pytest.mark.parametrize("word", ["null", "NULL", "none", " None "])
def test_null_is_off(word: str) -> None:
    config = AgentsConfig.from_env(
        {"RAF_SESSION_TTL": word, "RAF_SESSION_MAX_MESSAGES": word}
    )
    assert (config.session.ttl, config.session.max_messages) == (None, None)


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("RAF_SESSION_ENABLED", "maybe", "true or false, not 'maybe'"),
        ("RAF_SESSION_ENABLED", "null", "true or false, not 'null'"),
        ("RAF_SESSION_MAX_MESSAGES", "many", "a whole number from 1, or null"),
        ("RAF_SESSION_MAX_MESSAGES", "-1", "a whole number from 1, or null, not -1"),
        ("RAF_SESSION_MAX_MESSAGES", "1.5", "not '1.5'"),
        ("RAF_SESSION_MAX_MESSAGES", "9" * 5000, "a whole number from 1"),
        ("RAF_SESSION_TTL", "soon", "expected a duration"),
        ("RAF_SESSION_RESERVE_TOKENS", "128000", "less than the window"),
        ("RAF_SESSION_DEFAULT_SCOPE", "user", "main, per_peer"),
        ("RAF_SESSION_COMPACTION_MODE", "false", "safeguard, auto, off"),
        ("RAF_SESSION_COMPACTION_TARGET_TOKENS_PERCENT", "nan", "1 to 100"),
        ("RAF_SESSION_COMPACTION_TARGET_TOKENS_PERCENT", "60%", "not '60%'"),
        ("RAF_SESSION_MAX_MESAGES", "1", "did you mean RAF_SESSION_MAX_MESSAGES?"),
        ("RAF_SESSION_MAX_MESAGES", "", "did you mean RAF_SESSION_MAX_MESSAGES?"),
        ("RAF_SESSION_TOOL_CALLS_COLOUR", "1", "is no option"),
        ("RAF_SESSION_KEEP_RECENT_COUNT", "3", "RAF_SESSION_COMPACTION_KEEP_RECENT_"),
        ("RAF_SESSION_MODE", "", "it is RAF_SESSION_COMPACTION_MODE"),
        ("RAF_SESSION_COMPACTION_TTL", "1h", "it is RAF_SESSION_TTL"),
        ("RAF_SESSION_SESSION_TTL", "1h", "it is RAF_SESSION_TTL"),
        ("RAF_SESSION_SESSION_MAX_MESAGES", "1", "mean RAF_SESSION_MAX_MESSAGES?"),
        (
            "RAF_SESSION_COMPACTION_COMPACTION_MODE",
            "off",
            "it is RAF_SESSION_COMPACTION_MODE",
        ),
        ("RAF_SESSION_COMPACTION_TARGET_TOKENS_PERCENT", "0.6", "from 1 to 100"),
    ],
)
def test_an_error_names_the_variable(variable: str, text: str, expected: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        AgentsConfig.from_env({variable: text})
    assert caught.value.path == variable
    assert expected in caught.value.reason


def test_variables_of_other_programs_are_left_alone() -> None:
    others = {"RAF_SESSION_PURE": "1", "RAF_SESSION_PORT_80_TCP": "x", "TTL": "x"}
    assert AgentsConfig.from_env(others) == AgentsConfig()


@given(st.sampled_from(sorted(VARIABLES)), st.text(max_size=12))
def test_a_text_is_read_or_refused_by_its_name(variable: str, text: str) -> None:
    try:
        AgentsConfig.from_env({variable: text})
    except InvalidValueError as error:
        assert error.path == variable  # noqa: PT017
        assert error.reason.startswith("expected ")  # noqa: PT017


def test_the_documentation_lists_every_variable() -> None:
    rows = re.findall(r"\| `(RAF_SESSION_\w+)` \|", PAGE.read_text(encoding="utf-8"))
    assert sorted(rows) == sorted(VARIABLES)
