"""`Verdict`, and the words it is told in."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from raf_session.provider_rules import ProviderRules

__all__ = ("Outcome", "Reason", "Verdict")


class Outcome(StrEnum):
    """What is expected of the cache."""

    HIT = "hit"
    """All that the former request left and this one repeats is reused."""

    PARTIAL = "partial"
    """Some is: this request leaves the former one, or does not find its last mark."""

    MISS = "miss"
    """Nothing is reused."""

    UNKNOWN = "unknown"
    """The rules do not decide it; the explanation says what is missing."""


class Reason(StrEnum):
    """What decided the outcome: the first layer that did."""

    APPENDED = "appended"
    """The former request begins this one."""

    FIRST_REQUEST = "first_request"
    """There is no former request."""

    DIVERGED = "diverged"
    """The prompt leaves the former one."""

    DIVERGED_BEHIND_MARK = "diverged_behind_mark"
    """It does so behind a cached prefix, which is not lost."""

    DIVERGED_BEFORE_MARK = "diverged_before_mark"
    """It does so before the end of every prefix that the former request left."""

    UNIT_INCOMPLETE = "unit_incomplete"
    """What both share need not be a complete unit of the cache."""

    FORM_ONLY = "form_only"
    """They differ in a form only, and whether the provider sees that is not known."""

    KEY_CHANGED = "key_changed"
    """The request has another cache key."""

    NO_MARK = "no_mark"
    """The former request, or this one, has no cache mark where the rules need one."""

    BELOW_MINIMUM = "below_minimum"
    """The shared prefix is, or may be, shorter than the provider caches."""

    ROUNDED_AWAY = "rounded_away"
    """The shared prefix fills, or may fill, no block that would be reused."""

    EXPIRED = "expired"
    """More time went by than the provider keeps a prefix."""

    LOOK_BACK_EXCEEDED = "look_back_exceeded"
    """The cached prefix ends too far in front of where this request reads."""

    PROVIDER_SIDE_MISS = "provider_side_miss"
    """The provider reports no reuse where all of the above promised it."""


class Verdict(NamedTuple):
    """What a provider's cache is expected to reuse of a request."""

    provider: str
    """The name of the rules."""

    outcome: Outcome
    """What is expected; a miss as well where usage reports one."""

    reason: Reason
    """What decided it."""

    reusable_tokens: int | None
    """The tokens expected from the cache, after rounding; `None`: not known."""

    tokens: int
    """The tokens of the request's prompt, as given."""

    ttl_left_seconds: float | None
    """How long the former request's prefix still lives; `None`: not known."""

    reported_tokens: int | None
    """The cached tokens that usage reports; `None`: not given."""

    explanation: str
    """One to three sentences: what, where, why, with their numbers."""

    rules: ProviderRules
    """The rules that it rests on, with their source and date."""
