"""`Summaries`: summaries that are written while the conversation goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any, Final, NamedTuple
from uuid import uuid4

import anyio

from raf_session.changes import Change, SessionStatus, StateDelta
from raf_session.compaction import CompactionOutcome, has_open_calls, plan_compaction
from raf_session.entries import Entry, EntryKind, Record, SessionHead
from raf_session.errors import (
    SessionNotFoundError,
    StaleSessionError,
    SummaryFailedError,
)
from raf_session.frozen import EMPTY
from raf_session.journal import Journal
from raf_session.keys import SessionKey
from raf_session.messages import ChatMessage
from raf_session.options import Window
from raf_session.service.event_entries import (
    SUMMARY_AUTHOR,
    SUMMARY_HEADING,
    summary_text,
)
from raf_session.service.keeper import JournalKeeper
from raf_session.service.loading import TOTALS, session_of
from raf_session.service.sessions import Session
from raf_session.service.summary_manager import SummarizerSessionManager
from raf_session.service.views import long_running_calls

__all__ = ("FAILURES", "Summaries")

FAILURES: Final = "raf_session.summary"
"""The provider state that counts the attempts that failed since the last success."""

_FIRST_WAIT_SECS: Final = 60
_LONGEST_WAIT_SECS: Final = 3600
_RACES: Final = 20
"""How many appends may slip in between a look at a session and its splice."""

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
        self._lock = threading.Lock()
        self._running: dict[SessionKey, asyncio.Task[None] | None] = {}
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
        if not self._begin(key):
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            await self._run(manager, key)
        else:
            task = loop.create_task(self._run(manager, key))
            with self._lock:
                if key in self._running:
                    self._running[key] = task

    async def _run(self, manager: SummarizerSessionManager, key: SessionKey) -> None:
        while (head := self._next(key)) is not None:
            try:
                await self._summarize_if_due(manager, head)
            except SessionNotFoundError:
                continue  # there is nothing to summarise any more
            except Exception:  # noqa: BLE001  (logged: the caller's events are stored)
                _log.exception("session %s was not summarised", key)
            except BaseException:
                self._end(key)
                raise

    def _next(self, key: SessionKey) -> SessionHead | None:
        """Return what is to be looked at; `None`: nothing, and that is the end."""
        with self._lock:
            head = self._asked.pop(key, None)
            if head is None:
                self._running.pop(key, None)
            return head

    def _end(self, key: SessionKey) -> None:
        with self._lock:
            self._running.pop(key, None)
            self._asked.pop(key, None)

    def _begin(self, key: SessionKey) -> bool:
        """Tell whether no summary of the session is being written; then one is now."""
        with self._lock:
            if key in self._running and not _abandoned(self._running[key]):
                return False
            self._running[key] = None
            return True

    async def wait(self) -> None:
        """Wait until no summary is being written, on whichever event loop."""
        while True:
            with self._lock:
                for key in [k for k, t in self._running.items() if _abandoned(t)]:
                    del self._running[key]
                if not self._running:
                    return
            await anyio.sleep(0.005)

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
            or _failures(record).get("retry_at", 0) > now
            or not manager.should_summarize(session)
        ):
            return
        await self._summarize(journal, manager, record, session)

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
        while True:
            if self._begin(key):
                break
            await anyio.sleep(0.005)
        try:
            journal = await self._keeper.get()
            record = await journal.load(key)
            if incarnation is not None and record.head.incarnation != incarnation:
                raise SessionNotFoundError(key, "replaced")
            session = session_of(record, record.entries, journal.clock().timestamp())
            return await self._summarize(journal, manager, record, session)
        finally:
            self._end(key)

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
    ) -> CompactionOutcome:
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
        try:
            text = await summarizer.summarize(messages, previous)
        except SummaryFailedError as error:
            _log.warning("session %s was not summarised: %s", record.head.key, error)
            await self._count_failure(journal, record, error.reason)
            return CompactionOutcome.SUMMARIZER_FAILED
        length = sum(map(_length, messages)) + len(previous or "")
        if len(text) >= length:
            _log.warning(
                "session %s was not summarised: %d characters for %d",
                record.head.key,
                len(text),
                length,
            )
            await self._count_failure(journal, record, "cannot_shrink")
            return CompactionOutcome.CANNOT_SHRINK
        return await self._replace(journal, draft, text)

    async def _replace(
        self, journal: Journal, draft: _Draft, text: str
    ) -> CompactionOutcome:
        """Put the summary in the place of what it stands for, if that is unchanged."""
        head, covered = draft.record.head, draft.covered
        failed = bool(_failures(draft.record))
        now = journal.clock().timestamp()
        name = str(uuid4())
        for _ in range(_RACES):
            latest = (await journal.load(head.key, Window(last=0))).head
            if (
                latest.incarnation != head.incarnation
                or latest.spliced_at != head.spliced_at
            ):
                return CompactionOutcome.CONFLICT
            totals = latest.total._replace(
                entries=latest.total.entries + 1, messages=latest.total.messages + 1
            )
            summary = Entry(
                name,
                EntryKind.SUMMARY,
                ChatMessage.system(SUMMARY_HEADING + text),
                SUMMARY_AUTHOR,
                timestamp=now,
                metadata={
                    "type": "summary",
                    "summary": text,
                    "original_count": len(covered),
                    TOTALS: list(totals),
                },
            )
            try:
                await journal.splice(
                    head.key,
                    covered[0].seq,
                    covered[-1].seq,
                    [summary],
                    keep=draft.kept,
                    archive=True,
                    change=Change(
                        status=SessionStatus.COMPACTED,
                        providers=StateDelta(deleted=[FAILURES]) if failed else None,
                    ),
                    expected_revision=latest.revision,
                    incarnation=head.incarnation,
                )
            except StaleSessionError:
                continue
            return CompactionOutcome.COMPACTED
        return CompactionOutcome.CONFLICT

    async def _count_failure(
        self, journal: Journal, record: Record, reason: str
    ) -> None:
        count = int(_failures(record).get("failures", 0)) + 1
        wait = min(_FIRST_WAIT_SECS * 2 ** min(count - 1, 16), _LONGEST_WAIT_SECS)
        state = {
            "failures": count,
            "reason": reason,
            "retry_at": journal.clock().timestamp() + wait,
        }
        await journal.update(
            record.head.key,
            Change(providers=StateDelta(set={FAILURES: state})),
            incarnation=record.head.incarnation,
        )


def _abandoned(task: asyncio.Task[None] | None) -> bool:
    """Tell whether a task will never go on, since its event loop was closed."""
    return task is not None and task.get_loop().is_closed()


def _failures(record: Record) -> Any:
    return record.provider_states.get(FAILURES, EMPTY)


def _length(message: ChatMessage) -> int:
    return len(message.text) + sum(
        len(str(call.arguments)) for call in message.tool_calls or ()
    )
