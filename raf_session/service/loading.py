"""`Loader`: stored sessions as their callers hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from raf_session.clock import to_micros
from raf_session.entries import Counts, Entry, EntryKind, Record, SessionHead
from raf_session.errors import SessionNotFoundError
from raf_session.filtering import DropRule
from raf_session.journal import Journal
from raf_session.keys import SessionKey
from raf_session.options import Window
from raf_session.service.config import SessionServiceConfig
from raf_session.service.event_entries import event_of
from raf_session.service.events import Event
from raf_session.service.sessions import Origin, Session
from raf_session.service.views import Filter, groups_of, view_of
from raf_session.state import merge_state

__all__ = ("TOTALS", "Loader", "session_of")

TOTALS: Final = "totals"
"""Where a summary's metadata holds what had been stored when it was written."""

_FRONT: Final = Window(before_seq=9)
"""Where instructions, summary and the first message of the user's mostly stand."""

_MARGIN: Final = 64
"""How many more events than asked for are read, so that groups are whole."""


class Loader:
    """Reads sessions, and shows of each what the configuration says.

    Args:
        config: how many events are shown, and how old they may be.
    """

    def __init__(self, config: SessionServiceConfig) -> None:
        counts = [n for n in (config.max_events, config.num_recent_events) if n]
        self._limits = Filter(min(counts, default=0), config.event_ttl_seconds)
        self._recent = config.num_recent_events

    async def load(
        self, journal: Journal, key: SessionKey, *, refresh: bool
    ) -> Session | None:
        """Return the session, or `None` where there is none or it expired.

        The cost follows `num_recent_events` where that is set.
        """
        try:
            if self._recent:
                session = await self._load_recent(journal, key, refresh=refresh)
                if session is not None:
                    return session
            record = await journal.load(key, refresh=refresh)
        except SessionNotFoundError:
            return None
        return self._shown(journal, _session_now(journal, record, record.entries))

    async def _load_recent(
        self, journal: Journal, key: SessionKey, *, refresh: bool
    ) -> Session | None:
        """Return the session from its end and its front; `None`: that cannot be."""
        window = Window(last=self._recent + _MARGIN)
        record = await journal.load(key, window, refresh=refresh)
        entries = record.entries
        if len(entries) == record.head.active.entries:
            return self._shown(journal, _session_now(journal, record, entries))
        front = await journal.load(key, _FRONT)
        if front.head.revision != record.head.revision:
            return None
        first = [entry for entry in front.entries if entry.seq < entries[0].seq]
        session = _session_now(journal, record, (*first, *entries))
        anchored = any(
            event.is_summary or event.is_user_turn
            for event in session.events[: len(first)]
        )
        if not anchored or self._cuts_groups(journal, session.events, len(first)):
            return None
        return self._shown(journal, session)

    def _cuts_groups(
        self, journal: Journal, events: Sequence[Event], front: int
    ) -> bool:
        """Tell whether calls, or results of calls that are shown, may be in the gap.

        Args:
            journal: whose clock decides.
            events: those of the front and those of the end.
            front: how many are of the front.
        """
        view = view_of(events, self._limits, to_micros(journal.clock()))
        if DropRule.ORPHAN in view.dropped.values():
            return True
        groups = groups_of(events).groups
        callers = {group.message_index for group in groups if group.open_calls}
        return any(index < front and index in callers for index in view.kept)

    def _shown(self, journal: Journal, session: Session) -> Session:
        session.apply_event_filtering(
            self._limits.event_ttl_seconds,
            self._limits.max_events,
            now=journal.clock().timestamp(),
        )
        return session


def _session_now(journal: Journal, record: Record, entries: Sequence[Entry]) -> Session:
    return session_of(record, entries, journal.clock().timestamp())


def session_of(record: Record, entries: Sequence[Entry], read_at: float) -> Session:
    """Return the session of a record, with all of these entries as its events.

    Args:
        record: the session.
        entries: which of its entries it shows.
        read_at: when it was read, in seconds since the epoch.
    """
    head = record.head
    session = empty_session(head)
    session.events = [event_of(entry) for entry in entries]
    session.remember(
        Origin.of(head),
        merge_state(record.state, record.user_state, record.app_state),
        since_summary(head, entries),
        read_at,
    )
    return session


def empty_session(head: SessionHead) -> Session:
    """Return the session of a head, without events and state."""
    return Session(
        id=head.key.session,
        app_name=head.key.app,
        user_id=head.key.user,
        last_update_time=head.updated_at.timestamp(),
        conversation_count=head.total.conversations,
    )


def since_summary(head: SessionHead, entries: Iterable[Entry]) -> Counts:
    """Return what was stored since the summary among these entries, or ever."""
    for entry in entries:
        if entry.kind is EntryKind.SUMMARY:
            totals = entry.metadata.get(TOTALS)
            if totals is not None:
                return head.total.minus(Counts(*totals))
    return head.total
