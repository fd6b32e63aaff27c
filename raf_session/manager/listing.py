"""Listings of agents' sessions, a page at a time."""

from __future__ import annotations

from typing import NamedTuple

from raf_session.entries import SessionHead
from raf_session.expiry import Lifecycle, lifecycle
from raf_session.journal import Journal
from raf_session.key_paths import SessionScope, agent_parts
from raf_session.keys import check_name
from raf_session.manager.records import SessionMeta, SessionState
from raf_session.options import Query

__all__ = ("SessionFilter", "SessionList", "is_idle", "list_page")


class SessionList(NamedTuple):
    """A part of a listing; it may be short, the end is where `cursor` is `None`."""

    sessions: tuple[SessionMeta, ...]
    cursor: str | None


class SessionFilter(NamedTuple):
    """Which sessions to list; `None` is any, the conditions are combined."""

    agent_id: str | None
    channel: str | None
    scope: SessionScope | None
    user_id: str | None
    state: SessionState | None

    @property
    def query(self) -> Query:
        """What of it a journal answers."""
        both = self.channel is not None and self.scope is not None
        return Query(
            app=_name(self.agent_id, "agent_id"),
            user=_name(self.user_id, "user_id"),
            scope=f"{self.channel}:{self.scope}" if both else None,
        )

    def takes(self, meta: SessionMeta) -> bool:
        """Tell whether a session that the query found is meant."""
        return (
            self.channel in {None, meta.channel}
            and self.scope in {None, meta.scope}
            and self.state in {None, meta.state}
        )


def _name(value: str | None, field: str) -> str | None:
    return None if value is None else check_name(value, field)


async def list_page(
    journal: Journal, wanted: SessionFilter, cursor: str | None, limit: int
) -> SessionList:
    """Return one page, last active first; one scan, whatever it holds.

    Sessions of other faces are left out.

    Raises:
        ValueError: `limit` under 1, or a cursor of no listing.
    """
    page = await journal.scan(wanted.query, cursor, order="activity", limit=limit)
    metas = [
        SessionMeta.of(listed.head, idle=is_idle(journal, listed.head))
        for listed in page.sessions
        if agent_parts(listed.head.key) is not None
    ]
    return SessionList(tuple(filter(wanted.takes, metas)), page.cursor)


def is_idle(journal: Journal, head: SessionHead) -> bool:
    """Tell whether a session is without activity, and not expired."""
    state = lifecycle(head, journal.limits.sessions, journal.clock())
    return state is Lifecycle.IDLE
