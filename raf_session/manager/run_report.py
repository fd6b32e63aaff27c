"""`RunReport`: what stands in requests, and how much of them a prompt cache reuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from raf_session.history import DroppedMessage
from raf_session.manager.compaction_report import CompactionReport
from raf_session.manager.turn_request import TurnRequest
from raf_session.messages import MessageRole
from raf_session.prefix_match import Cause
from raf_session.toolcalls import calls_in

__all__ = ("RunReport", "report_of", "report_of_all")


class RunReport(NamedTuple):
    """What became of one request of a run, or of all of them."""

    append_only: bool
    """Whether the session's request before begins this one; of all: each of them."""
    reuse: float | None
    """The share of its bytes that the request before began with, 0.0 to 1.0; `None`
    for a session's first.  Of all: the share of all their bytes."""
    cause: Cause
    """Why it does not append; of all: of the first that does not."""
    dropped: tuple[DroppedMessage, ...]
    """The history that it leaves out, in order; it stays stored.  Of all: each message
    that one of them left out."""
    compaction: CompactionReport | None
    """How the compaction in front of it ended; `None`: there was none.  Of all: the
    last."""
    already_answered: bool
    """Whether it ends with a reply: the input came again after it had been answered,
    and there is nothing to ask the model.  Of all: the last."""
    request: TurnRequest
    """All of it: view, with repairs, truncations, tokens and overrun, and match.  Of
    all: the last."""


def report_of(request: TurnRequest) -> RunReport:
    """Return the report of one request."""
    last = request.messages[-1] if request.messages else None
    return RunReport(
        append_only=request.match.append_only,
        reuse=request.match.reuse,
        cause=request.match.cause,
        dropped=request.view.dropped_messages,
        compaction=request.compaction,
        already_answered=last is not None
        and last.role is MessageRole.ASSISTANT
        and not calls_in(last),
        request=request,
    )


def report_of_all(reports: Sequence[RunReport]) -> RunReport:
    """Return the report of a whole turn, of those of its requests; at least one."""
    matches = [report.request.match for report in reports]
    compared = [match for match in matches if not match.first]
    size = sum(match.bytes for match in compared)
    shared = sum(match.shared_bytes for match in compared)
    causes = (report.cause for report in reports if report.cause is not Cause.NONE)
    compactions = [r.compaction for r in reports if r.compaction is not None]
    dropped = {
        entry.message.id or id(entry.message): entry
        for report in reports
        for entry in report.dropped
    }
    return reports[-1]._replace(
        append_only=all(report.append_only for report in reports),
        reuse=shared / size if size else None,
        cause=next(causes, Cause.NONE),
        dropped=tuple(dropped.values()),
        compaction=compactions[-1] if compactions else None,
    )
