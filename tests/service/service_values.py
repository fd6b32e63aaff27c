"""Events, summarizers and canonical forms that the tests of the services share."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from raf_session.messages import ChatMessage
from raf_session.service import (
    Event,
    EventActions,
    Session,
    SessionService,
    SessionSummarizer,
    SummarizerSessionManager,
)

APP, USER, NAME = "app", "ann", "s1"
EPOCH = 1_767_225_600.0
"""The start of 2026, where the tests' clocks start."""


def said(
    name: str, author: str = "user", text: str | None = None, **fields: Any
) -> Event:
    """Return an event of that id, at a time that the id does not tell."""
    state, deleted = fields.pop("state", {}), fields.pop("deleted", set())
    actions = EventActions(state_delta=state, state_deleted=deleted)
    return Event(
        **{
            "id": name,
            "author": author,
            "content": name if text is None else text,
            "timestamp": EPOCH,
            "actions": actions,
            **fields,
        }
    )


def answered(name: str, text: str | None = None, **fields: Any) -> Event:
    """Return an answer of the agent's."""
    return said(name, "agent", text, **fields)


def called(name: str, *calls: str, **fields: Any) -> Event:
    """Return an event by which the agent calls tools."""
    message = ChatMessage.from_openai(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call,
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"at": 1}'},
                }
                for call in calls
            ],
        }
    )
    return Event(id=name, author="agent", content=message, timestamp=EPOCH, **fields)


def returned(name: str, call: str, text: str = "found") -> Event:
    """Return an event that carries the result of a call."""
    message = ChatMessage.from_openai(
        {"role": "tool", "tool_call_id": call, "content": text}
    )
    return Event(id=name, author="agent", content=message, timestamp=EPOCH)


async def made(
    service: SessionService, session_id: str = NAME, **fields: Any
) -> Session:
    """Create the session that most tests use."""
    return await service.create_session(
        **{"app_name": APP, "user_id": USER, "session_id": session_id, **fields}
    )


async def found(service: SessionService, session_id: str = NAME) -> Session | None:
    """Read the session that most tests use."""
    return await service.get_session(app_name=APP, user_id=USER, session_id=session_id)


async def got(service: SessionService, session_id: str = NAME) -> Session:
    """Read the session that most tests use, which is there."""
    session = await found(service, session_id)
    assert session is not None
    return session


def ids(session: Session) -> list[str]:
    """Return the ids of its events; of a summary, `summary`."""
    return ["summary" if e.is_summary else e.id for e in session.events]


class Scribe:
    """A `Summarizer` that lists the texts, notes its input, and does as it is told.

    Attributes:
        inputs: the messages and the previous summary of each call.
        act: what happens before it answers.
        answer: what it answers; `None`: the first letters of the texts.
    """

    def __init__(
        self,
        act: Callable[[], Awaitable[None]] | None = None,
        answer: Any = None,
    ) -> None:
        self.inputs: list[tuple[tuple[str, ...], str | None]] = []
        self.act = act
        self.answer = answer

    async def summarize(
        self, messages: Sequence[ChatMessage], previous: str | None = None
    ) -> str:
        """Return a text that every input shortens to."""
        self.inputs.append((tuple(m.text for m in messages), previous))
        if self.act is not None:
            await self.act()
        if self.answer is None:
            return f"#{len(self.inputs)}:{len(messages)}"
        text: str = self.answer
        return text


def managed(scribe: Scribe, keep: int = 2, **fields: Any) -> SummarizerSessionManager:
    """Return a manager that summarises by hand, unless it is asked for more."""
    auto = fields.pop("auto_summarize", False)
    summarizer = SessionSummarizer(scribe, keep_recent_count=keep, **fields)
    return SummarizerSessionManager(summarizer=summarizer, auto_summarize=auto)


def shown(session: Session) -> dict[str, Any]:
    """Return all that a session shows, as JSON values; sets are sorted."""
    return {
        "id": [session.app_name, session.user_id, session.id, session.save_key],
        "state": session.state,
        "events": [shown_event(event) for event in session.events],
        "updated": session.last_update_time,
        "conversations": session.conversation_count,
        "revision": session.revision,
    }


def shown_event(event: Event) -> dict[str, Any]:
    """Return all that an event shows; of a summary not its random id."""
    fields = event.model_dump(mode="json")
    for held, name in (
        (fields, "long_running_tool_ids"),
        (fields["actions"], "state_deleted"),
    ):
        if held[name]:
            held[name] = sorted(held[name])
    if event.is_summary:
        del fields["id"]
    return {**fields, "seq": event.seq, "summary": event.is_summary}


def canonical(value: Any) -> str:
    """Return the canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def forget(session: Session) -> None:
    """Drop what was set on its state, so that nothing warns of it."""
    values, deleted = session.unsaved()
    session.confirm_state(values, deleted)
