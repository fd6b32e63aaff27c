"""`verdict`: what a provider's cache is expected to reuse of a request, and why."""

from __future__ import annotations

import math

from raf_session.messages import Usage
from raf_session.prefix_match import PrefixMatch
from raf_session.provider_rules import ProviderRules, rules_for
from raf_session.verdicts.cases import Case, Expected, missed
from raf_session.verdicts.outcomes import Outcome, Reason, Verdict
from raf_session.verdicts.reuse import reused
from raf_session.verdicts.shared_prefix import (
    alike_but_for_form,
    appended,
    diverged,
    lost_by_toggle,
)

__all__ = ("verdict",)


def verdict(
    match: PrefixMatch,
    provider: str | ProviderRules,
    *,
    tokens: int,
    shared_tokens: int | None = None,
    elapsed_seconds: float | None = None,
    model: str | None = None,
    block_tokens: int | None = None,
    usage: Usage | None = None,
) -> Verdict:
    """Return what the provider's cache is expected to reuse of a request.

    A prediction by documented rules from the former request alone: what still earlier
    requests, or other sessions, left in the cache is not looked at, nor are evictions.
    What the former answer added is not counted.

    Args:
        match: how the request compares with the one before.
        provider: a name in `RULES`, or rules.
        tokens: the tokens of this request's prompt, counted or estimated.
        shared_tokens: how many of them begin the former request too; estimated from
            the bytes by default.
        elapsed_seconds: since the former request began; not looked at by default.
        model: its name, for rules that depend on it; by default that of the body.
        block_tokens: the step of rounding, instead of the rules'.
        usage: what the provider reported of this request, where it was sent.

    Raises:
        TypeError: a number of another type.
        ValueError: rules that are not known, a negative or not finite number, blocks
            of no token, or more shared tokens than tokens.
    """
    rules = rules_for(provider)
    _check("tokens", tokens, 0)
    if shared_tokens is not None:
        _check("shared_tokens", shared_tokens, 0)
        if shared_tokens > tokens:
            raise ValueError(f"{shared_tokens} shared tokens of {tokens} tokens")
    if block_tokens is not None:
        _check("block_tokens", block_tokens, 1)
    hints = match.caching
    asked = hints.ttl_seconds if hints else None
    ttl = rules.ttl_seconds if asked is None else asked
    name = model if model is not None else hints.model if hints else None
    case = Case(
        match,
        rules,
        tokens,
        shared_tokens,
        rules.minimum(name),
        rules.block(name) if block_tokens is None else block_tokens,
        _age(elapsed_seconds),
        None if match.first else ttl,
    )
    expected = _expect(case)
    reported = None if usage is None else usage.prompt_cache_hit_tokens
    if reported is not None:
        expected = _compare(case, expected, reported)
    return Verdict(
        rules.name,
        expected.outcome,
        expected.reason,
        expected.low if expected.low == expected.high else None,
        tokens,
        case.time_left,
        reported,
        expected.text,
        rules,
    )


def _expect(case: Case) -> Expected:
    match, difference = case.match, case.match.first_difference
    if match.first:
        return missed(
            Reason.FIRST_REQUEST,
            "It is the first request of its session: there is no former one to reuse.",
        )
    if lost_by_toggle(match, case.rules) is not None:
        return _said(case, reused(case, diverged(case)))
    if match.append_only:
        return _said(case, reused(case, appended(case)))
    if difference is None or not difference.only_form:
        return _said(case, reused(case, diverged(case)))
    alike = case.rules.text_forms_alike
    if alike is not None:
        found = reused(case, alike_but_for_form(case) if alike else diverged(case))
        if alike and found.outcome is not Outcome.MISS:
            text = f"At {difference} nothing but a form differs that {case.rules.name} "
            found = found._replace(text=f"{text}renders alike. {found.text}")
        return _said(case, found)
    loose = reused(case, alike_but_for_form(case))
    if loose.outcome is Outcome.MISS:
        return loose
    strict = reused(case, diverged(case))
    text = (
        f"At {difference} nothing but the form differs, and whether {case.rules.name} "
        "renders both forms alike is not documented."
    )
    low = min(strict.low, loose.low)
    if low == loose.high:
        return _said(case, strict)
    form = Expected(Outcome.UNKNOWN, Reason.FORM_ONLY, low, loose.high, text)
    return _said(case, form)


def _said(case: Case, expected: Expected) -> Expected:
    if expected.outcome is Outcome.MISS:
        return expected
    steps = f", in steps of {case.block:,}" if case.block > 1 else ""
    text = (
        f"Expected from the cache: {expected.amount} of {case.tokens:,} tokens{steps}."
    )
    return expected._replace(text=f"{expected.text} {text}")


# What was reported, and arguments -------------------------------------------------


def _compare(case: Case, expected: Expected, reported: int) -> Expected:
    promised = expected.outcome is Outcome.HIT or (
        expected.reason is Reason.DIVERGED_BEHIND_MARK
    )
    if reported == 0 and promised and expected.outcome is not Outcome.UNKNOWN:
        text = (
            f"{case.rules.name} reports 0 cached tokens where its rules promise "
            f"{expected.amount} of {case.tokens:,}: a miss on the provider's side, not "
            "your bytes."
        )
        return expected._replace(
            outcome=Outcome.MISS, reason=Reason.PROVIDER_SIDE_MISS, text=text
        )
    more = ", more than expected" if reported > expected.high else ""
    text = f"{expected.text} The provider reports {reported:,} cached tokens{more}."
    return expected._replace(text=text)


def _check(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is an integer, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name}={value} is less than {least}")


def _age(elapsed: object) -> float | None:
    if elapsed is None:
        return None
    if not isinstance(elapsed, int | float) or isinstance(elapsed, bool):
        raise TypeError(f"elapsed_seconds is a number, not {type(elapsed).__name__}")
    if not 0 <= elapsed < math.inf:
        raise ValueError(f"elapsed_seconds={elapsed} is not a time from 0 on")
    return float(elapsed)
