"""`IsolationScopedSessionStore`: a store of one tenant's within a shared one."""

from __future__ import annotations

from abc import abstractmethod

from typing_extensions import Protocol, override

from raf_session.errors import IsolationKeyError
from raf_session.journal import Order, Page
from raf_session.journaled_session import JournaledSession
from raf_session.session import SessionCore
from raf_session.store import ISessionStore
from raf_session.stores.session_store import SessionStore

__all__ = (
    "FixedIsolationKeyProvider",
    "IsolationKeyProvider",
    "IsolationScopedSessionStore",
)


class IsolationKeyProvider(Protocol):
    """Tells whose sessions a call is about. RAF: ``IIsolationKeyProvider``."""

    @abstractmethod
    async def get_isolation_key(self) -> str | None:
        """Return the tenant of the present call; `None` or ``""``: not known."""
        ...


class FixedIsolationKeyProvider(IsolationKeyProvider):
    """Always the same tenant. RAF: ``FixedIsolationKeyProvider``."""

    def __init__(self, isolation_key: str) -> None:
        self._isolation_key = isolation_key

    @override
    async def get_isolation_key(self) -> str:
        """Return the key that was given."""
        return self._isolation_key


class IsolationScopedSessionStore(ISessionStore):
    """Scopes every operation by the caller's isolation key, strictly.

    The key is the user part of `SessionKey`, so no id can reach another tenant's
    sessions, whatever characters it has, and a tenant can be listed and erased.  The
    session keeps its own id.  RAF: ``IsolationScopedSessionStore``, which saves outside
    the scope.

    Args:
        inner: a store over the shared journal; its types are accepted here.
        provider: tells the tenant at each call.

    Raises:
        IsolationKeyError: on every operation, where the provider gives no key.
    """

    def __init__(self, inner: SessionStore, provider: IsolationKeyProvider) -> None:
        self._inner = inner
        self._provider = provider

    async def _scoped(self) -> SessionStore:
        isolation_key = await self._provider.get_isolation_key()
        if not isolation_key:
            raise IsolationKeyError
        return self._inner.for_user(isolation_key)

    @override
    async def save_session(
        self, session: SessionCore, /, *, overwrite: bool = False
    ) -> None:
        """Store the session among the tenant's; see `SessionStore.save_session`."""
        await (await self._scoped()).save_session(session, overwrite=overwrite)

    @override
    async def get_session(self, session_id: str, /) -> SessionCore | None:
        """Return a copy of the tenant's session of that id."""
        return await (await self._scoped()).get_session(session_id)

    async def open_session(
        self, session_id: str, *, exclusive: bool = False
    ) -> JournaledSession:
        """Return the tenant's live session of that id, made if missing."""
        scoped = await self._scoped()
        return await scoped.open_session(session_id, exclusive=exclusive)

    async def list_sessions(
        self,
        *,
        cursor: str | None = None,
        limit: int = 100,
        order: Order = "activity",
    ) -> Page:
        """Return a page of the tenant's sessions."""
        scoped = await self._scoped()
        return await scoped.list_sessions(cursor=cursor, limit=limit, order=order)

    @override
    async def delete_session(self, session_id: str, /) -> None:
        """Remove the tenant's session of that id."""
        await (await self._scoped()).delete_session(session_id)

    @override
    async def cleanup_expired(self) -> int:
        """Remove what has expired, and return how many of it were the tenant's."""
        return await (await self._scoped()).cleanup_expired()
