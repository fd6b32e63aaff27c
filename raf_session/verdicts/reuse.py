"""How much of a shared prefix is reused: keys, minimum, age, marks and blocks."""

from __future__ import annotations

from raf_session.provider_rules import WriteRule
from raf_session.verdicts.cases import (
    BEGINS,
    MARKED,
    Case,
    Expected,
    SharedPrefix,
    missed,
)
from raf_session.verdicts.marked_prefix import at_marks, too_old
from raf_session.verdicts.outcomes import Outcome, Reason
from raf_session.verdicts.shared_prefix import leaving

__all__ = ("reused",)


def reused(case: Case, shared: SharedPrefix) -> Expected:
    """Return how much of what both requests begin with comes from the cache."""
    match, rules = case.match, case.rules
    left = leaving(match, rules)
    if not shared.high and not shared.whole:
        return missed(Reason.DIVERGED, f"{left}, and nothing in front of it survives.")
    changed = _changed_key(case)
    if changed is not None and rules.key_loses_cache:
        name, before, now = changed
        return missed(
            Reason.KEY_CHANGED,
            f"`{name}` changed from {_key(before)} to {_key(now)}, and {rules.name} "
            "keeps a cache for each.",
        )
    marked = rules.writes in MARKED
    found = at_marks(case, shared) if marked else _by_tokens(case, shared, left)
    found = _minimum(case, shared, found)
    if found.outcome is Outcome.MISS:
        return found
    if marked:
        found = _minimum(case, shared, at_marks(case, shared, reading=True))
    elif case.expired():
        found = too_old(case, case.ttl)
    found = _round(case, shared, found)
    if found.outcome is Outcome.MISS or changed is None:
        return found
    text = f"Whether another cache key loses {rules.name}'s cache is not certain."
    return Expected(Outcome.UNKNOWN, Reason.KEY_CHANGED, 0, found.high, text)


def _changed_key(case: Case) -> tuple[str, str | None, str | None] | None:
    if case.match.caching is None:
        return None
    keys = case.match.caching.keys
    for name, (before, now) in keys.items():
        if name in case.rules.keys and before != now:
            return name, before, now
    return None


def _key(key: str | None) -> str:
    return "none" if key is None else repr(key)


def _by_tokens(case: Case, shared: SharedPrefix, left: str) -> Expected:
    if shared.whole:
        return Expected(Outcome.HIT, Reason.APPENDED, shared.low, shared.high, BEGINS)
    if case.rules.writes is WriteRule.UNITS:
        text = (
            f"{left}, and {case.rules.name} reuses complete units only: the first "
            "request that forks off finds none unless an earlier one ended there."
        )
        return Expected(Outcome.UNKNOWN, Reason.UNIT_INCOMPLETE, 0, shared.high, text)
    outcome = Outcome.PARTIAL if shared.low else Outcome.UNKNOWN
    text = f"{left}; what stands in front of it is reused as far as it survives."
    return Expected(outcome, Reason.DIVERGED, shared.low, shared.high, text)


def _minimum(case: Case, shared: SharedPrefix, found: Expected) -> Expected:
    least, most = case.minimum
    if found.outcome is Outcome.MISS or found.low >= most:
        return found
    limit = f"{most:,} tokens"
    if least != most:
        limit = f"{least:,} to {limit}, by the model"
    if found.high < least:
        marked = case.rules.writes in MARKED
        before = "" if shared.whole else f"{found.text} "
        short = shared.whole or marked or case.tokens < least
        return missed(
            Reason.BELOW_MINIMUM if short else Reason.DIVERGED,
            f"{before}The prefix has {found.high:,} of "
            f"the {case.tokens:,} tokens, and {case.rules.name} caches none of fewer "
            f"than {limit}.",
        )
    if found.outcome is Outcome.UNKNOWN:  # of which nothing is certain anyway
        return found
    text = f"{found.text} Whether that reaches the minimum of {limit} is not known."
    return Expected(Outcome.UNKNOWN, Reason.BELOW_MINIMUM, 0, found.high, text)


def _round(case: Case, shared: SharedPrefix, found: Expected) -> Expected:
    low, high = case.rounded(found.low), case.rounded(found.high)
    if found.outcome is Outcome.MISS or low:
        return found._replace(low=low, high=high)
    if high:
        decided = found.outcome is not Outcome.UNKNOWN
        reason = Reason.ROUNDED_AWAY if decided else found.reason
        return Expected(Outcome.UNKNOWN, reason, 0, high, found.text)
    before = "" if shared.whole else f"{found.text} "
    short = shared.whole or not case.rounded(case.tokens)
    held = ", the last of which is withheld" if case.rules.last_block_withheld else ""
    return missed(
        Reason.ROUNDED_AWAY if short else Reason.DIVERGED,
        f"{before}The shared prefix has {found.high:,} "
        f"tokens, and {case.rules.name} reuses full blocks of {case.block:,}{held}.",
    )
