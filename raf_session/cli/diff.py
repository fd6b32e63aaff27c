"""``raf-session diff``: two request bodies, and what a cache makes of the later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final, NamedTuple

from raf_session.cli.bodies import Logged
from raf_session.cli.causes import ADVICE
from raf_session.cli.faults import Fault, invalid
from raf_session.cli.pairs import Pair
from raf_session.cli.ribbon import Part, read_parts
from raf_session.errors import InvalidValueError
from raf_session.messages import Usage
from raf_session.prefix import PrefixMatch, header_digest, message_digest
from raf_session.prefix_comparison import compare_requests
from raf_session.prefix_match import CacheHints
from raf_session.provider_rules import RULES
from raf_session.request_shapes import (
    PromptRequest,
    RequestShape,
    common_shape,
    read_request,
)
from raf_session.usage_reports import read_usage
from raf_session.verdicts import Verdict, verdict

__all__ = ("ALL", "Comparison", "DiffOptions", "TokenSource", "compare", "diff_json")

ALL: Final = "all"
"""What stands for every provider."""

BYTES_PER_TOKEN: Final = 4

_OPENAI: Final = ("openai", "openai-5.5")
_JUDGED: Final[Mapping[str, Sequence[str]]] = {
    RequestShape.OPENAI_CHAT: (*_OPENAI, "deepseek", "vllm", "sglang"),
    RequestShape.OPENAI_RESPONSES: _OPENAI,
    RequestShape.ANTHROPIC: ("anthropic", "bedrock"),
    RequestShape.GEMINI: ("gemini",),
    RequestShape.BEDROCK: ("bedrock",),
    "openai": _OPENAI,
    "deepseek": ("deepseek",),
    "vllm": ("vllm",),
    "sglang": ("sglang",),
}
"""Whose rules are looked at by default: by `--provider`, or by what the bodies tell."""


class TokenSource(StrEnum):
    """How the tokens of the prompt are known."""

    GIVEN = "given"
    REPORTED = "reported"
    """By the provider, in the log."""
    ESTIMATED = "estimated"
    """From the bytes."""


class DiffOptions(NamedTuple):
    """What the command was asked, beside the two bodies."""

    provider: str | None = None
    judges: Sequence[str] = ()
    tokens: int | None = None
    elapsed_seconds: float | None = None
    block_tokens: int | None = None


class Comparison(NamedTuple):
    """Two requests, compared."""

    pair: Pair
    shape: RequestShape
    match: PrefixMatch
    parts: Sequence[Part]
    """The later request, in reading order, and what is gone of the former one."""
    tokens: int
    """Of the later request's prompt."""
    tokens_from: TokenSource
    usage: Usage | None
    """What the provider reported of the later request."""
    verdicts: Sequence[Verdict]
    """By provider; usage is held against the rules where there is one alone."""


def compare(pair: Pair, options: DiffOptions) -> Comparison:
    """Return how the later body goes on from the former one.

    Raises:
        Fault: a body or an option is none.
    """
    names = _judges(options.judges)
    shape = options.provider or _shape(pair)
    former, request = (_read(body, shape) for body in pair)
    bodies = (body.body for body in pair)
    match = compare_requests(*bodies, provider=shape)
    tokens, tokens_from, usage = _tokens(pair.current, match, options.tokens)
    names = names or _JUDGED.get(options.provider or former.shape, ())
    return Comparison(
        pair,
        request.shape,
        match,
        read_parts(former, request, header_changed=match.header_changed),
        tokens,
        tokens_from,
        usage,
        [
            _verdict(match, name, tokens, options, usage if len(names) == 1 else None)
            for name in names
        ],
    )


def _judges(names: Sequence[str]) -> Sequence[str]:
    if ALL in names:
        return tuple(RULES)
    for name in names:
        if name not in RULES:
            known = ", ".join((*RULES, ALL))
            raise Fault("--for", f"no rules for {name!r} (known: {known})")
    return tuple(dict.fromkeys(names))


def _shape(pair: Pair) -> RequestShape:
    try:
        return common_shape(pair.previous.body, pair.current.body)
    except InvalidValueError as error:
        raise invalid(pair.current.place, pair.current.path, error) from error


def _read(body: Logged, shape: str) -> PromptRequest:
    try:
        request = read_request(body.body, shape)
        header_digest(request.header)
    except InvalidValueError as error:
        raise invalid(body.place, body.path, error) from error
    except ValueError as error:
        raise Fault("--provider", str(error)) from error
    place = request.names.get("messages", "messages")
    place = f"{body.path}.{place}" if body.path else place
    for index, message in enumerate(request.messages):
        try:
            message_digest(message)
        except InvalidValueError as error:
            raise invalid(body.place, f"{place}[{index}]", error) from error
    return request


def _tokens(
    body: Logged, match: PrefixMatch, given: int | None
) -> tuple[int, TokenSource, Usage | None]:
    try:
        usage = None if body.usage is None else read_usage(body.usage)
    except InvalidValueError as error:
        raise invalid(body.place, "usage", error) from error
    if given is not None:
        return given, TokenSource.GIVEN, usage
    if usage is not None and usage.prompt_tokens:
        return usage.prompt_tokens, TokenSource.REPORTED, usage
    size = match.header_bytes + match.bytes
    return -(-size // BYTES_PER_TOKEN), TokenSource.ESTIMATED, usage


def _verdict(
    match: PrefixMatch,
    name: str,
    tokens: int,
    options: DiffOptions,
    usage: Usage | None,
) -> Verdict:
    try:
        return verdict(
            match,
            name,
            tokens=tokens,
            elapsed_seconds=options.elapsed_seconds,
            block_tokens=options.block_tokens,
            usage=usage,
        )
    except ValueError as error:  # the only number that nobody has looked at
        raise Fault("--elapsed", str(error)) from error


# JSON ----------------------------------------------------------------------------


def diff_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as one JSON value; its keys are the names in Python."""
    match = found.match
    difference, caching = match.first_difference, match.caching
    advice = ADVICE[match.cause]
    return {
        "previous": _body_json(found.pair.previous),
        "current": _body_json(found.pair.current),
        "shape": found.shape,
        **match._asdict(),
        "first_difference": None if difference is None else asdict(difference),
        "caching": None if caching is None else _caching_json(caching),
        "reuse": match.reuse,
        "meaning": advice.meaning,
        "remedy": advice.remedy,
        "parts": [part._asdict() for part in found.parts],
        "tokens": found.tokens,
        "tokens_from": found.tokens_from,
        "usage": None if found.usage is None else found.usage.model_dump(),
        "verdicts": [_verdict_json(one) for one in found.verdicts],
    }


def _caching_json(caching: CacheHints) -> dict[str, Any]:
    return {**caching._asdict(), "toggled": sorted(caching.toggled)}


def _body_json(body: Logged) -> dict[str, Any]:
    return {"file": body.place.file, "line": body.place.line, "path": body.path}


def _verdict_json(found: Verdict) -> dict[str, Any]:
    rules = {"source": found.rules.source, "as_of": found.rules.as_of}
    return {**found._asdict(), "rules": rules}
