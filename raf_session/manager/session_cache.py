"""`SessionCache`: the live sessions that a manager used last."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Final

from raf_session.errors import SessionError, SessionNotFoundError
from raf_session.keys import SessionKey
from raf_session.manager.managed_session import ManagedSession

__all__ = ("SessionCache",)

_LIMIT: Final = 256

_log = logging.getLogger("raf_session.manager")


class SessionCache:
    """Holds live sessions, 256 at most, so that each turn reads what is new alone.

    What is pending in one that is let go of is stored first; where that fails it stays.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[SessionKey, ManagedSession] = OrderedDict()

    def get(self, key: SessionKey) -> ManagedSession | None:
        """Return the live session of a key, if it is held."""
        with self._lock:
            session = self._sessions.get(key)
            if session is not None:
                self._sessions.move_to_end(key)
            return session

    async def add(self, session: ManagedSession) -> ManagedSession:
        """Hold a session, and return it, or the one of its key that is held already."""
        with self._lock:
            held = self._sessions.setdefault(session.key, session)
            full = len(self._sessions) > _LIMIT
            oldest = self._sessions.popitem(last=False)[1] if full else None
        if oldest is not None:
            await self._let_go(oldest)
        return held

    async def _let_go(self, session: ManagedSession) -> None:
        try:
            await _settle(session)
        except BaseException as error:
            with self._lock:
                self._sessions.setdefault(session.key, session)
            if not isinstance(error, SessionError):
                raise
            _log.warning("session %s is held on to: %s", session.key, error)

    def remove(self, session: ManagedSession) -> None:
        """Let go of a session that is no more, and of what is pending in it."""
        with self._lock:
            if self._sessions.get(session.key) is session:
                del self._sessions[session.key]
        session.abandon()

    async def clear(self) -> None:
        """Let go of all, once what is pending in them is stored.

        Raises:
            SessionError: the first that could not be stored; the others are.
        """
        fault: SessionError | None = None
        while True:
            with self._lock:
                if not self._sessions:
                    break
                _, session = self._sessions.popitem()
            try:
                await _settle(session)
            except SessionError as error:
                fault = fault or error
        if fault is not None:
            raise fault


async def _settle(session: ManagedSession) -> None:
    try:
        await session.flush()
    except SessionNotFoundError:
        session.abandon()
