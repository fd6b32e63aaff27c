"""`ISessionStore`, RAF's store trait."""

from __future__ import annotations

from abc import abstractmethod

from typing_extensions import Protocol, runtime_checkable

from raf_session.session import SessionCore

__all__ = ("ISessionStore",)


@runtime_checkable
class ISessionStore(Protocol):
    """Keeps sessions by id. RAF: ``ISessionStore``."""

    @abstractmethod
    async def save_session(self, session: SessionCore, /) -> None:
        """Store the session as it is now. RAF: ``save_session``.

        When the call returns, `get_session` gives an equal one; the object and the
        store share nothing.  When it raises, what is stored is as it was.

        Raises:
            StaleSessionError: the stored session has what this one never saw, and
                saving would lose it.
            UnknownSessionTypeError: the store could not read the type back.
            SessionNotFoundError: the session that this one was read from is gone.
        """
        ...

    @abstractmethod
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        """Return an independent copy, of the type that was saved.

        `None` where there is none or it expired.  Moves no time.
        RAF: ``get_session``.
        """
        ...

    @abstractmethod
    async def delete_session(self, session_id: str, /) -> None:
        """Remove a session and everything of it; a missing one is fine.

        RAF: ``delete_session``.
        """
        ...

    @abstractmethod
    async def cleanup_expired(self) -> int:
        """Remove what has expired and return how many sessions that were.

        RAF: ``cleanup_expired``.
        """
        ...
