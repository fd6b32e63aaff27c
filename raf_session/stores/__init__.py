"""The stores: RAF's store trait over a journal, and ways to choose one."""

from raf_session.stores.backends import (
    InMemorySessionStore,
    OwningStore,
    SqliteSessionStore,
    open_store,
)
from raf_session.stores.isolation import (
    FixedIsolationKeyProvider,
    IsolationKeyProvider,
    IsolationScopedSessionStore,
)
from raf_session.stores.session_store import SessionStore
from raf_session.stores.urls import open_journal

__all__ = (
    "FixedIsolationKeyProvider",
    "InMemorySessionStore",
    "IsolationKeyProvider",
    "IsolationScopedSessionStore",
    "OwningStore",
    "SessionStore",
    "SqliteSessionStore",
    "open_journal",
    "open_store",
)
