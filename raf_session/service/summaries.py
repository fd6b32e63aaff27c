"""`Summaries`: summaries that are written while the conversation goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any, Final, NamedTuple
from uuid import uuid4

from raf_session.attempts import (
    AttemptTurns,
    Hold,
    count_attempt,
    is_shorter,
    is_waiting,
    replace_covered,
)
from raf_session.changes import Change, SessionStatus, StateDelta
from raf_session.compaction import CompactionOutcome, has_open_calls, plan_compaction
from raf_session.entries import Entry, EntryKind, Record, SessionHead
from raf_session.errors import SessionNotFoundError, SummaryFailedError
from raf_session.frozen import EMPTY
from raf_session.journal import Journal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.service.event_entries import (
    SUMMARY_AUTHOR,
    SUMMARY_HEADING,
    summary_text,
)
from raf_session.service.loading import TOTALS, session_of
from raf_session.service.sessions import Session
from raf_session.service.summary_manager import SummarizerSessionManager
from raf_session.service.views import long_running_calls
from raf_session.stores.keeper import JournalKeeper

__all__ = ("FAILURES", "Summaries")

FAILURES: Final = "raf_session.summary"
"""The provider state that counts the attempts that failed since the last success."""

_log = logging.getLogger("raf_session.summary")


class _Draft(NamedTuple):
    """What a summary is going to stand for."""

    record: Record
    covered: tuple[Entry, ...]
    kept: tuple[int, ...]
    previous: str | None


class Summaries:
    """Writes summaries, one at a time for each session.

    Args:
        keeper: gives the journal.
    """

    def __init__(self, keeper: JournalKeeper) -> None:
        self._keeper = keeper
        self._turns = AttemptTurns()
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: dict[SessionKey, SessionHead] = {}
        """What is to be looked at next, behind the summary that is being written."""

    # In the background -----------------------------------------------------------

    async def start(self, manager: SummarizerSessionManager, head: SessionHead) -> None:
        """Summarise a session, if it is due, while the caller goes on.

        Under trio, which has no tasks of their own, the caller waits.  One that is
        being summarised is looked at again behind that.
        """
        key = head.key
        with self._lock:
            self._asked[key] = head
            hold = self._turns.begin(key)
            if hold is None:
                return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            await self._run(manager, key, hold)
        else:
            task = loop.create_task(self._run(manager, key, hold))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(
        self, manager: SummarizerSessionManager, key: SessionKey, hold: Hold
    ) -> None:
        while (head := self._next(key, hold)) is not None:
            try:
                await self._summarize_if_due(manager, head)
            except SessionNotFoundError:
                continue  # there is nothing to summarise any more
            except Exception:  # noqa: BLE001  (logged: the caller's events are stored)
                _log.exception("session %s was not summarised", key)
            except BaseException:
                self._end(key, hold)
                raise

    def _next(self, key: SessionKey, hold: Hold) -> SessionHead | None:
        """Return what is to be looked at; `None`: nothing, and that is the end."""
        with self._lock:
            head = self._asked.pop(key, None)
            if head is None:
                self._turns.end(key, hold)
            return head

    def _end(self, key: SessionKey, hold: Hold) -> None:
        with self._lock:
            self._asked.pop(key, None)
            self._turns.end(key, hold)

    async def wait(self) -> None:
        """Wait until no summary is being written, on whichever event loop."""
        await self._turns.wait()

    async def _summarize_if_due(
        self, manager: SummarizerSessionManager, head: SessionHead
    ) -> None:
        journal = await self._keeper.get()
        record = await journal.load(head.key)
        # What has come since belongs to the next turn.
        entries = tuple(e for e in record.entries if e.seq <= head.last_seq)
        record = record._replace(entries=entries)
        now = journal.clock().timestamp()
        session = session_of(record, entries, now)
        messages = [event.content for event in session.events]
        if (
            has_open_calls(messages, long_running_calls(session.events))
            or is_waiting(_failures(record), now, record.head.total.messages)
            or not manager.should_summarize(session)
        ):
            return
        await self._summarize(journal, manager, record, session, counted=True)

    # One summary -----------------------------------------------------------------

    async def summarize(
        self,
        manager: SummarizerSessionManager,
        key: SessionKey,
        *,
        incarnation: str | None,
    ) -> CompactionOutcome:
        """Summarise a session now, once no other summary of it is being written.

        Raises:
            SessionNotFoundError: missing, expired or another incarnation.
        """
        async with self._turns.taken(key):
            journal = await self._keeper.get()
            record = await journal.load(key)
            if incarnation is not None and record.head.incarnation != incarnation:
                raise SessionNotFoundError(key, "replaced")
            session = session_of(record, record.entries, journal.clock().timestamp())
            return await self._summarize(journal, manager, record, session)

    async def current(self, key: SessionKey) -> str | None:
        """Return the text of the summary that is stored, if there is one.

        Raises:
            SessionNotFoundError: missing or expired.
        """
        journal = await self._keeper.get()
        record = await journal.load(key)
        summaries = [e for e in record.entries if e.kind is EntryKind.SUMMARY]
        return summary_text(summaries[0]) if summaries else None

    async def _summarize(
        self,
        journal: Journal,
        manager: SummarizerSessionManager,
        record: Record,
        session: Session,
        *,
        counted: bool = False,
    ) -> CompactionOutcome:
        """Summarise a session, as it was read.

        Args:
            journal: where it is.
            manager: says how.
            record: what was read.
            session: the same as a handle shows it.
            counted: whether this is an attempt before it ends, as one that nobody calls
                for is, so that one which dies with its process is not made again and
                again; else only one that fails is.
        """
        summarizer = manager.summarizer
        plan = plan_compaction(
            [event.content for event in session.events],
            keep_recent=summarizer.keep_recent_count,
            from_user_turn=summarizer.start_by_user_turn,
            long_running=long_running_calls(session.events),
        )
        entries = record.entries
        covered = tuple(entries[index] for index in plan.covered)
        fresh = [e for e in covered if e.kind is not EntryKind.SUMMARY]
        messages = [e.message for e in fresh if e.message is not None]
        if not messages:
            return CompactionOutcome.NOTHING_TO_DO
        former = [summary_text(e) for e in covered if e.kind is EntryKind.SUMMARY]
        previous = "\n\n".join(former) or None
        draft = _Draft(
            record, covered, tuple(entries[i].seq for i in plan.kept), previous
        )
        if counted and await count_attempt(journal, record, FAILURES) is None:
            return CompactionOutcome.CONFLICT
        try:
            text = await summarizer.summarize(messages, previous)
        except SummaryFailedError as error:
            _log.warning("session %s was not summarised: %s", record.head.key, error)
            await count_attempt(journal, record, FAILURES, error.reason)
            return CompactionOutcome.SUMMARIZER_FAILED
        if not is_shorter(text, messages, previous):
            _log.warning(
                "session %s was not summarised: %d characters are not fewer",
                record.head.key,
                len(text),
            )
            await count_attempt(journal, record, FAILURES, "cannot_shrink")
            return CompactionOutcome.CANNOT_SHRINK
        return await self._replace(journal, draft, text)

    async def _replace(
        self, journal: Journal, draft: _Draft, text: str
    ) -> CompactionOutcome:
        """Put the summary in the place of what it stands for, if that is unchanged."""
        now = journal.clock().timestamp()
        name = str(uuid4())

        def summary(latest: SessionHead) -> Entry:
            totals = latest.total._replace(
                entries=latest.total.entries + 1, messages=latest.total.messages + 1
            )
            return Entry(
                name,
                EntryKind.SUMMARY,
                ChatMessage.system(SUMMARY_HEADING + text),
                SUMMARY_AUTHOR,
                timestamp=now,
                metadata={
                    "type": "summary",
                    "summary": text,
                    "original_count": len(draft.covered),
                    TOTALS: list(totals),
                },
            )

        change = Change(
            status=SessionStatus.COMPACTED,
            providers=StateDelta(deleted=[FAILURES]),
        )
        commit = await replace_covered(
            journal,
            draft.record.head,
            draft.covered,
            keep=draft.kept,
            summary=summary,
            change=lambda _: change,
        )
        if commit is None:
            return CompactionOutcome.CONFLICT
        return CompactionOutcome.COMPACTED


def _failures(record: Record) -> Any:
    return record.provider_states.get(FAILURES, EMPTY)
