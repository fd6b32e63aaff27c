"""The face of TPCLAW: scopes, configuration, history, compaction, an aspect."""

from raf_session.compaction import CompactionOutcome
from raf_session.history import (
    DroppedMessage,
    HistoryPolicy,
    HistoryRule,
    HistoryView,
    WindowMode,
)
from raf_session.key_paths import SessionScope
from raf_session.manager.agent_run import AgentRun
from raf_session.manager.aspect import SessionAspect
from raf_session.manager.compaction_report import CompactionReport, CompactionTrigger
from raf_session.manager.config import (
    AgentsConfig,
    CompactionConfig,
    CompactionMode,
    SessionConfig,
    ToolCallConfig,
)
from raf_session.manager.durations import format_duration, parse_duration
from raf_session.manager.listing import SessionList
from raf_session.manager.managed_session import ManagedSession
from raf_session.manager.records import SessionMessage, SessionMeta, SessionState
from raf_session.manager.requests import (
    AgentInput,
    AgentOutput,
    AgentPoint,
    SessionRequest,
)
from raf_session.manager.reuse import CacheReuse
from raf_session.manager.run_report import RunReport
from raf_session.manager.session_manager import SessionManager
from raf_session.manager.statistics import SessionStatistics
from raf_session.manager.turn_request import TurnRequest
from raf_session.tokens import EstimatingTokenCounter, TokenCounter

__all__ = (
    "AgentInput",
    "AgentOutput",
    "AgentPoint",
    "AgentRun",
    "AgentsConfig",
    "CacheReuse",
    "CompactionConfig",
    "CompactionMode",
    "CompactionOutcome",
    "CompactionReport",
    "CompactionTrigger",
    "DroppedMessage",
    "EstimatingTokenCounter",
    "HistoryPolicy",
    "HistoryRule",
    "HistoryView",
    "ManagedSession",
    "RunReport",
    "SessionAspect",
    "SessionConfig",
    "SessionList",
    "SessionManager",
    "SessionMessage",
    "SessionMeta",
    "SessionRequest",
    "SessionScope",
    "SessionState",
    "SessionStatistics",
    "TokenCounter",
    "ToolCallConfig",
    "TurnRequest",
    "WindowMode",
    "format_duration",
    "parse_duration",
)
