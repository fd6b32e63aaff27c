"""`SessionManager`: the sessions of agents, by channel and scope. TPCLAW's face."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Self

from typing_extensions import override

from raf_session.clock import Clock, utc_now
from raf_session.compaction import CompactionOutcome
from raf_session.entries import Counts
from raf_session.errors import SessionError, SessionNotFoundError
from raf_session.history import HistoryView, select_history
from raf_session.journal import Codec, Durability, Journal
from raf_session.manager.arguments import check_config, check_summarizer
from raf_session.manager.compaction_report import CompactionReport, CompactionTrigger
from raf_session.manager.compactor import Compactor, compaction_counts
from raf_session.manager.config import AgentsConfig
from raf_session.manager.ledger import Ledger
from raf_session.manager.managed_session import ManagedSession
from raf_session.manager.records import SessionMessage
from raf_session.manager.reported_tokens import CountedRequest, header_tokens
from raf_session.manager.reuse import CacheReuse
from raf_session.manager.session_registry import (
    SessionRef,
    SessionRegistry,
    key_of,
    not_found,
)
from raf_session.manager.statistics import SessionStatistics
from raf_session.manager.turn_request import TurnRequest, with_model
from raf_session.messages import ChatMessage, Usage
from raf_session.stores.urls import open_journal
from raf_session.summarizers import Summarizer
from raf_session.tokens import TokenCounter, count_tokens

__all__ = ("SessionManager",)

_log = logging.getLogger("raf_session.manager")


class SessionManager(SessionRegistry):
    """Sessions in a journal, each with the history that its next request can take.

    With ``enabled: false`` nothing is opened and nothing is stored: `get_or_create`
    gives a new, empty session that lives as long as its holder holds it, and calls by
    key find none, and store nothing.

    Args:
        journal: where sessions are kept, open; it stays open.
        config: what sessions hold and show; how long they live is up to the journal.
        summarizer: writes the summaries; `None`: nothing is compacted.
        counter: counts tokens; `None`: `EstimatingTokenCounter()`.
        owns_journal: open the journal with the first call, and close it with `close`.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: the configuration names another time to live than the journal has.
    """

    def __init__(
        self,
        journal: Journal,
        config: AgentsConfig | None = None,
        *,
        summarizer: Summarizer | None = None,
        counter: TokenCounter | None = None,
        owns_journal: bool = False,
    ) -> None:
        check_summarizer(summarizer)
        super().__init__(journal, config, counter, owns_journal=owns_journal)
        self._compactor = Compactor(self.config, self.counter, summarizer)
        self._ledger = Ledger()

    @classmethod
    def from_config(
        cls,
        config: AgentsConfig,
        *,
        url: str | None = None,
        summarizer: Summarizer | None = None,
        counter: TokenCounter | None = None,
        clock: Clock = utc_now,
        codec: Codec | None = None,
        durability: Durability = "kill",
    ) -> Self:
        """Return a manager that opens its journal itself, with `ttl` and idle limit.

        Args:
            config: the configuration.
            url: see `open_journal`; `None`: JSONL files in `storage_path`.
            summarizer: see the class, as for the counter.
            counter: counts tokens.
            clock: whose time decides.
            codec: between JSON and storage.
            durability: what an acknowledged write survives.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: no backend carries this URL.
        """
        limits = check_config(config).session.limits
        if url is not None:
            journal = open_journal(
                url, limits=limits, clock=clock, codec=codec, durability=durability
            )
        else:
            from raf_session.journals.jsonl import JsonlJournal

            journal = JsonlJournal(
                config.session.storage_path,
                limits=limits,
                clock=clock,
                codec=codec,
                durability=durability,
            )
        return cls(
            journal,
            config,
            summarizer=summarizer,
            counter=counter,
            owns_journal=True,
        )

    # Messages --------------------------------------------------------------------

    async def add_message(
        self, key: SessionRef, message: ChatMessage, *, usage: Usage | None = None
    ) -> None:
        """Store one message; see `add_messages`."""
        await self.add_messages(key, (message,), usage=usage)

    async def add_messages(
        self,
        key: SessionRef,
        messages: Sequence[ChatMessage],
        *,
        usage: Usage | None = None,
        model: str | None = None,
    ) -> None:
        """Store messages in one step, then compact in mode ``auto`` where it is due.

        Args:
            key: the session.
            messages: see `ManagedSession.save`, as for the rest.
            usage: what the provider reported.
            model: the model that made them.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
            EntryConflictError: an id is stored with another message, or only some are.
            TypeError: a message is none.
        """
        session = await self._find(key)
        if session is not None:
            await session.save(messages, usage=usage, model=model)

    async def messages(
        self, key: SessionRef, *, archived: bool = False
    ) -> tuple[SessionMessage, ...]:
        """Return all messages that are stored, as the document's JSON has them.

        Each with the id and the time that it is stored with; a summary is the
        assistant's message that stands for others.  For an export; a request takes
        `load_history`.  Changes nothing in storage.

        Args:
            key: the session.
            archived: those too that left the history, because a summary stands for them
                or it was cleared; they come first, in the order in which they were
                said.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
        """
        session = await self._find(key)
        if session is None:
            return ()
        record = await session.journal.load(session.key, archived=archived)
        if record.head.incarnation != session.head.incarnation:
            raise not_found(key, "replaced")
        return tuple(
            SessionMessage.from_entry(entry)
            for entry in (*record.archived, *record.entries)
            if entry.message is not None
        )

    async def load_history(self, key: SessionRef, limit: int = 0) -> HistoryView:
        """Return the history as a request takes it; changes nothing in storage.

        Args:
            key: the session.
            limit: the last so many messages; 0: as configured.

        Returns:
            What is shown, and what is not and why: `HistoryView.dropped_messages`.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
            ValueError: a negative limit.
        """
        if limit < 0:
            raise ValueError(f"limit={limit} is negative")
        session = await self._find(key)
        if session is None:
            return select_history((), self.config.history_policy(), self.counter)
        await session.refresh()
        policy = self.config.history_policy(0, session.calibration)
        return session.view(policy, limit=limit or None)

    async def request(
        self,
        session: ManagedSession,
        instructions: Sequence[ChatMessage] = (),
        unsaved: Sequence[ChatMessage] = (),
        header: Any = None,
        *,
        model: str | None = None,
    ) -> TurnRequest:
        """Return the messages of the next model call, and record them.

        While nothing left the window and nothing was compacted, they begin with those
        of the call before.  The record, which `TurnRequest.match` compares with, is
        stored by the session's next write, or when the manager is closed.

        Args:
            session: of this manager.
            instructions: what stands in front of the history.
            unsaved: what was said since and is not stored yet.
            header: what stands beside the messages: model, tools, ….
            model: the model's name, for a header that does not say it.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        await session.refresh()
        session.header_tokens = header_tokens(header, self.counter)
        beside = session.header_tokens + count_tokens(instructions, self.counter)
        policy = self.config.history_policy(beside, session.calibration)
        view = session.view(policy, unsaved)
        messages = (*instructions, *view.messages)
        counted = CountedRequest(beside + view.tokens, unsaved)
        header = with_model(header, model)
        match = session.record_request(messages, view, header, counted)
        account = self._ledger.open(session.head)
        account.reuse = account.reuse.after(match)
        return TurnRequest(messages, view, match, account.take_untold())

    def reuse(self, key: SessionRef) -> CacheReuse:
        """Return how the requests of a session that this manager made compare.

        Since it was opened, whoever else asks in that session.
        """
        account = self._ledger.find(key_of(key))
        return CacheReuse() if account is None else account.reuse

    async def statistics(self, key: SessionRef) -> SessionStatistics:
        """Return counts, tokens, cache reuse, compactions and failures of a session.

        `reuse` and `last` are of this manager since it was opened, all else is stored.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
        """
        session = await self._find(key)
        if session is None:
            return SessionStatistics(Counts(), Counts())
        await session.refresh()
        account = self._ledger.open(session.head)
        compactions, failures = compaction_counts(session)
        return SessionStatistics(
            session.head.active,
            session.head.total,
            account.reuse,
            compactions,
            failures,
            account.last,
        )

    # Compaction ------------------------------------------------------------------

    async def compact(self, key: SessionRef) -> CompactionReport:
        """Compact a session now, whatever mode, target and former failures say.

        With fewer messages than `min_messages_to_compact` there is nothing to do.

        Raises:
            SessionNotFoundError: missing, expired or re-created.
            ValueError: there is no summarizer.
        """
        session = await self._find(key)
        if session is None:
            outcome = CompactionOutcome.NOTHING_TO_DO
            return CompactionReport(outcome, CompactionTrigger.MANUAL)
        report = await self._compactor.compact(session)
        self._ledger.open(session.head).tell(report)
        return report

    async def compact_if_due(
        self, session: ManagedSession, input_tokens: int = 0
    ) -> CompactionReport | None:
        """Compact a session whose next request would not fit; mode ``safeguard``.

        That is where history, input and `reserve_tokens` are more than the window.

        Args:
            session: of this manager.
            input_tokens: of the messages that the request holds beside the stored
                history; those of the header of the last request are added.

        Returns:
            What became of it; `None`: another mode, no summarizer, not due, or it waits
            because an attempt failed.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        trigger = CompactionTrigger.SAFEGUARD
        beside = input_tokens + session.header_tokens
        report = await self._compactor.compact_if_due(session, trigger, beside)
        if report is not None:
            self._ledger.open(session.head).tell(report)
        return report

    @override
    async def _saved(self, session: ManagedSession) -> None:
        """Compact a session where a save made it due; what was saved is stored."""
        trigger = CompactionTrigger.AUTO
        try:
            report = await self._compactor.compact_if_due(session, trigger)
        except SessionNotFoundError:
            return  # deleted since
        except SessionError:
            _log.exception("session %s was not compacted", session.key)
            return
        if report is not None:
            self._ledger.open(session.head).tell(report)
