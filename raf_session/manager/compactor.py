"""`Compactor`: summaries in the place of old messages, and when it is time for one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from raf_session.attempts import (
    INTERRUPTED,
    AttemptTurns,
    ask_summarizer,
    count_attempt,
    is_shorter,
    replace_covered,
)
from raf_session.changes import Change, SessionStatus, StateDelta
from raf_session.clock import from_micros
from raf_session.compaction import CompactionOutcome
from raf_session.entries import Entry, EntryKind, Record, SessionHead, new_id
from raf_session.errors import SessionNotFoundError, SummaryFailedError
from raf_session.history import HistoryPolicy, select_history
from raf_session.journal import Commit, Journal
from raf_session.manager.compaction_draft import CompactionDraft
from raf_session.manager.compaction_report import CompactionReport, CompactionTrigger
from raf_session.manager.compaction_rule import (
    COMPACTION,
    CompactionRule,
    compaction_state,
)
from raf_session.manager.config import AgentsConfig, CompactionMode
from raf_session.manager.history_windows import long_running_calls
from raf_session.manager.managed_session import ManagedSession, live_sessions
from raf_session.manager.summary_messages import summary_message
from raf_session.messages import ChatMessage, Usage
from raf_session.summarizers import Summarizer
from raf_session.tokens import TokenCounter

__all__ = ("Compactor", "compaction_counts")

_TURNS: Final = AttemptTurns()
"""By incarnation, for all managers of this process."""

_log = logging.getLogger("raf_session.compaction")


class Compactor:
    """Compacts sessions, one attempt at a time for each in this process.

    Args:
        config: when, how far, and what a request takes of a history.
        counter: counts tokens.
        summarizer: writes the summaries; `None`: nothing is compacted.
    """

    def __init__(
        self,
        config: AgentsConfig,
        counter: TokenCounter,
        summarizer: Summarizer | None,
    ) -> None:
        self._config = config
        self._counter = counter
        self._summarizer = summarizer
        self._rule = CompactionRule(config)
        self._policy: Final[HistoryPolicy] = replace(
            config.history_policy(), max_messages=None, max_tokens=None
        )
        """What a request takes of a history, but for the window."""

    # When ------------------------------------------------------------------------

    async def compact(self, session: ManagedSession) -> CompactionReport:
        """Compact a session now, once no other attempt is under way.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
            ValueError: there is no summarizer.
        """
        if self._summarizer is None:
            raise ValueError("there is no summarizer to compact with")
        incarnation = session.head.incarnation
        async with _TURNS.taken(incarnation):
            record = await _load(session)
            if not self._rule.allows(record.head):
                tokens = self._tokens([entry.message for entry in record.entries])
                return CompactionReport(
                    CompactionOutcome.NOTHING_TO_DO,
                    CompactionTrigger.MANUAL,
                    tokens_before=tokens,
                    tokens_after=tokens,
                )
            return await self._attempt(
                session.journal, record, CompactionTrigger.MANUAL, self._summarizer
            )

    async def compact_if_due(
        self,
        session: ManagedSession,
        trigger: CompactionTrigger,
        input_tokens: int = 0,
    ) -> CompactionReport | None:
        """Compact a session where it is due; `None`: it is not.

        What the live session shows decides first, and what is stored then.  A save does
        not wait for another attempt on the session that is under way.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
        """
        summarizer = self._summarizer
        mode = self._rule.mode
        if summarizer is None or mode.value != trigger.value:
            return None
        states = session.provider_states.states
        now = session.journal.clock().timestamp()
        least = self._rule.least_tokens(session.head, states, now, input_tokens)
        if least is None or session.stored_tokens() < least:
            return None  # that is quick to tell, for what a request takes is no more
        if session.view(self._policy).tokens < least:
            return None
        incarnation = session.head.incarnation
        if mode is CompactionMode.AUTO and _TURNS.is_taken(incarnation):
            return None
        async with _TURNS.taken(incarnation):
            record = await _load(session)
            states = record.provider_states
            now = session.journal.clock().timestamp()
            least = self._rule.least_tokens(record.head, states, now, input_tokens)
            tokens = self._tokens([entry.message for entry in record.entries])
            if least is None or tokens < least:
                return None
            return await self._attempt(session.journal, record, trigger, summarizer)

    # One attempt -----------------------------------------------------------------

    async def _attempt(
        self,
        journal: Journal,
        record: Record,
        trigger: CompactionTrigger,
        summarizer: Summarizer,
    ) -> CompactionReport:
        keep_recent = self._config.compaction.keep_recent_count
        draft = CompactionDraft.of(record, keep_recent)
        tokens = self._tokens(draft.messages)
        report = CompactionReport(
            CompactionOutcome.NOTHING_TO_DO, trigger, len(draft.fresh), tokens, tokens
        )
        if not draft.fresh:
            return report
        if await _count(journal, draft) is None:
            return report._replace(outcome=CompactionOutcome.CONFLICT)
        timeout = self._config.compaction.summary_timeout
        previous = draft.previous or None
        try:
            text = await ask_summarizer(
                summarizer,
                draft.fresh,
                previous,
                timeout_secs=_seconds(timeout),
            )
        except SummaryFailedError as error:
            _log.warning("session %s was not compacted: %s", record.head.key, error)
            outcome = CompactionOutcome.SUMMARIZER_FAILED
            return await _fail(journal, draft, report, outcome, error.reason)
        summary = summary_message(text, draft.originals, journal.clock())
        left = self._tokens(draft.after(summary))
        if left >= tokens or not is_shorter(text, draft.fresh, previous):
            _log.warning(
                "session %s was not compacted: %d tokens would be left of %d",
                record.head.key,
                left,
                tokens,
            )
            outcome = CompactionOutcome.CANNOT_SHRINK
            return await _fail(journal, draft, report, outcome, outcome.value)
        commit = await self._replace(journal, draft, summary, left)
        if commit is None:
            return report._replace(outcome=CompactionOutcome.CONFLICT)
        if self._config.compaction.memory_flush:
            await _flush(journal, commit)
        return report._replace(outcome=CompactionOutcome.COMPACTED, tokens_after=left)

    def _tokens(self, messages: Sequence[ChatMessage | None]) -> int:
        """Return the tokens of a history as a request takes it, but for the window."""
        view = select_history(
            messages,
            self._policy,
            self._counter,
            close_end=True,
            long_running=long_running_calls(messages),
        )
        return view.tokens

    async def _replace(
        self, journal: Journal, draft: CompactionDraft, summary: ChatMessage, left: int
    ) -> Commit | None:
        """Put the summary in the place of what it stands for, if that is unchanged."""
        state = compaction_state(draft.record.provider_states)
        entry = Entry(
            new_id(),
            EntryKind.SUMMARY,
            summary,
            usage=Usage(total_tokens=self._counter.count(summary)),
        )

        def change(latest: SessionHead) -> Change:
            done = {
                "compactions": int(state.get("compactions", 0)) + 1,
                "left": left,
                "spliced_at": latest.revision + 1,
            }
            return Change(
                status=SessionStatus.COMPACTED,
                providers=StateDelta(set={COMPACTION: done}),
            )

        try:
            return await replace_covered(
                journal,
                draft.record.head,
                draft.covered,
                keep=draft.keep,
                summary=lambda _: entry,
                change=change,
            )
        except SessionNotFoundError:
            return None  # deleted or expired, while the summary was written


def compaction_counts(session: ManagedSession) -> tuple[int, int]:
    """Return how often a session was compacted, and how many attempts failed since."""
    state = compaction_state(session.provider_states.states)
    return int(state.get("compactions", 0)), int(state.get("failures", 0))


async def _load(session: ManagedSession) -> Record:
    """Return what is stored of a live session.

    Raises:
        SessionNotFoundError: missing, expired or re-created.
    """
    record = await session.journal.load(session.key)
    if record.head.incarnation != session.head.incarnation:
        raise SessionNotFoundError(session.key, "replaced")
    return record


async def _count(
    journal: Journal, draft: CompactionDraft, reason: str = INTERRUPTED
) -> Mapping[str, Any] | None:
    """Count the attempt as failed; `None`: the session was compacted, or is gone."""
    try:
        return await count_attempt(journal, draft.record, COMPACTION, reason)
    except SessionNotFoundError:
        return None


async def _fail(
    journal: Journal,
    draft: CompactionDraft,
    report: CompactionReport,
    outcome: CompactionOutcome,
    reason: str,
) -> CompactionReport:
    """Return the report of an attempt that failed, which is counted."""
    report = report._replace(outcome=outcome, reason=reason)
    state = await _count(journal, draft, reason)
    if state is None:
        return report
    return report._replace(
        failures=state["failures"],
        retry_at=from_micros(round(state["retry_at"] * 1_000_000)),
    )


async def _flush(journal: Journal, commit: Commit) -> None:
    """Let every live session of this process show what is stored now."""
    head = commit.head
    try:
        record = await journal.load(head.key)
    except SessionNotFoundError:
        return  # whoever reads next learns it
    for live in live_sessions(head.incarnation):
        if record.head.incarnation == head.incarnation:
            live.show(record)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
