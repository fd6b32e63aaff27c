"""What the configuration refuses: with the path, and with what was expected."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raf_session.errors import InvalidValueError
from raf_session.manager import (
    AgentsConfig,
    CompactionConfig,
    SessionConfig,
    ToolCallConfig,
)
from raf_session.manager.config_values import ConfigModel

SECTIONS: dict[str, type[ConfigModel]] = {
    "session": SessionConfig,
    "compaction": CompactionConfig,
    "tool_calls": ToolCallConfig,
}
FLAGS = {"enabled", "memory_flush", "save_tool_calls"}
NULLABLE = {
    "max_messages",
    "max_token_count",
    "ttl",
    "idle_timeout",
    "model_context",
    "target_tokens_percent",
    "summary_timeout",
    "keep_tool_calls_count",
    "max_tool_result_size",
    "placeholder",
}
FROM_NOTHING = {
    "reserve_tokens",
    "ttl",
    "idle_timeout",
    "keep_recent_count",
    "min_messages_to_compact",
    "keep_tool_calls_count",
}
DURATIONS = {"ttl", "idle_timeout", "summary_timeout"}
TEXTS = {"storage_path", "placeholder"}
OPTIONS = [
    (section, option)
    for section, model in SECTIONS.items()
    for option in model.model_fields
]


def refused(section: str, option: str, value: object) -> InvalidValueError:
    """Return how the value is refused, the same through every way in."""
    with pytest.raises(InvalidValueError) as caught:
        AgentsConfig.from_mapping({section: {option: value}})
    error = caught.value
    assert error.path == f"{section}.{option}"
    with pytest.raises(InvalidValueError) as direct:
        SECTIONS[section](**{option: value})
    assert (direct.value.path, direct.value.reason) == (option, error.reason)
    with pytest.raises(InvalidValueError) as nested:
        AgentsConfig(**{section: {option: value}})  # type: ignore[arg-type]
    assert str(nested.value) == str(error)
    with pytest.raises(InvalidValueError) as long:
        AgentsConfig.from_mapping({"agents": {"defaults": {section: {option: value}}}})
    assert str(long.value) == f"agents.defaults.{error}"
    with pytest.raises(InvalidValueError) as above:
        AgentsConfig().layered({section: {option: value}})
    assert str(above.value) == str(error)
    return error


@pytest.mark.parametrize(("section", "option"), OPTIONS)
@pytest.mark.parametrize(
    "value", [b"24h", [1], {"a": 1}, object(), 1j, float("nan"), float("inf"), -1, -0.5]
)
def test_no_option_takes_these(section: str, option: str, value: object) -> None:
    assert refused(section, option, value).reason.startswith("expected ")


@pytest.mark.parametrize(("section", "option"), OPTIONS)
def test_null_is_off_where_there_is_something_to_turn_off(
    section: str, option: str
) -> None:
    if option in NULLABLE:
        config = AgentsConfig.from_mapping({section: {option: None}})
        assert getattr(getattr(config, section), option) is None
    else:
        assert "expected" in refused(section, option, None).reason


@pytest.mark.parametrize(("section", "option"), OPTIONS)
def test_booleans_are_no_numbers_and_numbers_no_booleans(
    section: str, option: str
) -> None:
    if option in FLAGS:
        for value in (0, 1, "true", "yes"):
            assert "true or false" in refused(section, option, value).reason
    else:
        refused(section, option, True)


@pytest.mark.parametrize(("section", "option"), OPTIONS)
def test_a_text_is_no_number_and_a_wrong_word_no_choice(
    section: str, option: str
) -> None:
    if option not in TEXTS:
        value = "x" if option in DURATIONS else "7"
        assert repr(value) in refused(section, option, value).reason


@pytest.mark.parametrize(("section", "option"), OPTIONS)
def test_zero_is_taken_only_where_it_means_something(section: str, option: str) -> None:
    if option in FROM_NOTHING:
        config = AgentsConfig.from_mapping({section: {option: 0}})
        assert not getattr(getattr(config, section), option)
    else:
        refused(section, option, 0)


@pytest.mark.parametrize(
    ("section", "option", "value", "expected"),
    [
        ("session", "max_messages", 10**400, "a whole number from 1, or null"),
        ("session", "max_messages", 200.0, "a whole number from 1, or null"),
        ("session", "storage_path", "", "the path of a folder"),
        ("session", "storage_path", "a\0b", "the path of a folder"),
        ("session", "default_scope", "per_user", "main, per_peer, per_channel_peer"),
        ("session", "window", "jumping", "stepped, sliding"),
        ("session", "ttl", "24 hours", "'24h', '30m' or '1h30m'"),
        ("session", "reserve_tokens", 128_000, "less than the window of 128000"),
        ("compaction", "mode", "on", "safeguard, auto, off"),
        ("compaction", "mode", "", "safeguard, auto, off"),
        ("compaction", "target_tokens_percent", 100.5, "from 1 to 100, or null"),
        ("compaction", "target_tokens_percent", 0.6, "from 1 to 100, or null, not 0.6"),
        ("compaction", "summary_timeout", "0s", "above 0, or null"),
        ("session", "storage_path", " \n", "the path of a folder"),
        ("tool_calls", "placeholder", "", "not empty, or null"),
        ("tool_calls", "placeholder", " \n", "not empty, or null"),
    ],
)
def test_a_refusal_says_what_was_expected(
    section: str, option: str, value: object, expected: str
) -> None:
    assert expected in refused(section, option, value).reason


def test_a_path_may_be_a_path_object() -> None:
    config = SessionConfig(storage_path=Path("a/b"))  # type: ignore[arg-type]
    assert config.storage_path == str(Path("a/b"))


# Names ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "path", "reason"),
    [
        ({"sessions": {}}, "sessions", "is no option; did you mean session?"),
        ({"session": {"max_mesages": 1}}, "session.max_mesages", "max_messages?"),
        ({"session": {"mode": "off"}}, "session.mode", "is no option"),
        ({"session": {1: 2}}, "session.1", "is no option"),
        ({"session": []}, "session", "expected a mapping, not []"),
        ([], "", "expected a mapping, not []"),
        ({"agents": 1}, "agents", "expected a mapping"),
        ({"agents": {"defaults": 1}}, "agents.defaults", "expected a mapping"),
        ({"agents": {"default": {}}}, "agents.default", "did you mean defaults?"),
        (
            {"agents": {"defaults": {"toolcalls": {}}}},
            "agents.defaults.toolcalls",
            "is no option; did you mean tool_calls?",
        ),
        (
            {"session": {}, "compactions": {}},
            "compactions",
            "is no option; did you mean compaction?",
        ),
        ({"server": {}, "agent": {}}, "agent", "did you mean agents?"),
        (
            {"server": {}},
            "server",
            "expected agents, or session, compaction, tool_calls",
        ),
        (
            {"agents": {"defaults": {"session": {"x": 1}}}},
            "agents.defaults.session.x",
            "is no option",
        ),
        ({"defaults": {}}, "defaults", "is no option"),
    ],
)
def test_an_unknown_name_is_refused_with_its_path(
    values: Any, path: str, reason: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        AgentsConfig.from_mapping(values)
    assert caught.value.path == path
    assert reason in caught.value.reason


@given(st.text(min_size=1))
def test_no_other_name_is_taken(name: str) -> None:
    known = {alias for model in SECTIONS.values() for alias in model.model_fields}
    if "".join(name.split("_")).lower() in {k.replace("_", "") for k in known}:
        return
    for section in SECTIONS:
        with pytest.raises(InvalidValueError, match="is no option"):
            AgentsConfig.from_mapping({section: {name: 1}})


# YAML ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("session: {ttl: 1h, ttl: 2h}", "session.ttl", "stands twice (line 1)"),
        ("session: {}\nsession: {}", "session", "stands twice (line 2)"),
        ('session:\n  ttl: 1h\n  "ttl": 1h', "session.ttl", "stands twice (line 3)"),
        ("a: [\n", "", "is no YAML (line 2)"),
        ("session:\n\tttl: 1h", "", "is no YAML (line 2)"),
        ("a: 1\n---\nb: 2", "", "is no YAML (line 2)"),
        ("when: 2026-13-45", "", "is no YAML"),
        ("n: " + "9" * 5000, "", "is no YAML"),
        ("? [a]\n: 1", "", "is no YAML (line 1)"),
        ("!!python/object/apply:os.getcwd []", "", "is no YAML (line 1)"),
        ("[" * 500, "", "is no YAML"),
        ("&a {session: *a}", "session.session", "is no option"),
        ("[{a: 1, a: 2}]", "[0].a", "stands twice"),
        ("session: {ttl: .nan}", "session.ttl", "expected a duration"),
        ("compaction: {mode: on}", "compaction.mode", "not True"),
        ("session: {max_messages: 0200}", "session.max_messages", "1.2 (line 1)"),
        ("session:\n  max_messages: -010", "session.max_messages", "1.2 (line 2)"),
        ("session: {ttl: 1:30}", "session.ttl", "1:30 is another number"),
        ("session: {ttl: 1:30.5}", "session.ttl", "1:30.5 is another number"),
        ("session: {ttl: 2026-01-01}", "session.ttl", "expected a duration"),
    ],
)
def test_what_is_wrong_with_a_yaml_text_is_said(
    text: str, path: str, reason: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        AgentsConfig.from_yaml(text)
    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("text", "secs"),
    [("0", 0), ("3600", 3600), ("1_000", 1000), ("0x10", 16), ("'010'", 10)],
)
def test_numbers_that_are_read_in_one_way_are_taken(text: str, secs: int) -> None:
    session = AgentsConfig.from_yaml(f"session: {{ttl: {text}}}").session
    assert session.ttl == timedelta(seconds=secs)


@pytest.mark.parametrize("word", ["off", "Off", "no", "false", "'off'", '"off"'])
def test_a_bare_off_is_a_mode(word: str) -> None:
    config = AgentsConfig.from_yaml(f"compaction: {{mode: {word}}}")
    assert config.compaction.mode == "off"


def test_keys_that_a_merge_brings_may_be_replaced() -> None:
    config = AgentsConfig.from_yaml(
        "session:\n  <<: {ttl: 1h, max_messages: 9}\n  ttl: 2h"
    )
    assert config.session == SessionConfig(ttl=7200, max_messages=9)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for source in ("nowhere.yaml", tmp_path / "nowhere.yaml"):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.yaml"):
            AgentsConfig.from_yaml(source)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_bytes("session: {storage_path: é}".encode("latin-1"))
    with pytest.raises(InvalidValueError, match="is no YAML"):
        AgentsConfig.from_yaml(file)
    file.write_bytes(b"word")
    with pytest.raises(InvalidValueError, match="expected a mapping, not 'word'"):
        AgentsConfig.from_yaml(file)


def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ModuleNotFoundError, match=r"raf-session\[yaml\]"):
        AgentsConfig.from_yaml("session: {}")
    assert AgentsConfig.from_mapping({"session": {}}) == AgentsConfig()
