"""`ManagedSession`: the live session of one agent, channel and scope."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from weakref import WeakSet

from typing_extensions import override

from raf_session.changes import Change
from raf_session.entries import Entry, EntryKind, Record, new_id
from raf_session.errors import EntryConflictError
from raf_session.history import HistoryPolicy, HistoryView
from raf_session.journal import Journal
from raf_session.journaled_session import JournaledSession, check_messages
from raf_session.key_paths import format_agent_key
from raf_session.manager.history_windows import HistoryWindows
from raf_session.manager.listing import is_idle
from raf_session.manager.records import SessionMeta
from raf_session.manager.reported_tokens import (
    CALIBRATION,
    CountedRequest,
    stored_calibration,
)
from raf_session.manager.saved_messages import without_tool_calls
from raf_session.manager.shown_history import SHOWN, ShownHistory
from raf_session.manager.summary_messages import summary_of
from raf_session.messages import ChatMessage, MessageRole, Usage
from raf_session.prefix_match import PrefixMatch
from raf_session.session_view import MessageLog
from raf_session.tokens import (
    Calibration,
    EstimatingTokenCounter,
    TokenCounter,
    count_tokens,
)

__all__ = ("ManagedSession", "live_sessions")

_LIVE: Final[WeakSet[ManagedSession]] = WeakSet()
_LIVE_LOCK: Final = threading.Lock()


def live_sessions(incarnation: str) -> list[ManagedSession]:
    """Return this process's live sessions of one stored session, of any manager."""
    with _LIVE_LOCK:
        return [live for live in _LIVE if live.head.incarnation == incarnation]


class ManagedSession(JournaledSession):
    """A live session that its manager keeps: `JournaledSession`, with tokens counted.

    Every message that it stores is stored with its tokens, so `head.active.tokens` is
    the size of the active window.  Made by `SessionManager.get_or_create` and `get`.
    """

    def __init__(
        self,
        journal: Journal,
        record: Record,
        *,
        exclusive: bool = False,
        counter: TokenCounter | None = None,
        save_tool_calls: bool = True,
        saved: Callable[[ManagedSession], Awaitable[None]] | None = None,
    ) -> None:
        """Bind a whole record that was just read; managers call it.

        Args:
            journal: where it is stored.
            record: what was read.
            exclusive: see `JournaledSession`.
            counter: counts tokens; `None`: an estimate.
            save_tool_calls: whether calls and results are stored.
            saved: awaited after messages were stored.
        """
        super().__init__(journal, record, exclusive=exclusive)
        self._counter = counter or EstimatingTokenCounter()
        self._save_tool_calls = save_tool_calls
        self._saved = saved
        self._windows = HistoryWindows(self._counter)
        self.header_tokens: int = 0
        """Of what stood beside the messages of the last request made here: tools, …."""
        self._asked: CountedRequest | None = None
        self._counted = (MessageLog(), 0, 0)
        """A log of messages, how many of it were counted, and their tokens."""
        with _LIVE_LOCK:
            _LIVE.add(self)

    @property
    def agent_key(self) -> str:
        """Its key as the document writes it: ``agent:…:channel:…:scope:…:…``."""
        return format_agent_key(self.key)

    @property
    def meta(self) -> SessionMeta:
        """The session's metadata as the last awaited call left it."""
        return SessionMeta.of(
            self.head, self.summary, idle=is_idle(self._journal, self.head)
        )

    @property
    def summary(self) -> str:
        """The text of the summary in its history, without heading; ``""``: none."""
        return summary_of(self.messages_now())

    def view(
        self,
        policy: HistoryPolicy,
        unsaved: Sequence[ChatMessage] = (),
        *,
        limit: int | None = None,
    ) -> HistoryView:
        """Return the history as a request takes it, as the last awaited call left it.

        Calls at its very end have a placeholder for a result: no provider takes them
        without.

        Args:
            policy: how much of it is shown.
            unsaved: messages behind it; those that are stored stand there alone.
            limit: the last so many messages, exactly.
        """
        messages = self.messages_before(unsaved)
        return self._windows.view(messages, policy, limit=limit)

    def messages_before(self, unsaved: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the history with messages behind it, each of these there alone."""
        moved = {message.id for message in unsaved if message.id is not None}
        messages = self.messages_now()
        return [*(m for m in messages if m.id not in moved), *unsaved]

    def record_request(
        self,
        messages: Sequence[ChatMessage],
        view: HistoryView,
        header: Any,
        counted: CountedRequest,
    ) -> PrefixMatch:
        """Record a request, and return how it compares with the one before.

        Its cause is what was done to the history, where that is what it shows first.

        Args:
            messages: all of it.
            view: the history that stands at its end.
            header: what stands beside them.
            counted: its tokens, which the usage of the reply is compared with.
        """
        former = ShownHistory.of_state(self.get_provider_state(SHOWN))
        shown = ShownHistory.of(self.head, self._view.log, view)
        self.touch_request_hash(messages, header=header)
        if shown != former:
            self.set_provider_state(SHOWN, shown.state())
        self._asked = counted
        match = self.prefix_match
        assert match is not None  # noqa: S101  (it was just recorded)
        instructions = len(messages) - len(view.messages)
        return shown.explain(match, former, instructions)

    # Tokens ----------------------------------------------------------------------

    @property
    def calibration(self) -> Calibration:
        """What the provider counts for one of our tokens, as its usages told."""
        return stored_calibration(self.get_provider_state(CALIBRATION))

    def stored_tokens(self) -> int:
        """Return the tokens of the active window as it is stored, by the counter.

        Those too that another program stored without counting; costs what is new.
        """
        view = self._view
        log, counted, tokens = self._counted
        if log is not view.log or counted > view.length:
            counted = tokens = 0
        fresh = view.log.messages[counted : view.length]
        tokens += count_tokens(fresh, self._counter)
        self._counted = (view.log, view.length, tokens)
        return tokens

    def _compare_usage(
        self, messages: Sequence[ChatMessage], reported: Usage | None
    ) -> None:
        """Move the calibration, which is stored by the next write."""
        asked = self._asked
        if asked is None or reported is None or not asked.led_to(messages):
            return
        self._asked = None
        former = self.calibration
        calibration = asked.calibrated(former, reported)
        if calibration != former:
            state = {"eighths": calibration.eighths}
            self.set_provider_state(CALIBRATION, state)

    # Writing ---------------------------------------------------------------------

    async def save(
        self,
        messages: Sequence[ChatMessage],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        compact: bool = True,
    ) -> None:
        """Store messages in one step, all or none; activity.

        Where tool calls are not saved, calls and results are left out, and what is said
        beside them stays; messages that hold nothing else are not stored.  In mode
        ``auto`` the manager compacts the session behind that, where it is due.

        Args:
            messages: in order; those with an `id` are stored once.
            usage: what the provider reported of the model call that made the last
                message of the assistant's; it is stored with that, whose own tokens are
                the completion tokens without those of reasoning.  Where it is of the
                request recorded last, `calibration` follows its prompt tokens.
            model: the model that made them; stored with the session.
            compact: whether the session is compacted behind that; where not,
                `compact_if_due` does it.

        Raises:
            EntryConflictError: an id is stored with another message, or only some are.
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        check_messages(messages)
        self._compare_usage(messages, usage)
        if not self._save_tool_calls:
            messages = without_tool_calls(messages)
        if model == self.head.model:
            model = None

        def also(change: Change) -> Change:
            return change if model is None else replace(change, model=model)

        if messages:
            await self._append_once(self._entries(messages, usage), also)
        else:
            now = self._clock()
            await self._update(lambda change: replace(also(change), touch=now))
        if compact:
            await self.compact_if_due()

    async def compact_if_due(self) -> None:
        """Let the manager compact the session where a save made that due."""
        if self._saved is not None:
            await self._saved(self)

    async def _append_once(
        self, entries: Sequence[Entry], also: Callable[[Change], Change]
    ) -> None:
        """Store entries; those that are stored with another count of ours are known."""
        try:
            await self._append_entries(entries, also)
        except EntryConflictError:
            known = await self._as_stored(entries)
            if known == entries:
                raise
            await self._append_entries(known, also)

    async def _as_stored(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries with the tokens that are stored of the same events."""
        record = await self._journal.load(self.key, archived=True)
        stored = {entry.id: entry for entry in (*record.archived, *record.entries)}
        return [
            Entry(entry.id, entry.kind, entry.message, usage=former.usage)
            if (former := stored.get(entry.id)) is not None
            and former.message == entry.message
            and _reported(former.usage) == _reported(entry.usage)
            else entry
            for entry in entries
        ]

    @override
    async def _append(self, messages: Sequence[ChatMessage]) -> None:
        await self.save(messages)

    def _entries(
        self, messages: Sequence[ChatMessage], usage: Usage | None
    ) -> list[Entry]:
        replies = [i for i, m in enumerate(messages) if m.role is MessageRole.ASSISTANT]
        last = max(replies, default=None)
        return [
            Entry(
                message.id or new_id(),
                EntryKind.MESSAGE,
                message,
                usage=self._usage(message, usage if place == last else None),
            )
            for place, message in enumerate(messages)
        ]

    def _usage(self, message: ChatMessage, reported: Usage | None) -> Usage:
        if reported is None:
            return Usage(total_tokens=self._counter.count(message))
        size = reported.completion_tokens - (reported.reasoning_tokens or 0)
        if size < 1:
            size = self._counter.count(message)
        return reported.model_copy(update={"total_tokens": size})

    async def alter(self, change: Change) -> None:
        """Store title, model, labels, pin and status where the change names them.

        Raises:
            SessionNotFoundError: the session was deleted, replaced or has expired.
        """
        await self._update(
            lambda pending: replace(
                pending,
                title=change.title,
                model=change.model,
                labels=change.labels,
                pin=change.pin,
                status=change.status,
            )
        )

    # From outside ----------------------------------------------------------------

    def show(self, record: Record) -> None:
        """Show a whole record that was just read elsewhere, unless a later one is."""
        self._take(record, record.head, whole=True)

    def abandon(self) -> None:
        """Let go of what is pending: the session that it is for is no more."""
        self._take_pending(clears=True)


def _reported(usage: Usage | None) -> Usage:
    """Return what the caller gave of it: the total is of our counter."""
    if usage is None:
        return Usage()
    return usage.model_copy(update={"total_tokens": 0})
