"""What the tests of the aspect say, configure and judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

from raf_session.calls import ToolCall
from raf_session.conformance.clock import TickingClock
from raf_session.entries import EntryKind
from raf_session.journal import Journal
from raf_session.journals.memory import MemoryJournal
from raf_session.keys import SessionKey
from raf_session.manager import (
    AgentInput,
    AgentPoint,
    AgentsConfig,
    CompactionConfig,
    CompactionMode,
    SessionConfig,
    ToolCallConfig,
)
from raf_session.manager.aspect import SessionAspect
from raf_session.manager.session_manager import SessionManager
from raf_session.messages import ChatMessage
from raf_session.tokens import count_tokens
from raf_session.validity import (
    Violation,
    anthropic_violations,
    gemini_violations,
    openai_violations,
)

BRIEF: Final = ChatMessage.system("be brief")
ROOMY: Final = AgentsConfig(
    session=SessionConfig(ttl=None, idle_timeout=None),
    compaction=CompactionConfig(mode=CompactionMode.OFF),
    tool_calls=ToolCallConfig(keep_tool_calls_count=None, max_tool_result_size=None),
)
"""Nothing expires, leaves or is made short."""


def config(
    *,
    session: dict[str, Any] | None = None,
    compaction: dict[str, Any] | None = None,
    tool_calls: dict[str, Any] | None = None,
) -> AgentsConfig:
    """Return `ROOMY` with other options."""
    sections = {"session": session, "compaction": compaction, "tool_calls": tool_calls}
    return AgentsConfig.from_mapping(
        {name: options or {} for name, options in sections.items()}, base=ROOMY
    )


def given(*messages: ChatMessage | str, peer: str = "ann", **fields: Any) -> AgentInput:
    """Return an input of one person's."""
    said = [ChatMessage.user(m) if isinstance(m, str) else m for m in messages]
    return AgentInput("chat", peer=peer, messages=said, **fields)


KEY: Final = given().request(None).key("per_peer")


def run(name: str, **fields: Any) -> AgentPoint:
    """Return the run of a name."""
    return AgentPoint(run_id=name, **fields)


def asks(*ids: str, text: str | None = None) -> ChatMessage:
    """Return a message that asks for calls."""
    calls = [ToolCall(id=name, name="look", arguments="{}") for name in ids]
    return ChatMessage.assistant_with_tools(text, calls)


def gives(name: str, text: str = "done") -> ChatMessage:
    """Return the result of a call."""
    return ChatMessage.tool(text, name)


def reply(text: str = "well") -> ChatMessage:
    """Return what the assistant says at last."""
    return ChatMessage.assistant(text)


class Aspects:
    """Aspects over one journal, each with a manager as another process has it.

    Args:
        journal: the journal; `None`: an empty one in memory, whose clock stands.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self.clock = TickingClock()
        self.journal: Journal = journal or MemoryJournal.opened(clock=self.clock)
        self._managers: list[SessionManager] = []

    def new(self, configuration: AgentsConfig = ROOMY, **options: Any) -> SessionAspect:
        """Return one more; its manager is closed when these are left."""
        over = options.pop("journal", self.journal)
        manager = SessionManager(over, configuration, **options)
        self._managers.append(manager)
        return SessionAspect(manager)

    async def stored(self, key: SessionKey = KEY) -> list[ChatMessage]:
        """Return the messages of a session's history."""
        record = await self.journal.load(key)
        return [entry.message for entry in record.entries if entry.message is not None]

    async def everything(self, key: SessionKey = KEY) -> list[ChatMessage]:
        """Return all that was ever stored, by places, summaries left out."""
        return await said_in(self.journal, key)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for manager in self._managers:
            await manager.close()


async def said_in(journal: Journal, key: SessionKey) -> list[ChatMessage]:
    """Return all that was ever stored in a session, by places, but for summaries."""
    record = await journal.load(key, archived=True)
    entries = sorted((*record.archived, *record.entries), key=lambda entry: entry.seq)
    return [
        entry.message
        for entry in entries
        if entry.message is not None and entry.kind is EntryKind.MESSAGE
    ]


# Judging -------------------------------------------------------------------------


def violations(messages: Sequence[ChatMessage]) -> list[Violation]:
    """Return what any of the three providers would refuse."""
    checks = (openai_violations, anthropic_violations, gemini_violations)
    return [violation for check in checks for violation in check(messages)]


def wire(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Return the messages as they are sent."""
    return [message.to_openai() for message in messages]


def outline(messages: Iterable[ChatMessage]) -> list[str]:
    """Return of each message its role and its text, or its calls."""
    return [
        f"{m.role.value}: {m.text or ' '.join(str(c.id) for c in m.tool_calls or ())}"
        for m in messages
    ]


def begins(former: Sequence[ChatMessage], later: Sequence[ChatMessage]) -> bool:
    """Tell whether a request begins with all of the former one."""
    return wire(later)[: len(former)] == wire(former)


def judge(messages: Iterable[ChatMessage], manager: SessionManager) -> None:
    """Decide whether a request may be sent: by three providers, within the window."""
    sent = tuple(messages)
    assert violations(sent) == []
    window = manager.config.session.request_tokens
    reserve = manager.config.session.reserve_tokens
    assert window is None or count_tokens(sent, manager.counter) <= window - reserve
