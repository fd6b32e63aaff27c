"""Listings: sessions with the state of all their scopes, without events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from raf_session.frozen import EMPTY
from raf_session.journal import Journal, Listed
from raf_session.keys import ScopeKey
from raf_session.options import Query
from raf_session.service.loading import empty_session
from raf_session.service.sessions import ListSessionsResponse, Origin, Session
from raf_session.state import merge_state

__all__ = ("list_page",)

_PAGE = 500


async def list_page(
    journal: Journal,
    app: str,
    user: str | None,
    limit: int | None,
    cursor: str | None,
) -> ListSessionsResponse:
    """Return the sessions of an app or of one of its users, last active first.

    Without `limit` and `cursor` all of them, each once, whatever is written meanwhile.
    """
    query = Query(app=app, user=user, scope="")
    if limit is None and cursor is None:
        listed = [item async for item in _all(journal, query)]
        listed.sort(key=lambda item: item.head.last_active_at, reverse=True)
        return ListSessionsResponse(sessions=await _sessions(journal, app, listed))
    page = await journal.scan(
        query, cursor, limit=_PAGE if limit is None else limit, state=True
    )
    sessions = await _sessions(journal, app, page.sessions)
    return ListSessionsResponse(sessions=sessions, cursor=page.cursor)


async def _all(journal: Journal, query: Query) -> AsyncIterator[Listed]:
    cursor = None
    while True:
        page = await journal.scan(query, cursor, order="key", limit=_PAGE, state=True)
        for item in page.sessions:
            yield item
        cursor = page.cursor
        if cursor is None:
            return


async def _sessions(
    journal: Journal, app: str, listed: tuple[Listed, ...] | list[Listed]
) -> list[Session]:
    if not listed:
        return []
    app_state = (await journal.scoped_state(ScopeKey(app))).state
    users: dict[str, Mapping[str, Any]] = {}
    for user in {item.head.key.user for item in listed}:
        users[user] = (await journal.scoped_state(ScopeKey(app, user))).state
    return [_session(item, users[item.head.key.user], app_state) for item in listed]


def _session(
    item: Listed, user_state: Mapping[str, Any], app_state: Mapping[str, Any]
) -> Session:
    session = empty_session(item.head)
    session.remember(
        Origin.of(item.head),
        merge_state(item.state or EMPTY, user_state, app_state),
        None,
    )
    return session
