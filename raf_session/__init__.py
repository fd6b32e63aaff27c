"""One session layer for every Python agent.

A typed `ISession` trait, one `Journal` under every backend, and a prefix hash that
knows what the provider's KV cache will reuse.

A name is imported when it is asked for: what nobody uses costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from raf_session._version import __version__

if TYPE_CHECKING:
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
    from raf_session.codecs import AesGcmCodec, ChainCodec, ZlibCodec
    from raf_session.diagnosis import Diagnosis, read_diagnosis
    from raf_session.entries import Counts, Entry, EntryKind, Record, SessionHead
    from raf_session.errors import (
        CopyMismatchError,
        DumpDamagedError,
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
        StateKeyMissingError,
        StorageBusyError,
        StorageError,
        StorageFullError,
        SummaryFailedError,
        UnknownSessionTypeError,
    )
    from raf_session.expiry import Lifecycle, lifecycle
    from raf_session.frozen import FrozenDict, FrozenJson, freeze, thaw
    from raf_session.journal import Codec, Commit, Journal, Listed, Page, ScopedState
    from raf_session.journaled_session import JournaledSession
    from raf_session.key_paths import SessionScope, agent_key, session_path
    from raf_session.keys import ScopeKey, SessionKey
    from raf_session.messages import ChatMessage, MessageRole, MessageSource, Usage
    from raf_session.metadata import (
        ProviderStateStore,
        SessionMetadata,
        SessionSnapshot,
    )
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
    from raf_session.prefix_comparison import compare_requests
    from raf_session.prefix_history import HistoryEntry, PrefixHistory
    from raf_session.prefix_match import CacheHints, Cause, Difference
    from raf_session.provider_rules import RULES, ProviderRules
    from raf_session.provider_state import ProviderState
    from raf_session.request_shapes import PromptRequest, RequestShape, read_request
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
    from raf_session.transfer import (
        CopyReport,
        ErasureReceipt,
        copy,
        dump,
        erase,
        fork,
        restore,
    )
    from raf_session.usage_reports import read_usage
    from raf_session.verdicts import Outcome, Reason, Verdict, verdict
    from raf_session.wrapper import SessionWrapper, StoreWrapper

__all__ = (
    "RULES",
    "UNIX_EPOCH",
    "AesGcmCodec",
    "AgentSession",
    "AudioPart",
    "BaseSession",
    "CacheHints",
    "Cause",
    "ChainCodec",
    "Change",
    "ChatMessage",
    "Clock",
    "Codec",
    "Commit",
    "ContentPart",
    "CopyMismatchError",
    "CopyReport",
    "Counts",
    "Diagnosis",
    "Difference",
    "DumpDamagedError",
    "Entry",
    "EntryConflictError",
    "EntryKind",
    "EntryTooLargeError",
    "ErasureReceipt",
    "FilePart",
    "FixedIsolationKeyProvider",
    "FrozenDict",
    "FrozenJson",
    "HistoryEntry",
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
    "Outcome",
    "Page",
    "PrefixHistory",
    "PrefixMatch",
    "PrefixTracker",
    "PromptRequest",
    "ProviderRules",
    "ProviderState",
    "ProviderStateStore",
    "Query",
    "Reason",
    "ReasoningPart",
    "Record",
    "RefusalPart",
    "RequestDelta",
    "RequestRecord",
    "RequestShape",
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
    "StateKeyMissingError",
    "StorageBusyError",
    "StorageError",
    "StorageFullError",
    "StoreWrapper",
    "SummaryFailedError",
    "TextPart",
    "ToolCall",
    "UnknownSessionTypeError",
    "Usage",
    "Verdict",
    "Window",
    "ZlibCodec",
    "__version__",
    "agent_key",
    "compare_requests",
    "copy",
    "dump",
    "erase",
    "fork",
    "freeze",
    "lifecycle",
    "open_journal",
    "open_store",
    "read_diagnosis",
    "read_request",
    "read_usage",
    "restore",
    "session_path",
    "take_snapshot",
    "thaw",
    "utc_now",
    "verdict",
)

_MODULES: Final = {
    "agent_session": "AgentSession",
    "base_session": "BaseSession take_snapshot",
    "calls": "ToolCall",
    "changes": "Change LabelDelta RequestDelta RequestRecord SessionStatus StateDelta",
    "clock": "UNIX_EPOCH Clock utc_now",
    "codecs": "AesGcmCodec ChainCodec ZlibCodec",
    "diagnosis": "Diagnosis read_diagnosis",
    "entries": "Counts Entry EntryKind Record SessionHead",
    "errors": (
        "CopyMismatchError DumpDamagedError EntryConflictError EntryTooLargeError "
        "InvalidValueError IsolationKeyError JournalClosedError SchemaVersionError "
        "SessionDamagedError SessionError SessionExistsError SessionNotFoundError "
        "SnapshotUnavailableError StaleSessionError StateKeyMissingError "
        "StorageBusyError StorageError StorageFullError SummaryFailedError "
        "UnknownSessionTypeError"
    ),
    "expiry": "Lifecycle lifecycle",
    "frozen": "FrozenDict FrozenJson freeze thaw",
    "journal": "Codec Commit Journal Listed Page ScopedState",
    "journaled_session": "JournaledSession",
    "key_paths": "SessionScope agent_key session_path",
    "keys": "ScopeKey SessionKey",
    "messages": "ChatMessage MessageRole MessageSource Usage",
    "metadata": "ProviderStateStore SessionMetadata SessionSnapshot",
    "options": "Limits NewSession Query SessionTTLOptions Window",
    "parts": (
        "AudioPart ContentPart FilePart ImagePart ReasoningPart RefusalPart TextPart"
    ),
    "prefix": "PrefixMatch PrefixTracker",
    "prefix_comparison": "compare_requests",
    "prefix_history": "HistoryEntry PrefixHistory",
    "prefix_match": "CacheHints Cause Difference",
    "provider_rules": "RULES ProviderRules",
    "provider_state": "ProviderState",
    "request_shapes": "PromptRequest RequestShape read_request",
    "session": "ISession SessionCore",
    "store": "ISessionStore",
    "stores": (
        "FixedIsolationKeyProvider InMemorySessionStore IsolationKeyProvider "
        "IsolationScopedSessionStore SessionStore SqliteSessionStore open_journal "
        "open_store"
    ),
    "transfer": "CopyReport ErasureReceipt copy dump erase fork restore",
    "usage_reports": "read_usage",
    "verdicts": "Outcome Reason Verdict verdict",
    "wrapper": "SessionWrapper StoreWrapper",
}
"""Where the names of `__all__` stand, as type checkers see it above."""

_HOMES: Final = {
    name: module for module, names in _MODULES.items() for name in names.split()
}


if not TYPE_CHECKING:  # for type checkers there is no name but those above

    def __getattr__(name: str) -> object:
        """Import a public name, and keep it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
