"""The cache diagnoses that Anthropic and OpenAI give, beside our own causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from raf_session.errors import InvalidValueError
from raf_session.frozen import FrozenDict
from raf_session.prefix_match import Cause, PrefixMatch

__all__ = (
    "CACHE_MISS_REASONS",
    "OPENAI_PARAMETER_REASONS",
    "WITHOUT_COUNTERPART",
    "Diagnosis",
    "agrees",
    "read_diagnosis",
)

_ANYWHERE: Final = (Cause.KEY_ORDER, Cause.WHITESPACE, Cause.UNICODE, Cause.NUMBER_FORM)
_TOOLS: Final = (
    Cause.TOOLS_ADDED,
    Cause.TOOLS_REMOVED,
    Cause.TOOLS_ORDER,
    Cause.TOOLS_CHANGED,
)
_MESSAGES: Final = (
    Cause.MESSAGE_EDITED,
    Cause.MESSAGE_REMOVED,
    Cause.MESSAGE_REORDERED,
    *_ANYWHERE,
    Cause.CALL_ID,
    Cause.IMAGE_CHANGED,
    Cause.REASONING_DROPPED,
    Cause.TRUNCATED_HEAD,
)

CACHE_MISS_REASONS: Final[Mapping[str, Mapping[Cause, str]]] = FrozenDict(
    {
        "anthropic": FrozenDict[str](
            {
                Cause.MODEL: "model_changed",
                Cause.PARAMETERS: "unavailable",
                **dict.fromkeys(_TOOLS, "tools_changed"),
                Cause.SYSTEM_CHANGED: "system_changed",
                **dict.fromkeys((*_MESSAGES, Cause.COMPACTED), "messages_changed"),
            }
        ),
        "openai": FrozenDict[str](
            {
                Cause.MODEL: "model_changed",
                **dict.fromkeys(_TOOLS, "tools_changed"),
                **dict.fromkeys((Cause.SYSTEM_CHANGED, *_MESSAGES), "input_changed"),
                Cause.COMPACTED: "context_compacted",
            }
        ),
    }
)
"""The vendor's word for each of our causes, by vendor.

A change of form is named by where it stands: here in a message; in a tool or in the
system prompt it is that section's word.
"""

WITHOUT_COUNTERPART: Final[Mapping[str, frozenset[Cause]]] = FrozenDict(
    {
        "anthropic": frozenset((Cause.NONE, Cause.UNKNOWN)),
        "openai": frozenset((Cause.NONE, Cause.PARAMETERS, Cause.UNKNOWN)),
    }
)
"""The causes that have no one word of the vendor's.

OpenAI has one for several parameters, see `OPENAI_PARAMETER_REASONS`.
"""

OPENAI_PARAMETER_REASONS: Final[Mapping[str, str]] = FrozenDict(
    {
        "text_format_changed": "format",
        "reasoning_effort_changed": "effort",
        "verbosity_changed": "verbosity",
        "service_tier_changed": "service_tier",
    }
)
"""How the path of a parameter ends, or goes on, for which OpenAI has a word of its own.

``response_format``, ``text.format.type`` and ``reasoning_effort`` are found by it.
"""

_KEY_WORD: Final = "prompt_cache_key_changed"
_VAGUE: Final = frozenset(("unavailable",))
_SECTIONS: Final[Mapping[str, frozenset[str]]] = FrozenDict(
    {
        "model_changed": frozenset(("model", "parameters")),
        "tools_changed": frozenset(("tools",)),
        "system_changed": frozenset(("system",)),
        "messages_changed": frozenset(("messages",)),
        "input_changed": frozenset(("system", "messages")),
        "context_compacted": frozenset(("messages",)),
    }
)


class Diagnosis(NamedTuple):
    """What a provider says of why a request missed its cache."""

    vendor: str
    """``anthropic`` or ``openai``."""

    word: str
    """The reason in the vendor's vocabulary; the result where it gives no reason."""

    causes: frozenset[Cause]
    """Our causes that the word may mean; empty: it names none of them."""

    missed_tokens: int | None
    """The tokens that were not reused, as the vendor counts; `None`: not said."""


def read_diagnosis(report: Mapping[str, Any]) -> Diagnosis | None:
    """Return the diagnosis of a response, or of the object that holds one in it.

    Anthropic's ``diagnostics`` and the ``cache_miss_reason`` in it, and OpenAI's
    ``prompt_cache_diagnostics``: each as itself or at the top level of a response.

    Returns:
        `None` where there is none: not asked for, nothing to say, or still pending.

    Raises:
        InvalidValueError: a value of another type than the vendor documents, with its
            path.
    """
    if not isinstance(report, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError("", "a diagnosis is an object")
    if "prompt_cache_diagnostics" in report:
        path = "prompt_cache_diagnostics"
        found = _object(report[path], path)
        return None if found is None else _openai(found, f"{path}.")
    path, outer = "", report
    if "diagnostics" in report:
        nested = _object(report["diagnostics"], "diagnostics")
        if nested is None:
            return None
        path, outer = "diagnostics.", nested
    if "cache_miss_reason" in outer:
        path += "cache_miss_reason"
        found = _object(outer["cache_miss_reason"], path)
        return None if found is None else _anthropic(found, f"{path}.")
    kind = outer.get("type")
    if path or not isinstance(kind, str):
        return None
    if kind in _OPENAI_RESULTS and "cache_missed_input_tokens" not in outer:
        return _openai(outer, "")
    if kind in _ANTHROPIC_WORDS or "cache_missed_input_tokens" in outer:
        return _anthropic(outer, "")
    return None


def agrees(diagnosis: Diagnosis, match: PrefixMatch) -> bool | None:
    """Tell whether a vendor's diagnosis names what we found.

    Both must compare with the same former request.

    Returns:
        `None` where it cannot be told: a word that names no cause of ours, a first
        request, a difference that we know too little of, or a hit on a part of it.
    """
    if match.first or match.cause is Cause.UNKNOWN:
        return None
    if diagnosis.word == _KEY_WORD:
        if match.caching is None:
            return None
        before, now = match.caching.keys.get("prompt_cache_key", (None, None))
        return before != now
    if not diagnosis.causes:
        return None
    if match.append_only:
        if diagnosis.word in _VAGUE or diagnosis.word == "service_tier_changed":
            return None
        return Cause.NONE in diagnosis.causes
    if Cause.NONE in diagnosis.causes:
        return None if match.shared_messages else False
    if match.cause not in diagnosis.causes:
        return None if diagnosis.word in _VAGUE else False
    difference = match.first_difference
    if difference is None or difference.section == "header":
        return None
    if match.cause is Cause.PARAMETERS:
        return _names_parameter(diagnosis, difference.path)
    if match.cause is Cause.SYSTEM_CHANGED:  # its own section, or a message
        return True
    sections = _SECTIONS.get(diagnosis.word)
    return sections is None or difference.section in sections


def _names_parameter(diagnosis: Diagnosis, path: str) -> bool:
    if diagnosis.vendor == "openai":
        return OPENAI_PARAMETER_REASONS[diagnosis.word] in path
    return ("speed" in path) == (diagnosis.word == "model_changed")


def _causes(vendor: str) -> dict[str, frozenset[Cause]]:
    causes: dict[str, set[Cause]] = {}
    for cause, word in CACHE_MISS_REASONS[vendor].items():
        causes.setdefault(word, set()).add(cause)
    for word in ("tools_changed", "system_changed"):
        if word in causes:
            causes[word].update(_ANYWHERE)
    return {word: frozenset(found) for word, found in causes.items()}


def _anthropic_words() -> Mapping[str, frozenset[Cause]]:
    words = _causes("anthropic")
    words["model_changed"] |= {Cause.PARAMETERS}  # `speed` is told as the model
    words["previous_message_not_found"] = frozenset()
    return FrozenDict(words)


def _openai_words() -> Mapping[str, frozenset[Cause]]:
    words = _causes("openai")
    words["input_changed"] |= {Cause.COMPACTED}  # by the caller, not by the API
    words.update(
        dict.fromkeys(OPENAI_PARAMETER_REASONS, frozenset((Cause.PARAMETERS,)))
    )
    words[_KEY_WORD] = frozenset()
    words["cache_hit"] = frozenset((Cause.NONE,))
    return FrozenDict(words)


_ANTHROPIC_WORDS: Final = _anthropic_words()
_OPENAI_WORDS: Final = _openai_words()
_OPENAI_RESULTS: Final = frozenset(
    ("cache_hit", "cache_miss", "comparison_response_not_found")
)
"""What tells OpenAI's object from Anthropic's, which has ``unavailable`` as well."""


def _anthropic(reason: Mapping[str, Any], path: str) -> Diagnosis:
    word = _text(reason.get("type"), f"{path}type")
    missed = _tokens(reason, "cache_missed_input_tokens", path)
    return Diagnosis("anthropic", word, _ANTHROPIC_WORDS.get(word, frozenset()), missed)


def _openai(result: Mapping[str, Any], path: str) -> Diagnosis:
    word = _text(result.get("type"), f"{path}type")
    if word == "cache_miss":
        word = _text(result.get("reason"), f"{path}reason")
    missed = _tokens(result, "cache_missed_tokens", path)
    return Diagnosis("openai", word, _OPENAI_WORDS.get(word, frozenset()), missed)


def _object(value: Any, path: str) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidValueError(path, f"an object, not {type(value).__name__}")
    return cast("Mapping[str, Any] | None", value)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(path, f"a word, not {type(value).__name__}")
    return value


def _tokens(found: Mapping[str, Any], name: str, path: str) -> int | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidValueError(f"{path}{name}", "a number of tokens, from 0")
    return value
