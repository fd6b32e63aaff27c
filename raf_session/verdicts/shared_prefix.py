"""What a request and the one before begin with, by the rules of a provider."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from raf_session.cache_positions import TOOLS_END
from raf_session.prefix_match import Cause, PrefixMatch
from raf_session.provider_rules import (
    EVERYTHING,
    UNDOCUMENTED,
    Kept,
    ProviderRules,
    WriteRule,
)
from raf_session.verdicts.cases import NOTHING, Case, SharedPrefix

__all__ = ("alike_but_for_form", "appended", "diverged", "leaving")


def appended(case: Case) -> SharedPrefix:
    """Return the whole former request."""
    match = case.match
    tokens = case.given
    if tokens is None:
        tokens = case.share(match.header_bytes + match.shared_bytes)
    end = match.caching.shared if match.caching else match.shared_messages
    return SharedPrefix(tokens, tokens, end, end, end, whole=True)


def alike_but_for_form(case: Case) -> SharedPrefix:
    """Return the whole former request, where forms of text are no difference."""
    # How many bytes are shared behind the first form that differs is not known.
    shared, match = appended(case), case.match
    previous = match.previous_messages or 0
    high = case.tokens if case.given is None else shared.high
    low = high if previous == match.messages else shared.low
    end = shared.end + previous - match.shared_messages
    return SharedPrefix(low, high, end, end, end, whole=True)


def diverged(case: Case) -> SharedPrefix:
    """Return what is left where the requests part, and what outlives the change."""
    match, rules = case.match, case.rules
    kept = _kept(match, rules)
    shared = appended(case)._replace(former=None, whole=False)
    if not match.header_changed:
        if "messages" in kept.certain:
            return shared
        front = min(shared.low, case.until(0)[0])
        return SharedPrefix(front, front, 0, 0, None, whole=False)
    if "messages" in kept.possible:  # under another header they were not compared
        high = case.tokens if case.given is None else case.given
        end = match.caching.total if match.caching else match.messages
        return SharedPrefix(0, high, end, NOTHING, end, whole=False)
    end, sure = _end(kept.possible), _end(kept.certain)
    low, high = case.until(sure)[0], case.until(end)[1]
    if case.given is not None:
        told = _section(match) in {"tools", "system"}
        by_token = told and rules.writes is WriteRule.BLOCKS
        high = case.given if by_token else min(case.given, high)
        low = high if by_token else min(low, high)
    return SharedPrefix(low, high, end if high else NOTHING, sure, None, whole=False)


def _end(sections: Collection[str]) -> int:
    """Return the position after the last of these sections."""
    if "system" in sections:
        return 0
    return TOOLS_END if "tools" in sections else NOTHING


def _kept(match: PrefixMatch, rules: ProviderRules) -> Kept:
    if not match.header_changed:
        if match.cause is Cause.IMAGE_CHANGED:
            return rules.survives.get("images", EVERYTHING)
        return EVERYTHING
    section = _section(match)
    if section in rules.survives:
        return rules.survives[section]
    names = {_plain(name): name for name in rules.survives if name not in _NO_PARAMETER}
    for segment in _SEGMENTS.split(_where(match))[:2]:  # deeper ones are data
        if _plain(segment) in names:
            return rules.survives[names[_plain(segment)]]
    return UNDOCUMENTED


def _section(match: PrefixMatch) -> str:
    difference = match.first_difference
    return difference.section if difference is not None else "header"


def _where(match: PrefixMatch) -> str:
    if match.first_difference is not None:
        return match.first_difference.path
    if match.first_different is not None:
        return f"messages[{match.first_different}]"
    return "the header"


def leaving(match: PrefixMatch, rules: ProviderRules) -> str:
    """Return where the prompt leaves the former one, in words."""
    text = f"The prompt leaves the former one at {_where(match)}"
    if match.header_changed or _kept(match, rules) == EVERYTHING:
        return text
    return f"{text} ({rules.name} loses all messages where an image changes)"


_NO_PARAMETER: Final = frozenset(("model", "tools", "system", "images"))
_SEGMENTS: Final = re.compile(r"[.\[\]]+")


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
