"""Diagnoses of vendors: read, and held against our causes."""

from __future__ import annotations

from typing import Any

import pytest

from raf_session.diagnosis import (
    CACHE_MISS_REASONS,
    OPENAI_PARAMETER_REASONS,
    WITHOUT_COUNTERPART,
    Diagnosis,
    agrees,
    read_diagnosis,
)
from raf_session.errors import InvalidValueError
from raf_session.prefix_match import CacheHints, Cause, Difference, PrefixMatch

ANTHROPIC = {
    "model_changed", "system_changed", "tools_changed", "messages_changed",
    "previous_message_not_found", "unavailable",
}  # fmt: skip
OPENAI = {
    "model_changed", "prompt_cache_key_changed", "tools_changed",
    "text_format_changed", "reasoning_effort_changed", "verbosity_changed",
    "context_compacted", "input_changed", "service_tier_changed",
}  # fmt: skip


def missed(word: str, vendor: str = "anthropic") -> Diagnosis:
    if vendor == "anthropic":
        report: dict[str, Any] = {"cache_miss_reason": {"type": word}}
    else:
        reason = {"type": "cache_miss", "reason": word}
        report = {"prompt_cache_diagnostics": reason}
    diagnosis = read_diagnosis(report)
    assert diagnosis is not None
    return diagnosis


def match(
    cause: Cause, section: str = "messages", path: str = "", **fields: Any
) -> Any:
    same = cause is Cause.NONE
    values: dict[str, Any] = {
        "shared_messages": 0,
        "shared_bytes": 0,
        "messages": 3,
        "bytes": 300,
        "append_only": same,
        "first_different": None,
        "previous_messages": 2,
        "header_changed": section != "messages",
        "hash": 1,
        "cause": cause,
        "first_difference": None if same else Difference(section, None, path),
    }
    return PrefixMatch(**(values | fields))


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_a_word_or_none(vendor: str, cause: Cause) -> None:
    words = CACHE_MISS_REASONS[vendor]
    assert (cause in words) != (cause in WITHOUT_COUNTERPART[vendor])
    if cause in words:
        assert words[cause] in (ANTHROPIC if vendor == "anthropic" else OPENAI)
        assert cause in missed(words[cause], vendor).causes


def test_every_word_is_known() -> None:
    assert list(CACHE_MISS_REASONS) == list(WITHOUT_COUNTERPART)
    for word in ANTHROPIC - {"previous_message_not_found"}:
        assert missed(word).causes
    for word in OPENAI - {"prompt_cache_key_changed"}:
        assert missed(word, "openai").causes
    assert set(OPENAI_PARAMETER_REASONS) <= OPENAI


@pytest.mark.parametrize(
    "report",
    [
        {"id": "m", "diagnostics": {"cache_miss_reason": "REASON"}},
        {"cache_miss_reason": "REASON"},
        "REASON",
    ],
)
def test_where_anthropic_says_it(report: Any) -> None:
    reason = {"type": "tools_changed", "cache_missed_input_tokens": 41}

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fill(inner) for name, inner in value.items()}
        return reason if value == "REASON" else value

    diagnosis = read_diagnosis(fill(report))
    assert diagnosis is not None
    assert diagnosis[:2] == ("anthropic", "tools_changed")
    assert Cause.TOOLS_ORDER in diagnosis.causes
    assert Cause.KEY_ORDER in diagnosis.causes
    assert Cause.MODEL not in diagnosis.causes
    assert diagnosis.missed_tokens == 41


@pytest.mark.parametrize("nested", [False, True])
def test_where_openai_says_it(nested: bool) -> None:
    def read(result: dict[str, Any]) -> Diagnosis | None:
        body = {"id": "r", "prompt_cache_diagnostics": result}
        return read_diagnosis(body if nested else result)

    miss = {"type": "cache_miss", "reason": "model_changed", "cache_missed_tokens": 7}
    causes = frozenset((Cause.MODEL,))
    assert read(miss) == Diagnosis("openai", "model_changed", causes, 7)
    causes = frozenset((Cause.NONE,))
    assert read({"type": "cache_hit"}) == Diagnosis("openai", "cache_hit", causes, None)
    lost = Diagnosis("openai", "comparison_response_not_found", frozenset(), None)
    assert read({"type": "comparison_response_not_found"}) == lost


def test_unavailable_at_openai_is_not_that_of_anthropic() -> None:
    diagnosis = read_diagnosis({"prompt_cache_diagnostics": {"type": "unavailable"}})
    assert diagnosis == Diagnosis("openai", "unavailable", frozenset(), None)
    assert missed("unavailable").causes == {Cause.PARAMETERS}


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"id": "m", "type": "message"},
        {"diagnostics": None},
        {"diagnostics": {}},
        {"diagnostics": {"cache_miss_reason": None}},
        {"prompt_cache_diagnostics": None},
    ],
)
def test_no_diagnosis(report: dict[str, Any]) -> None:
    assert read_diagnosis(report) is None


def test_unknown_words_name_no_cause() -> None:
    assert missed("moon_changed") == ("anthropic", "moon_changed", frozenset(), None)
    assert missed("moon", "openai") == ("openai", "moon", frozenset(), None)
    assert agrees(missed("moon"), match(Cause.MODEL, "model")) is None


@pytest.mark.parametrize(
    ("report", "path"),
    [
        ({"diagnostics": 1}, "diagnostics"),
        ({"diagnostics": {"cache_miss_reason": "x"}}, "diagnostics.cache_miss_reason"),
        ({"cache_miss_reason": {"type": 5}}, "cache_miss_reason.type"),
        (
            {"cache_miss_reason": {"type": "x", "cache_missed_input_tokens": True}},
            "cache_miss_reason.cache_missed_input_tokens",
        ),
        ({"prompt_cache_diagnostics": []}, "prompt_cache_diagnostics"),
        ({"prompt_cache_diagnostics": {}}, "prompt_cache_diagnostics.type"),
        ({"type": "cache_miss"}, "reason"),
        (
            {"type": "cache_miss", "reason": "x", "cache_missed_tokens": -1},
            "cache_missed_tokens",
        ),
        ([], ""),
    ],
)
def test_bad_reports(report: Any, path: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_diagnosis(report)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("diagnosis", "found", "expected"),
    [
        (missed("model_changed"), match(Cause.MODEL, "model"), True),
        (missed("model_changed"), match(Cause.TOOLS_ADDED, "tools"), False),
        (missed("model_changed"), match(Cause.PARAMETERS, "parameters", "speed"), True),
        (missed("model_changed"), match(Cause.PARAMETERS, "parameters", "x"), False),
        (missed("unavailable"), match(Cause.PARAMETERS, "parameters", "x"), True),
        (missed("unavailable"), match(Cause.PARAMETERS, "parameters", "speed"), False),
        (missed("unavailable"), match(Cause.MODEL, "model"), None),
        (missed("unavailable"), match(Cause.NONE), None),
        (missed("previous_message_not_found"), match(Cause.MODEL, "model"), None),
        (missed("messages_changed"), match(Cause.KEY_ORDER), True),
        (missed("messages_changed"), match(Cause.KEY_ORDER, "tools"), False),
        (missed("tools_changed"), match(Cause.KEY_ORDER, "tools"), True),
        (missed("tools_changed"), match(Cause.KEY_ORDER), False),
        (missed("system_changed"), match(Cause.WHITESPACE, "system"), True),
        (missed("system_changed"), match(Cause.SYSTEM_CHANGED), True),
        (missed("tools_changed"), match(Cause.TOOLS_CHANGED, "header"), None),
        (missed("messages_changed"), match(Cause.UNKNOWN), None),
        (missed("messages_changed"), match(Cause.NONE), False),
        (
            missed("messages_changed"),
            match(Cause.NONE, previous_messages=None),
            None,
        ),
        (
            missed("input_changed", "openai"),
            match(Cause.SYSTEM_CHANGED, "system"),
            True,
        ),
        (missed("input_changed", "openai"), match(Cause.COMPACTED), True),
        (missed("context_compacted", "openai"), match(Cause.COMPACTED), True),
        (missed("context_compacted", "openai"), match(Cause.MESSAGE_EDITED), False),
        (missed("service_tier_changed", "openai"), match(Cause.NONE), None),
        (missed("input_changed", "openai"), match(Cause.NONE), False),
    ],
)
def test_agreement(diagnosis: Diagnosis, found: PrefixMatch, expected: Any) -> None:
    assert agrees(diagnosis, found) is expected


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("text_format_changed", "text.format.name"),
        ("text_format_changed", "response_format"),
        ("reasoning_effort_changed", "reasoning.effort"),
        ("reasoning_effort_changed", "reasoning_effort"),
        ("verbosity_changed", "text.verbosity"),
    ],
)
def test_agreement_on_a_parameter(word: str, path: str) -> None:
    diagnosis = missed(word, "openai")
    assert agrees(diagnosis, match(Cause.PARAMETERS, "parameters", path)) is True
    assert agrees(diagnosis, match(Cause.PARAMETERS, "parameters", "n")) is False


def test_agreement_on_the_key() -> None:
    diagnosis = missed("prompt_cache_key_changed", "openai")

    def found(before: str, now: str) -> Any:
        keys = {"prompt_cache_key": (before, now)}
        hints = CacheHints(None, 2, 3, None, None, 0, keys, None)
        return match(Cause.NONE, caching=hints)

    assert agrees(diagnosis, found("a", "b")) is True
    assert agrees(diagnosis, found("a", "a")) is False
    assert agrees(diagnosis, match(Cause.NONE)) is None


def test_agreement_on_a_hit() -> None:
    hit = read_diagnosis({"type": "cache_hit"})
    assert hit is not None
    assert agrees(hit, match(Cause.NONE)) is True
    assert agrees(hit, match(Cause.MODEL, "model")) is False
    assert agrees(hit, match(Cause.MESSAGE_EDITED, shared_messages=1)) is None
