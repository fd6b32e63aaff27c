"""What is found at the ends of prefixes that a request marked, or left."""

from __future__ import annotations

from collections.abc import Sequence

from raf_session.provider_rules import WriteRule
from raf_session.verdicts.cases import BEGINS, Case, Expected, SharedPrefix, missed
from raf_session.verdicts.outcomes import Outcome, Reason
from raf_session.verdicts.shared_prefix import leaving

__all__ = ("at_marks",)


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
    valid = [mark for mark in written if shared.whole or mark <= shared.end]
    if not valid:
        return missed(
            Reason.DIVERGED_BEFORE_MARK,
            f"{leaving(match, rules)}, before the end of every prefix that the former "
            f"request left at {rules.name}.",
        )
    last = max(valid)
    if reading:
        valid = [mark for mark in valid if _seen(mark, places)]
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
    if mark == last:
        return Expected(Outcome.HIT, Reason.APPENDED, low, high, BEGINS)
    text = (
        f"{BEGINS} {rules.name} looks back {rules.look_back} positions and finds "
        f"its prefix at position {mark} only, not that at {last}."
    )
    return Expected(Outcome.PARTIAL, Reason.LOOK_BACK_EXCEEDED, low, high, text)


def _written(case: Case, shared: SharedPrefix) -> Sequence[int]:
    """Return where the former request left prefixes, its end as the last."""
    hints = case.match.caching
    marks = hints.written if hints else None
    if marks is not None and (not marks or case.rules.writes is WriteRule.MARKS):
        return marks
    end = () if shared.former is None else (shared.former,)
    return (*(marks or ()), *end)


def _places(case: Case, shared: SharedPrefix) -> Sequence[tuple[int, int | None]]:
    """Return where this request looks for prefixes, and how far back from there."""
    match, rules = case.match, case.rules
    hints, at_end = match.caching, rules.writes is WriteRule.REQUEST_END
    marks = hints.read if hints else None
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
