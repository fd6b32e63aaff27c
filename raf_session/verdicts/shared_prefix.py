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

__all__ = (
    "alike_but_for_form",
    "appended",
    "diverged",
    "leaving",
    "lost_by_toggle",
)


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
        end = _end(kept.certain)
        low, high = case.until(end)
        low, high = min(shared.low, low), min(shared.low, high)
        return SharedPrefix(low, high, end, end, None, whole=False)
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
        name = lost_by_toggle(match, rules)
        return EVERYTHING if name is None else rules.survives[name]
    section = _section(match)
    switched = match.cause in {Cause.TOOLS_ADDED, Cause.TOOLS_REMOVED}
    search = rules.survives.get("web_search")
    if switched and search is not None and "web_search" in toggled(match):
        return Kept((), search.certain)  # where it is that tool alone
    if section in rules.survives:
        return rules.survives[section]
    names = {_plain(name): name for name in rules.survives if name not in _NO_PARAMETER}
    for segment in _SEGMENTS.split(_where(match))[:3]:  # deeper ones are data
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
    if match.append_only:
        text = "The former request begins this one"
    lost = lost_by_toggle(match, rules)
    if lost is None:
        return text
    return f"{text} ({rules.name} loses all messages where {lost} change)"


_IN_MESSAGES: Final = ("citations", "images")
"""What counts wherever in the messages it is; what leaves least comes first."""


def toggled(match: PrefixMatch) -> frozenset[str]:
    """Return what came or went anywhere in the request."""
    found = match.caching.toggled if match.caching else frozenset[str]()
    return found | {"images"} if match.cause is Cause.IMAGE_CHANGED else found


def lost_by_toggle(match: PrefixMatch, rules: ProviderRules) -> str | None:
    """Return what, by changing anywhere, loses the messages; `None`: nothing does."""
    if match.header_changed or match.first:
        return None
    names = (name for name in _IN_MESSAGES if name in toggled(match))
    names = (name for name in names if name in rules.survives)
    return next(names, None)


_NO_PARAMETER: Final = frozenset(("model", "tools", "system", "images"))
_SEGMENTS: Final = re.compile(r"[.\[\]]+")


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
