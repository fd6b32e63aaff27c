"""The face of tRPC-Agent: sessions with events, scoped state, filters and summaries."""

from raf_session.compaction import CompactionOutcome
from raf_session.service.backends import (
    InMemorySessionService,
    RedisSessionService,
    SqlSessionService,
    open_service,
)
from raf_session.service.base import BaseSessionService
from raf_session.service.config import SessionServiceConfig, Ttl
from raf_session.service.events import Event, EventActions
from raf_session.service.progress import SummaryProgress, summary_progress
from raf_session.service.session_service import SessionService
from raf_session.service.sessions import ListSessionsResponse, Session
from raf_session.service.summary_manager import (
    SessionSummarizer,
    SummarizerSessionManager,
)
from raf_session.service.triggers import (
    CheckSummarizerFunction,
    set_summarizer_check_functions_by_and,
    set_summarizer_check_functions_by_or,
    set_summarizer_content_length_threshold,
    set_summarizer_conversation_threshold,
    set_summarizer_events_count_threshold,
    set_summarizer_important_content_threshold,
    set_summarizer_time_interval_threshold,
    set_summarizer_token_threshold,
)
from raf_session.state import State, StateStorageEntry, extract_state_delta

__all__ = (
    "BaseSessionService",
    "CheckSummarizerFunction",
    "CompactionOutcome",
    "Event",
    "EventActions",
    "InMemorySessionService",
    "ListSessionsResponse",
    "RedisSessionService",
    "Session",
    "SessionService",
    "SessionServiceConfig",
    "SessionSummarizer",
    "SqlSessionService",
    "State",
    "StateStorageEntry",
    "SummarizerSessionManager",
    "SummaryProgress",
    "Ttl",
    "extract_state_delta",
    "open_service",
    "set_summarizer_check_functions_by_and",
    "set_summarizer_check_functions_by_or",
    "set_summarizer_content_length_threshold",
    "set_summarizer_conversation_threshold",
    "set_summarizer_events_count_threshold",
    "set_summarizer_important_content_threshold",
    "set_summarizer_time_interval_threshold",
    "set_summarizer_token_threshold",
    "summary_progress",
)
