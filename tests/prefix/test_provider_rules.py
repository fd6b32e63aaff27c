"""The rules: whole, sourced, and changed by `dataclasses.replace`."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from raf_session.errors import InvalidValueError
from raf_session.messages import Usage
from raf_session.provider_rules import RULES, ProviderRules, WriteRule, rules_for
from raf_session.usage_reports import read_usage

NAMES = [
    "deepseek", "openai", "openai-5.5", "anthropic", "gemini", "bedrock", "vllm",
    "sglang",
]  # fmt: skip


def test_every_provider_has_rules() -> None:
    assert list(RULES) == NAMES
    for name, rules in RULES.items():
        assert rules.name == name
        assert rules_for(name) is rules
        assert rules_for(rules) is rules


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_a_source_and_a_date(name: str) -> None:
    rules = RULES[name]
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", rules.as_of)
    assert len(rules.source) > 10
    assert "\n" not in rules.source
    assert rules.notes.endswith(".")
    assert rules.order == ("tools", "system", "messages")
    for kept in rules.survives.values():
        assert set(kept.certain) <= set(kept.possible) <= set(rules.order)
    assert rules.survives["model"].possible == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_form_that_is_not_documented_has_its_reason(name: str) -> None:
    rules = RULES[name]
    if rules.text_forms_alike is None:
        assert re.search(r"[Tt]exts? (as string|have one form)", rules.notes)
    else:
        assert name == "anthropic"


def test_the_facts() -> None:
    facts = {
        name: (r.minimum_tokens, r.block_tokens, r.look_back, r.ttl_seconds, r.writes)
        for name, r in RULES.items()
    }
    assert facts == {
        "deepseek": (64, 128, None, None, WriteRule.UNITS),
        "openai": (1024, 1, 20, 1800, WriteRule.REQUEST_END),
        "openai-5.5": (1024, 128, None, 86400, WriteRule.BLOCKS),
        "anthropic": (512, 1, 20, 300, WriteRule.MARKS),
        "gemini": (2048, 1, None, None, WriteRule.BLOCKS),
        "bedrock": (0, 1, 20, 300, WriteRule.MARKS),
        "vllm": (0, 16, None, None, WriteRule.BLOCKS),
        "sglang": (0, 1, None, None, WriteRule.BLOCKS),
    }
    withheld = [name for name, rules in RULES.items() if rules.last_block_withheld]
    assert withheld == ["deepseek"]
    keyed = [name for name, rules in RULES.items() if rules.key_loses_cache]
    assert keyed == ["deepseek", "openai", "vllm", "sglang"]


@pytest.mark.parametrize(
    ("name", "model", "minimum"),
    [
        ("anthropic", "claude-opus-5-20260801", (512, 512)),
        ("anthropic", "claude-fable-5.1", (512, 512)),
        ("anthropic", "claude-opus-4-8", (1024, 1024)),
        ("anthropic", "claude-sonnet-4-20250514", (1024, 1024)),
        ("anthropic", "claude-sonnet-5", (1024, 1024)),
        ("anthropic", "Claude-Opus-4.7", (2048, 2048)),
        ("anthropic", "claude-3-5-haiku-latest", (2048, 2048)),
        ("anthropic", "claude-opus-4-5", (4096, 4096)),
        ("anthropic", "claude-opus-4-6", (4096, 4096)),
        ("anthropic", "claude-haiku-4-5", (4096, 4096)),
        ("anthropic", "claude-opus-4-20250514", (512, 4096)),
        ("anthropic", None, (512, 4096)),
        ("bedrock", "amazon.nova-pro-v1:0", (0, 4096)),
        ("gemini", "models/gemini-2.5-flash", (2048, 2048)),
        ("gemini", "gemini-3.1-pro", (4096, 4096)),
        ("gemini", "gemini-2.0-flash", (2048, 4096)),
        ("openai", "gpt-5.6", (1024, 1024)),
    ],
)
def test_the_minimum_of_a_model(
    name: str, model: str | None, minimum: tuple[int, int]
) -> None:
    assert RULES[name].minimum(model) == minimum


def test_the_longest_fragment_wins() -> None:
    rules = replace(RULES["vllm"], model_minimums={"qwen": 1, "qwen3-8": 2, "n3": 3})
    assert rules.minimum("Qwen/Qwen3.8-32B") == (2, 2)
    assert RULES["openai-5.5"].block("gpt-5.5-mini") == 2048
    assert RULES["openai-5.5"].block("gpt-5.1") == 128
    assert RULES["openai-5.5"].block(None) == 128


def test_rules_are_values() -> None:
    rules = RULES["anthropic"]
    with pytest.raises(FrozenInstanceError):
        rules.look_back = 3  # type: ignore[misc]  # it is frozen
    with pytest.raises(TypeError):
        rules.survives["x"] = rules.survives["model"]  # type: ignore[index]
    with pytest.raises(TypeError):
        RULES["x"] = rules  # type: ignore[index]
    assert pickle.loads(pickle.dumps(rules)) == rules  # noqa: S301
    assert copy.deepcopy(rules) == rules
    assert hash(rules) == hash(copy.deepcopy(rules))
    table = {"a": 1}
    own = replace(rules, model_minimums=table)
    table["a"] = 2
    assert own.minimum("a") == (1, 1)
    assert RULES["anthropic"] is rules
    assert {field.name for field in fields(ProviderRules)} >= {"notes", "source"}


@pytest.mark.parametrize(
    "change",
    [
        {"block_tokens": 0},
        {"model_block_tokens": {"a": 0}},
        {"minimum_tokens": -1},
        {"model_minimums": {"a": -1}},
        {"look_back": -1},
        {"ttl_seconds": -1},
    ],
)
def test_numbers_that_make_no_sense(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|negative"):
        replace(RULES["vllm"], **change)  # type: ignore[arg-type]


def test_unknown_rules() -> None:
    with pytest.raises(ValueError, match=r"'x'.*deepseek.*sglang"):
        rules_for("x")


# Usage reports -------------------------------------------------------------------

CHAT = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 121}
PLAIN = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (CHAT, CHAT),
        (
            CHAT
            | {
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            CHAT | {"prompt_cache_hit_tokens": 64, "reasoning_tokens": 7},
        ),
        (CHAT | {"prompt_tokens_details": None}, CHAT),
        (CHAT | {"prompt_tokens_details": {"cached_tokens": None}}, CHAT),
        (
            CHAT | {"prompt_tokens_details": {"cached_tokens": 0}},
            CHAT | {"prompt_cache_hit_tokens": 0},
        ),
        (
            {
                "input_tokens": 100,
                "output_tokens": 20,
                "input_tokens_details": {"cached_tokens": 64},
                "output_tokens_details": {"reasoning_tokens": 7},
            },
            PLAIN | {"prompt_cache_hit_tokens": 64, "reasoning_tokens": 7},
        ),
        ({"input_tokens": 100, "output_tokens": 20}, PLAIN),
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 60,
                "cache_creation_input_tokens": 30,
                "output_tokens": 20,
            },
            PLAIN | {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
        ),
        (
            {
                "input_tokens": 70,
                "cache_read_input_tokens": None,
                "cache_creation_input_tokens": 30,
                "output_tokens": 20,
            },
            PLAIN,
        ),
        (
            CHAT
            | {
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
                "prompt_tokens_details": {"cached_tokens": 1},
            },
            CHAT | {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        ),
        (
            {
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
                "completion_tokens": 20,
            },
            PLAIN | {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        ),
        (
            {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 64,
                "candidatesTokenCount": 13,
                "thoughtsTokenCount": 7,
            },
            PLAIN | {"prompt_cache_hit_tokens": 64, "reasoning_tokens": 7},
        ),
        (
            {
                "prompt_token_count": 100,
                "cached_content_token_count": None,
                "candidates_token_count": 20,
                "total_token_count": 121,
            },
            CHAT,
        ),
        (
            {
                "inputTokens": 10,
                "cacheReadInputTokens": 60,
                "cacheWriteInputTokens": 30,
                "outputTokens": 20,
            },
            PLAIN | {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
        ),
        ({"inputTokens": 100, "outputTokens": 20}, PLAIN),
    ],
)
def test_usage_reports(report: dict[str, object], expected: dict[str, int]) -> None:
    assert read_usage(report) == Usage(**expected)


@pytest.mark.parametrize(
    ("report", "path"),
    [
        ({"prompt_tokens": "1"}, "prompt_tokens"),
        ({"prompt_tokens": True}, "prompt_tokens"),
        ({"prompt_tokens": 1.0}, "prompt_tokens"),
        ({"prompt_tokens": -1}, "prompt_tokens"),
        ({"prompt_tokens": 1, "prompt_tokens_details": 3}, "prompt_tokens_details"),
        (
            {"input_tokens": 1, "input_tokens_details": {"cached_tokens": "3"}},
            "input_tokens_details.cached_tokens",
        ),
        ({"promptTokenCount": 1, "thoughtsTokenCount": []}, "thoughtsTokenCount"),
        ({"inputTokens": 1, "cacheReadInputTokens": 1.5}, "cacheReadInputTokens"),
        ({}, ""),
        ({"tokens": 1}, ""),
        (None, ""),
        ([1], ""),
    ],
)
def test_bad_usage_reports(report: object, path: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_usage(report)  # type: ignore[arg-type]
    assert caught.value.path == path
