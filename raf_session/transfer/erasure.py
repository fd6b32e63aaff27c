"""`erase`: everything of one user, with a receipt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from raf_session.changes import StateDelta
from raf_session.clock import utc
from raf_session.entries import SessionHead
from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey, check_name, check_part
from raf_session.options import Query
from raf_session.raf_json import format_time

__all__ = ("ErasedSession", "ErasureReceipt", "erase")

_PAGE: Final = 500
_BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class ErasedSession:
    """One session that was removed, as it was listed right before."""

    key: SessionKey
    incarnation: str
    entries: int
    """How many entries its window held."""
    entries_in_all: int
    """How many it had ever been given."""
    created_at: datetime
    last_active_at: datetime
    erased_at: datetime

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "key": str(self.key),
            "incarnation": self.incarnation,
            "entries": self.entries,
            "entries_in_all": self.entries_in_all,
            "created_at": format_time(self.created_at),
            "last_active_at": format_time(self.last_active_at),
            "erased_at": format_time(self.erased_at),
        }


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What an erasure removed; empty where nothing was left to remove."""

    app: str
    user: str
    backend: str
    begun_at: datetime
    """By the journal's clock, as is every time of the receipt."""
    finished_at: datetime
    sessions: tuple[ErasedSession, ...]
    expired: tuple[SessionKey, ...]
    """Sessions of the user that had expired, and were not swept before."""
    state_keys: int
    """How many keys of the user's state were removed."""
    walks: int
    """How often all was looked through; the last walk found nothing."""

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "app": self.app,
            "user": self.user,
            "backend": self.backend,
            "begun_at": format_time(self.begun_at),
            "finished_at": format_time(self.finished_at),
            "sessions": [session.to_json() for session in self.sessions],
            "expired": [str(key) for key in self.expired],
            "state_keys": self.state_keys,
            "walks": self.walks,
        }


async def erase(journal: Journal, app: str, user: str) -> ErasureReceipt:
    """Remove all sessions of a user in an app, in every scope, and the user's state.

    Archive, states and request records go with a session.  Whatever has expired in the
    journal is swept, so that nothing of the user's is left that no listing shows.  All
    is looked through again until there is nothing, so writers at work do not keep
    anything back; while they go on making sessions, it goes on.  Where it raises or is
    cancelled, what it removed stays removed: call it again.

    State of the app stays, and so do sessions under other users' keys, a fork of this
    user's among them.

    Args:
        journal: where the user is to be erased.
        app: the app; may be empty.
        user: the user, as in the keys of the sessions.

    Raises:
        InvalidValueError: no user is named.
    """
    erasure = _Erasure(journal, check_part(app, "app"), check_name(user, "user"))
    return await erasure.run()


class _Erasure:
    def __init__(self, journal: Journal, app: str, user: str) -> None:
        self._journal = journal
        self._app = app
        self._user = user
        self._sessions: list[ErasedSession] = []
        self._expired: list[SessionKey] = []
        self._state_keys = 0

    async def run(self) -> ErasureReceipt:
        journal = self._journal
        begun = utc(journal.clock())
        walks = 1
        while await self._walk():
            walks += 1
        return ErasureReceipt(
            self._app,
            self._user,
            journal.backend,
            begun,
            utc(journal.clock()),
            tuple(self._sessions),
            tuple(self._expired),
            self._state_keys,
            walks,
        )

    async def _walk(self) -> bool:
        """Remove what there is, and tell whether there was anything."""
        # The sweep comes last: what expires during the walk is either listed or swept.
        found = await self._remove_sessions()
        found |= await self._remove_state()
        return await self._sweep() or found

    async def _sweep(self) -> bool:
        found = False
        while True:
            gone = await self._journal.expire(_BATCH)
            for key in gone:
                if key.app == self._app and key.user == self._user:
                    found = True
                    if isinstance(key, SessionKey):
                        self._expired.append(key)
            if len(gone) < _BATCH:
                return found

    async def _remove_sessions(self) -> bool:
        query = Query(app=self._app, user=self._user)
        found = False
        cursor: str | None = None
        while True:
            page = await self._journal.scan(query, cursor, order="key", limit=_PAGE)
            for listed in page.sessions:
                found = True
                await self._remove(listed.head)
            cursor = page.cursor
            if cursor is None:
                return found

    async def _remove(self, head: SessionHead) -> None:
        # Of another incarnation or expired by now: the next walk sees to it.
        if await self._journal.delete(head.key, incarnation=head.incarnation):
            self._sessions.append(
                ErasedSession(
                    head.key,
                    head.incarnation,
                    head.active.entries,
                    head.total.entries,
                    head.created_at,
                    head.last_active_at,
                    utc(self._journal.clock()),
                )
            )

    async def _remove_state(self) -> bool:
        scope = ScopeKey(self._app, self._user)
        state = (await self._journal.scoped_state(scope)).state
        if not state:
            return False
        await self._journal.update_scoped_state(scope, StateDelta(deleted=state.keys()))
        self._state_keys += len(state)
        return True
