"""One session layer for every Python agent.

A typed `ISession` trait, one `Journal` under every backend, and a prefix hash that
knows what the provider's KV cache will reuse.
"""

from raf_session._version import __version__
from raf_session.agent_session import AgentSession
from raf_session.base_session import BaseSession, take_snapshot
from raf_session.calls import ToolCall
from raf_session.changes import (
    Change,
    LabelDelta,
    RequestDelta,
    RequestRecord,
    SessionStatus,
    StateDelta,
)
from raf_session.clock import UNIX_EPOCH, Clock, utc_now
from raf_session.entries import Counts, Entry, EntryKind, Record, SessionHead
from raf_session.errors import (
    EntryConflictError,
    EntryTooLargeError,
    InvalidValueError,
    IsolationKeyError,
    JournalClosedError,
    SchemaVersionError,
    SessionDamagedError,
    SessionError,
    SessionExistsError,
    SessionNotFoundError,
    SnapshotUnavailableError,
    StaleSessionError,
    StorageBusyError,
    StorageError,
    StorageFullError,
    UnknownSessionTypeError,
)
from raf_session.expiry import Lifecycle, lifecycle
from raf_session.frozen import FrozenDict, FrozenJson, freeze, thaw
from raf_session.journal import Codec, Commit, Journal, Listed, Page, ScopedState
from raf_session.journaled_session import JournaledSession
from raf_session.key_paths import SessionScope, agent_key, session_path
from raf_session.keys import ScopeKey, SessionKey
from raf_session.messages import ChatMessage, MessageRole, MessageSource, Usage
from raf_session.metadata import ProviderStateStore, SessionMetadata, SessionSnapshot
from raf_session.options import Limits, NewSession, Query, SessionTTLOptions, Window
from raf_session.parts import (
    AudioPart,
    ContentPart,
    FilePart,
    ImagePart,
    ReasoningPart,
    RefusalPart,
    TextPart,
)
from raf_session.prefix import PrefixMatch, PrefixTracker
from raf_session.provider_state import ProviderState
from raf_session.session import ISession, SessionCore
from raf_session.store import ISessionStore
from raf_session.stores import (
    FixedIsolationKeyProvider,
    InMemorySessionStore,
    IsolationKeyProvider,
    IsolationScopedSessionStore,
    SessionStore,
    SqliteSessionStore,
    open_journal,
    open_store,
)
from raf_session.wrapper import SessionWrapper, StoreWrapper

__all__ = (
    "UNIX_EPOCH",
    "AgentSession",
    "AudioPart",
    "BaseSession",
    "Change",
    "ChatMessage",
    "Clock",
    "Codec",
    "Commit",
    "ContentPart",
    "Counts",
    "Entry",
    "EntryConflictError",
    "EntryKind",
    "EntryTooLargeError",
    "FilePart",
    "FixedIsolationKeyProvider",
    "FrozenDict",
    "FrozenJson",
    "ISession",
    "ISessionStore",
    "ImagePart",
    "InMemorySessionStore",
    "InvalidValueError",
    "IsolationKeyError",
    "IsolationKeyProvider",
    "IsolationScopedSessionStore",
    "Journal",
    "JournalClosedError",
    "JournaledSession",
    "LabelDelta",
    "Lifecycle",
    "Limits",
    "Listed",
    "MessageRole",
    "MessageSource",
    "NewSession",
    "Page",
    "PrefixMatch",
    "PrefixTracker",
    "ProviderState",
    "ProviderStateStore",
    "Query",
    "ReasoningPart",
    "Record",
    "RefusalPart",
    "RequestDelta",
    "RequestRecord",
    "SchemaVersionError",
    "ScopeKey",
    "ScopedState",
    "SessionCore",
    "SessionDamagedError",
    "SessionError",
    "SessionExistsError",
    "SessionHead",
    "SessionKey",
    "SessionMetadata",
    "SessionNotFoundError",
    "SessionScope",
    "SessionSnapshot",
    "SessionStatus",
    "SessionStore",
    "SessionTTLOptions",
    "SessionWrapper",
    "SnapshotUnavailableError",
    "SqliteSessionStore",
    "StaleSessionError",
    "StateDelta",
    "StorageBusyError",
    "StorageError",
    "StorageFullError",
    "StoreWrapper",
    "TextPart",
    "ToolCall",
    "UnknownSessionTypeError",
    "Usage",
    "Window",
    "__version__",
    "agent_key",
    "freeze",
    "lifecycle",
    "open_journal",
    "open_store",
    "session_path",
    "take_snapshot",
    "thaw",
    "utc_now",
)
