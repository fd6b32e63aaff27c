"""`InvocationContext`: what an agent and its tools know of the run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from raf_session.messages import ChatMessage
from raf_session.service.base import BaseSessionService
from raf_session.service.events import EventActions
from raf_session.service.sessions import Session
from raf_session.state import State

__all__ = ("InvocationContext",)


@dataclass(slots=True, kw_only=True)
class InvocationContext:
    """One run of an agent in a session. tRPC-Agent: ``InvocationContext``."""

    invocation_id: str
    """The id of the run, in each of its events."""
    session: Session
    """The session; what is appended in the run shows in it."""
    session_service: BaseSessionService
    """What keeps the session."""
    agent_name: str
    """The agent that runs."""
    user_content: ChatMessage | None = None
    """What the user said to begin with."""
    function_call_id: str | None = None
    """The call that a tool answers; `None`: this is no call."""
    actions: EventActions = field(default_factory=EventActions)
    """What the next event does beside what it says."""

    @property
    def app_name(self) -> str:
        """The app of the session."""
        return self.session.app_name

    @property
    def user_id(self) -> str:
        """The user of the session."""
        return self.session.user_id

    @property
    def state(self) -> State:
        """The state; what is set shows at once, and is stored with the next event."""
        actions = self.actions
        return State(self.session.state, actions.state_delta, actions.state_deleted)

    def for_call(self, call_id: str | None) -> InvocationContext:
        """Return the context of one call of a tool, with actions of its own."""
        return replace(self, function_call_id=call_id, actions=EventActions())
