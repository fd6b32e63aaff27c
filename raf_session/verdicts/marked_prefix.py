"""What is found at the ends of prefixes that a request marked, or left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from raf_session.provider_rules import WriteRule
from raf_session.verdicts.cases import BEGINS, Case, Expected, SharedPrefix, missed
from raf_session.verdicts.outcomes import Outcome, Reason
from raf_session.verdicts.shared_prefix import leaving

__all__ = ("at_marks", "too_old")


def at_marks(case: Case, shared: SharedPrefix, *, reading: bool = False) -> Expected:
    """Return what is reused of prefixes that end where the former request left them.

    Args:
        case: the request.
        shared: what both begin with.
        reading: whether this request has to find them from where it reads.
    """
    match, rules = case.match, case.rules
    written, places = _written(case, shared), _places(case, shared)
    bare = match.caching is not None and match.caching.written == ()
    if bare or not places:
        return missed(
            Reason.NO_MARK,
            f"{'The former' if bare else 'This'} request has no cache mark, and "
            f"{rules.name} {'keeps' if bare else 'finds'} prefixes at marks only.",
        )
    ends = [end for end in written if shared.whole or end[0] <= shared.end]
    valid = [mark for mark, _ in ends]
    if not valid:
        return missed(
            Reason.DIVERGED_BEFORE_MARK,
            f"{leaving(match, rules)}, before the end of every prefix that the former "
            f"request left at {rules.name}.",
        )
    last = max(valid)
    late = False
    if reading:
        kept = [mark for mark, ttl in ends if not case.expired(ttl)]
        if not kept:
            return too_old(case, max((t for _, t in ends if t), default=case.ttl))
        valid = [mark for mark in kept if _seen(mark, places)]
        late = max(kept) < last
        last = max(kept)
    if not valid:
        distance = min((p for p, _ in places if p >= last), default=last) - last
        return missed(
            Reason.LOOK_BACK_EXCEEDED,
            f"The former request's prefix ends {distance} positions in front of where "
            f"this one reads, and {rules.name} looks back {rules.look_back}.",
        )
    mark = max(valid)
    low, high = _span(case, shared, mark)
    if not shared.whole:
        outcome = Outcome.PARTIAL if low else Outcome.UNKNOWN
        text = (
            f"{leaving(match, rules)}, behind a prefix that the former request left at "
            f"position {mark}."
        )
        reason = Reason.DIVERGED_BEHIND_MARK if low else Reason.DIVERGED
        return Expected(outcome, reason, low, high, text)
    if mark == last and late:
        text = f"{BEGINS} Behind position {mark} its prefixes have expired."
        return Expected(Outcome.PARTIAL, Reason.EXPIRED, low, high, text)
    if mark == last:
        return Expected(Outcome.HIT, Reason.APPENDED, low, high, BEGINS)
    text = (
        f"{BEGINS} {rules.name} looks back {rules.look_back} positions and finds "
        f"its prefix at position {mark} only, not that at {last}."
    )
    return Expected(Outcome.PARTIAL, Reason.LOOK_BACK_EXCEEDED, low, high, text)


def too_old(case: Case, ttl: int | None) -> Expected:
    """Return that what the former request left has expired."""
    return missed(
        Reason.EXPIRED,
        f"{case.age:g} s went by since the former request, and its prefix is kept for "
        f"{ttl} s.",
    )


def _written(case: Case, shared: SharedPrefix) -> Sequence[tuple[int, int | None]]:
    """Return where the former request left prefixes, its end as the last.

    With each, how long it asked for it to be kept.
    """
    hints = case.match.caching
    marks = hints.written if hints else None
    ttls = hints.written_ttls if hints else ()
    ends = list(zip_longest(marks or (), ttls[: len(marks or ())]))
    only_marks = case.rules.writes is WriteRule.MARKS or (
        hints is not None and hints.explicit[0]
    )
    if marks is not None and (only_marks or not marks):
        return ends
    if shared.former is not None:
        ends.append((shared.former, None))
    return ends


def _places(case: Case, shared: SharedPrefix) -> Sequence[tuple[int, int | None]]:
    """Return where this request looks for prefixes, and how far back from there."""
    match, rules = case.match, case.rules
    hints, at_end = match.caching, rules.writes is WriteRule.REQUEST_END
    marks = hints.read if hints else None
    if hints is not None and hints.explicit[1]:
        at_end = False
    if marks is not None and not at_end:
        return [(mark, rules.look_back) for mark in marks]
    if marks is not None and not marks:
        return ()
    end = hints.total if hints else match.messages
    if at_end and shared.whole:  # counted in messages from the former one's end
        end = shared.end + match.messages - (match.previous_messages or 0)
    return [*((mark, 0) for mark in marks or ()), (end, rules.look_back)]


def _seen(mark: int, places: Sequence[tuple[int, int | None]]) -> bool:
    return any(
        mark <= place and (reach is None or place - mark <= reach)
        for place, reach in places
    )


def _span(case: Case, shared: SharedPrefix, mark: int) -> tuple[int, int]:
    """Return the tokens in front of a mark: at least, at most."""
    low, high = shared.low, shared.high
    if mark <= 0:
        least, most = case.until(mark)
        low, high = min(least, high), min(most, high)
    elif mark < shared.end:
        low = min(case.until(0)[0], low)
    return (low if mark <= shared.sure or shared.whole else 0), high
