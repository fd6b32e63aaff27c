"""`erase`: everything of one user, with a receipt."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import anyio

from raf_session.changes import StateDelta
from raf_session.clock import utc
from raf_session.entries import SessionHead
from raf_session.errors import SessionDamagedError, StorageBusyError
from raf_session.journal import Journal
from raf_session.keys import ScopeKey, SessionKey, check_name, check_part
from raf_session.options import Query
from raf_session.raf_json import format_time
from raf_session.transfer.copy_report import Failure
from raf_session.transfer.listing import Heads, Listing

__all__ = ("ErasedSession", "Erasure", "ErasureReceipt", "erase")

_BATCH: Final = 1000
_ALL: Final = (1 << 31) - 1
_TRIES: Final = 50
_PAUSE: Final = 0.1
_STATE: Final = re.compile(r"""state ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"): """)
"""How a journal names a value of a state that it cannot read."""


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
    damaged: tuple[SessionKey, ...]
    """Sessions that were removed although their heads could not be read."""
    failures: tuple[Failure, ...]
    """What could not be read, and is still there."""
    complete: bool
    """Whether nothing is left; false where the erasure broke off."""

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
            "damaged": [str(key) for key in self.damaged],
            "failures": [
                {"key": str(failure.key), "error": str(failure.error)}
                for failure in self.failures
            ],
            "complete": self.complete,
        }


async def erase(journal: Journal, app: str, user: str) -> ErasureReceipt:
    """Remove all sessions of a user in an app, in every scope, and the user's state.

    Archive, states and request records go with a session.  Whatever has expired in the
    journal is swept, so that nothing of the user's is left that no listing shows.  All
    is looked through again until there is nothing, so writers at work do not keep
    anything back; while they go on making sessions, it goes on.  Where it raises or is
    cancelled, what it removed stays removed: call it again.  The receipt of what was
    removed until then is to be had of `Erasure`.

    What cannot be read goes too: a session by its key, a value of the user's state by
    its name.  Where damage leaves neither to be known, everything else is removed
    before the error is raised.

    State of the app stays, and so do sessions under other users' keys, a fork of this
    user's among them.

    Args:
        journal: where the user is to be erased.
        app: the app; may be empty.
        user: the user, as in the keys of the sessions.

    Raises:
        InvalidValueError: no user is named.
        SessionDamagedError: what cannot be read is still there; all else has gone.
        StorageBusyError: somebody else holds what has expired, and did not let go of
            it; all else has gone.
    """
    return await Erasure(journal, app, user).run()


class Erasure:
    """One erasure, whose receipt can be had where it breaks off, too.

    Args:
        journal: where the user is to be erased.
        app: the app; may be empty.
        user: the user, as in the keys of the sessions.

    Raises:
        InvalidValueError: no user is named.
    """

    def __init__(self, journal: Journal, app: str, user: str) -> None:
        self._journal = journal
        self._app = check_part(app, "app")
        self._user = check_name(user, "user")
        self._begun = utc(journal.clock())
        self._sessions: list[ErasedSession] = []
        self._expired: list[SessionKey] = []
        self._damaged: list[SessionKey] = []
        self._failures: list[Failure] = []
        self._unread: set[str] = set()
        self._state_keys = 0
        self._walks = 0
        self._complete = False

    async def run(self) -> ErasureReceipt:
        """Remove everything; see `erase`."""
        self._begun = utc(self._journal.clock())
        found = True
        while found:
            self._failures.clear()
            self._walks += 1
            found = await self._walk()
        for failure in self._failures:
            raise failure.error
        self._complete = True
        return self.receipt()

    def receipt(self) -> ErasureReceipt:
        """Return what was removed until now."""
        return ErasureReceipt(
            self._app,
            self._user,
            self._journal.backend,
            self._begun,
            utc(self._journal.clock()),
            tuple(self._sessions),
            tuple(self._expired),
            self._state_keys,
            self._walks,
            tuple(self._damaged),
            tuple(self._failures),
            self._complete,
        )

    async def _walk(self) -> bool:
        """Remove what there is, and tell whether there was anything."""
        # The sweep comes last: what expires during the walk is either listed or swept.
        found = await self._remove_sessions()
        found |= await self._remove_state()
        return await self._sweep() or found

    # Expired ---------------------------------------------------------------------

    async def _sweep(self) -> bool:
        """Remove what has expired; wait a while for what somebody else holds."""
        found = await self._sweep_once()
        tries = 0
        while left := await self._left():
            if tries == _TRIES:
                names = ", ".join(map(str, left))
                raise StorageBusyError(
                    self._journal.backend,
                    f"somebody else holds what has expired: {names}",
                )
            tries += 1
            await anyio.sleep(_PAUSE)
            found |= await self._sweep_once()
        return found

    async def _sweep_once(self) -> bool:
        found = False
        while True:
            gone = await self._journal.expire(_BATCH)
            for key in filter(self._mine, gone):
                found = True
                if isinstance(key, SessionKey):
                    self._expired.append(key)
            if len(gone) < _BATCH:
                return found

    async def _left(self) -> list[SessionKey | ScopeKey]:
        return list(filter(self._mine, await self._journal.expire(_ALL, dry_run=True)))

    def _mine(self, key: SessionKey | ScopeKey) -> bool:
        return key.app == self._app and key.user == self._user

    # Sessions --------------------------------------------------------------------

    async def _remove_sessions(self) -> bool:
        listing = Listing(self._journal, Query(app=self._app, user=self._user))
        found = False
        while (page := await self._page(listing)) is not None:
            for head in page.heads:
                found = True
                await self._remove(head)
            if page.damaged is not None:
                found |= await self._remove_damaged(*page.damaged)
        return found

    async def _page(self, listing: Listing) -> Heads | None:
        try:
            return await listing.page()
        except SessionDamagedError as error:
            self._failures.append(Failure(ScopeKey(self._app, self._user), error))
            return None

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

    async def _remove_damaged(
        self, key: SessionKey, damage: SessionDamagedError
    ) -> bool:
        """Remove a session unseen, and tell whether it has gone."""
        try:
            gone = self._mine(key) and await self._journal.delete(key)
        except SessionDamagedError as error:
            gone, damage = False, error
        if gone:
            self._damaged.append(key)
        else:
            self._failures.append(Failure(key, damage))
        return gone

    # State -----------------------------------------------------------------------

    async def _remove_state(self) -> bool:
        scope = ScopeKey(self._app, self._user)
        try:
            names = await self._names(scope)
            if names:
                await self._journal.update_scoped_state(
                    scope, StateDelta(deleted=names)
                )
        except SessionDamagedError as error:
            self._failures.append(Failure(scope, error))
            return False
        self._state_keys += len(names)
        return bool(names)

    async def _names(self, scope: ScopeKey) -> frozenset[str]:
        """Return the names of the user's state, or the one whose value is damaged."""
        try:
            return frozenset((await self._journal.scoped_state(scope)).state)
        except SessionDamagedError as error:
            name = _named(error)
            if name is None or name in self._unread:
                raise
            self._unread.add(name)
            return frozenset((name,))


def _named(error: SessionDamagedError) -> str | None:
    """Return the name in a detail such as ``state 'name': …``, `None` without one."""
    match = _STATE.match(error.detail)
    return None if match is None else ast.literal_eval(match[1])
