"""Models and agents that the tests of runs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raf_session.messages import ChatMessage
from raf_session.runner import Runner
from raf_session.service import Event, Session, SessionService

__all__ = ("Script", "asks", "read", "run")

WHERE = {"app_name": "a", "user_id": "u", "session_id": "s"}


class Script:
    """A model that gives one answer after another, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[list[ChatMessage]] = []
        self.tools: list[Any] = []

    async def __call__(
        self, messages: list[ChatMessage], tools: Sequence[Any] = ()
    ) -> Any:
        self.requests.append(messages)
        self.tools = list(tools)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def asks(*calls: tuple[str, str, str]) -> dict[str, Any]:
    """Return a message that calls tools: id, name and arguments of each."""
    return {
        "content": None,
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
            for i, n, a in calls
        ],
    }


async def run(runner: Runner, message: object = "hi", **options: Any) -> list[Event]:
    """Run once in the session of the tests, and return what came."""
    given: dict[str, Any] = {"user_id": "u", "session_id": "s"} | options
    return [event async for event in runner.run_async(new_message=message, **given)]


async def read(service: SessionService) -> Session:
    """Return the session of the tests as it is stored."""
    session = await service.get_session(**WHERE)
    assert session is not None
    return session
